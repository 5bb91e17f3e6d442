from __future__ import annotations

import math
import random
from typing import Any

import pytest
from sklearn.metrics import log_loss

from adjudge.evals.trust.reliability import calibration_error
from adjudge.evals.trust.scored_rows import cross_fit, fit_temperature, group_folds, log_odds
from adjudge.scoring.compose import Calibration
from adjudge.statistics.logistic import sigmoid


def overconfident(n: int, seed: int, sharp: float = 3.0) -> tuple[list[float], list[int]]:
    """Log-odds that are `sharp` times too large."""
    draw = random.Random(seed)
    truth = [draw.gauss(0.5, 1.0) for _ in range(n)]
    return [sharp * odds for odds in truth], [int(draw.random() < sigmoid(odds)) for odds in truth]


def test_the_temperature_is_recovered() -> None:
    values, labels = overconfident(5000, seed=4)
    fitted = fit_temperature(values, labels)
    assert 1 / fitted.slope == pytest.approx(3.0, rel=0.08)
    assert fitted.intercept == 0
    before, after = ([sigmoid(value) for value in values], [fitted(value) for value in values])
    assert calibration_error(after, labels).expected < 0.03 < 0.1 < calibration_error(before, labels).expected


def test_no_other_temperature_is_likelier() -> None:
    values, labels = overconfident(400, seed=5)
    slope = fit_temperature(values, labels).slope
    high, low = (sum(labels) + 1) / (sum(labels) + 2), 1 / (len(labels) - sum(labels) + 2)

    def loss(slope: float) -> float:
        chances = [sigmoid(slope * value) for value in values]
        targets = [high if label else low for label in labels]
        return -sum(t * math.log(p) + (1 - t) * math.log(1 - p) for t, p in zip(targets, chances, strict=True))

    assert loss(slope) < min(loss(slope * 0.999), loss(slope * 1.001))


def test_values_that_tell_right_from_wrong_keep_a_temperature() -> None:
    fitted = fit_temperature([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert 0 < fitted.slope < 10


def test_log_odds_stay_finite() -> None:
    assert sigmoid(log_odds(0.3)) == pytest.approx(0.3)
    assert [log_odds(0.0), log_odds(1.0)] == pytest.approx([-13.8155, 13.8155], abs=1e-4)


def answers(groups: int, seed: int) -> tuple[list[float], list[int], list[str]]:
    """Ten answers to each prompt with values of the prompt's own and nothing in them about which one is right."""
    draw = random.Random(seed)
    values, labels, names = [], [], []
    for group in range(groups):
        right = int(draw.random() < 0.5)
        level = draw.random()
        for _ in range(10):
            values.append(level + 1e-4 * draw.random())
            labels.append(right)
            names.append(f"prompt-{group}")
    return values, labels, names


def test_whole_groups_are_held_out() -> None:
    """With single rows held out an isotonic map knows each prompt from its other answers, and looks perfect."""
    values, labels, groups = answers(60, seed=1)
    honest = cross_fit(values, labels, groups, kind="isotonic")
    leaky = cross_fit(values, labels, [str(index) for index in range(len(values))], kind="isotonic")

    def wrong(probabilities: tuple[float, ...]) -> float:
        return sum((p > 0.5) != bool(label) for p, label in zip(probabilities, labels, strict=True)) / len(labels)

    assert wrong(leaky.probabilities) < 0.45 < wrong(honest.probabilities)
    for name in set(groups):
        assert len({fold for fold, group in zip(honest.folds, groups, strict=True) if group == name}) == 1


@pytest.mark.parametrize("kind", ["isotonic", "platt", "temperature"])
def test_a_row_is_never_measured_by_a_map_that_saw_it(kind: str) -> None:
    """Turning one group's labels around changes the maps of the other folds and never its own probabilities."""
    values, labels = overconfident(200, seed=7)
    groups = [f"g{index % 20}" for index in range(200)]
    before = cross_fit(values, labels, groups, kind=kind)
    turned = [1 - label if group == "g3" else label for label, group in zip(labels, groups, strict=True)]
    after = cross_fit(values, turned, groups, kind=kind)
    own = [index for index, group in enumerate(groups) if group == "g3"]
    fold = before.folds[own[0]]
    for index in range(200):
        same = before.probabilities[index] == after.probabilities[index]
        if before.folds[index] == fold:
            assert same
    assert before.probabilities != after.probabilities
    assert isinstance(before.calibration, Calibration)


def test_cross_fitting_measures_more_error_than_training_rows_do() -> None:
    values, labels = overconfident(60, seed=8)
    groups = [str(index) for index in range(60)]
    made = cross_fit(values, labels, groups, kind="platt")
    seen = [made.calibration(value) for value in values]
    assert log_loss(labels, made.probabilities) > log_loss(labels, seen)


def test_folds_are_even_and_do_not_depend_on_the_order_of_rows() -> None:
    groups = ["a"] * 7 + ["b"] * 3 + ["c"] * 3 + ["d"] * 2 + ["e"]
    folds = group_folds(groups, 2)
    assert abs(folds.count(0) - folds.count(1)) <= 2
    assert group_folds(groups[::-1], 2) == folds[::-1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fit_temperature([1.0, 2.0], [1, 1]), "with 1 and 0 among them"),
        (lambda: fit_temperature([math.inf, 2.0], [1, 0]), "finite log-odds"),
        (lambda: fit_temperature([-1.0, 1.0], [1, 0]), "no temperature fits"),
        (lambda: log_odds(1.5), "must be in"),
        (lambda: cross_fit([1.0], [1], ["a", "b"]), "1 values, 1 labels and 2 groups"),
        (lambda: cross_fit([1.0, 2.0], [1, 0], ["a", "b"], kind="beta"), "kind is 'beta'"),
        (lambda: cross_fit([1.0, 2.0], [1, 0], ["a", "a"], folds=2), "folds=2 for 1 groups"),
        (lambda: cross_fit([1.0, 2.0], [1, 0], ["a", "b"], folds=2), "without fold 0 of 2"),
    ],
    ids=["one class", "infinite", "backwards", "no probability", "lengths", "kind", "groups", "too little"],
)
def test_mistakes_are_named(call: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
