"""The numbers of a batch, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.run_logger import advantage_facts, batch_facts, part_means


def rollout(length: int, *, version: int = 0, cut: bool = False) -> Rollout:
    return Rollout(
        id="0",
        task=Task(id="0", prompt="?"),
        prompt_ids=(1,),
        ids=(2,) * length,
        logprobs=np.zeros(length, dtype=np.float32),
        own=np.ones(length, dtype=np.bool_),
        text="",
        finish_reason="length" if cut else "stop",
        version=version,
    )


def test_shares_means_and_reasons() -> None:
    scores = [
        Score.scored(1.0),
        Score.scored(0.0),
        Score.failed("engine_timeout"),
        Score.failed("engine_timeout"),
        Score.failed("gold_unparsable"),
        Score.abstained("low_confidence"),
        Score.scored(0.5),
        Score.scored(0.5),
    ]
    rollouts = [rollout(2, version=1, cut=at < 2) for at in range(8)]
    assert batch_facts(rollouts, scores, step=3) == {
        "failed": 3 / 8,
        "abstained": 1 / 8,
        "failed/engine_timeout": 2 / 8,
        "failed/gold_unparsable": 1 / 8,
        "reward": 0.5,
        "reward_std": pytest.approx((0.5 / 3) ** 0.5),
        "completion_length": 2.0,
        "clipped_ratio": 2 / 8,
        "staleness": 1.0,
    }


def test_nothing_judged_has_no_spread() -> None:
    assert "reward_std" not in batch_facts([rollout(1)], [Score.failed("engine_timeout")], step=1)


def test_parts_are_means_over_the_answers_for_which_they_were_judged() -> None:
    inner = replace(Score.scored(0.5), parts={"a": Score.scored(1.0), "b": Score.scored(0.0)})
    scores = [
        replace(Score.scored(1.0), parts={"math": Score.scored(1.0), "style": inner}),
        replace(Score.scored(0.0), parts={"math": Score.scored(0.0), "style": Score.failed("engine_timeout")}),
        replace(Score.scored(0.0), parts={"math": Score.failed("gold_unparsable")}),
    ]
    assert part_means(scores) == {"parts/math": 0.5, "parts/style": 0.5, "parts/style/a": 1.0, "parts/style/b": 0.0}


def test_items_that_are_other_ones_for_every_prompt_are_not_told() -> None:
    scores = [
        replace(Score.scored(1.0), parts={"always": Score.scored(1.0), f"item {at}": Score.scored(1.0)})
        for at in range(100)
    ]
    assert part_means(scores) == {"parts/always": 1.0}
    many = replace(Score.scored(1.0), parts={f"{at:03}": Score.scored(0.0) for at in range(1000)})
    assert len(part_means([many])) == 24


def test_advantages_of_answers_that_count() -> None:
    rows = [np.array([1.0, 3.0]), np.array(-2.0), np.array([9.0]), np.zeros(0)]
    found = advantage_facts(rows, np.array([True, True, False, True]))
    assert found == {"advantage_mean": 0.0, "advantage_std": 2.0}
    assert advantage_facts(rows, np.zeros(4, dtype=np.bool_)) == {}
