from __future__ import annotations

import pytest

from adjudge.evals.benchmarks.pair import BothOrders, pair_accuracy


def test_pairs_by_hand() -> None:
    found = pair_accuracy(
        [
            BothOrders(gold=1, straight=1, swapped=0.8),
            BothOrders(gold=1, straight=1, swapped=0),
            BothOrders(gold=0, straight=0, swapped=None),
            BothOrders(gold=0, straight=0.5, swapped=0.2),
            BothOrders(gold=0.5, straight=0.5, swapped=0.5),
            BothOrders(gold=1, straight=None, swapped=None),
            BothOrders(gold=1, straight=0, swapped=0.1),
            BothOrders(gold=0.5, straight=None, swapped=None),
        ]
    )
    assert (found.n, found.unjudged) == (8, 5)
    assert (found.straight, found.swapped, found.both) == (4 / 8, 3 / 8, 2 / 8)
    assert found.summed == 4 / 8
    assert found.agreement == 3 / 8, "two missing verdicts agree on nothing"
    assert found.mean == 3.5 / 8
    assert found.kappa == pytest.approx((3 / 5 - 7 / 25) / (1 - 7 / 25))


def test_a_judge_of_places_is_right_half_the_time_and_never_in_both_orders() -> None:
    pairs = [BothOrders(gold=place % 2, straight=1.0, swapped=0.0) for place in range(10)]
    found = pair_accuracy(pairs)
    assert (found.mean, found.both, found.summed, found.agreement, found.kappa) == (0.5, 0.0, 0.0, 0.0, 0.0)


def test_no_pairs_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        pair_accuracy([])
