"""NeMo Gym: a resources server that scores in its own process, or asks a reward server.

    Server = resources_server()                # app.py of the resources server
    if __name__ == "__main__":
        Server.run_webserver()

    math_adjudge:                              # its config
      resources_servers:
        math_adjudge: {entrypoint: app.py, domain: math, scorer: math, reference: expected_answer}

The reward must be a number there.  One that is none is sent as 0 with `failure_reason` and `mask_sample`, which also
stands in `instance_config`, where NeMo RL reads it; a failed one has `_ng_failure_class` too, with which Gym writes the
rollout to its file of failures and tries it again later.  Gym's own metrics count a masked sample as 0.

Tried with NeMo Gym 0.4.0.  Not covered: tools, sessions and the agent, which are Gym's; and rows that go to a server
without Gym's own (`POST /verify` of `adjudge serve`).
"""

from __future__ import annotations

import importlib
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.one_by_one import OneByOne
from adjudge.rl_integration.adapters.row import extra_in, name_in, reference_in
from adjudge.rl_integration.server.dialects.responses_object import (
    VERDICT,
    finish_reason_of,
    masked,
    prompt_of,
    response_of,
)


def resources_server() -> Any:
    """Return the class of the resources server; a subclass of Gym's `SimpleResourcesServer`.

    Its config has, beside Gym's own fields:

    - `scorer`: anything `adjudge.load` takes; with `reward_server`, the scorer's name there.
    - `reference`: the row's field that holds the reference, "a.b" for b in a; "" for scorers that need none.
    - `group`: the row's field that rollouts of one prompt share; "" for none.
    - `reward_server`: a reward server's address; "" to score in this process.

    Raises:
        ModuleNotFoundError: this is not an environment of Gym's.
    """
    from pydantic import ConfigDict

    gym: Any = importlib.import_module("nemo_gym.base_resources_server")

    class AdjudgeConfig(gym.BaseResourcesServerConfig):  # type: ignore[misc]
        scorer: Any = None
        reference: str = "expected_answer"
        group: str = ""
        reward_server: str = ""

    if hasattr(gym, "ReverifyMode"):  # after 0.4.0; stored rollouts may be verified again, since nothing is kept
        AdjudgeConfig.REVERIFY_MODE = gym.ReverifyMode.STATELESS

    class RowAndResponse(gym.BaseVerifyRequest):  # type: ignore[misc]
        model_config = ConfigDict(extra="allow")  # a row's own fields are dropped otherwise

    class Verified(gym.BaseVerifyResponse):  # type: ignore[misc]
        model_config = ConfigDict(extra="allow")

    class AdjudgeResourcesServer(gym.SimpleResourcesServer):  # type: ignore[misc]
        config: AdjudgeConfig

        def model_post_init(self, context: Any) -> None:
            super().model_post_init(context)
            given = self.config
            self._asked = OneByOne(
                "NeMo Gym", scorer=given.scorer, server=given.reward_server or None, fallback=None, max_failed=1
            )
            self._asked.check_alone()

        async def verify(self, body: RowAndResponse) -> Verified:
            (score,) = await self._asked.scores([_sample(body, self.config.reference, self.config.group)])
            row = {name: value for name, value in body.model_dump().items() if name not in VERDICT}
            return Verified(**row | masked(body.model_extra or {}, score.value is not None) | _verdict(score))

    AdjudgeResourcesServer.verify.__annotations__ = {"body": RowAndResponse, "return": Verified}  # FastAPI reads them
    return AdjudgeResourcesServer


def _sample(body: Any, reference: str, group: str) -> Sample:
    row = body.model_extra or {}
    asked, response = body.responses_create_params.model_dump(mode="json"), body.response.model_dump(mode="json")
    return Sample(
        prompt=prompt_of(asked),
        response=response_of(response),
        reference=reference_in(row, reference, "NeMo Gym"),
        group=name_in(row, group, "group", "NeMo Gym"),
        finish_reason=finish_reason_of(response),
        extra=extra_in(row, reference),
    )


def _verdict(score: Score) -> dict[str, Any]:
    if score.value is not None:
        return {"reward": score.value}
    why = f"{score.status} ({score.reason}): {str(dict(score.evidence))[:300]}"
    verdict = {"reward": 0.0, "failure_reason": why}
    return verdict if score.status == "abstained" else {**verdict, "_ng_failure_class": "verifier_error"}
