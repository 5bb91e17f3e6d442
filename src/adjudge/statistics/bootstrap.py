"""Bounds from resamples of whole clusters, for everything that is a function of weighted sums, and for all else.

Rows of one cluster (the answers to one prompt, both orders of a pair) depend on each other, so they come or stay away
together (Field and Welsh 2007).  Bounds are percentiles.  A resample of `c` clusters needs no list of rows: how often
each cluster came is a multinomial draw, and the sums of a resample are these counts times the sums of the clusters.
Clusters with the same sums need not be told apart either: how often one of them came is a multinomial draw over the
kinds of clusters, so 100,000 rows of 0 and 1 cost no more than the few kinds they are of.  Both are exact.

Not covered: studentised and accelerated bounds, and bounds of numbers at the edge of their range, where all resamples
agree and a percentile is a point (`share_interval` has bounds there).

Numbers that are weighted means of the means of parts: a section of its subsets, a total of its domains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from adjudge.statistics.arrays import ArrayLike, Floats, np
from adjudge.statistics.intervals import UNKNOWN, Draws, Interval, newcombe, numbered, wilson

_BLOCK = 1 << 21  # counts in memory at once: 16 MiB as integers, and as much as floats
_SAME = 1e-12  # of what is summed in another order
_KINDS = 8  # a binomial draw costs about as much as eight draws of one cluster, so fewer kinds than c / 8 are quicker


def cluster_bootstrap(
    clusters: Sequence[str],
    columns: Floats,
    combine: Callable[[Floats], Floats],
    draws: Draws,
    *,
    counts: Sequence[int] | None = None,
) -> list[Interval]:
    """Return numbers that are functions of column sums, with their bounds.

    Args:
        clusters: the cluster of each row.
        columns: what is summed, (rows, k), finite.  A row that has no value gets 0 there, and a column that counts.
        combine: makes sums, (b, k), into numbers, (b, m); NaN or infinite where the sums say nothing, as 0 / 0 does.
            The first call has b = 1 and the sums of the data; later ones have blocks of resamples.
        draws: how bounds are drawn; with 0 rounds there are none.
        counts: `Interval.n` of each number; the number of rows without it.

    Returns:
        One interval for each number.  Bounds are over the resamples that know the number; there are none where more
        than half of them do not, where all agree (which says nothing about chance), or where there is only one
        cluster.  A number the data do not know is None.

    Raises:
        ValueError: rows and clusters differ in number, there are none, or a column is not finite.
    """
    table = np.asarray(columns, dtype=float)
    if table.ndim != 2 or len(table) != len(clusters) or not len(table):
        raise ValueError(f"columns of shape {table.shape} for {len(clusters)} clusters; give a row for each, and some")
    if not np.isfinite(table).all():
        raise ValueError(
            "a column has a number that is not finite; give 0 there, and count such rows in another column"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(combine(table.sum(axis=0)[None, :]), dtype=float)[0]
        sizes = [len(table)] * len(values) if counts is None else list(counts)
        if len(sizes) != len(values):
            raise ValueError(f"{len(sizes)} counts for {len(values)} numbers; give one for each")
        owners = numbered(clusters)
        number = int(owners.max()) + 1
        if not draws.rounds or number < 2:
            return _intervals(values, None, sizes, draws)
        sums = np.column_stack([np.bincount(owners, column, minlength=number) for column in table.T]).astype(float)
        blocks = [np.asarray(combine(block), dtype=float) for block in _resampled_sums(sums, draws)]
    return _intervals(values, np.concatenate(blocks), sizes, draws)


def weighted_bootstrap(clusters: Sequence[str], statistic: Callable[[Floats], Floats], draws: Draws) -> list[Interval]:
    """Return numbers that are not functions of sums (ranks, areas under curves), with their bounds.

    Args:
        clusters: the cluster of each row.
        statistic: makes the number of times that each row counts, (rows,), into numbers, (m,); NaN where unknown.  The
            first call has ones.
        draws: how bounds are drawn; each resample costs one call.

    Returns:
        As `cluster_bootstrap`; `n` counts rows.
    """
    if not clusters:
        raise ValueError("there are no rows; give at least one")
    owners = numbered(clusters)
    number = int(owners.max()) + 1
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(statistic(np.ones(len(owners))), dtype=float)
        drawn = None
        if draws.rounds and number > 1:
            blocks = _counts(number, draws)
            drawn = np.array([statistic(times[owners]) for block in blocks for times in block], dtype=float)
    return _intervals(values, drawn, [len(owners)] * len(values), draws)


def resampled_mean(values: ArrayLike, clusters: Sequence[str], draws: Draws) -> Interval:
    """Return a mean with the bounds of resamples, also where all values happen to be 0 or 1; unknown without rows."""
    numbers = np.asarray(values, dtype=float)
    if not len(numbers) and not len(clusters):
        return UNKNOWN
    columns = np.column_stack([numbers, np.ones(len(numbers))])
    return cluster_bootstrap(clusters, columns, lambda sums: sums[:, :1] / sums[:, 1:], draws)[0]


def mean_interval(values: ArrayLike, clusters: Sequence[str], draws: Draws) -> Interval:
    """Return a mean with its bounds; of rows that are all 0 or 1, as `share_interval` does.

    Args:
        values: one finite number for each row; without rows the mean is unknown.
        clusters: as many names.
        draws: how bounds are drawn.
    """
    numbers = np.asarray(values, dtype=float)
    if ((numbers == 0) | (numbers == 1)).all() and len(numbers) == len(clusters):
        return share_interval(numbers, clusters, draws)
    return resampled_mean(numbers, clusters, draws)


def difference_interval(first: ArrayLike, second: ArrayLike, clusters: Sequence[str], draws: Draws) -> Interval:
    """Return the mean of `first - second`, two numbers of each row, with its bounds.

    Of rows that are all 0 or 1 on both sides and all clusters of their own they are Newcombe's for paired shares, which
    allow for a difference where none was seen; elsewhere those of resamples.

    Args:
        first: one finite number for each row; without rows the difference is unknown.
        second: as many.
        clusters: as many names.
        draws: how bounds are drawn.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    both = np.concatenate([one, other])
    if draws.rounds and 1 < len(one) == len(set(clusters)) and ((both == 0) | (both == 1)).all():
        return newcombe(one, other, level=draws.level)
    return resampled_mean(one - other, clusters, draws)


def mean_by_part(values: ArrayLike, parts: Sequence[str], clusters: Sequence[str], draws: Draws) -> dict[str, Interval]:
    """Return `mean_interval` of the rows of each part, in the order in which parts come.

    Each part is resampled by its own clusters, so a cluster in two parts is drawn for each of them.
    """
    numbers = np.asarray(values, dtype=float)
    if not len(numbers) == len(parts) == len(clusters):
        raise ValueError(f"{len(numbers)} values, {len(parts)} parts, {len(clusters)} clusters; give as many of each")
    rows: dict[str, list[int]] = {}
    for at, part in enumerate(parts):
        rows.setdefault(part, []).append(at)
    return {
        part: mean_interval(numbers[places], [clusters[at] for at in places], draws) for part, places in rows.items()
    }


def share_interval(hits: ArrayLike, clusters: Sequence[str], draws: Draws) -> Interval:
    """Return a share of rows that are 0 or 1, with bounds that are no point at 0 and 1.

    Rows that are all clusters of their own are independent, and Wilson's interval is better there than a bootstrap: it
    is quicker, and holds for few rows and near 0 and 1.  Where clusters repeat, whole clusters are drawn.  A share of 0
    or 1 over repeated clusters gets Wilson's bounds for as many rows as there are clusters, which is as if the rows of
    one told nothing new.

    Args:
        hits: 0 or 1 for each row; without rows the share is unknown.
        clusters: as many names.
        draws: how bounds are drawn; 0 rounds give none, and one cluster has none.
    """
    numbers = np.asarray(hits, dtype=float)
    if len(numbers) != len(clusters) or not ((numbers == 0) | (numbers == 1)).all():
        raise ValueError(f"{len(numbers)} hits for {len(clusters)} clusters; give 0 or 1 for each row")
    if not len(numbers):
        return UNKNOWN
    distinct, right = len(set(clusters)), int(numbers.sum())
    value = right / len(numbers)
    if not draws.rounds or distinct < 2:
        return Interval(value=value, n=len(numbers))
    if distinct == len(numbers):
        return wilson(right, len(numbers), level=draws.level)
    if right in (0, len(numbers)):
        return opened(Interval(value=value, n=len(numbers)), distinct, draws)
    return resampled_mean(numbers, clusters, draws)


def opened(share: Interval, clusters: int, draws: Draws) -> Interval:
    """Return a share with bounds that are no point: at 0 and 1 all resamples agree, and say nothing about chance.

    There it gets Wilson's bounds for as many rows as there are clusters, as if the rows of one told nothing new.
    """
    if share.value not in (0.0, 1.0) or not draws.rounds or clusters < 2:
        return share
    bounds = wilson(share.value * clusters, clusters, level=draws.level)
    return replace(share, low=bounds.low, high=bounds.high)


def _resampled_sums(sums: Floats, draws: Draws) -> Iterator[Floats]:
    """Yield the sums of resamples, (b, k), from those of the clusters, (c, k)."""
    kinds, members = np.unique(sums, axis=0, return_counts=True)
    if len(kinds) * _KINDS > len(sums):
        for block in _counts(len(sums), draws):
            yield block @ sums
        return
    draw = np.random.default_rng(draws.seed)
    for size in _blocks(len(kinds), draws.rounds):
        yield draw.multinomial(len(sums), members / len(sums), size=size).astype(float) @ kinds


def _counts(number: int, draws: Draws) -> Iterator[Floats]:
    """Yield how often each cluster came, (b, number), until there are as many rows as resamples."""
    draw = np.random.default_rng(draws.seed)
    for size in _blocks(number, draws.rounds):
        drawn = draw.integers(number, size=(size, number))
        drawn += np.arange(0, size * number, number)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * number).reshape(size, number).astype(float)


def _blocks(width: int, rounds: int) -> Iterator[int]:
    size = max(1, _BLOCK // width)
    for start in range(0, rounds, size):
        yield min(size, rounds - start)


def _intervals(values: Floats, drawn: Floats | None, sizes: Sequence[int], draws: Draws) -> list[Interval]:
    tails = [(1 - draws.level) / 2, (1 + draws.level) / 2]
    intervals = []
    for at, (value, size) in enumerate(zip(values.tolist(), sizes, strict=True)):
        low = high = None
        if drawn is not None and np.isfinite(value):
            known = drawn[:, at][np.isfinite(drawn[:, at])]
            if 2 * len(known) >= len(drawn) and np.ptp(known) > _SAME * max(1.0, abs(value)):
                low, high = (float(bound) for bound in np.quantile(known, tails))
        intervals.append(Interval(value=value if np.isfinite(value) else None, low=low, high=high, n=size))
    return intervals


Recipe: TypeAlias = Mapping[str, float]
"""Parts with their weights, above 0; the weights of a recipe are divided by their sum."""


def weighted_means(
    values: ArrayLike, parts: Sequence[str], clusters: Sequence[str], recipes: Sequence[Recipe], draws: Draws
) -> list[Interval]:
    """Return, for each recipe, the weighted mean of its parts' means, with bounds.

    Where all rows are 0, or all are 1, resamples say nothing, and the bounds are Wilson's for as many rows as clusters.

    Args:
        values: one finite number for each row.
        parts: the part of each row.
        clusters: the cluster of each row.
        recipes: each names parts that have rows.
        draws: how bounds are drawn; a resample in which a part has no rows does not know the number.

    Raises:
        ValueError: a recipe is empty, or names a part without rows.
    """
    names = list(dict.fromkeys(parts))
    for recipe in recipes:
        if not recipe or not recipe.keys() <= set(names):
            raise ValueError(f"a mean is wanted over {sorted(recipe)}; there are rows of {names}")
    numbers = np.asarray(values, dtype=float)
    place = {name: at for at, name in enumerate(names)}
    member = np.eye(len(names))[[place[part] for part in parts]]
    sizes = member.sum(axis=0)
    chosen = [np.array([place[name] for name in recipe]) for recipe in recipes]
    shares = [np.array(list(recipe.values())) / sum(recipe.values()) for recipe in recipes]

    def combine(sums: Floats) -> Floats:
        means = sums[:, : len(names)] / sums[:, len(names) :]
        return np.column_stack([means[:, at] @ share for at, share in zip(chosen, shares, strict=True)])

    means = cluster_bootstrap(
        clusters,
        np.column_stack([member * numbers[:, None], member]),
        combine,
        draws,
        counts=[int(sizes[at].sum()) for at in chosen],
    )
    if not draws.rounds:
        return means
    rows = [[row for row, part in enumerate(parts) if part in recipe] for recipe in recipes]
    return [
        _opened(one, numbers[own], {clusters[row] for row in own}, draws) for one, own in zip(means, rows, strict=True)
    ]


def _opened(mean: Interval, numbers: Floats, clusters: set[str], draws: Draws) -> Interval:
    first = float(numbers[0])
    if first not in (0.0, 1.0) or (numbers != first).any():
        return mean
    return opened(replace(mean, value=first), len(clusters), draws)


def evenly(parts: Sequence[str]) -> Recipe:
    """Return the recipe that counts each of these parts once."""
    return dict.fromkeys(parts, 1.0)
