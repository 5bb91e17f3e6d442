"""Credit of shared beginnings in the loop: answers become a tree, and its nodes' advantages those of their tokens.

| `nodes` | a node is | answers share it if |
|---|---|---|
| `tokens` | a token | their tokens up to it are the same |
| `segments` | `segment` tokens | the same |
| `turns` | a turn with what the tools said to it | the same |
| `written` | what a `TreeWriter` wrote between two forks | it was written once for both |

The first three need no tree writer: answers that were drawn apart share what they happen to share, as TEMPO has it.

Not covered: the rules (`tree_rules`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.credit.tree import Tree
from adjudge.rl_integration.trainer.algorithms.credit.tree_rules import tempo, tree_grpo, tree_po, tree_rl
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.options import check_choice, check_flag, check_min, check_whole
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.rewards.groups import Groups

Rule: TypeAlias = Literal["tempo", "tree_grpo", "tree_rl", "tree_po", "gains"]
Nodes: TypeAlias = Literal["tokens", "segments", "turns", "written"]


@dataclass(frozen=True, kw_only=True)
class TreeCredit:
    """Advantages of tokens from a tree of answers; see the module and `tree_rules`.

    Attributes:
        how: the rule.  `tempo` and `tree_grpo` add to the advantage of the objective's rule; the others take its place.
        nodes: what the tree is made of; `tree_grpo` reads the trees that answers were written in, whatever they are.
        segment: tokens of a segment.
        skip_uniform: whether `tree_po` leaves out nodes of equal rewards below the root.
        eps: what `tempo` and `tree_grpo` add to standard deviations.
    """

    how: Rule = "tempo"
    nodes: Nodes = "tokens"
    segment: int = 64
    skip_uniform: bool = False
    eps: float = 1e-4

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("how", self.how, get_args(Rule))
        check_choice("nodes", self.nodes, get_args(Nodes))
        check_whole("segment", self.segment, 1)
        check_flag("skip_uniform", self.skip_uniform)
        check_min("eps", self.eps, 0.0)

    @property
    def needs_writer(self) -> bool:
        """Whether answers must have been written as a tree."""
        return self.how == "tree_grpo" or self.nodes == "written"

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `rule.CreditRule`.

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
            case "tree_po":
                return _level(tree_po(tree, skip_uniform=self.skip_uniform), answers)
        found = np.zeros(answers.own.shape)
        for row, (advantages, sizes) in enumerate(zip(rows, of_nodes, strict=True)):
            found[row, : sum(sizes)] = np.repeat(advantages, sizes)
        return found

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


def _level(advantages: Floats, answers: Answers) -> Floats:
    """The same number at all tokens of an answer."""
    return np.broadcast_to(advantages[:, None], answers.own.shape).copy()
