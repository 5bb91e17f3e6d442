"""Credit of beginnings that answers share: the tree of answers, advantages of its nodes, and those of tokens.

A response is a path of keys from its prompt; responses of one group that begin with the same keys share nodes.  r_i is
its reward, m and s the mean and standard deviation of its group, V(node) the mean reward of the valid responses through
a node, L(node) their number.  All rules need two valid responses in a group; the others get 0.

| rule | advantage of a node on response i's path | source |
|---|---|---|
| `tempo` | ( r_i - m + V(node) - V(parent) ) / (s + eps) | TEMPO, arXiv 2509.18314 |
| `tree_grpo` | GRPO in the group + GRPO in the tree, of the response | Tree-GRPO, arXiv 2509.21240 |
| `tree_rl` | ( S - μ L(node) ) / sqrt L(node), S = Σ of r_j - mean of the others, over its responses | TreeRL's code |
| `values` | z_i where i ends, else the mean of the children's, weighted by exp(surprise) | AT2PO's code |
| `tree_po` | Σ_d w_d ( r_i - mean at depth d ), then whitened over the batch's tokens | TreePO's code |

In `values` (zzfoutofspace/ATPO at 98e60f6: `leaf_value_norm`, `child_softmax`, `node_value`), z_i is
(r_i - m) / (s + eps), s with n below, and a node's surprise the mean of -log p over the policy's tokens in it.

In `tree_rl`, μ = Σ tokens * S / Σ tokens * L over the nodes of the group; the paper (arXiv 2506.11902) has
V(node) - V(root) + V(node) - V(parent) in the place of S - μ L.  In `tree_po` (arXiv 2508.17445), d runs over the nodes
above the last that i shares with another response, and w_d is L(node) / Σ L(node); the root always counts, and with
`skip_uniform` other nodes of equal rewards do not.  `tempo` and `tree_grpo` take another advantage of the responses in
the place of GRPO in the group, if one is given.

| `nodes` | a node is | answers share it if |
|---|---|---|
| `tokens` | a token | their tokens up to it are the same |
| `segments` | `segment` tokens | the same |
| `turns` | a turn with what the tools said to it | the same |
| `written` | what a `TreeWriter` wrote between two forks | it was written once for both |
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Count, Options, Range
from adjudge.responses.trajectories.tree_values import prefix_paths
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative, LeaveOneOut, moments
from adjudge.rl_integration.trainer.data.arrays import Floats, Integers, same_shape
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.rewards.groups import Groups


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
        node_sizes: list[int] = []
        for row, path in enumerate(paths):
            lengths = [1] * len(keys[row]) if sizes is None else list(sizes[row])
            same_shape(f"sizes of response {row}", (len(lengths),), (len(keys[row]),))
            for node, length in zip(path, [0, *lengths], strict=True):
                if node == len(node_sizes):
                    node_sizes.append(length)
                elif node_sizes[node] != length:
                    raise ValueError(
                        f"response {row} has a node of {length} tokens that has {node_sizes[node]} in another"
                    )
        of = tuple(np.array(path, dtype=np.int64) for path in paths)
        return cls(groups=groups, paths=of, sizes=np.array(node_sizes, dtype=np.int64))

    def sums(self, values: Floats) -> Floats:
        """Return (m,) the sum over the valid responses through each node of the responses' values, (n,)."""
        sums = np.zeros(len(self.sizes))
        for path, value, valid in zip(self.paths, values, self.groups.valid, strict=True):
            if valid:
                sums[path] += value
        return sums

    def counts(self) -> Floats:
        """Return (m,) how many valid responses pass through each node."""
        return self.sums(np.ones(len(self.paths)))

    def values(self) -> Floats:
        """Return (m,) the mean reward of the valid responses through each node; 0 where there is none."""
        means: Floats = self.sums(self.groups.rewards) / np.maximum(self.counts(), 1)
        return means

    def along(self, values: Floats) -> list[Floats]:
        """Return for each response the values, (m,), of its nodes but the root; 0 for responses that take no part."""
        counted = self.groups.counted(2)
        return [values[path[1:]] * taken for path, taken in zip(self.paths, counted, strict=True)]

    def gains(self) -> list[Floats]:
        """Return for each response V(node) - V(parent) along its path: what TreePS-RAG gives a step.

        0 for responses that take no part.
        """
        values = self.values()
        counted = self.groups.counted(2)
        return [np.diff(values[path]) * taken for path, taken in zip(self.paths, counted, strict=True)]


def tempo(tree: Tree, *, outcome: Floats | None = None, eps: float = 1e-4) -> list[Floats]:
    """Return for each response the advantages of its nodes but the root."""
    groups = tree.groups
    whole = GroupRelative(eps=eps)(groups) if outcome is None else outcome
    below = groups.deviations() + eps
    return [worth + gain / under for worth, gain, under in zip(whole, tree.gains(), below, strict=True)]


def tree_grpo(groups: Groups, trees: Integers, *, outcome: Floats | None = None, eps: float = 1e-6) -> Floats:
    """Return (n,) advantages of responses, each of one of several trees of its group; the same for all nodes of a path.

    Args:
        groups: of n responses.
        trees: (n,) the tree that each was drawn in.
        outcome: (n,) advantages in the group; GRPO's by default.
        eps: what is added to standard deviations.

    Raises:
        ValueError: there is not one tree for each response.
    """
    same_shape("trees", np.shape(trees), (len(groups),))
    pairs = np.stack([groups.ids, np.asarray(trees, dtype=np.int64)], axis=1)
    within = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(len(groups))
    rule = GroupRelative(eps=eps)
    whole = rule(groups) if outcome is None else outcome
    total: Floats = whole + rule(replace(groups, ids=within))
    return total


def tree_rl(tree: Tree) -> list[Floats]:
    """Return for each response the advantages of its nodes but the root."""
    sums, counts = tree.sums(LeaveOneOut()(tree.groups)), tree.counts()
    root = np.zeros(len(sums), dtype=np.int64)
    for path in tree.paths:
        root[path] = path[0]
    weights = tree.sizes * counts
    total = np.zeros(len(sums))
    np.add.at(total, root, sums * tree.sizes)
    below = np.zeros(len(sums))
    np.add.at(below, root, weights)
    mean = (total / np.maximum(below, 1))[root]
    return tree.along((sums - mean * counts) / np.sqrt(np.maximum(counts, 1)))


def softmax_values(tree: Tree, surprises: Floats, *, eps: float = 1e-6) -> list[Floats]:
    """Return for each response the advantages of its nodes but the root.

    Args:
        tree: of n responses.
        surprises: (m,) of each node, in nats.
        eps: what is added to standard deviations.
    """
    parents = np.full(len(tree.sizes), -1)
    total, weight = np.zeros(len(tree.sizes)), np.zeros(len(tree.sizes))
    groups = tree.groups
    spread = groups.deviations() * np.sqrt(1 - 1 / np.maximum(groups.counts(), 1))
    worth = (groups.rewards - groups.means()) / (spread + eps)
    for path, value, counted in zip(tree.paths, worth, tree.groups.counted(2), strict=True):
        parents[path[1:]] = path[:-1]
        total[path[-1]] += value * counted
        weight[path[-1]] += counted
    values = np.zeros(len(tree.sizes))
    for node in np.flatnonzero(parents >= 0)[::-1]:  # a child has a higher number than its parent
        if weight[node]:
            values[node] = total[node] / weight[node]
            share = np.exp(surprises[node])
            total[parents[node]] += share * values[node]
            weight[parents[node]] += share
    return tree.along(values)


def tree_po(tree: Tree, *, skip_uniform: bool = False) -> Floats:
    """Return (n,) advantages of responses, the same for all nodes of a path."""
    groups = tree.groups
    counted = groups.counted(2)
    counts, values = tree.counts(), tree.values()
    squares = tree.sums(groups.rewards**2)
    spread = squares - counts * values**2
    advantages = np.zeros(len(groups))
    for row in np.flatnonzero(counted):
        path = tree.paths[row][:-1] if len(tree.paths[row]) > 1 else tree.paths[row]
        used = counts[path] > 1
        if skip_uniform:
            used &= spread[path] > 1e-9 * squares[path]
        used[0] = True
        nodes = path[used]
        advantages[row] = np.average(groups.rewards[row] - values[nodes], weights=counts[nodes])
    lengths = np.array([tree.sizes[path].sum() for path in tree.paths], dtype=np.float64)
    mean, variance = moments(advantages[counted], lengths[counted])
    return np.where(counted, (advantages - mean) / np.sqrt(variance + 1e-8), 0.0)


Rule: TypeAlias = Literal["tempo", "tree_grpo", "tree_rl", "tree_po", "gains", "values"]
Nodes: TypeAlias = Literal["tokens", "segments", "turns", "written"]


@dataclass(frozen=True, kw_only=True)
class TreeCredit(Options):
    """Advantages of tokens from a tree of answers; see the module and `tree_rules`.

    Attributes:
        how: the rule.  `tempo` and `tree_grpo` add to the advantage of the objective's rule; the others take its place.
        nodes: what the tree is made of; `tree_grpo` reads the trees that answers were written in, whatever they are.
        segment: tokens of a segment.
        skip_uniform: whether `tree_po` leaves out nodes of equal rewards below the root.
        eps: what `tempo`, `tree_grpo` and `values` add to standard deviations.
    """

    how: Rule = "tempo"
    nodes: Nodes = "tokens"
    segment: Count = 64
    skip_uniform: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-4

    @property
    def needs_writer(self) -> bool:
        """Whether answers must have been written as a tree."""
        return self.how == "tree_grpo" or self.nodes == "written"

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`.

        Raises:
            ValueError: the rule needs the tree that answers were written in, and there is none.
        """
        if self.needs_writer and not any(rollout.path for rollout in answers.rollouts):
            raise ValueError("this credit needs answers that were written as a tree; set rollouts.tree")
        if self.how == "tree_grpo":
            roots = [_path(rollout)[0][0] for rollout in answers.rollouts]
            trees = np.unique(roots, return_inverse=True)[1].astype(np.int64)
            return _level(tree_grpo(groups, trees, outcome=outcome, eps=self.eps), answers)
        of_nodes = [
            self._lengths(rollout, turns) for rollout, turns in zip(answers.rollouts, answers.turns, strict=True)
        ]
        keys = [self._keys(rollout, sizes) for rollout, sizes in zip(answers.rollouts, of_nodes, strict=True)]
        tree = Tree.of(keys, groups, sizes=of_nodes)
        match self.how:
            case "tempo":
                rows = tempo(tree, outcome=outcome, eps=self.eps)
            case "tree_rl":
                rows = tree_rl(tree)
            case "gains":
                rows = tree.gains()
            case "values":
                rows = softmax_values(tree, _surprises(answers, tree, of_nodes), eps=self.eps)
            case "tree_po":
                return _level(tree_po(tree, skip_uniform=self.skip_uniform), answers)
        token_advantages = np.zeros(answers.own.shape)
        for row, (advantages, sizes) in enumerate(zip(rows, of_nodes, strict=True)):
            token_advantages[row, : sum(sizes)] = np.repeat(advantages, sizes)
        return token_advantages

    def _lengths(self, rollout: Rollout, turns: Integers) -> list[int]:
        """The tokens of each node of an answer."""
        length = len(rollout.ids)
        match self.nodes:
            case "tokens":
                return [1] * length
            case "segments":
                return [min(self.segment, length - begin) for begin in range(0, length, self.segment)]
            case "turns":
                since = np.maximum.accumulate(np.maximum(turns[:length], 0)).tolist()
                return [len(list(tokens)) for _, tokens in groupby(since)]
            case "written":
                return [tokens for _, tokens in _path(rollout)]

    def _keys(self, rollout: Rollout, sizes: Sequence[int]) -> list[Hashable]:
        if self.nodes == "written":
            return [node for node, _ in _path(rollout)]
        ends = np.cumsum(sizes).tolist()
        keys: list[Hashable] = [rollout.ids[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        return [(rollout.prompt_ids, keys[0]), *keys[1:]] if keys else []  # a hint makes another prompt, and no peers


def _path(rollout: Rollout) -> tuple[tuple[str, int], ...]:
    """The nodes of an answer; one that joined the group later, such as a refinement, has one of its own."""
    return rollout.path or ((rollout.id, len(rollout.ids)),)


def _surprises(answers: Answers, tree: Tree, of_nodes: Sequence[Sequence[int]]) -> Floats:
    """(m,) the mean of -log p over the policy's tokens in each node; 0 where it has none, or they are not known."""
    surprises = np.zeros(len(tree.sizes))
    for rollout, path, sizes in zip(answers.rollouts, tree.paths, of_nodes, strict=True):
        own = np.where(rollout.own, rollout.logprobs, np.nan)
        for node, part in zip(path[1:], np.split(own, np.cumsum(sizes)[:-1]), strict=True):
            known = part[np.isfinite(part)]
            surprises[node] = -known.mean() if len(known) else 0.0
    return surprises


def _level(advantages: Floats, answers: Answers) -> Floats:
    return np.broadcast_to(advantages[:, None], answers.own.shape).copy()
