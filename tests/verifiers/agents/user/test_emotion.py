"""The numbers of RLVER's state machine, by hand."""

from __future__ import annotations

import pytest

from adjudge.verifiers.agents.user.dialogue import Emotion


@pytest.mark.parametrize(
    ("value", "band", "over"),
    [
        (100, "happy", True),
        (99.5, "A", False),
        (70, "A", False),
        (69, "B", False),
        (40, "B", False),
        (39, "C", False),
        (10, "C", False),
        (9.5, "angry", True),
        (0, "angry", True),
    ],
)
def test_the_bands_are_those_published(value: float, band: str, over: bool) -> None:
    assert (Emotion(value).band, Emotion(value).over) == (band, over)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [(40, 7, 47), (40, 25, 50), (40, -25, 30), (95, 10, 100), (12, -10, 2), (10, 0, 10)],
)
def test_a_change_is_clipped_to_ten_and_the_feeling_to_its_ends(before: float, change: float, after: float) -> None:
    assert Emotion(before).after(change) == Emotion(after)


def test_it_starts_at_forty_and_is_worth_a_hundredth() -> None:
    assert Emotion() == Emotion(40.0)
    assert Emotion(47).reward == pytest.approx(0.47)


@pytest.mark.parametrize(("value", "change"), [(100, 1), (9, 1), (40, float("nan")), (40, float("inf"))])
def test_nothing_moves_a_feeling_that_is_final_or_by_no_number(value: float, change: float) -> None:
    with pytest.raises(ValueError, match="change"):
        Emotion(value).after(change)


@pytest.mark.parametrize("value", [-1, 101, float("nan")])
def test_a_feeling_outside_of_the_scale_is_none(value: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 100"):
        Emotion(value)
