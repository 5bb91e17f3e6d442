"""Each rule by hand, at its edges."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.evals.probes.probe import Rule
from adjudge.evals.probes.trying import Values, applies, excess

EPSILON = 0.1


def by(rule: Rule, changed: float, base: float = 0.5, good: float = 0.5, **more: Any) -> float:
    return excess(rule, Values(changed=changed, base=base, good=good, **more), EPSILON)


@pytest.mark.parametrize(
    ("rule", "changed", "more", "broken"),
    [
        ("same", 0.6, {}, False),
        ("same", 0.61, {}, True),
        ("same", 0.39, {}, True),
        ("not_higher", 0.0, {}, False),
        ("not_higher", 0.6, {}, False),
        ("not_higher", 0.61, {}, True),
        ("lower", 0.39, {}, False),
        ("lower", 0.4, {}, True),
        ("lower", 0.5, {}, True),
        ("worthless", 0.39, {}, False),
        ("worthless", 0.4, {}, True),
        ("worthless", 0.3, {"bad": 0.25}, False),
        ("worthless", 0.3, {"bad": 0.1}, True),
        ("order", 0.4, {"partner": 0.3, "bad": 0.1}, False),
        ("order", 0.3, {"partner": 0.3, "bad": 0.1}, True),
        ("order", 0.61, {}, True),
        ("below_good", 0.49, {"bad": 0.1, "base": 0.1}, False),
        ("below_good", 0.5, {"bad": 0.1, "base": 0.1}, True),
        ("aligned", 0.55, {"steps": 3, "base_steps": 3}, False),
        ("aligned", 0.55, {"steps": 4, "base_steps": 3}, True),
        ("mirrored", 0.5, {}, False),
        ("mirrored", 0.41, {}, False),
        ("mirrored", 0.9, {}, True),
    ],
)
def test_a_rule_at_its_edge(rule: Rule, changed: float, more: dict[str, Any], broken: bool) -> None:
    assert (by(rule, changed, **more) > 0) == broken


@given(st.floats(-5, 5), st.floats(0, 1))
def test_a_constant_score_keeps_invariance_and_breaks_the_rest(value: float, epsilon: float) -> None:
    values = Values(changed=value, base=value, good=value, bad=value)
    kept: tuple[Rule, ...] = ("same", "not_higher")
    broken: tuple[Rule, ...] = ("lower", "worthless")
    for rule in kept:
        assert excess(rule, values, epsilon) == 0
    for rule in broken:
        assert excess(rule, values, epsilon) > 0


@given(st.floats(-5, 5), st.floats(-5, 5), st.floats(-5, 5), st.floats(-100, 100))
def test_rules_do_not_depend_on_where_zero_is(changed: float, good: float, bad: float, shift: float) -> None:
    rules: tuple[Rule, ...] = ("same", "not_higher", "lower", "worthless")
    for rule in rules:
        here = excess(rule, Values(changed=changed, base=good, good=good, bad=bad), EPSILON)
        there = Values(changed=changed + shift, base=good + shift, good=good + shift, bad=bad + shift)
        assert math.isclose(excess(rule, there, EPSILON), here, abs_tol=1e-8)


@pytest.mark.parametrize(
    ("rule", "values", "fits"),
    [
        ("order", Values(changed=0, base=0, good=0.6, bad=0.5, partner=0.1), True),
        ("order", Values(changed=0, base=0, good=0.5, bad=0.5, partner=0.1), False),
        ("order", Values(changed=0, base=0, good=0.5), True),
        ("below_good", Values(changed=0, base=0, good=0.5), False),
        ("below_good", Values(changed=0, base=0, good=0.4, bad=0.5), False),
        ("mirrored", Values(changed=-1, base=0, good=1), False),
        ("mirrored", Values(changed=0, base=0, good=1), True),
        ("same", Values(changed=0, base=0, good=0.4, bad=0.5), True),
    ],
)
def test_an_order_must_be_there_to_be_kept(rule: Rule, values: Values, fits: bool) -> None:
    assert applies(rule, values) == fits
