"""ProcessBench's F1 by hand, against scikit-learn and by trying every threshold."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.evals.benchmarks.process_bench import (
    best_threshold,
    first_errors,
    processbench_f1,
)


def test_f1_by_hand() -> None:
    result = processbench_f1([1, 0, -1, -1, 2, None], [1, 2, 3, -1, -1, -1])
    assert (result.errors, result.correct) == (3, 3)
    assert result.error_accuracy == pytest.approx(1 / 3)
    assert result.correct_accuracy == pytest.approx(1 / 3)
    assert result.f1 == pytest.approx(1 / 3)
    uneven = processbench_f1([0, 0, -1, 5], [0, 0, -1, -1])
    assert uneven.f1 == pytest.approx(2 * 1.0 * 0.5 / 1.5)


@pytest.mark.parametrize(
    ("predicted", "labels", "f1"),
    [
        ([0], [0], None),
        ([-1], [-1], None),
        ([1, 1], [0, -1], 0.0),
        ([-1, -1], [0, -1], 0.0),
        ([None, None], [0, -1], 0.0),
    ],
    ids=["no right solution", "no wrong solution", "all missed", "says never", "no predictions"],
)
def test_edges(predicted: list[int | None], labels: list[int], f1: float | None) -> None:
    assert processbench_f1(predicted, labels).f1 == f1


def test_there_is_a_prediction_for_each_label() -> None:
    with pytest.raises(ValueError, match="one for each"):
        processbench_f1([0], [0, 1])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=1, max_size=40))
def test_accuracies_equal_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    from sklearn.metrics import accuracy_score

    predicted, labels = [a for a, _ in pairs], [b for _, b in pairs]
    result = processbench_f1(list(predicted), labels)
    for wrong, found in ((True, result.error_accuracy), (False, result.correct_accuracy)):
        kept = [(guess, label) for guess, label in pairs if (label != -1) == wrong]
        if kept:
            assert found == pytest.approx(accuracy_score([b for _, b in kept], [a for a, _ in kept]))
        else:
            assert found is None
    if result.error_accuracy is not None and result.correct_accuracy is not None:
        assert result.f1 == pytest.approx(statistics.harmonic_mean([result.error_accuracy, result.correct_accuracy]))


SOLUTIONS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), min_size=1, max_size=5), st.integers(-1, 4)
    ),
    min_size=2,
    max_size=12,
)


@given(SOLUTIONS)
def test_no_threshold_beats_the_best_one(rows: list[tuple[list[float], int]]) -> None:
    values, labels = [steps for steps, _ in rows], [label for _, label in rows]
    if not 0 < sum(label != -1 for label in labels) < len(labels):
        with pytest.raises(ValueError, match="both kinds"):
            best_threshold(values, labels)
        return
    threshold, best = best_threshold(values, labels)
    assert best == processbench_f1(first_errors(values, threshold), labels)
    tried = [processbench_f1(first_errors(values, mark / 20), labels).f1 for mark in range(-2, 24)]
    assert best.f1 == max(found for found in tried if found is not None)


def test_a_threshold_needs_values() -> None:
    with pytest.raises(ValueError, match="one of each"):
        best_threshold([[0.5]], [0, -1])
    with pytest.raises(ValueError, match="no threshold finds"):
        best_threshold([None, None], [0, -1])
    assert first_errors([[0.4, 0.6], None, [0.9]], 0.5) == [0, None, -1]
