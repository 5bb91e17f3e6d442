"""Recall by hand, and answers that want more of it than they found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.verifiers.code.comparison import Rules
from adjudge.verifiers.code.performance.measuring import Gate, NoListError, area, mean_recall


@pytest.mark.parametrize(
    ("right", "found", "recall"),
    [
        ([1, 2, 3, 4], [4, 3, 2, 1], 1.0),
        ([1, 2, 3, 4], [1, 2, 9, 8], 0.5),
        ([1, 2], [9, 8, 1, 2], 0.0),
        ([1, 2], list(range(1000)), 0.5),
        ([1, 2], [1, 1], 0.5),
        ([[1, 2], [3, 4]], [[1, 2], [4, 9]], 0.75),
        ([[1, 2], [3, 4]], [[1, 2]], 0.0),
        ([[1, 2], [3, 4]], [1, 2, 3, 4], 0.0),
        ([1, 2], "12", 0.0),
        ([1, 2], None, 0.0),
        ([1, 2], {"1": 2}, 0.0),
        ([1, 2], (1.0, 2.0), 1.0),
        ([1, 2], ["1", "2"], 0.0),
        (np.array([[1, 2]]), [[2, 1]], 1.0),
        ([[1, 2]], np.array([[2, 1]]), 1.0),
        ([[1, 2]], [[np.int64(2), np.array(1)]], 1.0),
        (["a", ("b", 1)], [("b", 1), "a"], 1.0),
    ],
)
def test_recall_counts_the_first_items_each_once(right: Any, found: Any, recall: float) -> None:
    assert mean_recall([right], [found]) == pytest.approx(recall)


@pytest.mark.parametrize("right", [[], [[1], []], 3, None, "ab"])
def test_recall_of_nothing_is_no_number(right: Any) -> None:
    with pytest.raises(NoListError):
        mean_recall([right], [[1]])


def test_the_gate_is_the_mean_over_all_cases() -> None:
    gate = Gate(rules=Rules(), recall=0.75)
    assert gate.passes([[1, 2], [3, 4]], [[1, 2], [3, 9]])
    assert not gate.passes([[1, 2], [3, 4]], [[1, 2], [9, 9]])


def test_without_recall_all_results_are_equal() -> None:
    gate = Gate(rules=Rules(tolerance=0.0))
    assert gate.passes([1, [2, 3]], [1, (2, 3)])
    assert not gate.passes([1, 2], [1, 3])


PLAIN = st.recursive(
    st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.none()), lambda items: st.lists(items, max_size=4)
)


@settings(max_examples=40)
@given(st.lists(st.integers(), min_size=1, max_size=5), PLAIN)
def test_any_result_has_a_recall(right: list[int], found: Any) -> None:
    assert 0 <= mean_recall([right], [found]) <= 1


def test_at_least_one_setting_is_above_the_least_recall_where_an_area_is_asked_for() -> None:
    gate = Gate(rules=Rules(), recall=0.5, most=0.9)
    assert gate.passes([[1, 2, 3], [1, 2, 3]], [[1], [1, 2]])
    assert not gate.passes([[1, 2], [1, 2]], [[1], [2]])


SETTINGS = st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 10)), min_size=1, max_size=6)


@given(SETTINGS)
@settings(deadline=None)
def test_the_area_is_the_mean_speed_of_the_fastest_setting_that_finds_enough(points: list[tuple[float, float]]) -> None:
    """Against a sum over many recalls, each looked at by itself."""
    steps, least, most = 2000, 0.85, 0.95
    width = (most - least) / steps
    slow = 0.0
    for step in range(steps):
        at = least + (step + 0.5) * width
        slow += width * max((1 / took for recall, took in points if recall >= at), default=0.0)
    recalls, seconds = zip(*points, strict=True)
    assert area(recalls, seconds, least, most) == pytest.approx(slow, abs=10 * width * len(points))
