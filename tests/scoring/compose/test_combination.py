from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.scoring.compose.combination import Combination, soft_min, spread_of

REWARDS = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8)


@given(REWARDS, st.floats(0, 5), st.floats(0.01, 100), st.floats(0, 1))
def test_rules_are_the_formulas(rewards: list[float], k: float, beta: float, share: float) -> None:
    array = np.array(rewards, dtype=np.longdouble)
    low = array.min()
    wanted = {
        "mean": array.mean(),
        "min": low,
        "lower_bound": array.mean() - k * array.std(),
        "variance_bound": array.mean() - k * array.var(),
        "soft_min": low - beta * np.log(np.mean(np.exp(-(array - low) / beta))),
        "nominal_min": share * array.mean() + (1 - share) * low,
    }
    for rule, value in wanted.items():
        made: Any = Combination(rule=rule, k=k, beta=beta, share=share)  # type: ignore[arg-type]
        assert made.of(rewards) == pytest.approx(float(value), rel=1e-9, abs=1e-6), rule
    assert spread_of(rewards) == pytest.approx(float(array.std()), abs=1e-6)


@given(REWARDS, st.floats(1e-3, 1e3))
def test_soft_min_lies_between_the_minimum_and_the_mean(rewards: list[float], beta: float) -> None:
    slack = 1e-9 * max(1.0, *map(abs, rewards))
    assert min(rewards) - slack <= soft_min(rewards, beta) <= math.fsum(rewards) / len(rewards) + slack


def test_soft_min_at_its_ends() -> None:
    rewards = [1e4, -1e4, 3.0]
    assert soft_min(rewards, 1e-6) == pytest.approx(-1e4)
    assert soft_min(rewards, 1e12) == pytest.approx(1.0, abs=1e-2)
    assert soft_min([2.0, 2.0], 0.5) == 2.0


def test_the_surest_member_is_the_nominal_one() -> None:
    rule = Combination(rule="nominal_min", share=0.25, nominal="surest")
    assert rule.of([4.0, 1.0, 2.0], [0.5, None, 0.1]) == 0.25 * 2.0 + 0.75 * 1.0
    with pytest.raises(ValueError, match="no member tells"):
        rule.of([4.0, 1.0], [None, None])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rule": "mode"}, "'mode'"),
        ({"nominal": "first"}, "'first'"),
        ({"k": -1.0}, "-1.0"),
        ({"k": math.nan}, "nan"),
        ({"beta": 0.0}, "0.0"),
        ({"share": 1.1}, "1.1"),
        ({"share": True}, "True"),
    ],
)
def test_a_combination_that_cannot_be_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Combination(**options)


def test_no_rewards_are_no_reward() -> None:
    with pytest.raises(ValueError, match="at least one member"):
        Combination().of([])
