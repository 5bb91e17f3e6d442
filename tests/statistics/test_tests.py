from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from adjudge.statistics import significance
from adjudge.statistics.intervals import NO_DRAWS, Draws
from adjudge.statistics.significance import binomial_p, holm, mcnemar, permutation_test


@given(wins=st.integers(0, 60), losses=st.integers(0, 60), agreed=st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_mcnemar_is_the_binomial_test_of_the_cases_that_differ(wins: int, losses: int, agreed: int) -> None:
    first = [1] * wins + [0] * losses + [1] * agreed
    second = [0] * wins + [1] * losses + [1] * agreed
    if not first:
        assert mcnemar(first, second) is None
        return
    told = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar(first, second) == pytest.approx(told, rel=1e-9)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_mid_p_counts_the_outcome_that_was_seen_as_half() -> None:
    """Fagerland, Lydersen and Laake 2013, table 1 (airway hyper-responsiveness): 1 against 7 gives 0.0391."""
    first, second = [1] + [0] * 7, [0] + [1] * 7
    assert mcnemar(first, second) == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar(first, second, mid_p=True) == pytest.approx(0.0391, abs=5e-5)
    assert binomial_p(5, 10, mid_p=True) == pytest.approx(1.0)


def test_mcnemar_of_a_million_cases_is_quick_and_exact() -> None:
    assert binomial_p(499_000, 1_000_000) == pytest.approx(stats.binomtest(499_000, 1_000_000).pvalue, rel=1e-6)
    assert binomial_p(0, 100_000) == 0.0


def test_few_clusters_are_counted_out() -> None:
    differences = np.array([0.5, 1.0, -0.25, 0.0, 0.75, 0.5])
    clusters = ["a", "a", "b", "c", "d", "e"]
    sums = [1.5, -0.25, 0.75, 0.5]
    flips = [abs(math.fsum(s * x for s, x in zip(signs, sums, strict=True))) for signs in
             itertools.product((1, -1), repeat=4)]  # fmt: skip
    told = sum(flip >= 2.5 - 1e-12 for flip in flips) / 16
    assert permutation_test(differences, clusters, NO_DRAWS) == told == 0.25


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
@settings(max_examples=40, deadline=None)
def test_flips_are_those_of_scipy(differences: list[int]) -> None:
    values = np.array(differences, dtype=float)
    told = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", alternative="two-sided", n_resamples=np.inf
    )
    names = [str(at) for at in range(len(values))]
    assert permutation_test(values, names, NO_DRAWS) == pytest.approx(min(1.0, told.pvalue))
    tenths = permutation_test(values / 10, names, NO_DRAWS)  # equal sums, added in another order, are not quite equal
    assert tenths == permutation_test(values, names, NO_DRAWS)


@pytest.mark.parametrize("equal", [True, False])
def test_many_clusters_are_drawn_with_the_data_as_one_more(equal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawn p of 40 clusters is that of the normal approximation, in blocks of any size, and never 0."""
    draw = np.random.default_rng(1)
    values = draw.choice([-1.0, 1.0], p=[0.35, 0.65], size=40) * (1 if equal else draw.uniform(0.5, 1.5, size=40))
    names = [str(at) for at in range(40)]
    draws = Draws(rounds=20_000)
    drawn = permutation_test(values, names, draws)
    assert drawn is not None
    if equal:
        assert drawn == pytest.approx(mcnemar(values > 0, values < 0), abs=0.006)
    else:
        told = 2 * stats.norm.sf(abs(values.sum()) / np.sqrt((values**2).sum()))
        assert drawn == pytest.approx(told, abs=0.02)
    monkeypatch.setattr(significance, "_BLOCK", 400)
    assert permutation_test(values, names, draws) == drawn
    assert permutation_test(np.ones(40), names, Draws(rounds=99)) == pytest.approx(0.01)
    assert permutation_test(values, names, NO_DRAWS) is None


def test_without_a_difference_p_is_one_as_often_as_it_says() -> None:
    draw = np.random.default_rng(2)
    names = [str(at // 2) for at in range(60)]
    ps = [permutation_test(draw.normal(size=60), names, Draws(rounds=199, seed=seed)) for seed in range(200)]
    assert 2 <= sum(p is not None and p <= 0.05 for p in ps) <= 20  # 10 expected
    assert permutation_test([0.0, 0.0], ["a", "b"], Draws()) == 1.0
    assert permutation_test([1.0, -1.0], ["a", "a"], Draws()) == 1.0
    assert permutation_test([], [], Draws()) is None


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_holm_is_the_step_down_rule(ps: list[float | None]) -> None:
    """A hypothesis is rejected at a level when every smaller p is, each at level / (tests left)."""
    adjusted = holm(ps)
    assert [p is None for p in ps] == [p is None for p in adjusted]
    known = [p for p in ps if p is not None]
    for level in (0.01, 0.05, 0.2, 0.7):
        rejected = set()
        for rank, p in enumerate(sorted(known)):
            if p * (len(known) - rank) > level:
                break
            rejected.add(p)
        for one, fixed in zip(ps, adjusted, strict=True):
            if one is not None and fixed is not None:
                assert (fixed <= level) == (one in rejected)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="permutation_test takes parts"):
        mcnemar([0.5], [1])
    with pytest.raises(ValueError, match="same cases"):
        mcnemar([1, 0], [1])
    with pytest.raises(ValueError, match="at most half"):
        binomial_p(3, 4)
    with pytest.raises(ValueError, match="finite one for each"):
        permutation_test([math.nan], ["a"], Draws())
    with pytest.raises(ValueError, match=r"p-value is 1\.5"):
        holm([1.5])
