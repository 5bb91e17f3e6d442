from __future__ import annotations

from dataclasses import replace

import pytest

from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.benchmarks.pairs import pair_measures, verdict
from adjudge.statistics.intervals import NO_DRAWS


def outcome(*values: float | None, compared: bool = False) -> Outcome:
    count = len(values)
    return Outcome(
        id="pair",
        gold={},
        cluster="prompt",
        part="",
        values=values,
        statuses=tuple("failed" if value is None else "scored" for value in values),
        reasons=("",) * count,
        cut_off=(False,) * count,
        steps=((),) * count,
        sizes=(0,) * count,
        step_counts=(0,) * count,
        compared=compared,
    )


@pytest.mark.parametrize(
    ("values", "who"),
    [((2.0, 1.0), 1), ((-1.0, 3.5), -1), ((0.0, 0.0), 0), ((None, 1.0), None), ((1.0, None), None), ((-0.0, 0.0), 0)],
)
def test_of_scores_the_higher_one_wins_and_a_missing_one_leaves_no_verdict(
    values: tuple[float | None, float | None], who: int | None
) -> None:
    assert verdict(outcome(*values)) == who


@pytest.mark.parametrize(
    ("values", "who"),
    [
        ((0.9, 0.2), 1),  # the first one wins both
        ((0.9, 0.9), 0),  # whoever is shown first wins
        ((0.1, 0.6), -1),
        ((0.5, 0.4), 1),  # a tie and a win
        ((0.5, 0.5), 0),
        ((0.6, 0.59), 0),  # each order counts once, however sure it is
        ((None, 0.3), 1),  # the order that is there decides
        ((0.3, None), -1),
        ((None, 0.5), 0),
        ((None, None), None),
    ],
)
def test_of_two_orders_the_sum_of_their_signs_decides(
    values: tuple[float | None, float | None], who: int | None
) -> None:
    assert verdict(outcome(*values, compared=True)) == who


def test_the_rates_of_two_orders_by_hand() -> None:
    values: list[tuple[int, float | None, float | None]] = [
        (0, 1.0, 0.2),
        (0, 1.0, 1.0),
        (1, 0.0, None),
        (1, 0.5, 0.8),
        (0, None, None),
        (0, 0.0, 0.9),
    ]
    pairs = [replace(outcome(one, other, compared=True), gold={"better": better}) for better, one, other in values]
    found = {one.name: one.interval.value for one in pair_measures(pairs, NO_DRAWS)}
    assert found["accuracy, as the file orders them"] == 3 / 6
    assert found["accuracy, swapped"] == 2 / 6
    assert found["right in both orders"] == 1 / 6
    assert found["same winner in both orders"] == 2 / 6, "two missing verdicts agree on nothing"


def test_a_list_is_no_pair() -> None:
    with pytest.raises(ValueError, match="has 3 samples; a pair has two"):
        verdict(outcome(1.0, 2.0, 3.0))
