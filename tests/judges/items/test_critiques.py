"""Votes over critiques, and CAPO's table."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.judges.items.critic import first_error, solution_reward, step_rewards, wrong_degrees


@pytest.mark.parametrize(
    ("vote", "degrees"),
    [("intersection", [1.0, 0.0, 0.0]), ("majority", [1.0, 1.0, 0.0]), ("average", [1.0, 2 / 3, 1 / 3])],
)
def test_critiques_vote(vote: Any, degrees: list[float]) -> None:
    assert wrong_degrees([{0, 1}, {0, 1, 2}, {0}], 3, vote=vote) == pytest.approx(degrees)


def test_half_is_no_majority() -> None:
    assert wrong_degrees([{0}, set()], 1, vote="majority") == [0.0]


@pytest.mark.parametrize(
    ("critiques", "steps", "vote", "complaint"),
    [([], 1, "majority", "at least one"), ([{1}], 1, "majority", "calls step 1"), ([{0}], 1, "any", "must be one of")],
)
def test_a_vote_that_cannot_be_counted_is_refused(critiques: Any, steps: int, vote: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        wrong_degrees(critiques, steps, vote=vote)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([2, 2, -1], (2, 2 / 3)), ([-1, 3], (3, 0.5)), ([4, 2], (2, 0.5)), ([-1, -1], (-1, 1.0))],
    ids=["most", "a draw does not pass", "the earlier", "none"],
)
def test_the_most_frequent_first_error_counts(answers: list[int], expected: tuple[int, float]) -> None:
    assert first_error(answers) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("right", "wrong", "reward"),
    [(True, [0, 0], 2.0), (True, [0, 1], 1.0), (False, [0, 0], 0.0), (False, [1, 1], -1.0), (True, [0.25], 1.75)],
)
def test_capo_pays_the_outcome_less_a_penalty(right: bool, wrong: list[float], reward: float) -> None:
    assert solution_reward(right, wrong) == reward


def test_only_wrong_steps_carry_the_penalty() -> None:
    assert step_rewards(True, [0, 1, 0.5]) == [2.0, 1.0, 1.5]
    assert step_rewards(False, [0, 1]) == [0.0, -1.0]


def test_no_penalty_may_outweigh_the_outcome() -> None:
    with pytest.raises(ValueError, match="need 0 <= penalty < outcome"):
        solution_reward(True, [1], outcome=1, penalty=1)
