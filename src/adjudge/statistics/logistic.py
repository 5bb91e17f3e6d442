"""Logistic regression on outcomes that may be ties or probabilities, by Newton's method.

The loss is `sum w * (-y log p - (1 - y) log(1 - p)) + ridge/2 * |b|^2` with `p = sigmoid(x b)`.  scikit-learn's class
wants whole classes, so soft outcomes would enter twice, and it hides the curvature that standard errors need.

Needs numpy, which comes with `pip install "adjudge[data]"`.  Not covered: intercepts (give a column of ones),
L1 penalties, and designs too large for one dense matrix.
"""

from __future__ import annotations

import math

from adjudge.statistics.arrays import Floats, np

_MAX_STEPS = 100
_SMALL = 1e-10  # of a step's largest coordinate; Newton's last step squares the error


def sigmoid(x: float) -> float:
    """Return `1 / (1 + exp(-x))`, without overflow."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    grown = math.exp(x)
    return grown / (1 + grown)


def fit_logistic(
    design: Floats,
    outcomes: Floats,
    weights: Floats,
    *,
    ridge: float = 0.0,
    centred: int = 0,
) -> tuple[Floats, Floats]:
    """Return the coefficients and the second derivatives of the loss there.

    Args:
        design: rows x columns.
        outcomes: one number in [0, 1] for each row.
        weights: one number >= 0 for each row.
        ridge: strength of the penalty, >= 0.
        centred: how many leading columns count only by their differences (the players of a ranking); their
            coefficients come out with the sum 0.

    Raises:
        ValueError: there is no finite optimum: some combination of columns tells the outcomes apart without error,
            or says nothing at all.  A ridge above 0 has one always.
    """
    _, columns = design.shape
    level = np.zeros((columns, columns))
    level[:centred, :centred] = 1.0 / max(centred, 1)  # the sum of those coefficients has no other pull
    beta = np.zeros(columns)

    def loss(at: Floats) -> float:
        z = design @ at
        fit = weights @ (np.logaddexp(0, z) - outcomes * z)
        return float(fit + 0.5 * ridge * at @ at + 0.5 * at @ level @ at)

    here = loss(beta)
    for _ in range(_MAX_STEPS):
        p = np.exp(-np.logaddexp(0, -(design @ beta)))
        slope = design.T @ (weights * (p - outcomes)) + ridge * beta + level @ beta
        curve = (design.T * (weights * p * (1 - p))) @ design + ridge * np.eye(columns) + level
        try:
            step = np.linalg.solve(curve, slope)
        except np.linalg.LinAlgError as error:
            raise ValueError(_NO_OPTIMUM) from error
        size = 1.0
        while (there := loss(beta - size * step)) > here + 1e-12 * abs(here) and size > 1e-6:
            size /= 2
        beta = beta - size * step
        here = there
        if float(np.abs(beta).max(initial=0.0)) > 1e4:
            raise ValueError(_NO_OPTIMUM)
        if float(np.abs(step).max(initial=0.0)) < _SMALL * max(1.0, float(np.abs(beta).max(initial=0.0))):
            return beta, curve - level
    raise ValueError(_NO_OPTIMUM)


_NO_OPTIMUM = (
    "the regression has no finite optimum: a column, or a mix of them, tells the outcomes apart without error or "
    "says nothing; give a ridge above 0, or more data"
)
