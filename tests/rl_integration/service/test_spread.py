"""Counts by size: every value finds its bin, and quantiles are near those of the values."""

from __future__ import annotations

import random
import statistics

import pytest

from adjudge.rl_integration.service.stats import BINS, LOWEST, Spread, quantile


@pytest.mark.parametrize("value", [0.0, 1e-9, LOWEST, 0.1, 1.0, 1700.0, 1e9])
def test_every_value_has_a_bin(value: float) -> None:
    spread = Spread()
    for _ in range(3):
        spread.add(value)
    assert sum(spread.counts) == 3
    assert len(spread.counts) == BINS


def test_quantiles_are_near() -> None:
    rng = random.Random(0)
    values = [rng.lognormvariate(-3, 1) for _ in range(5000)]
    spread = Spread()
    for value in values:
        spread.add(value)
    cuts = statistics.quantiles(values, n=100)
    for percent in (5, 50, 95, 99):
        assert quantile(spread.counts, percent / 100) == pytest.approx(cuts[percent - 1], rel=0.1)
    assert quantile([0] * BINS, 0.5) is None
    assert quantile(Spread().counts, 0.0) is None
