"""What each fact is worth for a value that sets of facts have: Shapley values, and weights made of them.

    phi_i = mean over all orders of the facts of  v(those before i, and i) - v(those before i)

Up to 10 facts all 2^n sets are valued and phi is exact; beyond, the mean is over seeded random orders (30 as in a
re-implementation of ProMed).  Either way the phi add up to v(all) - v(none).

| weights | w_i |
|---|---|
| `softmax` | exp(phi_i / T) / sum of those, T = 2; they differ little where values are probabilities |
| `share` | the positive part of phi_i over the sum of those; 0 where no fact helps |
| `none` | the positive part of phi_i |

Not covered: where values come from (`facts_value`).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

Normalise: TypeAlias = Literal["softmax", "share", "none"]
NORMALISATIONS: tuple[Normalise, ...] = get_args(Normalise)

MOST_EXACT = 10
"""Facts up to which every set is valued."""


def orders_of(facts: int, permutations: int, seed: int) -> list[tuple[int, ...]] | None:
    """Return the random orders in which facts are added; None where every set is valued instead.

    Raises:
        ValueError: there is no fact.
    """
    if facts < 1:
        raise ValueError(f"there are {facts} facts; Shapley values need one at least")
    if facts <= MOST_EXACT:
        return None
    source = random.Random(seed)
    return [tuple(source.sample(range(facts), facts)) for _ in range(permutations)]


def sets_of(facts: int, orders: Sequence[Sequence[int]] | None) -> list[int]:
    """Return the sets whose value is needed, each once and in rising order; bit i of a set stands for fact i."""
    if orders is None:
        return list(range(1 << facts))
    return sorted({made for order in orders for made in _growing(order)})


def shapley(facts: int, values: Mapping[int, float], orders: Sequence[Sequence[int]] | None) -> list[float]:
    """Return the Shapley value of each fact.

    Args:
        facts: how many there are.
        values: the value of each set in `sets_of`.
        orders: the orders to take the mean over; None for all of them.
    """
    if orders is not None:
        gains = [0.0] * facts
        for order in orders:
            for fact, (before, after) in zip(order, itertools.pairwise(_growing(order)), strict=True):
                gains[fact] += values[after] - values[before]
        return [gain / len(orders) for gain in gains]
    shares = [1.0 / (facts * math.comb(facts - 1, size)) for size in range(facts)]
    return [
        math.fsum(
            shares[made.bit_count()] * (values[made | 1 << fact] - values[made])
            for made in range(1 << facts)
            if not made >> fact & 1
        )
        for fact in range(facts)
    ]


def weights_of(phi: Sequence[float], how: Normalise, temperature: float) -> list[float]:
    """Return the weights of facts, none of them negative; see the module."""
    if how == "softmax":
        top = max(phi)
        raised = [math.exp((one - top) / temperature) for one in phi]
        return [one / math.fsum(raised) for one in raised]
    positive = [max(0.0, one) for one in phi]
    total = math.fsum(positive)
    return [one / total for one in positive] if how == "share" and total else positive


def _growing(order: Sequence[int]) -> Iterator[int]:
    """The sets that an order makes, from none to all."""
    made = 0
    yield made
    for fact in order:
        made |= 1 << fact
        yield made
