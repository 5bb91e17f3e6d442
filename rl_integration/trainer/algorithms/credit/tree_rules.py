"""Advantages of the nodes of a tree of responses.

r_i is a response's reward, m and s the mean and standard deviation of its group, V(node) the mean reward of the
responses through a node, L(node) their number.

| rule | advantage of a node on response i's path | source |
|---|---|---|
| `tempo` | ( r_i - m + V(node) - V(parent) ) / (s + eps) | TEMPO, arXiv 2509.18314 |
| `tree_grpo` | GRPO in the group + GRPO in the tree, of the response | Tree-GRPO, arXiv 2509.21240 |
| `tree_rl` | ( S - μ L(node) ) / sqrt L(node), S = Σ of r_j - mean of the others, over its responses | TreeRL's code |
| `tree_po` | Σ_d w_d ( r_i - mean at depth d ), then whitened over the batch's tokens | TreePO's code |

`tempo` differs from GRPO only where paths part.  In `tree_rl`, μ = Σ tokens * S / Σ tokens * L over the nodes of the
group; the paper (arXiv 2506.11902) has V(node) - V(root) + V(node) - V(parent) in the place of S - μ L.  In `tree_po`
(arXiv 2508.17445), d runs over the nodes above the last that i shares with another response, and w_d is
L(node) / Σ L(node); the root always counts, and with `skip_uniform` other nodes of equal rewards do not.

`tempo` and `tree_grpo` take another advantage of the responses in the place of GRPO in the group, if one is given.

All need two valid responses in a group; the others get 0.

Not covered: PORTool's rewards, which the scorer `tool_tree` gives; `Tree.gains` is the rule of TreePS-RAG and AT2PO.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from adjudge.rl_integration.trainer.algorithms.credit.tree import Tree
from adjudge.rl_integration.trainer.algorithms.objectives.advantages.batch_relative import moments
from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.advantages.leave_one_out import LeaveOneOut
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, same_shape
from adjudge.rl_integration.trainer.rewards.groups import Groups


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


def tree_po(tree: Tree, *, skip_uniform: bool = False) -> Floats:
    """Return (n,) advantages of responses, the same for all nodes of a path.

    Args:
        tree: of segments; whose sizes are the tokens of each.
        skip_uniform: whether nodes of equal rewards below the root are left out.
    """
    groups = tree.groups
    counted = groups.counted(2)
    counts, values = tree.counts(), tree.values()
    squares = tree.sums(groups.rewards**2)
    spread = squares - counts * values**2
    found = np.zeros(len(groups))
    for row in np.flatnonzero(counted):
        path = tree.paths[row][:-1] if len(tree.paths[row]) > 1 else tree.paths[row]
        used = counts[path] > 1
        if skip_uniform:
            used &= spread[path] > 1e-9 * squares[path]
        used[0] = True
        nodes = path[used]
        found[row] = np.average(groups.rewards[row] - values[nodes], weights=counts[nodes])
    lengths = np.array([tree.sizes[path].sum() for path in tree.paths], dtype=np.float64)
    mean, variance = moments(found[counted], lengths[counted])
    return np.where(counted, (found - mean) / np.sqrt(variance + 1e-8), 0.0)
