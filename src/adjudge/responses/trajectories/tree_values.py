"""Trees of trajectories that share beginnings: who shares what, and what each node is worth by the leaves below it.

A trajectory is a path of keys from a root: its prompt.  Two share a node if they share the root and all keys up to it.
The value of a node, with a discount gamma and R_i the reward at the end of path i, which has T_i keys:

    V(node at depth d) = mean over the paths i through it of gamma^(T_i - d) R_i

A sibling's worth is its value beside those of the other children of the same node, each counted once, as a z-score
with n - 1 below: a lone child and children of equal values get 0.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final

_EPS: Final = 1e-6  # what rounding leaves between equal values is not blown up to +-1


def prefix_paths(keys: Sequence[Sequence[Hashable]], roots: Sequence[Hashable]) -> list[list[int]]:
    """Return the nodes of each path of keys, its root's first, numbered from 0 as they first occur."""
    nodes: dict[tuple[int, Hashable], int] = {}
    paths = []
    for row, root in zip(keys, roots, strict=True):
        here = nodes.setdefault((-1, root), len(nodes))
        path = [here]
        for key in row:
            here = nodes.setdefault((here, key), len(nodes))
            path.append(here)
        paths.append(path)
    return paths


def node_values(paths: Sequence[Sequence[int]], rewards: Sequence[float], discount: float = 1.0) -> dict[int, float]:
    """Return the value of every node of paths with such rewards at their ends; the discount is in (0, 1]."""
    below: defaultdict[int, list[float]] = defaultdict(list)
    for path, reward in zip(paths, rewards, strict=True):
        for depth, node in enumerate(path):
            below[node].append(discount ** (len(path) - 1 - depth) * reward)
    return {node: math.fsum(values) / len(values) for node, values in below.items()}


def sibling_scores(paths: Sequence[Sequence[int]], values: Mapping[int, float]) -> dict[int, float]:
    """Return for every node but the roots the z-score of its value among its siblings, itself included."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for parent, node in dict.fromkeys((one, other) for path in paths for one, other in itertools.pairwise(path)):
        children[parent].append(node)
    return {
        node: score
        for siblings in children.values()
        for node, score in zip(siblings, z_scores([values[node] for node in siblings]), strict=True)
    }


def z_scores(values: Sequence[float]) -> list[float]:
    """Return (value - mean) / (deviation + 1e-6), with n - 1 below; zeros for fewer than two values and equal ones."""
    if len(values) < 2 or min(values) == max(values):
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return [(value - mean) / (deviation + _EPS) for value in values]
