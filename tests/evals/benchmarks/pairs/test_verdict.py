from __future__ import annotations

from itertools import product

import pytest

from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.benchmarks.pair import both_orders, pair_accuracy, verdict


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


def test_the_verdict_agrees_with_the_sum_that_pair_accuracy_counts() -> None:
    shares = (None, 0.0, 0.5, 1.0)
    for first, second in product(shares, shares):
        one = outcome(first, second, compared=True)
        for gold, better in ((1.0, 1), (0.0, -1)):
            assert pair_accuracy([both_orders(one, gold)]).summed == (verdict(one) == better)


def test_lists_and_scores_of_single_responses_are_no_pairs_in_two_orders() -> None:
    with pytest.raises(ValueError, match="has 3 samples; a pair has two"):
        verdict(outcome(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="was not seen in two orders"):
        both_orders(outcome(1.0, 2.0), 1.0)
