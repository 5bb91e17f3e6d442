from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from adjudge.statistics import bootstrap as module
from adjudge.statistics.bootstrap import (
    cluster_bootstrap,
    difference_interval,
    mean_by_part,
    mean_interval,
    resampled_mean,
    share_interval,
    weighted_bootstrap,
)
from adjudge.statistics.intervals import NO_DRAWS, UNKNOWN, Draws, Interval, resampled, wilson

Array = NDArray[np.float64]


def ratio(sums: Array) -> Array:
    return sums[:, :1] / sums[:, 1:]


def bounds(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def with_ones(values: Array) -> Array:
    return np.column_stack([values, np.ones(len(values))])


def test_bounds_are_percentiles_of_means_of_rows_that_were_really_drawn() -> None:
    """The slow plain way: lists of rows, from the same counts."""
    draw = np.random.default_rng(1)
    values, clusters = draw.normal(size=60), [str(at) for at in draw.integers(17, size=60)]
    names = list(dict.fromkeys(clusters))
    means = []
    for times in resampled(len(names), seed=5, rounds=400):
        rows = [
            value
            for name, count in zip(names, times.tolist(), strict=True)
            for _ in range(count)
            for value, owner in zip(values, clusters, strict=True)
            if owner == name
        ]
        means.append(sum(rows) / len(rows))
    found = mean_interval(values, clusters, Draws(rounds=400, level=0.9, seed=5))
    assert found.value == pytest.approx(values.mean())
    assert bounds(found) == pytest.approx(tuple(np.quantile(means, [0.05, 0.95])))
    assert found.n == 60


def test_clusters_of_one_kind_are_drawn_as_kinds_with_the_same_spread() -> None:
    values = (np.arange(3000) % 10 < 3).astype(float)
    values[values == 1] = 0.5  # no 0/1 rows, which would be Wilson's
    alone = [str(at) for at in range(3000)]
    draws = Draws(rounds=4000)
    quick = bounds(mean_interval(values, alone, draws))
    slow = bounds(mean_interval(values + 1e-9 * np.arange(3000), alone, draws))
    error = 0.5 * np.sqrt(0.3 * 0.7 / 3000)
    assert quick == pytest.approx((0.15 - 1.96 * error, 0.15 + 1.96 * error), abs=0.12 * error)
    assert slow == pytest.approx(quick, abs=0.15 * error)


@pytest.mark.parametrize("kinds", [3, 200])
def test_bounds_do_not_depend_on_the_size_of_blocks(kinds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(2)
    values, clusters = draw.integers(kinds, size=200) / 7, [str(at) for at in range(200)]
    whole = mean_interval(values, clusters, Draws(rounds=300))
    assert whole == mean_interval(values, clusters, Draws(rounds=300))
    monkeypatch.setattr(module, "_BLOCK", 700)
    blocked = mean_interval(values, clusters, Draws(rounds=300))
    assert bounds(blocked) == pytest.approx(bounds(whole), rel=1e-13)  # BLAS adds in another order
    assert mean_interval(values, clusters, Draws(rounds=300, seed=1)) != whole


def test_a_statistic_of_weights_meets_the_same_resamples_as_one_of_sums() -> None:
    draw = np.random.default_rng(3)
    values, clusters = draw.normal(size=50), [str(at // 2) for at in range(50)]
    draws = Draws(rounds=200)
    by_sums = mean_interval(values, clusters, draws)
    (by_weights,) = weighted_bootstrap(clusters, lambda w: np.array([(w @ values) / w.sum()]), draws)
    assert bounds(by_weights) == pytest.approx(bounds(by_sums))
    assert by_weights.n == 50


def test_copies_of_rows_in_a_cluster_are_no_more_data() -> None:
    values = np.random.default_rng(4).normal(size=40)
    once = mean_interval(values, [str(at) for at in range(40)], Draws())
    tenfold = mean_interval(np.repeat(values, 10), [str(at) for at in range(40) for _ in range(10)], Draws())
    assert bounds(tenfold) == pytest.approx(bounds(once))
    assert tenfold.n == 400


def test_nine_in_ten_bounds_hold_the_truth() -> None:
    draw = np.random.default_rng(6)
    held = 0
    for seed in range(200):
        effects = draw.normal(size=60)
        values = np.repeat(effects, 3) + draw.normal(size=180)
        low, high = bounds(
            mean_interval(values, [str(at // 3) for at in range(180)], Draws(rounds=300, level=0.9, seed=seed))
        )
        held += low <= 0 <= high
    assert 167 <= held <= 195  # binomial with 0.9: 180 +- 3 standard errors


def test_a_number_most_resamples_do_not_know_has_no_bounds() -> None:
    columns = np.zeros((40, 3))
    columns[:, 0], columns[0, 1], columns[:20, 2] = 1, 1, 1
    clusters = [str(at) for at in range(40)]

    def combine(sums: Array) -> Array:
        rare, absent = sums[:, 1], np.zeros(len(sums))
        return np.stack(
            [sums[:, 2] / sums[:, 0], np.where(rare > 1, rare, np.nan) * (len(sums) > 1) + 1, absent / 0], 1
        )

    def once(sums: Array) -> Array:
        found = combine(sums)
        return np.where(np.isnan(found) & (len(sums) == 1) & (np.arange(3) == 1), 1.0, found)

    common, rare, absent = cluster_bootstrap(clusters, columns, once, Draws(rounds=500), counts=[40, 1, 0])
    assert common.low is not None
    assert rare == Interval(value=1.0, n=1)  # 26 % of resamples hold the row twice
    assert absent == Interval(value=None, n=0)


@pytest.mark.parametrize("wrong", [(), (7,)])
def test_a_difference_that_chance_explains_has_zero_inside(wrong: tuple[int, ...]) -> None:
    first = np.array([float(at not in (5, 6)) for at in range(100)])
    second = np.array([float(at not in (5, 6, *wrong)) for at in range(100)])
    rows, pairs = [str(at) for at in range(100)], [str(at // 2) for at in range(100)]
    for one, other in ((first, second), (second, first)):
        found = difference_interval(one, other, rows, Draws())
        assert found.low is not None
        assert found.high is not None
        assert found.low < 0 < found.high
    assert difference_interval(first, second, pairs, Draws()).low == (0.0 if wrong else None)
    numbers = 9 * second + 1  # on another scale zeros are no share
    assert difference_interval(numbers, numbers, rows, Draws()) == Interval(value=0.0, n=100)


def test_resamples_that_all_agree_say_nothing_of_chance() -> None:
    assert resampled_mean([0.1 + 0.2] * 7, [str(at) for at in range(7)], Draws()).low is None


def test_one_cluster_and_no_rounds_give_values_alone() -> None:
    values = np.array([0.25, 0.75])
    assert mean_interval(values, ["a", "a"], Draws()) == Interval(value=0.5, n=2)
    assert mean_interval(values, ["a", "b"], NO_DRAWS) == Interval(value=0.5, n=2)
    assert share_interval([1, 0], ["a", "b"], NO_DRAWS) == Interval(value=0.5, n=2)
    assert share_interval([1], ["a"], Draws()) == Interval(value=1.0, n=1)
    (found,) = weighted_bootstrap(["a"], lambda w: w, Draws())
    assert found == Interval(value=1.0, n=1)
    assert mean_interval([], [], Draws()) == UNKNOWN == share_interval([], [], Draws())


def test_a_share_of_independent_rows_is_wilsons_and_scipys() -> None:
    found = share_interval([1] * 7 + [0] * 3, list("abcdefghij"), Draws(level=0.9))
    assert found == wilson(7, 10, level=0.9)
    told = stats.binomtest(7, 10).proportion_ci(0.9, method="wilson")
    assert bounds(found) == pytest.approx((told.low, told.high))


@pytest.mark.parametrize("share", [0, 1])
def test_bounds_of_a_share_at_its_edge_are_no_point(share: int) -> None:
    alone = share_interval([share] * 30, [str(at) for at in range(30)], Draws())
    joined = share_interval([share] * 30, [str(at // 3) for at in range(30)], Draws())
    few = wilson(10 * share, 10)
    assert alone == wilson(30 * share, 30)
    assert (joined.low, joined.high, joined.n) == (few.low, few.high, 30)


def test_parts_are_resampled_by_their_own_clusters() -> None:
    draw = np.random.default_rng(8)
    values, parts = draw.normal(size=90), [("x", "y", "x")[at % 3] for at in range(90)]
    clusters = [str(at // 2) for at in range(90)]
    found = mean_by_part(values, parts, clusters, Draws(rounds=200))
    assert list(found) == ["x", "y"]
    keep = [at for at in range(90) if parts[at] == "x"]
    assert found["x"] == mean_interval(values[keep], [clusters[at] for at in keep], Draws(rounds=200))


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"columns of shape \(3, 2\) for 2 clusters"):
        cluster_bootstrap(["a", "b"], with_ones(np.zeros(3)), ratio, Draws())
    with pytest.raises(ValueError, match="no rows"):
        weighted_bootstrap([], lambda w: w, Draws())
    with pytest.raises(ValueError, match="not finite"):
        mean_interval([1.0, np.nan], ["a", "b"], Draws())
    with pytest.raises(ValueError, match="2 counts for 1 numbers"):
        cluster_bootstrap(["a", "b"], with_ones(np.zeros(2)), ratio, Draws(), counts=[1, 2])
    with pytest.raises(ValueError, match="0 or 1"):
        share_interval([0.5], ["a"], Draws())
    with pytest.raises(ValueError, match="2 values, 1 parts"):
        mean_by_part([1.0, 2.0], ["x"], ["a", "b"], Draws())
