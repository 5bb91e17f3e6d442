"""NeMo Gym's own resources server with our reward, and its own models against our `/verify`; prints JSON."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import yaml
from fastapi.testclient import TestClient
from tests.frameworks.pages import pasted

from adjudge.nemo_gym import resources_server
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.service import RewardService

warnings.simplefilter("ignore")
EXAMPLE = Path(__file__).parents[3] / "examples" / "frameworks" / "nemo_gym" / "math_adjudge.yaml"
gym: Any = import_module("nemo_gym.base_resources_server")
utils: Any = import_module("nemo_gym.server_utils")


class Declines:
    """Judges nothing."""

    name = "declines"
    fingerprint = "declines:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.abstained("out_of_scope") for _ in samples]


def served(**options: Any) -> TestClient:
    """Gym's application, as it sets it up itself."""
    kind = resources_server()
    options = {"entrypoint": "app.py", "name": "adjudge", "host": "127.0.0.1", "port": 1, **options}
    config = kind.model_fields["config"].annotation.model_validate(options)
    server = kind(config=config, server_client=MagicMock(spec=utils.ServerClient))
    return TestClient(server.setup_webserver(), raise_server_exceptions=False)


def rollout(text: str, ended: str | None = None, **row: Any) -> dict[str, Any]:
    """What an agent of Gym's sends, made by Gym's own models."""
    said = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [said]}
    response = {"id": "r", "created_at": 1.0, "model": "m", "object": "response", "output": [message]}
    response |= {"parallel_tool_calls": False, "tool_choice": "none", "tools": []}
    if ended:  # as `vllm_model` says it, without a status
        response["incomplete_details"] = {"reason": ended}
    asked = {"input": [{"role": "user", "content": "1+1?"}]}
    body = gym.BaseVerifyRequest(responses_create_params=asked, response=response)
    sent: dict[str, Any] = body.model_dump(mode="json") | row
    return sent


def verdict(client: TestClient, sent: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/verify", json=sent)
    if answer.status_code != 200:
        return {"status": answer.status_code}
    body = answer.json()
    gym.BaseVerifyResponse.model_validate(body)
    known = "reward mask_sample instance_config failure_reason _ng_failure_class uuid expected_answer".split()
    return {"status": 200} | {name: body[name] for name in known if name in body}


def main() -> None:
    example = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["math_adjudge"]["resources_servers"]["math_adjudge"]
    math, named = served(**example), served(scorer="exact", reference="meta.gold", group="uuid")
    cases = {
        "right": rollout(r"\boxed{2}", expected_answer="2", uuid="u1"),
        "wrong": rollout(r"\boxed{3}", expected_answer="2", uuid="u2"),
        "broken": rollout(r"\boxed{2}", expected_answer="\\frac{1}{", uuid="u3"),
        "cut off": rollout(r"\boxed{2}", "max_output_tokens", expected_answer="2", uuid="u6"),
    }
    found: dict[str, Any] = {name: verdict(math, sent) for name, sent in cases.items()}
    found["declined"] = verdict(served(scorer=Declines(), reference=""), rollout("x"))
    found["no field"] = verdict(math, rollout("x", uuid="u4"))
    found["its own field"] = verdict(named, rollout("Paris", meta={"gold": "Paris"}, uuid="u5"))
    rows = [math.post("/verify", json=sent).json() for sent in (cases["right"], cases["wrong"])]
    marked = [row | {"_ng_task_index": 0, "_ng_rollout_index": at} for at, row in enumerate(rows)]
    metrics = math.post("/aggregate_metrics", json={"verify_responses": marked})
    found["mean"] = metrics.json()["agent_metrics"]["mean/reward"]
    with RewardService({"math": "math"}) as service, TestClient(application(service, ServerConfig())) as ours:
        found["our server"] = {name: verdict(ours, sent) for name, sent in cases.items()}
    marked_once = math.post("/verify", json=cases["broken"]).json()
    again = math.post("/verify", json=marked_once | {"expected_answer": "2"}).json()
    found["verified again"] = [
        again.get(name) for name in ("reward", "mask_sample", "failure_reason", "_ng_failure_class")
    ]
    found["shown"] = pasted("NeMo Gym")["resources_server"]() is not None
    found["version"] = version("nemo-gym")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
