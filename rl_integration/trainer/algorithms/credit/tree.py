"""Responses that share beginnings, as a tree: what every rule of prefix credit reads.

A response is a path of keys from its prompt: tokens, segments of fixed length, turns, or states.  Responses of one
group that begin with the same keys share nodes.  A node's value is the mean reward of the valid responses through it.

Not covered: how the tree was sampled; responses that were drawn apart share what they happen to share.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, same_shape
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.trajectories.tree_values import prefix_paths


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    """Paths of responses through nodes; make it by `of`.

    Attributes:
        groups: of n responses, with their rewards.
        paths: n arrays of nodes, from the root, which is the prompt, to the response's last; numbers from 0.
        sizes: (m,) tokens of each node; 0 for roots.
    """

    groups: Groups
    paths: tuple[Integers, ...]
    sizes: Integers

    @classmethod
    def of(
        cls, keys: Sequence[Sequence[Hashable]], groups: Groups, *, sizes: Sequence[Sequence[int]] | None = None
    ) -> Tree:
        """Return the tree of responses.

        Args:
            keys: n rows, what each response is made of.  Give a row its end token too, or a response that is the
                beginning of another one ends within it.
            groups: of n responses.
            sizes: n rows, the tokens of each key; 1 by default.

        Raises:
            ValueError: numbers of responses or of keys differ, or one node would have two sizes.
        """
        same_shape("keys", (len(keys),), (len(groups),))
        paths = prefix_paths(keys, groups.ids.tolist())
        found: list[int] = []
        for row, path in enumerate(paths):
            lengths = [1] * len(keys[row]) if sizes is None else list(sizes[row])
            same_shape(f"sizes of response {row}", (len(lengths),), (len(keys[row]),))
            for node, length in zip(path, [0, *lengths], strict=True):
                if node == len(found):
                    found.append(length)
                elif found[node] != length:
                    raise ValueError(f"response {row} has a node of {length} tokens that has {found[node]} in another")
        of = tuple(np.array(path, dtype=np.int64) for path in paths)
        return cls(groups=groups, paths=of, sizes=np.array(found, dtype=np.int64))

    def sums(self, values: Floats) -> Floats:
        """Return (m,) the sum over the valid responses through each node of the responses' values, (n,)."""
        found = np.zeros(len(self.sizes))
        for path, value, valid in zip(self.paths, values, self.groups.valid, strict=True):
            if valid:
                found[path] += value
        return found

    def counts(self) -> Floats:
        """Return (m,) how many valid responses pass through each node."""
        return self.sums(np.ones(len(self.paths)))

    def values(self) -> Floats:
        """Return (m,) the mean reward of the valid responses through each node; 0 where there is none."""
        found: Floats = self.sums(self.groups.rewards) / np.maximum(self.counts(), 1)
        return found

    def along(self, values: Floats) -> list[Floats]:
        """Return for each response the values, (m,), of its nodes but the root; 0 for responses that take no part."""
        counted = self.groups.counted(2)
        return [values[path[1:]] * taken for path, taken in zip(self.paths, counted, strict=True)]

    def gains(self) -> list[Floats]:
        """Return for each response V(node) - V(parent) along its path: what TreePS-RAG and AT2PO give a step.

        0 for responses that take no part.
        """
        values = self.values()
        counted = self.groups.counted(2)
        return [np.diff(values[path]) * taken for path, taken in zip(self.paths, counted, strict=True)]
