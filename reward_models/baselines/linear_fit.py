"""What linear models on n-grams and statistics share: statistics on one scale, sparse rows, and the fit.

Fitted by liblinear in the dual, with an L2 penalty: the same rows give the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from adjudge.extras import install_hint
from adjudge.reward_models.baselines.ngrams import Row

Floats = npt.NDArray[np.float64]

LENGTH = 2.0
"""Length of a row of statistics that are one standard deviation off; a row of n-grams has length 1."""

INTERCEPT = 3.0
"""The column of the intercept, so large that the penalty hardly holds it back."""

FARTHEST = 4.0
"""Standard deviations; what one row in a thousand has must not outweigh all else."""

_OUTERMOST = 0.005  # share of the rows at either end whose statistics are cut
_STEPS = 2_000
_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Statistics on one scale; a value outside what the training data had counts as the end of that range.

    Attributes:
        lows: the lowest value of each statistic that counts.
        highs: the highest.
        means: what is subtracted.
        scales: what it is divided by then, above 0.
    """

    lows: Floats
    highs: Floats
    means: Floats
    scales: Floats

    @classmethod
    def fitted(cls, table: Floats, *, farthest: float = FARTHEST) -> Self:
        """Return the scaling of the statistics of training data.

        Args:
            table: (rows, statistics).
            farthest: standard deviations from the mean that count at most.
        """
        lows, highs = _range(table)
        table = np.clip(table, lows, highs)
        means, scales = table.mean(axis=0), table.std(axis=0)
        scales[scales < 1e-9] = 1.0
        lows, highs = np.maximum(lows, means - farthest * scales), np.minimum(highs, means + farthest * scales)
        return cls(lows, highs, means, scales)

    def applied(self, statistics: Floats) -> Floats:
        """Return statistics on the common scale; the last axis is that of the statistics."""
        return np.asarray((np.clip(statistics, self.lows, self.highs) - self.means) / self.scales, dtype=np.float64)


def shrinkage(count: int) -> float:
    """Return what standardised statistics are multiplied by, so that a row of them has the length `LENGTH`."""
    return float(LENGTH / max(1.0, count) ** 0.5)


def sparse_rows(rows: Sequence[Row], size: int) -> Any:
    """Return rows as a sparse matrix of `size` columns.

    Raises:
        ValueError: the extra is missing.
    """
    try:
        from scipy import sparse
    except ImportError as error:
        raise ValueError(f"fitting a linear model needs scikit-learn; {install_hint('train')}") from error
    ends = np.cumsum([0, *(len(columns) for columns, _ in rows)], dtype=np.int64)
    columns = np.concatenate([columns for columns, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return sparse.csr_matrix((values, columns, ends), shape=(len(rows), size))


def logistic_weights(terms: Any, chances: Floats, weights: Floats, *, strength: float) -> Floats:
    """Return the weights of a logistic regression without intercept, (columns,).

    Args:
        terms: sparse, (rows, columns).
        chances: of the outcome 1, in [0, 1]; a row enters as both outcomes, weighted p and 1 - p.
        weights: of the rows, at least 0.
        strength: of the data against the penalty, above 0; scikit-learn's C.

    Raises:
        ValueError: all rows have the same outcome.
    """
    from sklearn.linear_model import LogisticRegression

    taken = [(outcome, np.flatnonzero(weights * (chances if outcome else 1 - chances))) for outcome in (1, 0)]
    labels = np.concatenate([np.full(len(places), outcome) for outcome, places in taken])
    shares = np.concatenate([(chances if outcome else 1 - chances)[places] for outcome, places in taken])
    places = np.concatenate([places for _, places in taken])
    if len(set(labels.tolist())) < 2:
        raise ValueError("all labels are alike, so there is nothing to tell apart; give right and wrong examples")
    model: Any = LogisticRegression(
        C=strength, fit_intercept=False, solver="liblinear", dual=True, tol=_TOLERANCE, max_iter=_STEPS, random_state=0
    )
    model.fit(terms[places], labels, sample_weight=shares * weights[places])
    return np.asarray(model.coef_[0], dtype=np.float64)


def _range(table: Floats) -> tuple[Floats, Floats]:
    """The values of each statistic that count: all but the outermost, or all where most rows have the same."""
    lows, highs = np.quantile(table, (_OUTERMOST, 1 - _OUTERMOST), axis=0)
    same = lows == highs
    return np.where(same, table.min(axis=0), lows), np.where(same, table.max(axis=0), highs)
