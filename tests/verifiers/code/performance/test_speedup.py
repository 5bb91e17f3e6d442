"""The estimate against NumPy, and the values of a ruler by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.code.performance.measuring import Estimate, Ruler, estimated

UNIT = Ruler(slowest=0.5, fastest=8.0, grain=0.5, scale="unit")
RAW = Ruler(slowest=0.5, fastest=8.0, grain=0.5, scale="raw")


def test_it_is_the_geometric_mean_of_the_ratios_of_medians() -> None:
    cases = [([8.0, 9.0, 100.0], [2.0, 3.0, 1.0]), ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])]
    assert 2 ** estimated(cases).log2 == pytest.approx(math.sqrt(9.0 / 2.0))


def test_the_noise_is_what_numpy_computes() -> None:
    draw = np.random.default_rng(5)
    cases = [(draw.uniform(1, 2, 7).tolist(), draw.uniform(1, 3, 7).tolist()) for _ in range(4)]
    errors = [math.sqrt(math.pi / 2) * np.std(np.log2(np.divide(*case)), ddof=1) / math.sqrt(7) for case in cases]
    found = estimated(cases)
    assert found.error == pytest.approx(np.sqrt(np.sum(np.square(errors))) / 4)
    assert found.log2 == pytest.approx(np.mean([np.log2(np.median(one) / np.median(two)) for one, two in cases]))


@pytest.mark.parametrize(
    ("speedup", "unit", "raw"),
    [(1.0, 0.25, 1.0), (0.5, 0.0, 0.5), (0.01, 0.0, 0.5), (8.0, 1.0, 8.0), (1e9, 1.0, 8.0), (1.1, 0.25, 1.0),
     (1.3, 0.375, math.sqrt(2)), (3.9, 0.75, 4.0)],
)  # fmt: skip
def test_values_are_rounded_to_the_grain_and_clipped_to_the_range(speedup: float, unit: float, raw: float) -> None:
    assert UNIT.value(math.log2(speedup)) == pytest.approx(unit)
    assert RAW.value(math.log2(speedup)) == pytest.approx(raw)


@pytest.mark.parametrize(
    ("log2", "error", "settled"),
    [(0.0, 0.1, True), (0.0, 0.13, False), (0.2, 0.01, True), (0.2, 0.03, False), (9.0, 2.0, True), (-9.0, 3.0, True)],
)
def test_noise_within_a_grain_or_beyond_the_range_decides_nothing(log2: float, error: float, settled: bool) -> None:
    assert UNIT.settled(Estimate(log2, error)) is settled


@pytest.mark.parametrize(
    ("error", "unit"), [(0.0, 0.0625), (0.1, 0.0625), (0.125, 0.0625), (0.2, 0.125), (0.3, 0.1875)]
)
def test_the_uncertainty_is_in_halves_of_a_grain(error: float, unit: float) -> None:
    assert UNIT.uncertainty(Estimate(1.0, error)) == pytest.approx(unit)
    assert RAW.uncertainty(Estimate(1.0, error)) == pytest.approx(2.0 * (2 ** (unit * 4) - 1))


@pytest.mark.parametrize(
    "cases", [[], [([1.0], [1.0])], [([1.0, 1.0], [1.0])], [([1.0, 0.0], [1.0, 1.0])], [([1.0, math.nan], [1.0, 1.0])]]
)
def test_times_that_are_none_are_refused(cases: list[tuple[list[float], list[float]]]) -> None:
    with pytest.raises(ValueError, match=r"times|cases|time is not"):
        estimated(cases)


@settings(max_examples=40)
@given(st.floats(-20, 20), st.floats(0, 5))
def test_a_value_is_in_its_range_and_rises_with_the_speed(log2: float, error: float) -> None:
    assert 0 <= UNIT.value(log2) <= UNIT.value(log2 + error) <= 1
    assert UNIT.uncertainty(Estimate(log2, error)) > 0
