"""Measured numbers with their bounds: Wilson's interval for shares, means over clusters that are drawn whole.

Rows of one cluster (the two orders of a pair, the answers to one prompt) depend on each other, so they come or stay
away together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from adjudge.statistics.arrays import ArrayLike, Floats, Ints, np

LEVEL = 0.95
RESAMPLES = 2_000
_TOGETHER = 2**15  # numbers that are drawn at once: of few clusters, a call for each resample takes most of the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A measured number.

    Attributes:
        value: the number; None where the data say nothing about it.
        low: its lower bound; None if there is none.
        high: its upper bound.
        n: how many rows (pairs, games, items) it rests on.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0

    @property
    def known(self) -> float:
        """The number.

        Raises:
            ValueError: the data say nothing about it.
        """
        if self.value is None:
            raise ValueError("the data say nothing about this number")
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"value": self.value, "low": self.low, "high": self.high, "n": self.n}

    def __str__(self) -> str:
        if self.value is None:
            return "-"
        if self.low is None or self.high is None:
            return f"{self.value:.4g}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


UNKNOWN = Interval(value=None)


def wilson(hits: float, n: int, *, level: float = LEVEL) -> Interval:
    """Return a share with Wilson's score interval (1927), which holds for shares near 0 and 1 too.

    Args:
        hits: how many of the rows, 0 <= hits <= n; ties may count as half.
        n: rows, which must be independent; 0 gives an interval without numbers.
        level: coverage, in (0, 1).
    """
    check_level(level)
    if not 0 <= hits <= n:
        raise ValueError(f"{hits!r} of {n!r} rows; the hits must be between 0 and the number of rows")
    if n == 0:
        return UNKNOWN
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = hits / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = max(0.0, centre - half) if hits else 0.0  # rounding leaves 1e-19
    high = min(1.0, centre + half) if hits < n else 1.0
    return Interval(value=share, low=low, high=high, n=n)


def newcombe(first: ArrayLike, second: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Return `first - second`, two shares of the same rows, with Newcombe's interval (1998, method 10).

    Args:
        first: 0 or 1 for each row, at least one; rows must be independent.
        second: as many.
        level: coverage, in (0, 1).
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    n = len(one)
    mine, theirs = (wilson(float(hits.sum()), n, level=level) for hits in (one, other))
    both, only, others, neither = ((a * b).sum() for a in (one, 1 - one) for b in (other, 1 - other))
    apart = both * neither - only * others
    margins = (both + only) * (others + neither) * (both + others) * (only + neither)
    corrected = max(apart - n / 2, 0.0) if apart > 0 else apart
    phi = corrected / math.sqrt(margins) if margins else 0.0

    def reach(up: float, down: float) -> float:
        return math.sqrt(max(0.0, up * up - 2 * phi * up * down + down * down))

    value = mine.known - theirs.known
    low = value - reach(mine.known - (mine.low or 0.0), (theirs.high or 0.0) - theirs.known)
    high = value + reach((mine.high or 0.0) - mine.known, theirs.known - (theirs.low or 0.0))
    return Interval(value=value, low=max(-1.0, low), high=min(1.0, high), n=n)


def clustered_mean(values: Sequence[float] | Floats, clusters: Sequence[str], *, seed: int = 0) -> Interval:
    """Return a mean with the middle 95 % it takes when whole clusters are drawn with replacement, 2,000 times.

    Args:
        values: one number for each row, at least one.
        clusters: as many names.
        seed: of the draws.

    Returns:
        Without bounds where there is only one cluster; `n` counts rows.
    """
    numbers = np.asarray(values, dtype=float)
    if not len(numbers) or len(numbers) != len(clusters):
        raise ValueError(f"{len(numbers)} values and {len(clusters)} clusters; give one of each for every row")
    owners = numbered(clusters)
    sums, counts = np.bincount(owners, numbers), np.bincount(owners).astype(float)
    mean = float(numbers.mean())
    if len(sums) < 2:
        return Interval(value=mean, n=len(numbers))
    drawn = [float(times @ sums) / float(times @ counts) for times in resampled(len(sums), seed=seed)]
    low, high = middle(drawn)
    return Interval(value=mean, low=low, high=high, n=len(numbers))


def numbered(clusters: Sequence[str]) -> Ints:
    """Return the number of each row's cluster, from 0, in the order in which clusters come."""
    places = {name: at for at, name in enumerate(dict.fromkeys(clusters))}
    return np.array([places[name] for name in clusters], dtype=np.int64)


def resampled(count: int, *, seed: int = 0, rounds: int = RESAMPLES) -> Iterator[Ints]:
    """Yield how often each of `count` clusters is there, (count,), when as many are drawn with replacement.

    Of many clusters one resample is in memory at a time; with one seed two statistics meet the same resamples.
    """
    draw = np.random.default_rng(seed)
    together = max(1, _TOGETHER // count)
    for start in range(0, rounds, together):
        rows = np.arange(min(together, rounds - start))[:, None]
        drawn = draw.integers(count, size=(len(rows), count)) + rows * count
        yield from np.bincount(drawn.ravel(), minlength=len(rows) * count).reshape(-1, count)


def middle(drawn: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of the middle 95 % of numbers."""
    return quantile(drawn, (1 - LEVEL) / 2), quantile(drawn, (1 + LEVEL) / 2)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share lies, interpolated linearly between order statistics."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def check_level(level: float) -> None:
    """Raise `ValueError` unless the coverage lies between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}; the coverage of an interval lies between 0 and 1, such as 0.95")


@dataclass(frozen=True, kw_only=True)
class Draws:
    """How the bounds of measures are drawn.

    Attributes:
        rounds: resamples of whole clusters; 0 draws nothing, and measures have no bounds.
        level: coverage, in (0, 1).
        seed: of the draws; the same rows and seed give the same bounds.
    """

    rounds: int = 2_000
    level: float = LEVEL
    seed: int = 0

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.rounds < 0 or self.rounds == 1:
            raise ValueError(f"Draws.rounds is {self.rounds!r}; give 0 for no bounds, or at least 2 resamples")


NO_DRAWS = Draws(rounds=0)
