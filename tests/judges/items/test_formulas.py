"""The published formulas against cases worked out by hand."""

from __future__ import annotations

import math

import pytest

from adjudge.judges.items.formulas import (
    Combine,
    absolute_mean,
    all_met,
    met_count,
    rules_times_judge,
    signed_points,
    tally,
    weighted_mean,
)
from adjudge.judges.items.item import Item
from adjudge.prompts.scorer import mean_and_error


@pytest.mark.parametrize(
    ("points", "met", "score"),
    [
        ([10, 5, -8], [1, 1, 0], 1.0),
        ([10, 5, -8], [1, 0, 1], 2 / 15),
        ([10, 5, -8], [0, 0, 1], -8 / 15),
        ([7], [0], 0.0),
        ([4, 4], [0.5, 1], 0.75),
    ],
    ids=["all", "some and a fault", "below zero", "nothing", "in part"],
)
def test_signed_points_divide_by_the_positive_ones(points: list[float], met: list[float], score: float) -> None:
    assert signed_points(points, met) == pytest.approx(score)


def test_rubrics_as_rewards_weighs_what_is_met() -> None:
    weights = [1.0, 0.7, 0.3, 0.9]
    assert weighted_mean(weights, [1, 0, 1, 1]) == pytest.approx(2.2 / 2.9)
    assert weighted_mean(weights, [0, 0, 0, 0]) == 0.0
    assert weighted_mean(weights, [1, 1, 1, 1]) == 1.0


def test_the_two_normalisations_differ_for_negative_weights_alone() -> None:
    assert absolute_mean([2, 1], [1, 0]) == weighted_mean([2, 1], [1, 0])
    assert absolute_mean([2, -1], [1, 1]) == pytest.approx(1 / 3)
    assert absolute_mean([2, -1], [0, 1]) == pytest.approx(-1 / 3)
    with pytest.raises(ValueError, match="-1 is not positive"):
        weighted_mean([2, -1], [1, 0])


@pytest.mark.parametrize(
    ("rules", "judged", "value"),
    [([1, 1], [0.5, 1.0], 0.75), ([1, 0.99], [1.0], 0.0), ([], [0.4], 0.4), ([1], [], 1.0)],
    ids=["product", "one rule fails", "no rules", "rules alone"],
)
def test_verif_multiplies_rules_and_judge(rules: list[float], judged: list[float], value: float) -> None:
    assert rules_times_judge(rules, judged) == pytest.approx(value)


def test_muldimif_trains_on_a_count_and_tests_on_all() -> None:
    assert met_count([1, 1, 0]) == 2.0
    assert all_met([1, 1, 0]) == 0.0
    assert all_met([1, 1]) == 1.0


@pytest.mark.parametrize(
    "call", [lambda: rules_times_judge([], []), lambda: all_met([]), lambda: weighted_mean([], [])]
)
def test_nothing_is_not_all(call: object) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=r"at least one|no constraint"):
        call()


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("mean", (1 + 0.5 * 3) / 4),
        ("absolute", (1 + 0.5 * 3) / 4),
        ("points", (1 + 0.5 * 3) / 4),
        ("verif", 0.5),
        ("count", 1.0),
        ("all", 0.0),
    ],
)
def test_each_formula_has_its_name(combine: Combine, expected: float) -> None:
    items = [Item(text="a", kind="program", program="x"), Item(text="b", weight=3)]
    value, shut = tally(items, [1.0, 0.5], combine)
    assert value == pytest.approx(expected)
    assert not shut


def test_a_gate_takes_everything_and_spares_nobody_a_loss() -> None:
    gate, plus, minus = Item(text="g", gate=True), Item(text="p", weight=4), Item(text="m", weight=-9)
    assert tally([gate, plus], [0.0, 1.0], "mean") == (0.0, True)
    assert tally([gate, plus], [0.9, 1.0], "mean") == (0.0, True)
    assert tally([gate, plus, minus], [0.0, 1.0, 1.0], "points") == (-1.0, True)
    assert tally([gate, plus], [1.0, 0.0], "mean") == (0.2, False)


@pytest.mark.parametrize(
    ("values", "mean", "error"), [([1.0], 1.0, None), ([0.0, 1.0], 0.5, 0.5), ([1.0, 1.0, 1.0, 0.0], 0.75, 0.25)]
)
def test_the_standard_error_is_that_of_the_mean(values: list[float], mean: float, error: float | None) -> None:
    assert mean_and_error(values) == (mean, error)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf])
def test_no_formula_takes_a_value_that_is_no_degree(value: float) -> None:
    for formula in (weighted_mean, absolute_mean, signed_points):
        with pytest.raises(ValueError, match=r"outside \[0, 1\]"):
            formula([1.0], [value])
