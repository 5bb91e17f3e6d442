"""Graphs as references give them, and what `graph_answer` asks of them.

Not covered: edges that lie beside each other, and loops.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown
from adjudge.verifiers.logic.ordering import normal_item

MAX_EDGES: Final = 50_000
WEIGHT: Final = re.compile(r"[+-]?\d{1,50}(?:\.\d{1,50})?(?:e[+-]\d{1,3})?", re.ASCII)  # as Python writes floats


@dataclass(frozen=True, slots=True)
class Graph:
    """Vertices by their normalised names, and the weight of each edge, which is there both ways if undirected."""

    nodes: frozenset[str]
    weights: Mapping[tuple[str, str], Fraction]
    directed: bool

    @property
    def neighbours(self) -> dict[str, list[str]]:
        """The vertices that an edge leads to, from each vertex."""
        ends: dict[str, list[str]] = {node: [] for node in self.nodes}
        for start, end in self.weights:
            ends[start].append(end)
        return ends

    def length(self, path: Sequence[str]) -> Fraction | None:
        """Return the sum of the weights along a path; None where an edge is missing."""
        steps = [self.weights.get(step) for step in pairwise(path)]
        return None if None in steps else sum((step for step in steps if step is not None), Fraction(0))

    def distances(self, source: str) -> dict[str, Fraction]:
        """Return the least sum of weights to each vertex that can be reached."""
        neighbours = self.neighbours
        least: dict[str, Fraction] = {}
        waiting = [(Fraction(0), source)]
        while waiting:
            so_far, node = heapq.heappop(waiting)
            if node not in least:
                least[node] = so_far
                for other in neighbours[node]:
                    if other not in least:
                        heapq.heappush(waiting, (so_far + self.weights[node, other], other))
        return least

    def components(self) -> frozenset[frozenset[str]]:
        """Return the sets of vertices that are connected, whatever the edges' directions."""
        parent = {node: node for node in self.nodes}
        for start, end in self.weights:
            parent[_root(parent, start)] = _root(parent, end)
        parts: dict[str, set[str]] = {}
        for node in self.nodes:
            parts.setdefault(_root(parent, node), set()).add(node)
        return frozenset(map(frozenset, parts.values()))

    def has_cycle(self) -> bool:
        """Return whether a walk can come back to where it began, without an edge used twice."""
        if not self.directed:
            return len(self.weights) // 2 > len(self.nodes) - len(self.components())
        incoming = dict.fromkeys(self.nodes, 0)
        for _, end in self.weights:
            incoming[end] += 1
        neighbours = self.neighbours
        free = [node for node, count in incoming.items() if not count]
        seen = 0
        while free:
            seen += 1
            for other in neighbours[free.pop()]:
                incoming[other] -= 1
                if not incoming[other]:
                    free.append(other)
        return seen < len(self.nodes)

    def forest_weight(self) -> Fraction:
        """Return the weight of a lightest spanning forest."""
        parent = {node: node for node in self.nodes}
        total = Fraction(0)
        for (start, end), weight in sorted(self.weights.items(), key=lambda item: item[1]):
            one, other = _root(parent, start), _root(parent, end)
            if one != other:
                parent[one] = other
                total += weight
        return total

    def spans(self, edges: Iterable[tuple[str, str]]) -> bool:
        """Return whether edges of this graph make a spanning forest: no cycle, and as connected as the graph."""
        parent = {node: node for node in self.nodes}
        joined = 0
        for start, end in edges:
            one, other = _root(parent, start), _root(parent, end)
            if one == other:
                return False
            parent[one] = other
            joined += 1
        return joined == len(self.nodes) - len(self.components())


def read_graph(value: Any) -> Graph:
    """Return the graph of a reference: `{"edges": [[u, v], [u, v, weight], ..], "nodes": [..], "directed": false}`."""
    if not isinstance(value, Mapping) or not {"edges"} <= set(value) <= {"edges", "nodes", "directed"}:
        raise ReferenceFormError(
            f'the graph is {shown(value)}; give {{"edges": [[u, v], ..]}} with "nodes" and "directed"'
        )
    directed, edges, nodes = value.get("directed", False), value["edges"], value.get("nodes", ())
    if type(directed) is not bool or not isinstance(edges, list | tuple) or not isinstance(nodes, list | tuple):
        raise ReferenceFormError("the graph's edges and nodes must be lists, and directed true or false")
    if len(edges) > MAX_EDGES:
        raise BadReferenceError(f"the graph has {len(edges)} edges; it may have {MAX_EDGES}")
    weights: dict[tuple[str, str], Fraction] = {}
    for edge in edges:
        start, end, weight = _edge(edge)
        if start == end or (start, end) in weights:
            raise BadReferenceError(f"the edge {shown(edge)} is a loop, or there twice")
        weights[start, end] = weight
        if not directed:
            weights[end, start] = weight
    given = {str(node).strip() for node in (*nodes, *(end for edge in edges for end in edge[:2]))}
    names = {vertex(node) for node in nodes} | {end for ends in weights for end in ends}
    if len(names) < len(given):
        raise BadReferenceError("two of the graph's vertices differ only in case or quotes")
    return Graph(frozenset(names), weights, directed)


def vertex(value: Any) -> str:
    """Return a vertex' name, a text or a number, normalised."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ReferenceFormError(f"the vertex {shown(value)} is neither a text nor a number")
    return normal_item(str(value))


def _edge(edge: Any) -> tuple[str, str, Fraction]:
    if not isinstance(edge, list | tuple) or len(edge) not in (2, 3):
        raise ReferenceFormError(f"the edge {shown(edge)} is not a list of two ends")
    given = edge[2] if len(edge) == 3 else 1
    if isinstance(given, bool) or not isinstance(given, int | float | str) or not WEIGHT.fullmatch(str(given)):
        raise ReferenceFormError(f"the weight of {shown(edge)} is not a number")
    weight = Fraction(str(given))
    if weight < 0:
        raise BadReferenceError(f"the weight of {shown(edge)} is below 0")
    return vertex(edge[0]), vertex(edge[1]), weight


def _root(parent: dict[str, str], node: str) -> str:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
