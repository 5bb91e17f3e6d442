"""Two scorers on the same cases: is the difference more than chance?  And several such tests at once.

McNemar's test is for cases that are right or wrong and independent.  Where cases earn parts of a point, or several
share a prompt, the signs of whole clusters are flipped.

Not covered: tests of equivalence; a large p is no proof that two scorers are equally good.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from adjudge.statistics.arrays import ArrayLike, Floats, np
from adjudge.statistics.intervals import Draws, numbered

EXACT_CLUSTERS = 16
"""Up to so many clusters with a difference all 65,536 ways to flip their signs are counted."""

_BLOCK = 1 << 21
_EQUAL = 1e-9  # sums that differ by this part of the largest possible sum are one sum, added in another order


def mcnemar(first: ArrayLike, second: ArrayLike, *, mid_p: bool = False) -> float | None:
    """Return the two-sided p-value of McNemar's exact test (1947): the binomial test of the cases that differ.

    Args:
        first: 1 or 0 for each case: whether the first scorer is right.
        second: the same of the second scorer.
        mid_p: count the outcome that was seen as half (Lancaster 1961; Fagerland et al. 2013).  The exact test is
            right less often than it may be wrong; this one's error is nearer to what it says, and sometimes above it.

    Returns:
        None without cases; 1 where no case differs.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(f"{one.shape} and {other.shape} cases; give one number of each scorer for the same cases")
    if not ((one == 0) | (one == 1)).all() or not ((other == 0) | (other == 1)).all():
        raise ValueError("McNemar's test takes cases that are right (1) or wrong (0); permutation_test takes parts")
    if not len(one):
        return None
    wins, losses = int(((one == 1) & (other == 0)).sum()), int(((one == 0) & (other == 1)).sum())
    return binomial_p(min(wins, losses), wins + losses, mid_p=mid_p)


def binomial_p(fewer: int, total: int, *, mid_p: bool = False) -> float:
    """Return the two-sided p-value of `fewer` of `total` fair coins, `fewer` being at most half.

    Raises:
        ValueError: the numbers are no such counts.
    """
    if not 0 <= 2 * fewer <= total:
        raise ValueError(f"{fewer!r} of {total!r}; give the rarer side, which is at most half")
    if total == 0:
        return 1.0
    seen = math.exp(math.lgamma(total + 1) - math.lgamma(fewer + 1) - math.lgamma(total - fewer + 1) - total * _LOG_2)
    tail = term = seen
    for k in range(fewer, 0, -1):  # each term is the one before times k / (total - k + 1), which is below 1
        term *= k / (total - k + 1)
        tail += term
        if term < tail * 1e-17:
            break
    return min(1.0, 2 * tail - seen if mid_p else 2 * tail)


_LOG_2 = math.log(2)


def permutation_test(differences: ArrayLike, clusters: Sequence[str], draws: Draws) -> float | None:
    """Return the two-sided p-value of a mean difference when the signs of whole clusters are a matter of chance.

    With up to `EXACT_CLUSTERS` clusters that differ all ways are counted, and nothing is drawn; else `draws.rounds` of
    them, with the data themselves as one more (Phipson and Smyth 2010), so that p is never 0.

    Args:
        differences: first minus second scorer's number, finite, for each case.
        clusters: as many names.
        draws: how signs are drawn.

    Returns:
        None without cases, or where signs must be drawn and there are 0 rounds; 1 where no cluster differs.
    """
    numbers = np.asarray(differences, dtype=float)
    if numbers.ndim != 1 or len(numbers) != len(clusters) or not np.isfinite(numbers).all():
        raise ValueError(f"{numbers.shape} differences for {len(clusters)} clusters; give a finite one for each")
    if not len(numbers):
        return None
    sums = np.bincount(numbered(clusters), numbers)
    largest = float(np.abs(sums).sum())
    sums = sums[np.abs(sums) > _EQUAL * largest] if largest else sums[:0]
    if not len(sums):
        return 1.0
    seen = abs(float(sums.sum())) - _EQUAL * largest
    if len(sums) <= EXACT_CLUSTERS:
        flips = 1 - 2 * (np.arange(1 << len(sums))[:, None] >> np.arange(len(sums)) & 1)
        return float((np.abs(flips @ sums) >= seen).mean())
    if not draws.rounds:
        return None
    hits = sum(int((np.abs(drawn) >= seen).sum()) for drawn in _flipped(np.abs(sums), draws))
    return (1 + hits) / (1 + draws.rounds)


def _flipped(sizes: Floats, draws: Draws) -> Iterator[Floats]:
    """Yield sums of `sizes` with random signs, `draws.rounds` in all.

    Of `m` clusters of one size, how many are positive is a binomial draw, so equal sizes cost no more than one.
    """
    draw = np.random.default_rng(draws.seed)
    kinds, members = np.unique(sizes, return_counts=True)
    block = max(1, _BLOCK // len(kinds))
    for start in range(0, draws.rounds, block):
        shape = (min(block, draws.rounds - start), len(kinds))
        if (members == 1).all():
            words = 4 * -(-shape[1] // 32)  # whole words of the generator for each row, so that blocks change nothing
            bits = np.unpackbits(np.frombuffer(draw.bytes(shape[0] * words), dtype=np.uint8))
            positive = bits.reshape(shape[0], -1)[:, : shape[1]].astype(float)
        else:
            positive = draw.binomial(members, 0.5, size=shape).astype(float)
        yield (2 * positive - members) @ kinds


NOTE = (
    "Several comparisons were made, so the smallest p of them is smaller than it looks; p_adjusted is corrected by "
    "Holm's method for all comparisons of this result, and for none of other results.  Bounds are each on its own: of "
    "twenty with a coverage of 95 %, one is expected to miss."
)
"""The sentence that stands beside several tests."""


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Return p-values after Holm's step-down correction (1979), which holds however the tests depend on each other.

    Args:
        ps: in [0, 1]; None for tests that say nothing, which do not count and stay None.
    """
    for p in ps:
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"the p-value is {p!r}; it must be in [0, 1], or None")
    known = sorted((p, at) for at, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    largest = 0.0
    for rank, (p, at) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[at] = largest
    return adjusted
