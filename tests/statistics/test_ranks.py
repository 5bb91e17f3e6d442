from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import average_precision_score, roc_auc_score

from adjudge.statistics.ranks import (
    auroc,
    auroc_of,
    average_precision_of,
    kendall,
    kendall_of,
    spearman,
    spearman_of,
)

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=14)


@given(ROWS)
@settings(max_examples=120, deadline=None)
def test_weights_are_copies_of_rows(rows: list[tuple[int, int, int]]) -> None:
    first, second = (np.array([row[at] for row in rows], dtype=float) for at in (0, 1))
    weights = np.array([row[2] for row in rows], dtype=float)
    a, b = (np.repeat(side, weights.astype(int)) for side in (first, second))
    for made, told in ((spearman_of, stats.spearmanr), (kendall_of, stats.kendalltau)):
        found = made(first, second)(weights)
        if len(a) < 2 or len(set(a)) < 2 or len(set(b)) < 2:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(told(a, b).statistic, abs=1e-9)
    labels = (second > 0).astype(float)
    drawn = np.repeat(labels, weights.astype(int))
    area, precision = auroc_of(first, labels)(weights), average_precision_of(first, labels)(weights)
    if 0 < drawn.sum() < len(drawn):
        assert area == pytest.approx(roc_auc_score(drawn, a))
        assert precision == pytest.approx(average_precision_score(drawn, a))
    else:
        assert math.isnan(area)
        assert math.isnan(precision) == (not drawn.any())


def test_long_lists_with_and_without_ties_equal_scipy() -> None:
    draw = np.random.default_rng(1)
    for size, levels in ((1000, 5), (1777, 10**6), (64, 10**6), (65, 3)):
        first = draw.integers(levels, size=size).astype(float)
        second = first + draw.integers(levels, size=size)
        assert kendall(first, second) == pytest.approx(stats.kendalltau(first, second).statistic)
        assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)


def test_what_says_nothing_is_unknown() -> None:
    assert spearman([], []) is None
    assert kendall([], []) is None
    assert spearman([0.1] * 7, [1, 2, 3, 4, 5, 6, 7]) is None
    assert kendall([0.1] * 7, [1, 2, 3, 4, 5, 6, 7]) is None
    assert auroc([1, 2], [1, 1]) is None


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="as many numbers"):
        spearman([1, 2], [1])
    with pytest.raises(ValueError, match="not finite"):
        kendall([1, math.nan], [1, 2])
    with pytest.raises(ValueError, match=r"label is .*0\.5"):
        auroc([1, 2], [0.5, 1])
