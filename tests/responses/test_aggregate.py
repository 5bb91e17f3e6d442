"""Aggregates and refinements against NumPy, at their edges, and what repeated steps do to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.responses.aggregate import (
    AGGREGATES,
    EDGE,
    Aggregate,
    aggregate,
    first_below,
    min_weights,
    needs_probabilities,
)
from adjudge.responses.refine import (
    REFINEMENTS,
    Refinement,
    clip,
    delta,
    gain,
    quality_values,
    refine,
    running_min,
)
from adjudge.reward_models.process.step_scorer import lowest_value

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=12)
NUMBERS = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


def inner(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.clip(values, EDGE, 1 - EDGE)


NUMPY: dict[Aggregate, Callable[[np.ndarray[Any, Any]], Any]] = {
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "last": lambda values: values[-1],
    "sum": np.sum,
    "product": np.prod,
    "geometric_mean": lambda values: np.prod(values ** (1 / len(values))),
    "mean_logit": lambda values: np.mean(np.log(inner(values) / (1 - inner(values)))),
    "mean_odds": lambda values: np.mean(inner(values) / (1 - inner(values))),
    "sum_log": lambda values: np.sum(np.log(np.maximum(values, EDGE))),
    "soft_min": lambda values: np.sum(values * np.exp(-values / 0.1 - np.logaddexp.reduce(-values / 0.1))),
}


@pytest.mark.parametrize("how", AGGREGATES)
@given(values=CHANCES)
def test_aggregates_equal_numpy(how: Aggregate, values: list[float]) -> None:
    assert aggregate(values, how) == pytest.approx(float(NUMPY[how](np.array(values))), rel=1e-9, abs=1e-9)


def test_every_aggregate_has_a_reference() -> None:
    assert set(NUMPY) == set(AGGREGATES) == set(get_args(Aggregate))


@pytest.mark.parametrize(
    ("how", "values", "expected"),
    [
        ("product", [0.5, 0.0], 0.0),
        ("geometric_mean", [1.0, 0.0], 0.0),
        ("geometric_mean", [1.0], 1.0),
        ("mean_logit", [0.0], math.log(EDGE / (1 - EDGE))),
        ("mean_logit", [0.0, 1.0], 0.0),
        ("mean_odds", [1.0], (1 - EDGE) / EDGE),
        ("sum_log", [0.0, 1.0], math.log(EDGE)),
        ("soft_min", [0.7], 0.7),
        ("soft_min", [1000.0, -1000.0], -1000.0),
        ("last", [-3.5], -3.5),
    ],
)
def test_edges(how: Aggregate, values: list[float], expected: float) -> None:
    assert aggregate(values, how) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("how", AGGREGATES)
@pytest.mark.parametrize("values", [[], [math.nan], [0.5, math.inf]], ids=str)
def test_no_number_comes_of_no_numbers(how: Aggregate, values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"no step|must be finite"):
        aggregate(values, how)
    for refinement in REFINEMENTS:
        with pytest.raises(ValueError, match=r"no step|must be finite"):
            refine(values, refinement)


@pytest.mark.parametrize("how", [how for how in AGGREGATES if needs_probabilities(how)])
@pytest.mark.parametrize("value", [-0.01, 1.01])
def test_formulas_of_probabilities_take_nothing_else(how: Aggregate, value: float) -> None:
    with pytest.raises(ValueError, match="probabilities"):
        aggregate([0.5, value], how)


def test_unknown_names_and_temperatures_are_refused() -> None:
    unknown: Any = "median"
    with pytest.raises(ValueError, match="median"):
        aggregate([0.5], unknown)
    with pytest.raises(ValueError, match="median"):
        refine([0.5], unknown)
    with pytest.raises(ValueError, match="temperature"):
        aggregate([0.5], "soft_min", temperature=0.0)


@given(values=NUMBERS, temperature=st.floats(0.01, 10))
def test_min_weights_sum_to_one_and_favour_the_least(values: list[float], temperature: float) -> None:
    weights = min_weights(values, temperature)
    assert math.fsum(weights) == pytest.approx(1.0)
    assert weights[values.index(min(values))] == max(weights)
    assert min(values) - 1e-9 <= aggregate(values, "soft_min", temperature=temperature) <= max(values) + 1e-9


def test_first_below_counts_from_zero() -> None:
    assert first_below([0.9, 0.4, 0.1], 0.5) == 1
    assert first_below([0.9, 0.5], 0.5) == -1


@given(values=NUMBERS, eta=st.floats(-5, 5), start=st.floats(-5, 5))
def test_refinements_equal_numpy(values: list[float], eta: float, start: float) -> None:
    array = np.array(values)
    clipped = np.minimum(array - eta, 0)

    def difference(rewards: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        moved: np.ndarray[Any, Any] = rewards - np.append(rewards[1:], 0)
        if len(rewards) > 1:
            moved[-2] = rewards[-2]
        moved[-1] = 0
        return moved

    weights = np.exp(-array / 0.1 - np.logaddexp.reduce(-array / 0.1))
    expected: dict[Refinement, np.ndarray[Any, Any]] = {
        "none": array,
        "clip": clipped,
        "delta": difference(array),
        "clip_delta": difference(clipped),
        "running_min": np.minimum.accumulate(array),
        "gain": np.diff(array, prepend=start),
        "min_form": weights * array,
    }
    for how, numbers in expected.items():
        assert refine(values, how, eta=eta, start=start) == pytest.approx(numbers.tolist(), rel=1e-9, abs=1e-9)
    assert set(expected) == set(REFINEMENTS)


@given(values=st.lists(st.floats(-5, 5), min_size=2, max_size=12))
def test_returns_of_delta_telescope(values: list[float]) -> None:
    refined = delta(values)
    for step in range(len(values) - 1):
        assert math.fsum(refined[step:]) == pytest.approx(values[step], abs=1e-9)
    assert delta([0.9]) == (0.0,)
    assert math.fsum(gain(values, 0.25)) == pytest.approx(values[-1] - 0.25, abs=1e-9)


@given(values=CHANCES)
def test_min_form_sums_to_the_soft_minimum(values: list[float]) -> None:
    assert math.fsum(refine(values, "min_form")) == pytest.approx(aggregate(values, "soft_min"))


@given(values=CHANCES, eta=st.floats(-1, 2), start=st.floats(0, 1), how=st.sampled_from(AGGREGATES))
def test_nothing_falls_below_the_lowest_value(values: list[float], eta: float, start: float, how: Aggregate) -> None:
    for refinement in REFINEMENTS:
        if needs_probabilities(how) and refinement not in ("none", "running_min"):
            with pytest.raises(ValueError, match="needs probabilities"):
                lowest_value(refinement, how, max_steps=12)
            continue
        least = lowest_value(refinement, how, max_steps=12, eta=eta, start=start)
        assert aggregate(refine(values, refinement, eta=eta, start=start), how) >= least - 1e-9


def filled(values: Sequence[float], filler: float, times: int) -> list[float]:
    """A solution with a filler step put in many times before its last step."""
    return [*values[:-1], *[filler] * times, values[-1]]


@pytest.mark.parametrize("values", [[0.9, 0.6, 0.8], [0.3, 0.9, 0.7], [0.95, 0.99]], ids=str)
@pytest.mark.parametrize("filler", [0.99, 0.9, 0.6])
def test_only_the_raw_sum_pays_for_a_filler_step_repeated_fifty_times(values: list[float], filler: float) -> None:
    padded = filled(values, filler, 50)

    def summed(how: Refinement, steps: list[float]) -> float:
        return math.fsum(refine(steps, how, eta=0.7))

    assert summed("none", padded) > summed("none", values) + 25
    for how in ("clip", "clip_delta", "delta"):
        assert summed(how, padded) <= summed(how, values) + 1e-9, how
    assert aggregate(padded, "min") <= aggregate(values, "min")
    # A soft minimum moves towards the filler's value, and never gains more than the distance to it.
    assert summed("min_form", padded) <= max(summed("min_form", values), filler) + 1e-9
    assert aggregate(refine(padded, "running_min"), "last") <= aggregate(refine(values, "running_min"), "last")


def test_clip_and_running_min_by_hand() -> None:
    assert clip([0.9, 0.4], 0.5) == pytest.approx((0.0, -0.1))
    assert running_min([0.7, 0.9, 0.2, 0.5]) == (0.7, 0.7, 0.2, 0.2)


def test_quality_values_by_hand() -> None:
    assert quality_values([1, 1, 1], [3, 2, 1]) == pytest.approx((1 / 3, 2 / 3, 1.0))
    assert quality_values([1, -1, 1], [3, 2, 1]) == pytest.approx((1 / 3, 0.0, 1.0))
    for signs, remaining, message in (([2], [1], "sign"), ([1], [0], "remaining"), ([1], [1, 1], "one of each")):
        with pytest.raises(ValueError, match=message):
            quality_values(signs, remaining)
