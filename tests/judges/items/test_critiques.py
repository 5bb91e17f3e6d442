"""Votes over critiques."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.judges.items.critic import first_error, wrong_degrees


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
