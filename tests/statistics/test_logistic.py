from __future__ import annotations

import numpy as np
import pytest

from adjudge.statistics.logistic import fit_logistic, sigmoid


def test_what_scikit_learn_says_on_whole_outcomes() -> None:
    from sklearn.linear_model import LogisticRegression

    made = np.random.default_rng(0)
    design = made.normal(size=(300, 4))
    outcomes = (made.random(300) < 1 / (1 + np.exp(-design @ [1.0, -2.0, 0.0, 0.5]))).astype(float)
    weights = made.uniform(0.5, 2, size=300)
    for ridge in (0.5, 3.0):
        model = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=1e-10, max_iter=1000)
        model.fit(design, outcomes, sample_weight=weights)
        ours, _ = fit_logistic(design, outcomes, weights, ridge=ridge)
        assert ours == pytest.approx(model.coef_[0], abs=1e-5)


def test_the_curvature_gives_standard_errors() -> None:
    """A share of 30 of 100: the log-odds have the standard error 1 / sqrt(n p (1 - p))."""
    beta, curve = fit_logistic(np.ones((1, 1)), np.array([0.3]), np.array([100.0]))
    assert sigmoid(float(beta[0])) == pytest.approx(0.3)
    assert 1 / np.sqrt(curve[0, 0]) == pytest.approx(1 / np.sqrt(100 * 0.3 * 0.7))


@pytest.mark.parametrize(
    ("design", "outcomes"),
    [([[-1.0], [1.0]], [0.0, 1.0]), ([[1.0, 1.0], [1.0, 1.0]], [0.3, 0.6]), ([[0.0], [0.0]], [0.0, 1.0])],
    ids=["told apart", "columns alike", "says nothing"],
)
def test_without_an_optimum_there_are_no_numbers(design: list[list[float]], outcomes: list[float]) -> None:
    with pytest.raises(ValueError, match="no finite optimum"):
        fit_logistic(np.array(design), np.array(outcomes), np.ones(2))
    beta, _ = fit_logistic(np.array(design), np.array(outcomes), np.ones(2), ridge=0.1)
    assert np.isfinite(beta).all()


def test_a_sigmoid_does_not_overflow() -> None:
    assert (sigmoid(-1e4), sigmoid(0.0), sigmoid(1e4)) == (0.0, 0.5, 1.0)
