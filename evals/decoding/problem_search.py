"""One problem, all methods: each searches with its own budget, and what it chose is judged.

Not covered: means over problems (`searching`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from adjudge.data_pipelines.label.stages import LocalBench
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Engine, Sampling
from adjudge.evals.benchmarks.asking import asked
from adjudge.evals.best_of_n.said import UNFIT, Said, said_by
from adjudge.evals.decoding.config import Method, SearchConfig
from adjudge.evals.decoding.guide import Guide
from adjudge.evals.decoding.paths import Account, Writer
from adjudge.evals.decoding.searches import Finished, beam, tree, whole_solutions
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.protocol import NO_COST, Cost, Score

_AT_ONCE = 4  # whole solutions in one call, at most


@dataclass(frozen=True, kw_only=True)
class Tools:
    """What searches work with.

    Attributes:
        config: the options.
        engine: writes.
        guide: values prefixes and solutions.
        gold: says what is right.
    """

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
            most_steps=config.most_steps,
            most_tokens=config.max_tokens,
            account=Account(budget=config.tokens, most=config.draws_at_most),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one method found for one problem.

    Attributes:
        method: which.
        solutions: in the order in which they were finished.
        said: what gold says of each.
        account: what they cost.
    """

    method: Method
    solutions: tuple[Finished, ...]
    said: tuple[Said, ...]
    account: Account

    def right(self, least: float) -> list[bool]:
        """Return which solutions are right; one that nobody could judge is not."""
        return [one.value is not None and one.value >= least for one in self.said]


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What all methods found for one problem.

    Attributes:
        problem: its id.
        found: by method.
        cost: of gold.
    """

    problem: str
    found: tuple[Found, ...]
    cost: Cost = NO_COST


async def search(problem: Problem, tools: Tools) -> Searched:
    """Search one problem with every method.

    Raises:
        JobError: a model is gone, or the engine cannot go on from a prefix.
        BrokenScorer: a scorer raised.
    """
    found: list[tuple[Method, list[Finished], Account]] = []
    for method in tools.config.method:
        shared = next((one for one in found if {one[0], method} == {"best_of_n", "majority"}), None)
        if shared is not None:
            found.append((method, *shared[1:]))  # the same solutions, chosen from in two ways
            continue
        writer = tools.writer(problem)
        found.append((method, await _searched(method, problem, tools, writer), writer.account))
    texts = {(one.path.text, one.path.cut) for _, solutions, _ in found for one in solutions}
    said, cost = await _judged(problem, sorted(texts), tools.gold)
    return Searched(
        problem=problem.id,
        found=tuple(
            Found(
                method=method,
                solutions=tuple(solutions),
                said=tuple(said[one.path.text, one.path.cut] for one in solutions),
                account=account,
            )
            for method, solutions, account in found
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
    """What gold says of solutions, and what that cost."""
    samples = [problem.sample(text, finish_reason="length" if cut else None) for text, cut in texts]
    found: dict[tuple[str, bool], Said] = {}
    cost = NO_COST
    for text, score in zip(texts, await asked(gold, samples), strict=True):
        if isinstance(score, Score):
            cost += score.cost
            if score.status == "failed" and score.reason in GONE:
                raise JobError(f"the model behind the scorer {gold.name!r} is gone ({score.reason})")
        found[text] = said_by(score) if isinstance(score, Score) else UNFIT
    return found, cost
