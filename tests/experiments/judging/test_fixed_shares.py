"""Kinds of tasks come in their shares, and each kind is told of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from experiments.judging.fixed_shares import FixedShares, of_kind
from tests.rl_integration.trainer.judge_tasks.written import written

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Task, TaskOrder


def kinds(count: int, kind: str) -> list[Task]:
    return of_kind([Task(id=str(number), prompt="x", reference="A") for number in range(count)], kind)


def shares(critiques: float, programs: float) -> FixedShares:
    return FixedShares(
        {
            "critique": (TaskOrder(kinds(50, "critique"), seed=0), critiques),
            "code": (TaskOrder(kinds(50, "code"), seed=0), programs),
        }
    )


def test_kinds_come_in_their_shares() -> None:
    source = shares(0.2, 0.8)
    counts = [Counter(task.extra["kind"] for task in source.draw(8)) for _ in range(5)]
    assert sum(counts, Counter()) == {"critique": 8, "code": 32}
    assert {count["critique"] for count in counts} == {1, 2}


def test_shares_go_on_from_their_state() -> None:
    whole, again = shares(1, 3), shares(1, 3)
    whole.draw(7)
    again.restore(whole.state())
    assert [whole.draw(7) for _ in range(3)] == [again.draw(7) for _ in range(3)]


def test_each_kind_is_told_of_its_own() -> None:
    rollouts = [written(task) for task in (*kinds(1, "critique"), *kinds(2, "code"))]
    scores = [Score.scored(1.0), Score.scored(0.5), Score.failed("engine_timeout")]
    assert shares(1, 1).observe(rollouts, scores) == {"critique.reward": 1.0, "code.reward": 0.5}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FixedShares({}), "no kinds"),
        (lambda: shares(0, 1), "the share of 'critique' is 0"),
        (
            lambda: FixedShares({"code": (TaskOrder(kinds(3, "critique"), seed=0), 1.0)}).draw(1),
            "whose kind is 'critique'",
        ),
    ],
)
def test_kinds_that_cannot_be_mixed_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
