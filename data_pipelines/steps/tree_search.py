"""A tree of prefixes that grows where a guide sees worth: to measure the guide by, and to collect solutions.

A step is what an engine writes up to the text that ends steps.  An engine does not say whether it stopped there or had
nothing to add, so a solution is finished where its last step holds what solutions end with, or nothing more came.

A round follows one child after the other to a prefix without children, draws its next steps and has them valued:

| rule | the child with the largest | comes back to the prefixes on the way |
|---|---|---|
| `puct` | Q + c P sqrt(N) / (1 + n) | the highest new value; Q is the mean of those, stretched to [0, 1] |
| `uct` | V + c sqrt(2 ln N / n), or V + 1 before the first visit | V is the mean of the children's V by their visits |
| `vm_mcts` | Q + c sqrt((1 + ln N) / (0.1 + n)) | all of the new values; Q is their mean |
| `best_first` | of the whole tree, the value | nothing |

N and n are visits of the parent and of the child, P the share of draws that were this child.  `puct` is AlphaZero's.
`uct` is that of ReST-MCTS* (arXiv 2406.03816; THUDM/ReST-MCTS at 643d63b: c 0.7, three steps, and then up to three more
drawn one by one behind the best of them, whose highest value is mixed into that one's V by half).  `vm_mcts` is that of
ReST-RL (THUDM/ReST-RL at e03a987: c 0.2, five steps of which the best three are followed); its code draws whole
completions and takes their first lines.  Both codes break ties by chance and follow what has ended, too; here the first
one wins, and what has ended is not followed again.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeAlias

from adjudge.data_pipelines.steps.growth import Growth
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Completion, Fault
from adjudge.protocol import NO_COST, Cost, Sample

Valuing: TypeAlias = Callable[[Sequence[Sample]], Awaitable[Sequence[tuple[float | None, Cost]]]]
"""Gives the value of each sample, None where there is no number, and what that cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A solution, finished or not.

    Attributes:
        text: as far as it goes, with the gap behind its last step if another may follow.
        ended: whether nothing follows.
        cut: whether it ends at a limit.
    """

    text: str = ""
    steps: int = 0
    tokens: int = 0
    ended: bool = False
    cut: bool = False


ROOT = Path()


@dataclass(slots=True, kw_only=True)
class Account:
    """What one method spent on one problem.

    Attributes:
        budget: tokens it may generate.
        most: texts it may draw.
        faults: draws that the engine refused; texts without a value.
    """

    budget: int
    most: int
    tokens: int = 0
    draws: int = 0
    valued: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    cost: Cost = NO_COST

    @property
    def spent(self) -> bool:
        """Whether nothing may be drawn any more."""
        return self.tokens >= self.budget or self.draws >= self.most


@dataclass
class Writer:
    """Writes on, for one method and one problem; the same prefix gets fresh draws each time."""

    problem: Problem
    _: KW_ONLY
    steps: EngineCompleter
    wholes: EngineCompleter
    gap: str
    ends: re.Pattern[str]
    max_steps: int
    max_tokens: int
    account: Account
    _drawn: Counter[tuple[bool, str]] = field(init=False, default_factory=Counter)

    async def next_steps(self, path: Path, n: int) -> list[Path]:
        """Return `n` drawn ways to go one step on; fewer where the budget does not reach or the engine refuses."""
        return [self._longer(path, one) for one in await self._draw(self.steps, path, n, whole=False)]

    async def ends_of(self, path: Path, n: int) -> list[Path]:
        """Return `n` drawn ways to go on to the end; see `next_steps`."""
        return [
            Path(
                text=path.text + one.text,
                steps=path.steps + one.text.count(self.gap) + 1,
                tokens=path.tokens + one.tokens,
                ended=True,
                cut=one.finish_reason == "length",
            )
            for one in await self._draw(self.wholes, path, n, whole=True)
        ]

    async def _draw(self, completer: EngineCompleter, path: Path, n: int, *, whole: bool) -> tuple[Completion, ...]:
        account = self.account
        count = min(n, account.most - account.draws)
        if count < 1:
            return ()
        first = self._drawn[whole, path.text]
        self._drawn[whole, path.text] += count
        account.draws += count
        drawn = await completer.complete(self.problem.prompt, path.text, first=first, n=count)
        if isinstance(drawn, Fault):
            account.faults["too_long" if drawn.too_long else drawn.reason] += count
            return ()
        account.cost += drawn.cost
        account.tokens += sum(one.tokens for one in drawn.completions)
        return drawn.completions

    def _longer(self, path: Path, one: Completion) -> Path:
        """A path with a step more; one that nothing was added to has ended before."""
        longer = replace(path, steps=path.steps + 1, tokens=path.tokens + one.tokens)
        if not one.text.strip() and one.finish_reason != "length":  # a step of one token may be a blank
            return replace(path, tokens=longer.tokens, ended=True)
        done = self.ends.search(one.text) is not None
        cut = not done and (longer.steps >= self.max_steps or longer.tokens >= self.max_tokens)
        unfinished = one.finish_reason == "length"  # the step goes on where it was cut
        text = path.text + one.text + ("" if done or cut or unfinished else self.gap)
        return replace(longer, text=text, ended=done or cut, cut=cut)


class Guide:
    """Values of paths, for one method and one problem; no text is asked about twice.

    Args:
        problem: what the scorer sees: without the reference, unless it may know it.
        ask: the scorer.
        writer: draws ends, and its account pays.
        rollouts: ends that stand for a path that has not ended; 0 asks about the path itself.
    """

    def __init__(self, problem: Problem, *, ask: Valuing, writer: Writer, rollouts: int) -> None:
        self._problem = problem
        self._ask = ask
        self._writer = writer
        self._rollouts = rollouts
        self._known: dict[tuple[str, bool], float | None] = {}
        self.seen: list[Path] = []

    async def values(self, paths: Sequence[Path]) -> list[float | None]:
        """Return what paths are worth; None where the scorer has no number.

        Ends that were drawn on the way are kept in `seen`.
        """
        if not self._rollouts:
            return await self._asked(paths)
        values: list[float | None] = []
        for path in paths:
            ends = [path] if path.ended else await self._writer.ends_of(path, self._rollouts)
            self.seen += [end for end in ends if end is not path]
            known = [value for value in await self._asked(ends) if value is not None]
            values.append(math.fsum(known) / len(known) if known else None)
        return values

    async def _asked(self, paths: Sequence[Path]) -> list[float | None]:
        account = self._writer.account
        lacking = list(
            {(path.text, path.cut): path for path in paths if (path.text, path.cut) not in self._known}.values()
        )
        samples = [
            self._problem.sample(path.text.rstrip(), finish_reason="length" if path.cut else None) for path in lacking
        ]
        for path, (value, cost) in zip(lacking, await self._ask(samples) if samples else (), strict=True):
            account.cost += cost
            account.valued += 1
            account.faults["no value"] += value is None
            self._known[path.text, path.cut] = value
        return [self._known[path.text, path.cut] for path in paths]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A solution that a search found.

    Attributes:
        value: what the guide says of it; None where it has no number.
        spent: tokens that the search had generated by then.
    """

    path: Path
    value: float | None
    spent: int


@dataclass(slots=True, kw_only=True)
class Node:
    """A prefix in a tree.

    Attributes:
        value: the guide's; under `uct` what became of it.
        prior: share of the draws behind its parent that were this one.
        visits: how often it was on the way.
        total: sum of the values that came back through it.
        closed: whether nothing behind it is left to be drawn, or it is not followed.
    """

    path: Path
    value: float
    prior: float = 1.0
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    visits: int = 0
    total: float = 0.0
    closed: bool = False

    @property
    def quality(self) -> float:
        """The mean of the values that came back; the guide's own before there is any."""
        return self.total / self.visits if self.visits else self.value


@dataclass(kw_only=True)
class Tree:
    """What grows.

    Args:
        writer: draws steps.
        guide: values them.
        growth: how.
    """

    writer: Writer
    guide: Guide
    growth: Growth
    root: Node = field(default_factory=lambda: Node(path=ROOT, value=0.0))
    _bounds: tuple[float, float] | None = None

    async def round(self) -> list[Path]:
        """Draw and value the steps behind one prefix; return the finished solutions among what was drawn."""
        leaf = self.root if self.root.closed else self._selected()
        drawn = await self.writer.next_steps(leaf.path, self.growth.expand)
        new = await self._grown(leaf, drawn)
        ends = [path for path in dict.fromkeys(drawn) if path.ended]
        leaf.closed = False  # the root may have got another child
        if self.growth.rule == "uct" and new:
            ends += await self._looked_ahead(leaf)
        for node in sorted(leaf.children, key=lambda one: -one.value)[self.growth.keep or len(leaf.children) :]:
            node.closed = True
        _close(leaf)
        self._back(leaf, new)
        return ends

    async def _grown(self, leaf: Node, drawn: Sequence[Path]) -> list[float]:
        """Add the steps that have a value; return the values, in `vm_mcts` one for each draw."""
        distinct, known, new = list(dict.fromkeys(drawn)), {child.path.text: child for child in leaf.children}, []
        for path, value in zip(distinct, await self.guide.values(distinct), strict=True):
            if value is None:
                continue
            low, high = self._bounds or (value, value)
            self._bounds = min(value, low), max(value, high)
            times = drawn.count(path)
            node = known.get(path.text)
            if node is None:
                node = Node(path=path, value=value, prior=times / len(drawn), parent=leaf, closed=path.ended)
                leaf.children.append(node)
            if self.growth.rule == "vm_mcts":
                node.visits += times
                node.total += times * value
                new += [value] * times
            else:
                new.append(value)
        return new

    async def _looked_ahead(self, leaf: Node) -> list[Path]:
        """Draw on behind the best step, one by one, and mix the highest value into its own."""
        best = max(leaf.children, key=lambda child: self._merit(child))
        path, highest, ends = best.path, best.value if best.path.ended else 0.0, []
        for _ in range(self.growth.roll_steps):
            steps = [] if path.ended else await self.writer.next_steps(path, 1)
            (value,) = await self.guide.values(steps) or (None,)
            if value is None:
                break
            (path,) = steps
            highest = max(highest, value)
            ends += [path] if path.ended else []
        best.value = (1 - self.growth.roll_weight) * best.value + self.growth.roll_weight * highest
        best.visits += 1
        return ends

    def _selected(self) -> Node:
        """The prefix without children that the rule leads to."""
        node = self.root
        if self.growth.rule == "best_first":
            waiting = [one for one in _leaves(node) if not one.closed and not one.children]
            return max(waiting, key=lambda one: one.value, default=node)
        while open_ones := [child for child in node.children if not child.closed]:
            node = max(open_ones, key=self._merit)  # of equal ones, the first
        return node

    def _merit(self, child: Node) -> float:
        parent, c = child.parent, self.growth.c
        assert parent is not None, "nobody chooses the root"
        match self.growth.rule:
            case "puct":
                low, high = self._bounds or (0.0, 0.0)
                stretched = (child.quality - low) / (high - low) if high > low else 0.5
                return stretched + c * math.sqrt(max(parent.visits, 1)) * child.prior / (1 + child.visits)
            case "uct":
                urge = c * math.sqrt(2 * math.log(parent.visits) / child.visits) if child.visits else 1.0
                return child.value + urge
            case "best_first":
                return child.value
            case "vm_mcts":
                return child.quality + c * math.sqrt((1 + math.log(parent.visits)) / (0.1 + child.visits))

    def _back(self, leaf: Node, new: Sequence[float]) -> None:
        visits, total = 1, max(new, default=leaf.value)
        if self.growth.rule == "vm_mcts":
            visits, total = len(new), math.fsum(new)
        node: Node | None = leaf
        while node is not None:
            node.visits += visits
            node.total += total
            seen = sum(child.visits for child in node.children)
            if self.growth.rule == "uct" and seen:
                node.value = math.fsum(child.value * child.visits for child in node.children) / seen
            node = node.parent


async def tree(writer: Writer, guide: Guide, growth: Growth, *, rounds: int | None = None) -> list[Finished]:
    """Return the solutions that a tree search finds until the budget, or the rounds, are spent.

    Steps without a value are not followed.  Under `puct` values are stretched to [0, 1] by the lowest and highest in
    the tree, so that `c` does not depend on the scorer's scale; the others take values as they are.
    """
    grown, solutions, done = Tree(writer=writer, guide=guide, growth=growth), list[Finished](), 0
    while not writer.account.spent and (rounds is None or done < rounds):
        done += 1
        found = await valued(await grown.round(), writer, guide)
        solutions += found
        if growth.stop_at is not None and any(one.value is not None and one.value >= growth.stop_at for one in found):
            break
    if not solutions:
        best = max(_leaves(grown.root), key=lambda node: node.value, default=None)
        solutions += await valued([] if best is None else [cut_off(best.path)], writer, guide)
    return [*solutions, *await valued(taken(guide), writer, guide)]


def _close(leaf: Node) -> None:
    """Close a prefix behind which nothing is open, and those before it that have no other."""
    node: Node | None = leaf
    while node is not None and all(child.closed for child in node.children):
        node.closed = True
        node = node.parent


def _leaves(node: Node) -> list[Node]:
    waiting, leaves = list(node.children), []
    while waiting:
        one = waiting.pop()
        leaves.append(one)
        waiting += one.children
    return leaves


def cut_off(path: Path) -> Path:
    """Return a prefix as a solution that was cut off."""
    return replace(path, text=path.text.rstrip(), ended=True, cut=True)


def taken(guide: Guide) -> list[Path]:
    """Return the ends that were drawn for values, once: solutions as well."""
    ends, guide.seen = guide.seen, []
    return list(dict.fromkeys(ends))


async def valued(paths: Sequence[Path], writer: Writer, guide: Guide) -> list[Finished]:
    """Return solutions with what the guide says of them."""
    values = await guide.values(paths)
    return [
        Finished(path=path, value=value, spent=writer.account.tokens) for path, value in zip(paths, values, strict=True)
    ]
