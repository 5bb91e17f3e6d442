"""verl's own trainer, as it runs by default, with what the page for users who start with RL shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adjudge


@pytest.fixture
def ran(under_ray: Any) -> Any:
    return under_ray["trainer"]


def test_each_answer_has_the_score_that_our_scorer_gives_it(ran: Any, page: Path) -> None:
    answers = [*ran["validation"], *(answer for step in ran["rollouts"] for answer in step)]
    assert len(answers) == 16 + 2 * 16
    for answer in answers:
        gold = answer["gts"]
        reference = json.loads(gold) if gold.startswith("{") else gold
        score = adjudge.score("", answer["output"], reference, scorer=str(page / "reward.yaml"))
        assert answer["score"] == pytest.approx(score.value), answer
    assert {0.1, 1.1} <= {round(answer["score"], 3) for answer in answers}, "not always the same"


def test_every_row_of_the_page_is_validated_with_the_extra_columns(ran: Any) -> None:
    (logged, *_), answers = ran["metrics"], ran["validation"]
    assert len({answer["gts"] for answer in answers}) == 16
    assert {answer["reward_valid"] for answer in answers} == {1.0}
    for source in ("gsm8k", "taco"):
        values = {name: logged[f"val-aux/{source}/{name}/mean@1"] for name in ("reward_valid", "reward_failed")}
        assert values == {"reward_valid": 1.0, "reward_failed": 0.0}
    means = [logged[f"val-core/{source}/acc/mean@1"] for source in ("gsm8k", "taco")]
    assert sum(means) / 2 == pytest.approx(sum(answer["score"] for answer in answers) / 16)


def test_the_trainer_logs_and_learns_from_these_rewards(ran: Any) -> None:
    _, *steps = ran["metrics"]
    assert [step["training/global_step"] for step in steps] == [1, 2]
    for step, answers in zip(steps, ran["rollouts"], strict=True):
        scores = [answer["score"] for answer in answers]
        for name in ("critic/score", "critic/rewards"):
            assert step[f"{name}/mean"] == pytest.approx(sum(scores) / len(scores))
            assert [step[f"{name}/min"], step[f"{name}/max"]] == pytest.approx([min(scores), max(scores)])
        assert step["training/off_policy/trajectory_staleness/max"] == 0, "sampled from the newest weights"
        assert step["training/rollout_probs_diff_mean"] < 0.03, "by the same policy, which the trainer has in bfloat16"
    assert any(step["actor/grad_norm"] > 0 for step in steps)
    assert ran["changed"] > 1e-4
