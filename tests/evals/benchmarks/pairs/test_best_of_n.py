from __future__ import annotations

import math

import pytest

from adjudge.evals.benchmarks.pair import best_of_n


def test_lists_by_hand() -> None:
    found = best_of_n([[3, 1, 2], [2, 2, 1], [1, 2, 3], [1, 1, 1], [None, 1, None], [1, None, None]])
    assert (found.strict, found.tied) == (2 / 6, 2 / 6)
    assert found.credit == pytest.approx((1 + 1 / 2 + 1 / 3 + 1) / 6)
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 1.5 + 1 / 3 + 1 / 2 + 1 / 3 + 1) / 6)
    assert found.best_reciprocal_rank == pytest.approx((1 + 1 + 1 / 3 + 1 + 1 / 3 + 1) / 6)


def test_saying_the_same_of_everything_gets_what_guessing_gets() -> None:
    found = best_of_n([[5] * 10] * 20, right=3)
    assert [found.strict, found.tied, found.credit] == pytest.approx([0.0, 1.0, 0.1])
    assert found.best_reciprocal_rank == 1.0


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="no lists"):
        best_of_n([])
    with pytest.raises(ValueError, match="list 1 has 0 scores"):
        best_of_n([[1.0], []])
    with pytest.raises(ValueError, match="scores are finite"):
        best_of_n([[1.0, math.nan]])
