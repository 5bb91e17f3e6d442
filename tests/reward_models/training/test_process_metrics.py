"""Held-out measures equal what can be counted by hand, and scikit-learn where it has the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from adjudge.reward_models.training.held_out import (
    JudgedSteps,
    best_threshold,
    expected_calibration_error,
    first_error_f1,
    first_error_measures,
    step_measures,
)
from adjudge.training.step_data import Label


def judged(probabilities: list[float], labels: list[Label], cluster: str = "a") -> JudgedSteps:
    return JudgedSteps(probabilities=tuple(probabilities), labels=tuple(labels), cluster=cluster)


def test_measures_by_hand() -> None:
    found, rules = step_measures(
        [
            judged([0.9, 0.2, 0.7], [1.0, 0.0, None]),
            judged([0.8, 0.6], [1.0, 1.0], "b"),
            JudgedSteps(probabilities=(0.4,), labels=(1.0,), cluster="c", outcome=0.3, correct=0.0),
        ]
    )
    assert found["step_accuracy"].value == pytest.approx(4 / 5)
    assert found["step_accuracy"].n == 5
    assert rules["step_accuracy of calling every step right"].value == pytest.approx(4 / 5)
    assert found["over_calling_every_step_right"].value == pytest.approx(0.0)
    assert found["step_auc"].value == pytest.approx(1.0)
    assert found["step_brier"].value == pytest.approx((0.01 + 0.04 + 0.04 + 0.16 + 0.36) / 5)
    assert "outcome_auc" not in found  # answers of one kind alone


def test_outcomes_are_ranked() -> None:
    answers = [(0.9, 1.0), (0.3, 0.0), (0.4, 1.0), (0.5, 0.0)]
    rows = [
        JudgedSteps(probabilities=(0.5,), labels=(None,), cluster=str(at), outcome=value, correct=label)
        for at, (value, label) in enumerate(answers)
    ]
    assert step_measures(rows)[0]["outcome_auc"].value == pytest.approx(3 / 4)


def test_nothing_known_is_nothing_said() -> None:
    assert step_measures([judged([0.5], [None])]) == ({}, {})
    assert step_measures([]) == ({}, {})


def test_a_soft_label_is_right_above_the_error_threshold() -> None:
    rows = [judged([0.9, 0.9], [0.1, 0.0])]
    assert step_measures(rows)[0]["step_accuracy"].value == pytest.approx(0.5)
    assert step_measures(rows, error=0.5)[0]["step_accuracy"].value == 0.0


def test_calibration_error_is_that_of_scikit_learns_bins() -> None:
    draw = np.random.default_rng(0)
    said = draw.random(500)
    labels = (draw.random(500) < said**2).astype(float)
    shares, means = calibration_curve(labels, said, n_bins=10)
    counts = np.histogram(said, bins=np.linspace(0, 1, 11))[0]
    expected = float(np.abs(shares - means) @ counts / len(labels))
    assert expected_calibration_error(said, labels) == pytest.approx(expected)


def test_a_probability_of_one_has_a_bin() -> None:
    assert expected_calibration_error(np.array([1.0, 0.0]), np.array([1.0, 0.0])) == 0.0


SOLUTIONS = [
    ([0.9, 0.3, 0.1], 1),  # found below 0.5
    ([0.9, 0.8], -1),  # found below 0.5
    ([0.4, 0.9], -1),  # wrong at 0.5, found at 0.35
    ([0.9, 0.6, 0.2], 1),  # names the third step at 0.5, the second at 0.7
]


def test_first_errors_by_hand() -> None:
    assert first_error_f1(0.5, 1.0) == pytest.approx(2 / 3)
    assert first_error_f1(0.0, 0.0) == 0.0
    # Of each kind one of two is found at 0.5.
    found = first_error_measures(SOLUTIONS, ["a", "b", "c", "d"])
    assert found["first_error_f1_at_half"].value == pytest.approx(0.5)


def test_the_best_threshold_is_found_by_trying() -> None:
    # Below 0.4 one of the two wrong solutions and both right ones are found: F1 is 2/3.
    assert 0.3 < best_threshold(SOLUTIONS) <= 0.4
    assert best_threshold([([0.9, 0.1], 1), ([0.9], -1)]) == 0.5
    assert best_threshold(SOLUTIONS[:1]) == 0.5


def test_one_kind_of_solution_has_no_f1() -> None:
    assert first_error_measures(SOLUTIONS[:1], ["a"]) == {}


def test_saying_always_that_all_is_right_gets_nothing() -> None:
    sure = [([1.0, 1.0], 0), ([1.0, 1.0], -1)] * 10
    found = first_error_measures(sure, [str(at) for at in range(20)])
    assert (found["first_error_f1"].value, found["no_error_found"].value) == (0.0, 1.0)


def test_no_solution_chooses_the_threshold_it_is_judged_by() -> None:
    # Each kind of problem alone is judged without a mistake by a threshold of its own, and never by the other's.
    low = [([0.3, 0.1], 1), ([0.3], -1)]
    high = [([0.9, 0.7], 1), ([0.9], -1)]
    for mine in (low, high):
        found = first_error_measures(mine * 4, [str(at // 2) for at in range(8)])
        assert found["first_error_f1"].value == 1.0
    mixed = [item for at in range(8) for item in (low, high)[at % 2]]
    found = first_error_measures(mixed, [str(at // 2) for at in range(16)])
    assert found["first_error_f1"].value == 0.0


def test_the_interval_of_f1_draws_whole_problems() -> None:
    draw = np.random.default_rng(0)
    kinds = draw.random(60) < 0.5
    solutions = [([0.9, 0.1 if kind else 0.9], 1) for kind in kinds] + [([0.9], -1) for _ in kinds]
    apart = [str(at % 60) for at in range(120)]
    once = first_error_measures(solutions, apart)["first_error_f1"]
    copied = first_error_measures(solutions * 5, apart * 5)["first_error_f1"]
    assert once.low is not None
    assert once.high is not None
    assert copied.low is not None
    assert copied.high is not None
    assert once.low < once.known < once.high
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=0.1)
    assert copied.value == once.value


def test_measures_do_not_change_from_call_to_call() -> None:
    rows = [judged([0.1 * at, 0.5], [float(at % 2), 1.0], str(at)) for at in range(10)]
    assert step_measures(rows) == step_measures(rows)
