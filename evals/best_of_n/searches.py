"""Searches for a solution that a scorer guides: paths, what they are worth, and ways to spend a budget.

The guide sees prefixes, or the ends that may come of them, and never the reference.

- `whole_solutions` draws solutions to the end; best-of-n and the majority choose among them.
- `beam` keeps the `width` best prefixes after each step (arXiv 2305.00633; search-and-learn); width 1 is step by step.
- `tree` is Monte-Carlo tree search (`adjudge.data_pipelines.steps.tree_search`).

Each draws until the budget is spent.  A beam that is done begins again; a tree that is fully explored widens its root.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.data_pipelines.steps.tree_search import (
    ROOT,
    Account,
    Finished,
    Guide,
    Writer,
    cut_off,
    taken,
    tree,
    valued,
)
from adjudge.engines.interface import Engine, Sampling
from adjudge.evals.benchmarks.case import Given
from adjudge.evals.best_of_n.candidates import asked_there, said_by, said_by_steps
from adjudge.evals.best_of_n.config import Method, SearchConfig
from adjudge.protocol import NO_COST, Cost, Sample


async def whole_solutions(writer: Writer, guide: Guide, *, at_once: int) -> list[Finished]:
    """Return whole solutions, as many as the budget allows.

    One call draws as many as are likely to use up what is left, `at_once` at most, and the first one a single one.
    """
    solutions: list[Finished] = []
    account, count = writer.account, 1
    while not account.spent:
        solutions += await valued(await writer.ends_of(ROOT, count), writer, guide)
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
            solutions += await valued([step for step in steps if step.ended], writer, guide)
            active = [step for step, _ in ranked[:width] if not step.ended]
            draws = expand
        solutions += await valued([cut_off(path) for path in active if path.text], writer, guide)
    return [*solutions, *await valued(taken(guide), writer, guide)]


_AT_ONCE = 4  # whole solutions in one call, at most
EXPAND = 4  # next steps of a beam


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What searches work with."""

    config: SearchConfig
    engine: Engine
    guide: LocalBench
    gold: LocalBench
    final: LocalBench | None = None

    async def valued(self, samples: Sequence[Sample]) -> list[tuple[float | None, Cost]]:
        """Return the guide's values; see `Valuing`."""
        scores = await asked_there(self.guide, samples)
        return [(said_by_steps(said_by(score), self.config.aggregate).value, score.cost) for score in scores]

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
    said: tuple[Given, ...]
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
        found = await _searched(method, problem, tools, writer)
        if tools.final is not None:
            found = await _compared(replace(problem, reference=None), found, tools.final, writer.account)
        runs.append((method, found, writer.account))
    texts = {(one.path.text, one.path.cut) for _, solutions, _ in runs for one in solutions}
    judged = [problem.sample(text, finish_reason="length" if cut else None) for text, cut in sorted(texts)]
    scores = await asked_there(tools.gold, judged)
    said = {text: said_by(score) for text, score in zip(sorted(texts), scores, strict=True)}
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
        cost=sum((score.cost for score in scores), NO_COST),
    )


async def _searched(method: Method, problem: Problem, tools: Tools, writer: Writer) -> list[Finished]:
    config = tools.config
    searches = method in ("steps", "beam", "mcts")
    guide = Guide(
        replace(problem, reference=None),
        ask=tools.valued,
        writer=writer,
        rollouts=config.rollouts if searches and config.value_of == "rollouts" else 0,
    )
    match method:
        case "best_of_n" | "majority":
            return await whole_solutions(writer, guide, at_once=_AT_ONCE)
        case "steps":
            return await beam(writer, guide, width=1, expand=config.expand or EXPAND)
        case "beam":
            return await beam(writer, guide, width=config.width, expand=config.expand or EXPAND)
        case "mcts":
            return await tree(writer, guide, config.growth())
    assert_never(method)


async def _compared(problem: Problem, found: list[Finished], final: LocalBench, account: Account) -> list[Finished]:
    """The solutions with what a last comparison of them says in the place of the guide's values; equal ones play once.

    Where there is one solution alone, nothing is compared.
    """
    texts = list(dict.fromkeys((one.path.text, one.path.cut) for one in found))
    if len(texts) < 2:
        return found
    samples = [
        replace(problem.sample(text, finish_reason="length" if cut else None), group=problem.id or "0")
        for text, cut in texts
    ]
    scores = await asked_there(final, samples)
    account.cost += sum((score.cost for score in scores), NO_COST)
    values = {text: said_by(score).value for text, score in zip(texts, scores, strict=True)}
    return [replace(one, value=values[one.path.text, one.path.cut]) for one in found]
