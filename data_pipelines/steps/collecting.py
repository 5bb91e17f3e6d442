"""Solutions that a tree finds which a guide leads, or a verifier, with the quality values of their steps.

With a guide (ReST-MCTS*, arXiv 2406.03816) the search is that of `tree_search`; the solutions that ended are judged,
and v_k is worked out on all of them together (`methods`): a right answer lies below a step if one of them, right,
begins with the steps up to it.  This is `get_full_value_samples_vm` of THUDM/ReST-MCTS at 643d63b, but for two things:
a model reads the answer out of a trace there, and a prefix that the guide values above 0.9 counts as ended; here only
what ended by itself does.

RMaxTS (DeepSeek-Prover-V1.5, arXiv 2408.08152) draws proofs where a verifier still finds something new.  A node is the
beginning of a proof that the verifier accepted, sentence by sentence: steps of value 1 in its score.  A whole proof is
drawn behind one, and cut at the first error; the reward is 1 if that made a node that was not there, and else 0.  From
the root on, the largest of value + sqrt(2 ln N / n) is taken among the children and the node itself, at which the next
proof begins; counts and sums are discounted by 0.99 for each later reward.  That is the code's `rmax_tree_search.py`
(deepseek-ai/DeepSeek-Prover-V1.5 at 2c4ba91) with one job, but for the names of nodes: goals there, and sentences here,
so that two ways to one goal are two nodes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from adjudge.data_pipelines.pairs.rule import squeezed
from adjudge.data_pipelines.steps.config import GAPS
from adjudge.data_pipelines.steps.methods import Tools, values_of
from adjudge.data_pipelines.steps.rollouts import (
    Prefix,
    Rollout,
    Spending,
    StepLabels,
    estimate_of,
    first_unreached,
    shares,
)
from adjudge.data_pipelines.steps.solutions_in_rows import Pieces, Problem, Solution
from adjudge.data_pipelines.steps.tree_search import Account, Guide, Path, Writer, tree
from adjudge.io.jobs.engines import scores_of
from adjudge.protocol import NO_COST, Cost, Sample, Score

_ANY: Final = 1 << 40  # tokens, or draws, where nothing bounds them


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A distinct solution that a search found; `right` is None where nobody could judge it."""

    text: str
    cut: Pieces
    right: bool | None


async def collected(
    problem: Problem, tools: Tools, spending: Spending
) -> list[tuple[Solution, StepLabels, bool | None]]:
    """Return the solutions that a search of a problem finds, with labels and whether they are right.

    A step that an earlier solution shows has no label again, so that none counts twice.
    """
    account = Account(budget=_ANY, most=_ANY if spending.most is None else spending.most)
    search = _by_verifier if tools.config.method == "rmax_ts" else _by_guide
    found = await search(problem, tools, spending, _writer(problem, tools, account))
    spending.cost += account.cost
    spending.counts["calls"] += account.draws
    for name, times in account.faults.items():
        spending.counts[{"no value": "unvalued", "too_long": "too_long"}.get(name, "engine_errors")] += times
    whole = [Rollout(pieces=one.cut.pieces, right=one.right) for one in found]
    shown: set[Prefix] = set()
    rows = []
    for at, (one, mine) in enumerate(zip(found, whole, strict=True)):
        solution = Solution(problem=problem, id=f"{problem.id}/{at}", text=one.text, cut=one.cut, outcome=None)
        rows.append((solution, _fresh(labels_among(mine, whole), mine.pieces, shown), one.right))
    return rows


def labels_among(mine: Rollout, whole: Sequence[Rollout]) -> StepLabels:
    """Return v_k of a solution among all that were found; the values are the shares of right ones behind each step."""
    below = [
        [
            Rollout(pieces=one.pieces[length:], right=one.right)
            for one in whole
            if one.pieces[:length] == mine.pieces[:length]
        ]
        for length in range(len(mine.pieces) + 1)
    ]
    estimates = tuple(map(estimate_of, below[1:]))
    return StepLabels(
        labels=values_of(below),
        values=shares(estimates),
        estimates=estimates,
        start=estimate_of(below[0]).value,
        first_error=first_unreached(estimates),
    )


def _fresh(labels: StepLabels, pieces: Prefix, shown: set[Prefix]) -> StepLabels:
    prefixes = [pieces[: at + 1] for at in range(len(pieces))]
    kept = tuple(None if prefix in shown else one for prefix, one in zip(prefixes, labels.labels, strict=True))
    shown.update(prefixes)
    return replace(labels, labels=kept)


async def _by_guide(problem: Problem, tools: Tools, spending: Spending, writer: Writer) -> list[Found]:
    """What ended in a tree that a guide led, in the order in which it was found."""
    config = tools.config

    async def by_critic(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        assert tools.critic is not None, "it was asked for"
        return [(_value(one), one.cost) for one in await scores_of(tools.critic, samples, "the critic")]

    async def by_ends(samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        verdicts = await tools.ends.right(samples, spending)
        return [(None if verdict is None else float(verdict), NO_COST) for verdict in verdicts]

    if tools.critic is None:
        guide = Guide(problem, ask=by_ends, writer=writer, rollouts=config.rollouts)
    else:
        guide = Guide(replace(problem, reference=None), ask=by_critic, writer=writer, rollouts=0)
    found = await tree(writer, guide, config.growth(), rounds=config.tree_searches)
    spending.counts["valued"] += writer.account.valued
    spending.counts["cut_off"] += sum(one.path.cut for one in found)
    ended = list({one.path.text.rstrip(): one for one in found if not one.path.cut and one.path.text.strip()}.values())
    least = config.min_value
    kept = [one for one in ended if least is None or (one.value is not None and one.value >= least)]
    spending.drop("small_value", len(ended) - len(kept))
    texts = [one.path.text.rstrip() for one in kept]
    verdicts = await tools.ends.right([problem.sample(text) for text in texts], spending)
    cuts = [Pieces.of(text, config.splitting, config.max_steps) for text in texts]
    return [Found(text=text, cut=cut, right=right) for text, cut, right in zip(texts, cuts, verdicts, strict=True)]


async def _by_verifier(problem: Problem, tools: Tools, spending: Spending, writer: Writer) -> list[Found]:
    """The proofs that were drawn where a verifier still found something new."""
    root, found = ProofNode(), dict[str, Found]()
    for _ in range(tools.config.tree_searches):
        node = root.selected()
        drawn = await writer.ends_of(Path(text=node.text), 1)
        if not drawn:
            break  # the budget is spent, or the engine cannot go on; the next would begin here again
        text = drawn[0].text.rstrip()
        (score,) = await scores_of(tools.ends.scorer, [problem.sample(text)])
        spending.cost += score.cost
        spending.counts["cut_off"] += drawn[0].cut
        pieces, accepted = pieces_of(text, score)
        node.learn(root, pieces, accepted)
        right = None if score.value is None else score.value >= tools.config.pass_at
        spending.counts["unjudged"] += right is None
        spending.counts["without_steps"] += not score.steps
        if text:
            cut = Pieces(steps=tuple(piece.strip() for piece in pieces), pieces=pieces)
            found.setdefault(text, Found(text=text, cut=cut, right=right))
    return list(found.values())


def _writer(problem: Problem, tools: Tools, account: Account) -> Writer:
    config, wholes = tools.config, tools.completer
    assert wholes is not None, "the method has an engine"
    gap = GAPS.get(config.splitting, GAPS["line"])
    sampling = replace(wholes.sampling, max_tokens=min(config.step_tokens, config.max_tokens), stop=(gap,))
    return Writer(
        problem,
        steps=replace(wholes, sampling=sampling),
        wholes=wholes,
        gap=gap,
        ends=re.compile(config.ends),
        max_steps=config.max_steps,
        max_tokens=config.max_tokens,
        account=account,
    )


def _value(score: Score) -> float | None:
    """What a prefix is worth: the score, or where only its steps have numbers, that of the last one."""
    if score.value is not None or score.status != "scored" or not score.steps:
        return score.value
    return score.steps[-1].value


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
