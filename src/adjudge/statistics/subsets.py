"""Exact expectations over all ways to take n of N responses, without drawing any.

With C(m, n) / C(N, n), the chance that all of n responses are among m given ones:

| number | formula | arXiv |
|---|---|---|
| chance of one of t equal keys, above L others, to be the choice | [C(L + t, n) - C(L, n)] / C(N, n) / t | 2112.09332 |
| pass@k | 1 - C(N - c, k) / C(N, k) for c right ones | 2107.03374 |
| pass^k | C(c, k) / C(N, k) | 2406.12045 |
| KL of best-of-n from the policy | log n - (n - 1) / n | 2112.09332; an upper bound, 2401.01879 |
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from adjudge.statistics.arrays import Floats, np


def chances(keys: Floats, ns: Sequence[int]) -> Floats:
    """Return (ns, N) how likely each response is chosen, by the highest key of n that are drawn without replacement.

    Equal keys share their chance.  A response without a key (NaN) is chosen only where none of the n has one.

    Args:
        keys: (N,) finite, or NaN.
        ns: how many are drawn, each 1 <= n <= N.

    Raises:
        ValueError: there are not as many responses.
    """
    filled = np.where(np.isnan(keys), -np.inf, keys)
    _, place, sizes = np.unique(filled, return_inverse=True, return_counts=True)
    below = np.concatenate([[0], np.cumsum(sizes)])
    within = np.array([all_among(len(keys), n) for n in ns]).reshape(len(ns), -1)[:, below]
    return np.asarray((np.diff(within, axis=1) / sizes)[:, place], dtype=float)


@functools.lru_cache(maxsize=256)
def all_among(total: int, n: int) -> Floats:
    """Return (N + 1,) the chance C(m, n) / C(N, n) that n drawn responses are all among the first m, for m = 0 to N.

    It is a running product from m = N down, each factor exact to one rounding, so that no factorial overflows.

    Raises:
        ValueError: not 1 <= n <= N.
    """
    if not 1 <= n <= total:
        raise ValueError(f"best of {n!r} among {total} responses; n must be between 1 and their number")
    sizes = np.arange(total, n, -1, dtype=float)  # m = N, .., n + 1
    shares = np.zeros(total + 1)
    shares[n:] = np.concatenate([[1.0], np.cumprod((sizes - n) / sizes)])[::-1]
    shares.setflags(write=False)
    return shares


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the chance that at least one of k responses is right, of n of which `right` are.

    Raises:
        ValueError: not 0 <= right <= n, or not 1 <= k <= n.
    """
    _check(n, right, k)
    if n - right < k:
        return 1.0
    return -math.expm1(_log_all_among(n - right, n, k))


def pass_all_k(n: int, right: int, k: int) -> float:
    """Return the chance that all of k responses are right (pass^k); arguments as those of `pass_at_k`."""
    _check(n, right, k)
    return 0.0 if right < k else math.exp(_log_all_among(right, n, k))


def kl_of_best_of_n(n: int) -> float:
    """Return log n - (n - 1) / n, in nats: how far best-of-n lies from the policy, at most.

    It is exact where no two responses have the same value; ties make it smaller.
    """
    return math.log(n) - (n - 1) / n


def powers_of_two(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, .. and, where it is none of them, `most`."""
    powers = [1 << place for place in range(most.bit_length())]
    return tuple(dict.fromkeys([*powers, most]))


def _log_all_among(m: int, n: int, k: int) -> float:
    """The logarithm of C(m, k) / C(n, k) for m >= k, as a sum over the shorter of both products."""
    lacking = n - m
    if lacking <= k:
        return math.fsum(math.log1p(-k / size) for size in range(m + 1, n + 1))
    return math.fsum(math.log1p(-lacking / size) for size in range(n - k + 1, n + 1))


def _check(n: int, right: int, k: int) -> None:
    if not 0 <= right <= n:
        raise ValueError(f"{right!r} of {n!r} responses are right; it must be between 0 and their number")
    if not 1 <= k <= n:
        raise ValueError(f"k is {k!r} of {n!r} responses; it must be between 1 and their number")
