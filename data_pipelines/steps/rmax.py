"""RMaxTS: proofs that are drawn where a verifier still finds something new (DeepSeek-Prover-V1.5, arXiv 2408.08152).

A node is the beginning of a proof that the verifier accepted, sentence by sentence: steps of value 1 in its score.  A
whole proof is drawn behind one, and cut at the first error; the reward is 1 if that made a node that was not there, and
else 0.  From the root on, the largest of value + sqrt(2 ln N / n) is taken among the children and the node itself, at
which the next proof begins; counts and sums are discounted by 0.99 for each later reward.  That is the code's
`rmax_tree_search.py` (deepseek-ai/DeepSeek-Prover-V1.5 at 2c4ba91) with one job, but for the names of nodes: goals
there, and sentences here, so that two ways to one goal are two nodes.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Final

from adjudge.data_pipelines.pairs.answers import squeezed
from adjudge.data_pipelines.steps.rollouts import Prefix
from adjudge.protocol import Score

GAMMA: Final = 0.99
_LEAST: Final = 1e-2  # visits, in the code's denominators


@dataclass(slots=True)
class Counted:
    """Discounted rewards and visits."""

    rewards: float = 0.0
    visits: float = 0.0

    def add(self, reward: float) -> None:
        """Count a visit."""
        self.rewards, self.visits = GAMMA * self.rewards + reward, GAMMA * self.visits + 1.0

    def merit(self, total: float) -> float:
        """Return value and urge, where `total` visits were made in all."""
        least = max(self.visits, _LEAST)
        return self.rewards / least + math.sqrt(2 * math.log(max(total, 2.0)) / least)


@dataclass(slots=True)
class ProofNode:
    """An accepted beginning of a proof.

    Attributes:
        text: the beginning, as it was first met.
        own: of proofs that began here.
        below: of those, and of all that began behind it.
    """

    text: str = ""
    parent: ProofNode | None = None
    children: dict[str, ProofNode] = field(default_factory=dict)
    own: Counted = field(default_factory=Counted)
    below: Counted = field(default_factory=Counted)

    def selected(self) -> ProofNode:
        """Return the node at which the next proof begins."""
        node = self
        while node.children:
            children = list(node.children.values())
            total = node.own.visits + sum(child.below.visits for child in children)
            best = max(children, key=lambda child: child.below.merit(total))
            if node.own.merit(total) >= best.below.merit(total):
                return node
            node = best
        return node

    def learn(self, root: ProofNode, pieces: Prefix, accepted: int) -> bool:
        """Add the accepted pieces of a proof that began here; return whether that made a node."""
        node, text, new = root, "", False
        for piece in pieces[:accepted]:
            text += piece
            edge = squeezed(piece)
            if edge not in node.children:
                node.children[edge], new = ProofNode(text=text, parent=node), True
            node = node.children[edge]
        self.own.add(float(new))
        up: ProofNode | None = self
        while up is not None:
            up.below.add(float(new))
            up = up.parent
        return new


def pieces_of(text: str, score: Score) -> tuple[Prefix, int]:
    """Return a proof cut behind each accepted sentence, the rest as one piece, and how many were accepted."""
    ends = [0]
    for step in score.steps:
        if step.value != 1.0 or step.end is None or not ends[-1] < step.end <= len(text):
            break
        ends.append(step.end)
    accepted = len(ends) - 1
    if text[ends[-1] :].strip() or not accepted:
        ends.append(len(text))
    else:
        ends[-1] = len(text)
    return tuple(text[start:end] for start, end in itertools.pairwise(ends)), accepted
