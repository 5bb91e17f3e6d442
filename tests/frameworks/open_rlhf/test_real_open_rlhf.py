"""OpenRLHF itself, with our reward: both its reward clients, its rollout actor under Ray, its generator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import write_model
from tests.frameworks.environment import run_in
from tests.frameworks.pages import blocks
from tests.rl_integration.server.conftest import served

from adjudge.rl_integration.server.base.config import ServerConfig

HERE = Path(__file__).parent
FILES = {
    "lenient": "reward_func = OpenRlhfReward('math', fallback=-0.5, end_tokens=['<|end|>'])",
    "raising": "def reward_func(queries, prompts, labels):\n    raise ValueError('nobody sees this')",
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("open_rlhf")
    model = write_model(folder / "model")
    for name, line in FILES.items():
        text = f"from adjudge.openrlhf import OpenRlhfReward\n\n{line}\n"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (shown,) = blocks("OpenRLHF", "from adjudge.")  # as the page has it, but for what ends this model's answers
    (folder / "strict.py").write_text(shown.replace("<|im_end|>", "<|end|>"), encoding="utf-8")
    with served({"math": "math"}, ServerConfig(port=0)) as address:
        return run_in("open_rlhf", HERE / "real_open_rlhf.py", str(model), address, str(folder))


ZERO, HALF, ONE = [0.0] * 2, [-0.5] * 2, [1.0] * 2


def test_a_python_file_gives_rewards_to_its_actor_and_generator(ran: Any) -> None:
    """Two answers to each prompt: cut off, right, broken gold with a fallback, wrong."""
    found = ran["ray"]["lenient"]
    assert found["rewards"] == found["scores"] == ZERO + ONE + HALF + ZERO
    assert found["shape"] == [8], "one number for each, as its own reward models give"
    assert found["info"]["reward_valid"] == ONE + ONE + ZERO + ONE
    assert found["info"]["reward_failed"] == ZERO + ZERO + ONE + ZERO
    assert found["info"]["reward_abstained"] == ZERO * 4
    assert found["prompts"] == [f"Give {what}." for what in ("long", "right", "right", "wrong") for _ in range(2)]


def test_its_dynamic_filter_reads_the_scores(ran: Any) -> None:
    assert ran["ray"]["filtered"] == ["Give right."] * 2


def test_without_a_fallback_the_run_ends_with_our_reason(ran: Any) -> None:
    said = ran["ray"]["strict"]
    assert said.startswith("RayTaskError(StopRun)")
    assert "StopRun: adjudge: a sample failed (gold_unparsable)" in said
    assert said.endswith("fallback=NUMBER")


def test_why_an_ordinary_exception_would_not_do(ran: Any) -> None:
    """OpenRLHF drops it and goes on without a reward; should that change, `StopRun` can become an ordinary one."""
    assert [one["reward"] for one in ran["raised"]] == [None, None]


def test_its_http_client_and_our_server_understand_each_other(ran: Any) -> None:
    assert [one["reward"] for one in ran["http"]] == [[1.0], [0.0]]
    assert ran["http_fallback"] == [{"reward": [-1.0], "scores": [-1.0], "extra_logs": {"reward_valid": [0.0]}}]
    assert ran["http_failed"][0]["reward"] is None, "after five tries; it does not look at the answer's text"
