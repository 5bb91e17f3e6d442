"""Whether a small task has an answer at all: a reference that has none would make every answer wrong.

Only what a few milliseconds can search is; larger tasks are taken at their word.

Not covered: mazes and queens, which `adjudge.verifiers.logic.puzzle` knows about at every size.
"""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations
from typing import Final

MAX_NUMBERS: Final = 4
MAX_VERTICES: Final = 10

Edges = Collection[tuple[str, str]]


def gives(numbers: tuple[int, ...], target: int, *, every: bool) -> bool | None:
    """Return whether + - * / make a target of numbers, of all or of some; None where they are too many."""
    if len(numbers) > MAX_NUMBERS:
        return None
    sizes = range(len(numbers) if every else 1, len(numbers) + 1)
    chosen = chain.from_iterable(combinations(sorted(numbers), size) for size in sizes)
    return any(Fraction(target) in _values(some) for some in chosen)


@lru_cache(maxsize=1024)
def _values(numbers: tuple[int, ...]) -> frozenset[Fraction]:
    """Return what expressions of all these numbers are worth; with each value its opposite, so a sum is enough."""
    if len(numbers) == 1:
        return frozenset({Fraction(numbers[0]), -Fraction(numbers[0])})
    found: set[Fraction] = set()
    places = range(len(numbers))
    for some in chain.from_iterable(combinations(places, size) for size in range(1, len(numbers) // 2 + 1)):
        others = _values(tuple(numbers[at] for at in places if at not in some))
        for one in _values(tuple(numbers[at] for at in some)):
            for other in others:
                found |= {one + other, one * other}
                found |= {above / below for above, below in ((one, other), (other, one)) if below}
    return frozenset(found)


def has_answer(kind: str, nodes: Collection[str], edges: Edges, size: int) -> bool | None:
    """Return whether a graph has an answer of a kind of `graph_answer`; None where it is too large or always has."""
    if len(nodes) > MAX_VERTICES:
        return None
    joined = {*edges, *((end, start) for start, end in edges)}
    match kind:
        case "coloring":
            return _colours(sorted(nodes), joined, {}, size)
        case "independent_set":
            return any(not any(pair in joined for pair in combinations(some, 2)) for some in combinations(nodes, size))
        case "clique":
            return any(all(pair in joined for pair in combinations(some, 2)) for some in combinations(nodes, size))
        case "vertex_cover":
            chosen = combinations(nodes, min(size, len(nodes)))
            return any(all(start in some or end in some for start, end in edges) for some in chosen)
        case "matching":
            return _matches(frozenset(nodes), joined, size)
        case "hamiltonian_path":
            return any(_visits(node, frozenset(nodes) - {node}, edges, {}) for node in nodes)
    return None


def _colours(nodes: list[str], joined: Edges, given: dict[str, int], size: int) -> bool:
    if len(given) == len(nodes):
        return True
    node = nodes[len(given)]
    near = {colour for other, colour in given.items() if (node, other) in joined}
    new = max(given.values(), default=-1) + 1  # a colour not used yet is like any other
    return any(
        _colours(nodes, joined, {**given, node: colour}, size)
        for colour in range(min(size, new + 1))
        if colour not in near
    )


def _matches(nodes: frozenset[str], joined: Edges, size: int) -> bool:
    if size <= 0 or len(nodes) < 2 * size:
        return size <= 0
    first = min(nodes)
    rest = nodes - {first}
    ends = [other for other in sorted(rest) if (first, other) in joined]
    return any(_matches(rest - {other}, joined, size - 1) for other in ends) or _matches(rest, joined, size)


def _visits(node: str, left: frozenset[str], edges: Edges, known: dict[tuple[str, frozenset[str]], bool]) -> bool:
    if (node, left) not in known:
        ahead = [other for other in sorted(left) if (node, other) in edges]
        known[node, left] = not left or any(_visits(other, left - {other}, edges, known) for other in ahead)
    return known[node, left]
