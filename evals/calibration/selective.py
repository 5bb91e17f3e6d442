"""What confidence buys, with bounds: the area under the risk-coverage curve for rows that count several times.

Not covered: the curve itself (`reliability.risk_coverage`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from adjudge.evals.statistics.ranks import Levels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def areas_of(confidences: Floats, losses: Floats) -> Callable[[Floats], Floats]:
    """Return area (AURC) and excess area (E-AURC) as a function of how often each row counts.

    With whole weights they are those of `risk_coverage` for the data in which each row stands so many times.  In a
    block of equal confidence the risk of a random order is `mean + (lost - mean kept) / k` at the k-th row, so the sum
    over the block is one difference of harmonic numbers.
    """
    import numpy as np

    sides = []
    for key in (-confidences, losses):  # the surest first; and, for the best order there is, those that lose least
        levels = Levels(key)
        sides.append((levels, losses[levels.order]))
    harmonic = _harmonic(2 * len(losses))

    def statistic(weights: Floats) -> Floats:
        nonlocal harmonic
        rows = int(weights.sum())
        if not rows:
            return np.array([np.nan, np.nan])
        if rows >= len(harmonic):
            harmonic = _harmonic(2 * rows)
        area, best = (_area(levels, weights, lost, harmonic) / rows for levels, lost in sides)
        return np.array([area, max(0.0, area - best)])

    return statistic


def _harmonic(most: int) -> Floats:
    """Return the harmonic numbers 0 to `most`."""
    import numpy as np

    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])


def _area(levels: Levels, weights: Floats, losses: Floats, harmonic: Floats) -> float:
    import numpy as np

    rows = weights[levels.order]
    sizes, lost = levels.sums(rows), levels.sums(rows * losses)
    kept = np.concatenate([[0.0], np.cumsum(sizes)])
    means = lost / np.maximum(sizes, 1.0)  # weights are whole; what is not there has lost nothing
    gained = np.diff(harmonic[kept.astype(np.int64)])
    before = np.cumsum(lost) - lost
    return float((lost + (before - means * kept[:-1]) * gained).sum())
