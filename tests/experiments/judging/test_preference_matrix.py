"""The skew-symmetric matrix of preferences, beside plain arithmetic."""

from __future__ import annotations

import math

import pytest
from experiments.judging.verdict_rewards import rewards, skew_symmetric
from hypothesis import given
from hypothesis import strategies as st


def test_a_judge_that_favours_the_first_place_prefers_nobody() -> None:
    assert skew_symmetric([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) == ((0.0,) * 3,) * 3


@given(st.lists(st.floats(-1, 1), min_size=9, max_size=9))
def test_the_matrix_is_skew_symmetric_and_its_rewards_sum_to_nothing(entries: list[float]) -> None:
    skew = skew_symmetric([entries[:3], entries[3:6], entries[6:]])
    assert all(skew[i][j] == -skew[j][i] for i in range(3) for j in range(3))
    assert math.fsum(rewards(skew)) == pytest.approx(0.0, abs=1e-12)
    assert rewards(skew)[0] == pytest.approx(((entries[1] - entries[3]) + (entries[2] - entries[6])) / 4)


@pytest.mark.parametrize(
    "preferences", [[[0.0]], [[0.0, 1.0]], [[0.0, 2.0], [1.0, 0.0]], [[0.0, math.nan], [1.0, 0.0]]]
)
def test_what_is_no_matrix_of_preferences(preferences: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="preference"):
        skew_symmetric(preferences)
