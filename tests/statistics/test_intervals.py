from __future__ import annotations

import math

import pytest
from scipy import stats

from adjudge.statistics.intervals import UNKNOWN, Interval, clustered_mean, newcombe, quantile, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (230, 350, 0.6060, 0.7050)],
)
def test_wilson_by_table(hits: int, n: int, low: float, high: float) -> None:
    found = wilson(hits, n)
    assert (found.value, found.n) == (hits / n, n)
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-4)


@pytest.mark.parametrize(
    ("both", "only_first", "only_second", "neither", "low", "high"),
    [(1, 1, 7, 12, -0.5070, -0.0256), (20, 12, 2, 16, 0.0562, 0.3290), (80, 0, 0, 20, -0.0291, 0.0291)],
)
def test_a_difference_of_paired_shares_is_newcombes(
    both: int, only_first: int, only_second: int, neither: int, low: float, high: float
) -> None:
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    found, turned = newcombe(first, second), newcombe(second, first)
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-3)
    assert [turned.low, turned.high] == pytest.approx([-high, -low], abs=1e-3)


def test_nothing_known_is_said_to_be_unknown() -> None:
    assert wilson(0, 0) == UNKNOWN
    assert str(UNKNOWN) == "-"


def test_quantiles_are_interpolated() -> None:
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0, 0.25, 0.5, 1)] == [1.0, 1.5, 2.0, 3.0]


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="11 of 10 rows"):
        wilson(11, 10)
    with pytest.raises(ValueError, match="level=1"):
        wilson(1, 10, level=1)


@pytest.mark.parametrize("n", [1, 7, 200, 2000, 3520])
def test_none_and_all_end_where_shares_end(n: int) -> None:
    assert (wilson(0, n).low, wilson(n, n).high) == (0.0, 1.0)


def test_wilson_against_scipy() -> None:
    for hits, n in ((0, 5), (3, 10), (250, 400), (7, 7)):
        seen, told = wilson(hits, n), stats.binomtest(hits, n).proportion_ci(method="wilson")
        assert (seen.low, seen.high) == pytest.approx((told.low, told.high), abs=1e-9)


def test_the_bootstrap_draws_whole_clusters() -> None:
    """Ten prompts whose twenty rows all agree are ten observations and not two hundred."""
    values = [float(at % 2) for at in range(10) for _ in range(20)]
    clusters = [str(at) for at in range(10) for _ in range(20)]
    joined = clustered_mean(values, clusters)
    apart = clustered_mean(values, [str(at) for at in range(200)])
    assert joined.low is not None
    assert joined.high is not None
    assert apart.low is not None
    assert apart.high is not None
    assert joined.high - joined.low == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 10), rel=0.15)
    assert apart.high - apart.low == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 200), rel=0.15)
    assert clustered_mean([1.0, 0.0], ["a", "a"]) == Interval(value=0.5, n=2)


def test_only_what_is_known_is_a_number() -> None:
    assert Interval(value=0.5, n=2).known == 0.5
    assert str(Interval(value=0.5, n=2)) == "0.5"
    with pytest.raises(ValueError, match="say nothing about this number"):
        _ = UNKNOWN.known
    with pytest.raises(ValueError, match="2 values and 1 clusters"):
        clustered_mean([1.0, 2.0], ["a"])
