"""Coefficients from sums against the plain ones, scikit-learn's, and ones written out here."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from tests.statistics.plain_agreement import fleiss_kappa, krippendorff_alpha

from adjudge.evals.trust.agreement import pair_agreement
from adjudge.evals.trust.panel import class_agreement, number_agreement
from adjudge.statistics.intervals import NO_DRAWS, Draws

LABELS = 4
ITEMS = st.lists(
    st.lists(st.one_of(st.none(), st.integers(0, LABELS - 1)), min_size=3, max_size=3), min_size=1, max_size=12
)


def plain_ac1(items: list[list[int]]) -> float | None:
    """Gwet 2008, with as many verdicts on an item as there are."""
    paired = [item for item in items if len(item) > 1]
    if not paired:
        return None
    agree = [sum(a == b for a, b in itertools.permutations(item, 2)) / (len(item) * (len(item) - 1)) for item in paired]
    some = [item for item in items if item]
    shares = [sum(item.count(k) / len(item) for item in some) / len(some) for k in range(LABELS)]
    chance = sum(share * (1 - share) for share in shares) / (LABELS - 1)
    return (sum(agree) / len(agree) - chance) / (1 - chance)


def same(found: float | None, told: float | None) -> bool:
    return found is None if told is None else found == pytest.approx(told, abs=1e-9)


@given(ITEMS)
@settings(max_examples=150, deadline=None)
def test_coefficients_of_classes_are_the_plain_ones(items: list[list[int | None]]) -> None:
    codes = np.array([[-1 if code is None else code for code in item] for item in items])
    alone = [str(at) for at in range(len(items))]
    found = {k: v.value for k, v in class_agreement(codes, LABELS, alone, NO_DRAWS, scale="ordinal").items()}
    gaps: list[list[float | str | None]] = [[None if x is None else float(x) for x in item] for item in items]
    assert same(found["Krippendorff's alpha"], krippendorff_alpha(gaps))
    assert same(found["Krippendorff's alpha, ordinal"], krippendorff_alpha(gaps, metric="ordinal"))
    whole: list[Counter[Hashable]] = [Counter(x for x in item if x is not None) for item in items if None not in item]
    assert same(found["Fleiss' kappa"], fleiss_kappa(whole) if whole else None)
    assert same(found["Gwet's AC1"], plain_ac1([[x for x in item if x is not None] for item in items]))


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from([-2.5, 0.0, 0.1, 3.0, 1e4])), min_size=3, max_size=3),
        min_size=1,
        max_size=10,
    )
)
@settings(max_examples=100, deadline=None)
def test_alpha_of_numbers_is_the_plain_one(items: list[list[float | None]]) -> None:
    values = np.array([[math.nan if x is None else x for x in item] for item in items])
    if not np.isfinite(values).any():
        return
    found = number_agreement(values, [str(at) for at in range(len(items))], NO_DRAWS)
    gaps: list[list[float | str | None]] = [list(item) for item in items]
    told = krippendorff_alpha(gaps, metric="interval")
    if told is not None and found["Krippendorff's alpha, interval"].value is not None:
        assert found["Krippendorff's alpha, interval"].value == pytest.approx(told, abs=1e-6)
    far = [
        float(np.mean([abs(a - b) for a, b in itertools.combinations(known, 2)]))
        for item in items
        if len(known := [x for x in item if x is not None]) > 1
    ]
    assert same(found["difference"].value, sum(far) / len(far) if far else None)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=20))
@settings(max_examples=100, deadline=None)
def test_kappas_of_two_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    one, other = ([pair[at] for pair in pairs] for at in (0, 1))
    found = pair_agreement(
        np.array(one, dtype=float),
        np.array(other, dtype=float),
        [str(at) for at in range(len(pairs))],
        NO_DRAWS,
        scale="ordinal",
        labels=LABELS,
    )
    if len({*one, *other}) < 2:
        assert found["kappa"].value is found["quadratic kappa"].value is None
        return
    for name, weights in (("kappa", None), ("linear kappa", "linear"), ("quadratic kappa", "quadratic")):
        told = cohen_kappa_score(one, other, weights=weights, labels=range(LABELS))
        assert found[name].value == pytest.approx(told, abs=1e-9)
    assert same(found["AC1"].value, plain_ac1([list(pair) for pair in pairs]))
    if len(set(one)) > 1 and len(set(other)) > 1:
        assert found["Spearman"].value == pytest.approx(stats.spearmanr(one, other).statistic)
        assert found["Kendall"].value == pytest.approx(stats.kendalltau(one, other).statistic)


def test_a_paradox_of_kappa_is_none_of_ac1() -> None:
    """Two raters who agree on 90 of 100 items, nearly all of them of one class: kappa is about 0, AC1 is high."""
    codes = np.array([[0, 0]] * 90 + [[0, 1]] * 5 + [[1, 0]] * 5)
    found = class_agreement(codes, 2, [str(at) for at in range(100)], NO_DRAWS)
    assert found["Krippendorff's alpha"].known < 0
    assert found["Gwet's AC1"].known == pytest.approx((0.9 - 0.095) / (1 - 0.095))


def test_bounds_draw_whole_clusters() -> None:
    draw = np.random.default_rng(1)
    first = draw.integers(3, size=120)
    second = np.where(draw.random(120) < 0.7, first, draw.integers(3, size=120))
    codes = np.column_stack([first, second])
    alone = class_agreement(codes, 3, [str(at) for at in range(120)], Draws(rounds=500))
    copied = class_agreement(np.repeat(codes, 4, axis=0), 3, [str(at // 4) for at in range(480)], Draws(rounds=500))
    for name in ("raw", "Gwet's AC1", "Fleiss' kappa"):
        assert [copied[name].low, copied[name].high] == pytest.approx([alone[name].low, alone[name].high])
        low, high = alone[name].low, alone[name].high
        assert low is not None
        assert high is not None
        assert low < alone[name].known < high


def test_items_that_one_rater_missed_are_not_of_the_pair() -> None:
    first, second = np.array([0, 1, math.nan, 1.0]), np.array([0, math.nan, 1, 1.0])
    found = pair_agreement(first, second, list("abcd"), Draws(rounds=20), scale="nominal", labels=2)
    assert (found["agreement"].value, found["agreement"].n) == (1.0, 2)
    empty = pair_agreement(first[:0], second[:0], [], Draws(rounds=20), scale="interval", labels=0)
    assert {one.value for one in empty.values()} == {None}
