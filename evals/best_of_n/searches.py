"""Searches for a solution that a scorer guides: paths, what they are worth, and ways to spend a budget.

A step is what an engine writes up to the text that ends steps.  An engine does not say whether it stopped there or had
nothing to add, so a solution is finished where its last step holds what solutions end with, or nothing more came.
The guide sees prefixes, or the ends that may come of them, and never the reference.

- `whole_solutions` draws solutions to the end; best-of-n and the majority choose among them.
- `beam` keeps the `width` best prefixes after each step (arXiv 2305.00633; search-and-learn); width 1 is step by step.
- `tree` is Monte-Carlo tree search: from the root, the child with the largest Q + c P sqrt(N of the parent) / (1 + N)
  is followed to a prefix without children, whose next steps are drawn and valued (the rule of AlphaZero; for reasoning,
  ReST-MCTS*, arXiv 2406.03816).

Each draws until the budget is spent.  A beam that is done begins again; a tree that is fully explored widens its root.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import assert_never

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Completion, Engine, Fault, Sampling
from adjudge.evals.best_of_n.candidates import Said, asked_there, said_by
from adjudge.evals.best_of_n.config import Method, SearchConfig
from adjudge.protocol import NO_COST, Cost


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
        steps, tokens = path.steps + 1, path.tokens + one.tokens
        if not one.text.strip():
            return Path(text=path.text, steps=path.steps, tokens=tokens, ended=True)
        done = self.ends.search(one.text) is not None
        cut = not done and (steps >= self.max_steps or tokens >= self.max_tokens)
        unfinished = one.finish_reason == "length"  # the step goes on where it was cut
        return Path(
            text=path.text + one.text + ("" if done or cut or unfinished else self.gap),
            steps=steps,
            tokens=tokens,
            ended=done or cut,
            cut=cut,
        )


class Guide:
    """Values of paths, for one method and one problem; no text is asked about twice.

    Args:
        problem: what is solved.
        bench: the scorer.
        writer: draws ends, and its account pays.
        aggregate: how values of steps become one number; "" for the score's own value.
        rollouts: ends that stand for a path that has not ended; 0 asks about the path itself.
    """

    def __init__(self, problem: Problem, *, bench: LocalBench, writer: Writer, aggregate: str, rollouts: int) -> None:
        self._problem = replace(problem, reference=None)
        self._bench = bench
        self._writer = writer
        self._aggregate = aggregate
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
        for path, score in zip(lacking, await asked_there(self._bench, samples), strict=True):
            said = said_by(score).by(self._aggregate)
            account.cost += score.cost
            account.valued += 1
            account.faults["no value"] += said.value is None
            self._known[path.text, path.cut] = said.value
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


async def whole_solutions(writer: Writer, guide: Guide, *, at_once: int) -> list[Finished]:
    """Return whole solutions, as many as the budget allows.

    One call draws as many as are likely to use up what is left, `at_once` at most, and the first one a single one.
    """
    solutions: list[Finished] = []
    account, count = writer.account, 1
    while not account.spent:
        solutions += await _valued(await writer.ends_of(ROOT, count), writer, guide)
        left, each = account.budget - account.tokens, account.tokens / account.draws
        count = max(1, min(at_once, math.ceil(left / each))) if each else at_once
    return solutions


async def beam(writer: Writer, guide: Guide, *, width: int, expand: int) -> list[Finished]:
    """Return the solutions of beams, one after the other, until the budget is spent.

    The first step is drawn `width * expand` times, each later one `expand` times for each prefix that was kept.  What
    has ended takes its place in the beam, and is drawn from no more.  Where the budget ends first, the prefixes in the
    beam are solutions that were cut off.
    """
    solutions: list[Finished] = []
    while not writer.account.spent:
        active, draws = [ROOT], width * expand
        while active and not writer.account.spent:
            drawn = await asyncio.gather(*(writer.next_steps(path, draws) for path in active))
            steps = list(dict.fromkeys(step for some in drawn for step in some))
            values = await guide.values(steps)
            ranked = sorted(
                zip(steps, values, strict=True), key=lambda one: -(-math.inf if one[1] is None else one[1])
            )  # of equal ones, the first
            solutions += await _valued([step for step in steps if step.ended], writer, guide)
            active = [step for step, _ in ranked[:width] if not step.ended]
            draws = expand
        solutions += await _valued([_cut(path) for path in active if path.text], writer, guide)
    return [*solutions, *await _valued(_taken(guide), writer, guide)]


@dataclass(slots=True, kw_only=True)
class Node:
    """A prefix in a tree.

    Attributes:
        prior: share of the draws behind its parent that were this one.
        visits: how often it was on the way.
        total: sum of the values that came back through it.
        closed: whether nothing behind it is left to be drawn.
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


async def tree(writer: Writer, guide: Guide, *, expand: int, c_puct: float) -> list[Finished]:
    """Return the solutions that a tree search finds until the budget is spent.

    The highest value of the new steps comes back to all prefixes on the way.  Values are stretched to [0, 1] by the
    lowest and highest in the tree, so that `c_puct` does not depend on the scorer's scale.  Steps without a value are
    not followed.
    """
    root = Node(path=ROOT, value=0.0)
    solutions: list[Finished] = []
    bounds: list[float] = []
    while not writer.account.spent:
        leaf = root if root.closed else _selected(root, c_puct, bounds)
        drawn = await writer.next_steps(leaf.path, expand)
        distinct = list(dict.fromkeys(drawn))
        values = await guide.values(distinct)
        solutions += await _valued([path for path in distinct if path.ended], writer, guide)
        known = {child.path.text: child for child in leaf.children}
        for path, value in zip(distinct, values, strict=True):
            if value is not None and path.text not in known:
                bounds = [min([value, *bounds]), max([value, *bounds])]
                leaf.children.append(
                    Node(path=path, value=value, prior=drawn.count(path) / len(drawn), parent=leaf, closed=path.ended)
                )
        leaf.closed = False  # the root may have got another child
        _close(leaf)
        _back(leaf, max((value for value in values if value is not None), default=leaf.value))
    if not solutions:
        best = max(_leaves(root), key=lambda node: node.value, default=None)
        solutions += await _valued([] if best is None else [_cut(best.path)], writer, guide)
    return [*solutions, *await _valued(_taken(guide), writer, guide)]


def _selected(root: Node, c_puct: float, bounds: Sequence[float]) -> Node:
    """The prefix without children that the rule leads to."""
    node = root
    while any(not child.closed for child in node.children):
        weight = c_puct * math.sqrt(max(node.visits, 1))
        merits = [
            (_stretched(child.quality, bounds) + weight * child.prior / (1 + child.visits), -place, child)
            for place, child in enumerate(node.children)
            if not child.closed
        ]
        node = max(merits, key=lambda one: one[:2])[2]
    return node


def _stretched(value: float, bounds: Sequence[float]) -> float:
    low, high = bounds
    return (value - low) / (high - low) if high > low else 0.5


def _close(leaf: Node) -> None:
    """Close a prefix behind which nothing is open, and those before it that have no other."""
    node: Node | None = leaf
    while node is not None and all(child.closed for child in node.children):
        node.closed = True
        node = node.parent


def _back(leaf: Node, value: float) -> None:
    node: Node | None = leaf
    while node is not None:
        node.visits += 1
        node.total += value
        node = node.parent


def _leaves(node: Node) -> list[Node]:
    waiting, leaves = list(node.children), []
    while waiting:
        one = waiting.pop()
        leaves.append(one)
        waiting += one.children
    return leaves


def _cut(path: Path) -> Path:
    return Path(text=path.text.rstrip(), steps=path.steps, tokens=path.tokens, ended=True, cut=True)


def _taken(guide: Guide) -> list[Path]:
    """The ends that were drawn for values: solutions as well."""
    ends, guide.seen = guide.seen, []
    return list(dict.fromkeys(ends))


async def _valued(paths: Sequence[Path], writer: Writer, guide: Guide) -> list[Finished]:
    values = await guide.values(paths)
    return [
        Finished(path=path, value=value, spent=writer.account.tokens) for path, value in zip(paths, values, strict=True)
    ]


_AT_ONCE = 4  # whole solutions in one call, at most


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What searches work with."""

    config: SearchConfig
    engine: Engine
    guide: LocalBench
    gold: LocalBench

    def writer(self, problem: Problem) -> Writer:
        """Return a writer with a budget of its own."""
        config = self.config
        sampling = Sampling(
            max_tokens=config.max_tokens, temperature=config.temperature, top_p=config.top_p, seed=config.seed
        )
        step = replace(sampling, max_tokens=min(config.step_tokens, config.max_tokens), stop=(config.gap,))
        return Writer(
            problem,
            steps=EngineCompleter(engine=self.engine, sampling=step, chat=config.chat),
            wholes=EngineCompleter(engine=self.engine, sampling=sampling, chat=config.chat),
            gap=config.gap,
            ends=re.compile(config.ends),
            max_steps=config.max_steps,
            max_tokens=config.max_tokens,
            account=Account(budget=config.tokens, most=config.draws_at_most),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodRun:
    """What one method found for one problem."""

    method: Method
    solutions: tuple[Finished, ...]
    said: tuple[Said, ...]
    account: Account

    def right(self, least: float) -> list[bool]:
        """Return which solutions are right; one that nobody could judge is not."""
        return [one.value is not None and one.value >= least for one in self.said]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What all methods found for one problem."""

    problem: str
    runs: tuple[MethodRun, ...]
    cost: Cost = NO_COST


async def search(problem: Problem, tools: Tools) -> Searched:
    """Search one problem with every method."""
    runs: list[tuple[Method, list[Finished], Account]] = []
    for method in tools.config.method:
        shared = next((one for one in runs if {one[0], method} == {"best_of_n", "majority"}), None)
        if shared is not None:
            runs.append((method, *shared[1:]))  # the same solutions, chosen from in two ways
            continue
        writer = tools.writer(problem)
        runs.append((method, await _searched(method, problem, tools, writer), writer.account))
    texts = {(one.path.text, one.path.cut) for _, solutions, _ in runs for one in solutions}
    said, cost = await _judged(problem, sorted(texts), tools.gold)
    return Searched(
        problem=problem.id,
        runs=tuple(
            MethodRun(
                method=method,
                solutions=tuple(solutions),
                said=tuple(said[one.path.text, one.path.cut] for one in solutions),
                account=account,
            )
            for method, solutions, account in runs
        ),
        cost=cost,
    )


async def _searched(method: Method, problem: Problem, tools: Tools, writer: Writer) -> list[Finished]:
    config = tools.config
    searches = method in ("steps", "beam", "mcts")
    guide = Guide(
        problem,
        bench=tools.guide,
        writer=writer,
        aggregate=config.aggregate,
        rollouts=config.rollouts if searches and config.value_of == "rollouts" else 0,
    )
    match method:
        case "best_of_n" | "majority":
            return await whole_solutions(writer, guide, at_once=_AT_ONCE)
        case "steps":
            return await beam(writer, guide, width=1, expand=config.expand)
        case "beam":
            return await beam(writer, guide, width=config.width, expand=config.expand)
        case "mcts":
            return await tree(writer, guide, expand=config.expand, c_puct=config.c_puct)
    assert_never(method)


async def _judged(
    problem: Problem, texts: Sequence[tuple[str, bool]], gold: LocalBench
) -> tuple[dict[tuple[str, bool], Said], Cost]:
    samples = [problem.sample(text, finish_reason="length" if cut else None) for text, cut in texts]
    scores = await asked_there(gold, samples)
    said = {text: said_by(score) for text, score in zip(texts, scores, strict=True)}
    return said, sum((score.cost for score in scores), NO_COST)
