from __future__ import annotations

import numpy as np
import pytest

from adjudge.statistics.bootstrap import evenly, weighted_means
from adjudge.statistics.intervals import NO_DRAWS, Draws, wilson


def test_means_of_parts_are_weighted_and_not_pooled() -> None:
    values = [1, 0, 0, 0, 1]
    parts = ["a", "a", "a", "a", "b"]
    clusters = list("vwxyz")
    even, heavy, alone = weighted_means(
        values, parts, clusters, [evenly(["a", "b"]), {"a": 1, "b": 3}, evenly(["a"])], NO_DRAWS
    )
    assert [even.value, heavy.value, alone.value] == [0.625, 0.8125, 0.25]
    assert [even.n, heavy.n, alone.n] == [5, 5, 4]
    assert even.low is None


def test_bounds_are_those_of_a_bootstrap_written_out() -> None:
    """Whole clusters are drawn; of 4,000 resamples the percentiles differ by the noise of the draws alone."""
    draw = np.random.default_rng(0)
    owners = draw.integers(40, size=300)
    parts = np.where(draw.random(300) < 0.3, "a", "b")
    values = (draw.random(300) < 0.3 + 0.4 * (owners % 2)).astype(float)
    (found,) = weighted_means(
        values, list(parts), list(map(str, owners)), [{"a": 1, "b": 2}], Draws(rounds=4000, seed=1)
    )
    drawn = []
    for _ in range(4000):
        rows = np.concatenate([np.flatnonzero(owners == cluster) for cluster in draw.integers(40, size=40)])
        own, part = values[rows], parts[rows]
        drawn.append((own[part == "a"].mean() + 2 * own[part == "b"].mean()) / 3)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_bounds_of_rows_that_are_all_the_same_are_no_point(value: float) -> None:
    values, parts, clusters = [value] * 12 + [0.5], ["a"] * 6 + ["b"] * 6 + ["c"], [*"vwxyzv" * 2, "c"]
    same, mixed = weighted_means(values, parts, clusters, [{"a": 0.3, "b": 0.7}, evenly(["a", "c"])], Draws(rounds=50))
    expected = wilson(5 * value, 5, level=0.95)
    assert (same.value, same.low, same.high) == (value, expected.low, expected.high)
    assert mixed.value == (value + 0.5) / 2
    (without,) = weighted_means(values[:6], parts[:6], clusters[:6], [evenly(["a"])], NO_DRAWS)
    assert (without.value, without.low) == (value, None)


@pytest.mark.parametrize("recipe", [{}, {"c": 1.0}])
def test_a_mean_over_parts_without_rows_is_a_mistake(recipe: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a mean is wanted over"):
        weighted_means([1.0], ["a"], ["x"], [recipe], NO_DRAWS)
