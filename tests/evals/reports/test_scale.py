"""Axes hold their numbers, ticks are round and told apart, and places are in order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.pages.scale import Scale, bar_scale, drawable, linear_scale, log_scale

NUMBERS = st.floats(min_value=-1e140, max_value=1e140)
USUAL = st.floats(min_value=-1e6, max_value=1e6)
POSITIVE = st.floats(min_value=1e-100, max_value=1e100)


def holds(scale: Scale, values: list[float]) -> bool:
    """Whether all is inside, in order, and ticks ascend."""
    places = [scale.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    room = 1e-9 * (scale.high - scale.low)
    assert scale.low <= min(values) + room
    assert scale.high >= max(values) - room
    assert list(scale.ticks) == sorted(set(scale.ticks))
    return True


@given(st.lists(NUMBERS, min_size=1))
def test_a_linear_axis_holds_its_numbers(values: list[float]) -> None:
    assert holds(linear_scale(values), values)


@given(st.lists(NUMBERS, min_size=1))
def test_an_axis_of_bars_holds_its_numbers_and_the_origin(values: list[float]) -> None:
    assert holds(bar_scale(values), [*values, 0.0])


@given(st.lists(POSITIVE, min_size=1))
def test_a_logarithmic_axis_holds_its_numbers(values: list[float]) -> None:
    scale = log_scale(values)
    assert holds(scale, values)
    assert len(scale.ticks) <= 12


@given(st.lists(USUAL, min_size=2))
def test_ticks_are_told_apart(values: list[float]) -> None:
    scale = linear_scale(values)
    said = [scale.said(tick) for tick in scale.ticks]
    assert 2 <= len(set(said)) == len(said) <= 8


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.31, 0.87), ["0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0, 1), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((-3, 4000), ["−1,000", "0", "1,000", "2,000", "3,000", "4,000"]),
        ((0, 0.0021), ["0.0000", "0.0005", "0.0010", "0.0015", "0.0020", "0.0025"]),
        ((5, 5), ["4.4", "4.6", "4.8", "5.0", "5.2", "5.4", "5.6"]),
        ((0, 1e9), ["0", "2e8", "4e8", "6e8", "8e8", "1e9"]),
        ((0, 1e-6), ["0", "2e−7", "4e−7", "6e−7", "8e−7", "1e−6"]),
        ((), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_ticks_are_round(values: tuple[float, ...], said: list[str]) -> None:
    scale = linear_scale(values)
    assert [scale.said(tick) for tick in scale.ticks] == said


def test_ticks_of_a_logarithmic_axis() -> None:
    scale = log_scale([1, 1024])
    assert [scale.said(tick) for tick in scale.ticks] == [f"{2**power:,}" for power in range(11)]
    assert scale.place(32) == pytest.approx(50)
    scale = log_scale([1, 1_000_000])
    assert [scale.said(tick) for tick in scale.ticks] == ["1", "10", "100", "1,000", "10,000", "100,000", "1e6"]


def test_bars_of_shares_and_correlations_have_their_whole_range() -> None:
    assert (bar_scale([0.4, 0.6]).low, bar_scale([0.4, 0.6]).high) == (0, 1)
    assert (bar_scale([-0.1, 0.6]).low, bar_scale([-0.1, 0.6]).high) == (-1, 1)
    assert bar_scale([2.0, 3.0]).low == 0


def test_what_has_no_place_is_not_drawn() -> None:
    assert [drawable(value) for value in (None, math.nan, math.inf, 1e200, 0.0)] == [None, None, None, None, 0.0]
