"""Statistics of ranks with weights: Spearman's rho, Kendall's tau-b, the area under the ROC curve, average precision.

Each is prepared once and then asked with one weight for each row, so that a bootstrap sorts nothing.  With whole
weights the number is that of the data in which each row stands so many times, ties included.

Sources: Spearman 1904 with mid-ranks; Kendall 1945 (tau-b), discordant pairs by merging (Knight 1966); the area is the
share of pairs of a right and a wrong row that are in order, ties as half; average precision is the sum over thresholds
of precision times the gain in recall, as scikit-learn defines it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from adjudge.statistics.arrays import ArrayLike, Bools, Floats, Ints, np

if TYPE_CHECKING:
    Weighted: TypeAlias = Callable[[Floats], float]
    """Takes a weight >= 0 for each row and returns a number, NaN where the rows say nothing."""


class Levels:
    """The order of rows by a number, lowest first.

    Attributes:
        order: the places of the rows in that order.
    """

    def __init__(self, numbers: Floats) -> None:
        self.order: Ints = np.argsort(numbers, kind="stable")
        ordered = numbers[self.order]
        first = np.ones(len(ordered), dtype=bool)
        first[1:] = ordered[1:] != ordered[:-1]
        self._starts = np.flatnonzero(first)
        self._level = np.cumsum(first) - 1

    def sums(self, ordered: Floats) -> Floats:
        """Return the sum over each level, (levels,), of something that stands in `order`, (rows,)."""
        if len(self._starts) == len(ordered):  # no two are equal
            return ordered
        return np.asarray(np.add.reduceat(ordered, self._starts), dtype=float)

    def of_rows(self, of_levels: Floats) -> Floats:
        """Return what belongs to the level of each row, (rows,), in the rows' own order."""
        rows = np.empty(len(self.order))
        rows[self.order] = of_levels if len(of_levels) == len(rows) else of_levels[self._level]
        return rows


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return the rank correlation of two lists of finite numbers; None where one of them is constant."""
    return _plain(spearman_of(first, second), first)


def kendall(first: ArrayLike, second: ArrayLike) -> float | None:
    """Return Kendall's tau-b of two lists of finite numbers; None where one of them is constant."""
    return _plain(kendall_of(first, second), first)


def auroc(values: ArrayLike, labels: ArrayLike) -> float | None:
    """Return how likely a row with label 1 has a higher value than one with 0; None where one label is missing."""
    return _plain(auroc_of(values, labels), values)


def spearman_of(first: ArrayLike, second: ArrayLike) -> Weighted:
    """Return Spearman's rho of two lists as a function of the rows' weights."""
    sides = [Levels(side) for side in _checked(first, second)]

    def statistic(weights: Floats) -> float:
        total = float(weights.sum())
        ranks, spread = [], 1.0
        for side in sides:
            size = side.sums(weights[side.order])
            rank = np.cumsum(size) - size / 2 - total / 2  # about their mean, which is half of the whole
            spread *= float(size @ rank**2)
            ranks.append(side.of_rows(rank))
        if not spread > _LEAST * total**6:
            return math.nan
        return float(np.clip((weights @ (ranks[0] * ranks[1])) / math.sqrt(spread), -1, 1))

    return statistic


_LEAST = 1e-24  # of a variance of ranks, squared: below it only rounding is left of a constant column


def kendall_of(first: ArrayLike, second: ArrayLike) -> Weighted:
    """Return Kendall's tau-b of two lists as a function of the rows' weights; n log n for each call."""
    one, other = _checked(first, second)
    at_one, at_other = (np.unique(side, return_inverse=True)[1].astype(np.int64) for side in (one, other))
    width = int(at_other.max()) + 1 if len(at_other) else 1
    cells, cell_of = np.unique(at_one * width + at_other, return_inverse=True)  # sorted by the first, then the second
    levels = _merges(cells % width)

    def statistic(weights: Floats) -> float:
        cell = np.bincount(cell_of, weights, minlength=len(cells))
        squares = [float(np.square(np.bincount(at, weights)).sum()) for at in (at_one, at_other)]
        whole = float(weights.sum()) ** 2
        untied_one, untied_other = whole - squares[0], whole - squares[1]
        if not (untied_one > 1e-12 * whole and untied_other > 1e-12 * whole):
            return math.nan
        decided = whole - squares[0] - squares[1] + float(np.square(cell).sum())  # twice those ordered on both sides
        discordant = 0.0
        for order, left, ends in levels:
            seen = cell[order]
            below = np.cumsum(seen * left)
            discordant += float((seen * ~left) @ (below[ends] - below))
        return float(np.clip((decided - 4 * discordant) / math.sqrt(untied_one * untied_other), -1, 1))

    return statistic


def auroc_of(values: ArrayLike, labels: ArrayLike) -> Weighted:
    """Return the area under the ROC curve as a function of the rows' weights."""
    numbers, right = _labelled(values, labels)
    levels = Levels(numbers)
    right = right[levels.order]

    def statistic(weights: Floats) -> float:
        rows = weights[levels.order]
        taken, hits = levels.sums(rows), levels.sums(rows * right)
        misses = taken - hits
        pairs = float(hits.sum() * misses.sum())
        return float(hits @ (np.cumsum(misses) - misses / 2)) / pairs if pairs else math.nan

    return statistic


def average_precision_of(values: ArrayLike, labels: ArrayLike) -> Weighted:
    """Return average precision as a function of the rows' weights."""
    numbers, right = _labelled(values, labels)
    levels = Levels(-numbers)  # from the highest value down
    right = right[levels.order]

    def statistic(weights: Floats) -> float:
        rows = weights[levels.order]
        hits, taken = levels.sums(rows * right), np.cumsum(levels.sums(rows))
        total = float(hits.sum())
        if not total:
            return math.nan
        precision = np.divide(np.cumsum(hits), taken, out=np.zeros_like(taken), where=taken > 0)
        return float(hits @ precision) / total

    return statistic


def _merges(ranks: Ints) -> list[tuple[Ints, Bools, Ints]]:
    """Return, for each level of a merge sort: the order, who is in a left half, and where each one's block ends.

    An element of a right half is out of order with the elements of its left half that are greater.
    """
    places = np.arange(len(ranks))
    levels = []
    size = 1
    while size < len(ranks):
        block, left = places // (2 * size), places % (2 * size) < size
        order = np.lexsort((~left, ranks, block))  # at equal ranks the left ones come first: they are in order
        ends = np.minimum((block[order] + 1) * (2 * size), len(ranks)) - 1
        levels.append((order, left[order], ends))
        size *= 2
    return levels


def _checked(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"lists of shape {one.shape} and {other.shape}; give as many numbers of each")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ValueError("a number is not finite; leave rows without a number out, and count them")
    return one, other


def _labelled(values: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    numbers, right = _checked(values, labels)
    if not ((right == 0) | (right == 1)).all():
        raise ValueError(f"a label is {right[(right != 0) & (right != 1)][0]!r}; it must be 1 or 0")
    return numbers, right


def _plain(statistic: Weighted, rows: ArrayLike) -> float | None:
    number = statistic(np.ones(len(np.asarray(rows))))
    return None if math.isnan(number) else number
