"""Which rows of tokens should share the work of a common prefix.

Judges ask about many answers with one rubric, and reward models score many answers to one prompt: the first half of
each row is the same.  A prefix is read once for all rows of its group, and each row then costs only what is its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Tokens: TypeAlias = tuple[int, ...]

# Real rows nest three or four deep (rubric, question, answer); rows made to nest deeper must not exhaust the stack.
_DEEPEST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rows that share a prefix.

    Attributes:
        prefix: how many tokens they share; 0 for a row that shares nothing worth the while.
        rows: their indices.
    """

    prefix: int
    rows: tuple[int, ...]


def common(one: Tokens, other: Tokens) -> int:
    """Return the length of the longest common prefix; slices are compared, as that is done in C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def grouped(rows: Sequence[Tokens], limits: Sequence[int]) -> list[Group]:
    """Return the groups with which the fewest tokens are read.

    Args:
        rows: token ids.
        limits: for each row, the most tokens that may count as prefix.

    In sorted order, rows with a common prefix are neighbours, and the prefix of a run of rows is the shortest of its
    neighbours' prefixes.  A run is either one group, or is cut at those shortest places; the cheaper one is taken.
    """
    order = sorted(range(len(rows)), key=lambda index: rows[index])
    shared = [
        min(common(rows[one], rows[other]), limits[one], limits[other]) for one, other in itertools.pairwise(order)
    ]
    return _best(order, [len(rows[index]) for index in order], shared, _DEEPEST)[1]


def cost(rows: Sequence[Tokens], groups: Sequence[Group]) -> int:
    """Return how many tokens are read, prefixes once for each group."""
    return sum(group.prefix + sum(len(rows[at]) - group.prefix for at in group.rows) for group in groups)


def _best(order: Sequence[int], lengths: Sequence[int], shared: Sequence[int], deep: int) -> tuple[int, list[Group]]:
    """The cheapest groups of a run, and what they cost; each level of nesting has a longer prefix."""
    if len(order) == 1:
        return lengths[0], [Group(prefix=0, rows=(order[0],))]
    least = min(shared)
    if deep == 0 and least > 0:
        return sum(lengths) - least * (len(order) - 1), [Group(prefix=least, rows=tuple(order))]
    cuts = [0, *(at + 1 for at, length in enumerate(shared) if length == least), len(order)]
    apart, groups = 0, []
    for start, end in itertools.pairwise(cuts):
        price, inner = _best(order[start:end], lengths[start:end], shared[start : end - 1], deep - 1)
        apart += price
        groups += inner
    together = sum(lengths) - least * (len(order) - 1)
    if least > 0 and together <= apart:
        return together, [Group(prefix=least, rows=tuple(order))]
    return apart, groups
