"""Pooling of token probabilities, beside plain arithmetic."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.responses.aggregate import POOLINGS, Pooling, pooled

CHANCES = st.lists(st.floats(1e-6, 1), min_size=1, max_size=30)


@given(CHANCES)
def test_pooling_is_what_it_is_called(chances: list[float]) -> None:
    expected = {
        "mean_p": statistics.fmean(chances),
        "exp_mean_logp": statistics.geometric_mean(chances),
        "min": min(chances),
        "prod": math.prod(chances),
    }
    assert set(expected) == set(POOLINGS)
    for how in POOLINGS:
        assert pooled([math.log(chance) for chance in chances], how) == pytest.approx(expected[how], rel=1e-9)


@pytest.mark.parametrize("how", POOLINGS)
def test_pooling_stays_in_range_at_the_edges(how: Pooling) -> None:
    assert pooled([1e-7], how) == 1.0
    assert pooled([-math.inf, -math.inf], how) == 0.0


@pytest.mark.parametrize(("logprobs", "how"), [([], "mean_p"), ([0.0], "median")], ids=["no token", "no formula"])
def test_what_cannot_be_pooled(logprobs: list[float], how: Any) -> None:
    with pytest.raises(ValueError, match=r"token|pooling"):
        pooled(logprobs, how)
