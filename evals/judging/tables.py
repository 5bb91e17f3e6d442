"""Rates from tables of counts, for many tables at once: the last two axes are rows and columns.

Resamples come as blocks of sums, so every function takes (b, k, k) and returns (b,); NaN is a rate that the counts say
nothing about.

Not covered: tables of single cases, and how bounds are drawn (`adjudge.evals.statistics`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.pairs.verdict import EVEN
from adjudge.evals.statistics.draws import Draws
from adjudge.intervals import Interval, wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return part / whole, NaN where the whole is 0."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        found: NDArray[np.float64] = np.where(whole != 0, part / whole, np.nan)
    return found


def kappa(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Cohen's kappa of tables (b, k, k) whose rows and columns are the same labels in the same order."""
    import numpy as np

    total = tables.sum(axis=(1, 2))
    same = ratio(np.trace(tables, axis1=1, axis2=2), total)
    chance = ratio((tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1), total * total)
    return ratio(same - chance, np.where(chance < 1, 1 - chance, 0.0))


def macro_rates(tables: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the means over the gold labels of precision, recall and F1; a rate without cases counts as 0.

    Args:
        tables: (b, k, c) with a row for each gold label; the first k columns are verdicts of these labels, others are
            verdicts that are none of them, and so never right.
    """
    import numpy as np

    count = tables.shape[1]
    hits = np.diagonal(tables[:, :, :count], axis1=1, axis2=2)
    precision = np.nan_to_num(ratio(hits, tables.sum(axis=1)[:, :count]))
    recall = np.nan_to_num(ratio(hits, tables.sum(axis=2)))
    f1 = np.nan_to_num(ratio(2 * precision * recall, precision + recall))
    return precision.mean(axis=1), recall.mean(axis=1), f1.mean(axis=1)


def opened(share: Interval, clusters: int, draws: Draws) -> Interval:
    """Return a share with bounds that are no point: at 0 and 1 all resamples agree, and say nothing about chance.

    There it gets Wilson's bounds for as many rows as there are clusters, as if the rows of one told nothing new.
    """
    if share.value not in (0.0, 1.0) or share.low is None or clusters < 1:
        return share
    bounds = wilson(share.value * clusters, clusters, level=draws.level)
    return replace(share, low=bounds.low, high=bounds.high)


def sides(outcome: Outcome) -> tuple[int | None, int | None]:
    """Return who won where the first response was shown first, and where it was shown second.

    1 is the pair's first response in both, -1 its second, 0 neither, None no verdict.  Scores of single responses know
    no order, so they say the same in both.

    Raises:
        ValueError: the case has other than two samples.
    """
    if len(outcome.values) != 2:
        raise ValueError(f"the case {outcome.id!r} has {len(outcome.values)} samples; a pair has two")
    first, second = outcome.values
    if outcome.compared:
        return _sign(first, EVEN), _sign(EVEN, second)
    both = _sign(first, second)
    return both, both


def _sign(one: float | None, other: float | None) -> int | None:
    return None if one is None or other is None else (one > other) - (one < other)
