"""The closed forms equal what counting all subsets gives, and stay exact where factorials would overflow."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.statistics.subsets import (
    all_among,
    chances,
    kl_of_best_of_n,
    pass_all_k,
    pass_at_k,
    powers_of_two,
)

KEYS = st.lists(st.one_of(st.integers(0, 3).map(float), st.just(math.nan)), min_size=1, max_size=7)


def counted(keys: list[float], n: int) -> list[Fraction]:
    """The chances, subset by subset: the highest key is chosen, equal ones share, and none is lowest of all."""
    found = [Fraction(0)] * len(keys)
    subsets = list(itertools.combinations(range(len(keys)), n))
    for subset in subsets:
        known = [keys[at] for at in subset if not math.isnan(keys[at])]
        best = [at for at in subset if not known or keys[at] == max(known)]
        for at in best:
            found[at] += Fraction(1, len(best) * len(subsets))
    return found


@given(KEYS)
def test_chances_are_those_of_counting_all_subsets(keys: list[float]) -> None:
    ns = range(1, len(keys) + 1)
    found = chances(np.array(keys), ns)
    for n, row in zip(ns, found, strict=True):
        assert row == pytest.approx([float(one) for one in counted(keys, n)], abs=1e-12)


@given(KEYS)
def test_chances_sum_to_one_and_do_not_depend_on_the_order(keys: list[float]) -> None:
    found = chances(np.array(keys), [len(keys), 1])
    assert found.sum(axis=1) == pytest.approx([1, 1])
    assert chances(np.array(keys[::-1]), [len(keys), 1])[:, ::-1] == pytest.approx(found)


def test_the_published_sum_over_sorted_responses_is_the_same_where_nothing_is_tied() -> None:
    draw = np.random.default_rng(0)
    proxy, gold = draw.normal(size=12), draw.normal(size=12)
    ordered = gold[np.argsort(proxy)]
    for n in (1, 3, 12):
        published = sum(math.comb(i - 1, n - 1) / math.comb(12, n) * ordered[i - 1] for i in range(n, 13))
        assert chances(proxy, [n])[0] @ gold == pytest.approx(published)


@pytest.mark.parametrize(("total", "n"), [(5, 2), (400, 64), (3000, 3000), (2000, 1)])
def test_all_among_equals_exact_fractions(total: int, n: int) -> None:
    found = all_among(total, n)
    for m in {0, n - 1, n, (n + total) // 2, total - 1, total}:
        exact = float(Fraction(math.comb(m, n), math.comb(total, n)))
        assert found[m] == pytest.approx(exact, rel=1e-11, abs=1e-300)


@given(st.integers(1, 9), st.data())
def test_pass_at_k_counts_subsets(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    subsets = list(itertools.combinations([1] * right + [0] * (n - right), k))
    assert pass_at_k(n, right, k) == pytest.approx(sum(map(max, subsets)) / len(subsets))
    assert pass_all_k(n, right, k) == pytest.approx(sum(map(min, subsets)) / len(subsets))


@pytest.mark.parametrize(
    ("n", "right", "k"), [(10_000, 3, 1024), (12_345, 1, 1), (20_000, 9_000, 7), (11_000, 10_999, 900)]
)
def test_pass_at_k_is_exact_for_thousands_of_responses(n: int, right: int, k: int) -> None:
    missed = Fraction(math.comb(n - right, k), math.comb(n, k))
    assert pass_at_k(n, right, k) == pytest.approx(float(1 - missed), rel=1e-12)
    assert pass_all_k(n, right, k) == pytest.approx(float(Fraction(math.comb(right, k), math.comb(n, k))), rel=1e-9)


@pytest.mark.parametrize(("n", "right", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_at_k_refuses_numbers_that_cannot_be(n: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="between"):
        pass_at_k(n, right, k)


def test_best_of_more_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="best of 3 among 2"):
        chances(np.array([1.0, 2.0]), [3])


def test_the_divergence_is_that_of_the_distribution_of_the_chosen_one() -> None:
    """Of M equally likely responses without ties, the i-th lowest is chosen by (i/M)^n - ((i-1)/M)^n."""
    places = np.arange(1, 200_001) / 200_000
    for n in (2, 8, 64):
        chosen = places**n - (places - 1 / 200_000) ** n
        chosen = chosen[chosen > 0]
        assert (chosen * np.log(chosen * 200_000)).sum() == pytest.approx(kl_of_best_of_n(n), abs=1e-3)
    assert kl_of_best_of_n(1) == 0


def test_powers_end_with_what_there_is() -> None:
    assert powers_of_two(1) == (1,)
    assert powers_of_two(8) == (1, 2, 4, 8)
    assert powers_of_two(11) == (1, 2, 4, 8, 11)
