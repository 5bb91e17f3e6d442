"""One rated response with a scorer's number, and the rates of many.

    Pearson, Spearman, Kendall (tau-b)   of numbers and ratings, over the responses with a number
    pairs in order                       of two responses to one prompt with different ratings, the share of pairs whose
                                         better response has the higher number; a tie or a missing number is wrong
    pairs, ties as half                  the same with half a point for a tie
    tied pairs                           share of these pairs with equal numbers
    MSE, MAE, R2, same rating            where numbers are on the scale of the ratings; R2 is 1 - MSE / variance, and
                                         "same rating" the share whose number rounds to the rating; none does not
    no verdict                           share of responses without a number

A correlation says nothing about responses without a number, so it must be read beside how many those are.

Not covered: ratings of several people with their disagreement (`adjudge.evals.agreement`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.benchmarks.trivial import random_share
from adjudge.evals.results.measure import Measure
from adjudge.evals.statistics.draws import NO_DRAWS, Draws
from adjudge.intervals import UNKNOWN, Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


PEARSON: Final = "Pearson"
SPEARMAN: Final = "Spearman"
KENDALL: Final = "Kendall"
_MOST_DRAWN: Final = 20_000  # rows of a rank correlation with bounds: each resample walks all of them
_BLOCK: Final = 1_000  # rows compared with all others at once


class Rated(NamedTuple):
    """A rated response.

    Attributes:
        rating: of people or of another judge.
        value: the scorer's number; None where it gave none.
        part: subset it counts in.
        cluster: of responses to one prompt.
    """

    rating: float
    value: float | None
    part: str
    cluster: str


def rating_measures(rows: Sequence[Rated], draws: Draws, *, same_scale: bool, part: str = "") -> list[Measure]:
    """Return the rates of rated responses.

    Args:
        rows: at least one.
        draws: how bounds are drawn.
        same_scale: whether numbers are on the scale of the ratings.
        part: what the measures say they are of.
    """
    from adjudge.evals.statistics.bootstrap import share_interval

    known = [row for row in rows if row.value is not None]
    missing = share_interval([float(row.value is None) for row in rows], [row.cluster for row in rows], draws)
    found = [(name, interval, "high") for name, interval in _correlations(known, draws).items()]
    found += _pairs(rows, draws)
    if same_scale:
        found += _distances(known, draws)
        same = [float(row.value is not None and _whole(row.value) == _whole(row.rating)) for row in rows]
        found.append(("same rating", share_interval(same, [row.cluster for row in rows], draws), "high"))
    found.append(("no verdict", missing, "low"))
    return [Measure(name=name, part=part, interval=interval, better=better) for name, interval, better in found]


def _correlations(known: Sequence[Rated], draws: Draws) -> dict[str, Interval]:
    from adjudge.evals.statistics.bootstrap import weighted_bootstrap
    from adjudge.evals.statistics.ranks import kendall_of, spearman_of

    if not known:
        return dict.fromkeys((PEARSON, SPEARMAN, KENDALL), UNKNOWN)
    ratings, values, clusters = _columns(known)
    ranks = (spearman_of(values, ratings), kendall_of(values, ratings))

    def statistic(weights: Floats) -> Floats:
        import numpy as np

        return np.array([rank(weights) for rank in ranks])

    drawn = draws if len(known) <= _MOST_DRAWN else NO_DRAWS
    spearman, kendall = weighted_bootstrap(clusters, statistic, drawn)
    return {PEARSON: _pearson(ratings, values, clusters, draws), SPEARMAN: spearman, KENDALL: kendall}


def _pearson(ratings: Floats, values: Floats, clusters: Sequence[str], draws: Draws) -> Interval:
    import numpy as np

    from adjudge.evals.statistics.bootstrap import cluster_bootstrap

    one, other = (_standard(side) for side in (values, ratings))
    if one is None or other is None:
        return Interval(value=None, n=len(ratings))

    def combine(sums: Floats) -> Floats:
        n, x, y, xx, yy, xy = sums.T
        spread = (xx - x * x / n) * (yy - y * y / n)
        found = (xy - x * y / n) / np.sqrt(np.where(spread > 1e-12 * n * n, spread, np.nan))
        return np.asarray(np.clip(found, -1, 1))[:, None]

    columns = np.column_stack([np.ones(len(one)), one, other, one * one, other * other, one * other])
    (found,) = cluster_bootstrap(clusters, columns, combine, draws)
    return found


def _standard(side: Floats) -> Floats | None:
    """Return numbers with mean 0 and spread 1, which loses no digits in sums; None for a constant."""
    import numpy as np

    largest = float(np.abs(side).max())
    scaled = side / largest if largest else side
    spread = float(scaled.std())
    return (scaled - scaled.mean()) / spread if spread > 1e-12 else None


def _distances(known: Sequence[Rated], draws: Draws) -> list[tuple[str, Interval, str]]:
    import numpy as np

    from adjudge.evals.statistics.bootstrap import cluster_bootstrap

    if not known:
        return [("MSE", UNKNOWN, "low"), ("MAE", UNKNOWN, "low"), ("R2", UNKNOWN, "high")]
    ratings, values, clusters = _columns(known)
    errors, centred = values - ratings, ratings - ratings.mean()

    def combine(sums: Floats) -> Floats:
        n, squared, absolute, rating, rating_squared = sums.T
        variance = rating_squared - rating * rating / n
        return np.column_stack(
            [squared / n, absolute / n, 1 - squared / np.where(variance > 1e-12 * n, variance, np.nan)]
        )

    columns = np.column_stack([np.ones(len(errors)), errors**2, np.abs(errors), centred, centred**2])
    mse, mae, r2 = cluster_bootstrap(clusters, columns, combine, draws)
    return [("MSE", mse, "low"), ("MAE", mae, "low"), ("R2", r2, "high")]


def _pairs(rows: Sequence[Rated], draws: Draws) -> list[tuple[str, Interval, str]]:
    """The pairs of responses to one prompt with different ratings; nothing where there are none."""
    import numpy as np

    from adjudge.evals.statistics.bootstrap import cluster_bootstrap

    groups: dict[str, list[Rated]] = {}
    for row in rows:
        groups.setdefault(row.cluster, []).append(row)
    counts = {name: _counted(own) for name, own in groups.items() if len(own) > 1}
    table = np.array([counts[name] for name in counts if counts[name][0]], dtype=float)
    if not len(table):
        return []
    names = [name for name in counts if counts[name][0]]
    pairs = int(table[:, 0].sum())
    ordered, half, tied = cluster_bootstrap(
        names,
        table,
        lambda sums: np.column_stack([sums[:, 1], sums[:, 1] + sums[:, 2] / 2, sums[:, 2]]) / sums[:, :1],
        draws,
        counts=[pairs] * 3,
    )
    return [("pairs in order", ordered, "high"), ("pairs, ties as half", half, "high"), ("tied pairs", tied, "none")]


def _counted(own: Sequence[Rated]) -> tuple[int, int, int]:
    """Return how many pairs have different ratings, how many of these are in order, and how many tie."""
    import numpy as np

    ratings = np.array([row.rating for row in own])
    values = np.array([np.nan if row.value is None else row.value for row in own])
    pairs = right = tied = 0
    for start in range(0, len(own), _BLOCK):
        better = ratings[start : start + _BLOCK, None] > ratings[None, :]
        mine = values[start : start + _BLOCK, None]
        pairs += int(better.sum())
        right += int((better & (mine > values[None, :])).sum())
        tied += int((better & (mine == values[None, :])).sum())
    return pairs, right, tied


def _whole(number: float) -> int:
    return math.floor(number + 0.5)  # round() takes 2.5 for 2


def _columns(known: Sequence[Rated]) -> tuple[Floats, Floats, list[str]]:
    import numpy as np

    ratings = np.array([row.rating for row in known])
    values = np.array([row.value for row in known], dtype=float)
    return ratings, values, [row.cluster for row in known]


def unread_ratings(
    outcomes: Sequence[Outcome], ratings: Sequence[float], low: float, high: float
) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of scorers that do not read.

    Args:
        outcomes: with one sample each.
        ratings: of these; their mean is what "mean_rating" says, a number that no scorer knows beforehand.
        low: lowest rating, for "random".
        high: highest one.

    Returns:
        "longer" is left out where the input holds no texts; it spreads lengths over the scale, the shortest lowest.
    """
    mean = math.fsum(ratings) / len(ratings)
    made = {"mean_rating": [outcome.with_values([mean]) for outcome in outcomes]}
    sizes = [outcome.sizes[0] for outcome in outcomes]
    if any(sizes):
        least, most = min(sizes), max(sizes)
        step = (high - low) / max(1, most - least)
        made["longer"] = [
            outcome.with_values([low + step * (size - least)]) for outcome, size in zip(outcomes, sizes, strict=True)
        ]
    made["random"] = [
        outcome.with_values([low + (high - low) * random_share(f"{outcome.id}/0")]) for outcome in outcomes
    ]
    return made
