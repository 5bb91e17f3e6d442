"""One problem, all methods, each with its own budget; and the measures, tests and figures of what they chose.

Best-of-n and the searches take the solution with the highest value of the guide, equal ones with equal chances; the
majority takes the commonest answer.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.steps.rollouts import EngineCompleter
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Engine, Sampling
from adjudge.evals.best_of_n.candidates import Said, asked_there, said_by
from adjudge.evals.best_of_n.config import Method, SearchConfig
from adjudge.evals.best_of_n.searches import Account, Finished, Guide, Writer, beam, tree, whole_solutions
from adjudge.evals.best_of_n.votes import TEXT, classes_by_scorer, classes_by_text, vote_worth
from adjudge.evals.reports.figures import Bar, Bars, Curves, Series
from adjudge.evals.reports.result import Comparison, Measure, ReadCase, ReadResponse, cut
from adjudge.protocol import NO_COST, Cost
from adjudge.scoring import registry
from adjudge.statistics.arrays import np
from adjudge.statistics.bootstrap import mean_interval
from adjudge.statistics.intervals import Interval
from adjudge.statistics.significance import holm, permutation_test
from adjudge.statistics.subsets import chances

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
class Found:
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
    scores = await asked_there(gold, samples)
    said = {text: said_by(score) for text, score in zip(texts, scores, strict=True)}
    return said, sum((score.cost for score in scores), NO_COST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One method on one problem.

    Attributes:
        right: chance that what it chose is right.
        oracle: 1 if any solution that it found is.
        within: the same as `right` at each of `PARTS` of the budget.
    """

    problem: str
    method: str
    right: float
    oracle: float
    random: float
    finished: int
    tokens: int
    draws: int
    valued: int
    within: tuple[float, ...]


PARTS = (0.125, 0.25, 0.5, 1.0)
"""Shares of the budget at which it is looked what a method would have chosen."""


def choices_of(searched: Sequence[Searched], config: SearchConfig) -> list[Choice]:
    """Return what each method chose, problem by problem.

    Raises:
        ValueError: the equality names no scorer.
    """
    votes = [one for each in searched for one in each.found if one.method == "majority"]
    answers = [[said.answer for said in one.said] for one in votes]
    if config.equality == TEXT:
        classes = classes_by_text(answers)
    else:
        classes = classes_by_scorer(answers, registry.load(config.equality))
    numbers = {id(one): found for one, found in zip(votes, classes.numbers, strict=True)}
    return [_choice(each.problem, one, numbers.get(id(one)), config) for each in searched for one in each.found]


def _choice(problem: str, found: Found, answers: list[int] | None, config: SearchConfig) -> Choice:
    right = [float(one) for one in found.right(config.pass_at)]
    budget = [config.tokens * part for part in PARTS[:-1]]
    by_then = [sum(one.spent <= most for one in found.solutions) for most in budget]
    within = [_worth(found, right, answers, count) for count in [*by_then, len(right)]]
    return Choice(
        problem=problem,
        method=found.method,
        right=within[-1],
        oracle=max(right, default=0.0),
        random=sum(right) / len(right) if right else 0.0,
        finished=len(right),
        tokens=found.account.tokens,
        draws=found.account.draws,
        valued=found.account.valued,
        within=tuple(within),
    )


def _worth(found: Found, right: Sequence[float], answers: list[int] | None, count: int) -> float:
    """What is chosen among the first so many solutions is worth; 0 where there is none."""
    if not count:
        return 0.0
    truth = np.array(right[:count])
    if answers is not None:
        return float(vote_worth(answers[:count], np.ones((1, count)), truth, count).values[0])
    values = np.array([np.nan if one.value is None else one.value for one in found.solutions[:count]])
    return float(chances(values, [count])[0] @ truth)


BASE = "best_of_n"
_READ = 6  # solutions of a problem that are shown


def measures_of(choices: Sequence[Choice], config: SearchConfig) -> Iterator[Measure]:
    """Yield how often each method is right, and then what it spent."""
    for method in config.method:
        mine = [one for one in choices if one.method == method]
        yield Measure(
            name="right",
            part=method,
            interval=_mean(mine, [one.right for one in mine], config),
            baselines={"random": _plain([one.random for one in mine])},
        )
    for method in config.method:
        mine = [one for one in choices if one.method == method]
        oracle = _mean(mine, [one.oracle for one in mine], config)
        yield Measure(name="a right one was found", part=method, interval=oracle, better="none")
        spent = {
            "generated tokens of a problem": [one.tokens for one in mine],
            "texts drawn for a problem": [one.draws for one in mine],
            "texts valued for a problem": [one.valued for one in mine],
            "solutions found for a problem": [one.finished for one in mine],
        }
        for name, numbers in spent.items():
            interval = Interval(value=_plain([float(one) for one in numbers]), n=len(mine))
            yield Measure(name=name, part=method, interval=interval, better="none")


def comparisons_of(choices: Sequence[Choice], config: SearchConfig) -> list[Comparison]:
    """Return every method against best-of-n, problem by problem; none where that was not asked for."""
    base = {one.problem: one.right for one in choices if one.method == BASE}
    found = []
    for method in config.method:
        mine = [one for one in choices if one.method == method]
        if method == BASE or not base:
            continue
        differences = [one.right - base[one.problem] for one in mine]
        clusters = [one.problem for one in mine]
        found.append(
            Comparison(
                name=method,
                test="permutation of problems",
                first=_plain([one.right for one in mine]),
                second=_plain(list(base.values())),
                difference=mean_interval(differences, clusters, config.draws),
                p=permutation_test(differences, clusters, config.draws) if config.resamples else None,
                other=BASE,
            )
        )
    adjusted = holm([one.p for one in found])
    return [dataclasses.replace(one, p_adjusted=p) for one, p in zip(found, adjusted, strict=True)]


def figures_of(choices: Sequence[Choice], config: SearchConfig) -> list[Bars | Curves]:
    """Return how often methods are right, and what they would have chosen with less to spend."""
    bars, lines = [], []
    for method in config.method:
        mine = [one for one in choices if one.method == method]
        baselines = {"oracle": _plain([one.oracle for one in mine]), "random": _plain([one.random for one in mine])}
        right = _mean(mine, [one.right for one in mine], config)
        bars.append(Bar(name=method, interval=right, baselines=baselines))
        lines.append(
            Series(
                name=method,
                x=tuple(config.tokens * part for part in PARTS),
                y=tuple(_plain([one.within[at] for one in mine]) for at in range(len(PARTS))),
            )
        )
    return [
        Bars(title="Right solutions at the same budget", unit="share of problems", bars=tuple(bars)),
        Curves(
            title="Right solutions by what was spent",
            x_axis="generated tokens",
            y_axis="share of problems",
            series=tuple(lines),
            log_x=True,
        ),
    ]


def worst_of(
    choices: Sequence[Choice], searched: Sequence[Searched], problems: Mapping[str, Problem], config: SearchConfig
) -> Iterator[ReadCase]:
    """Yield solutions that a method found and did not choose, the surest losses first."""
    found = {(each.problem, one.method): one for each in searched for one in each.found}
    lost = sorted(
        (one for one in choices if one.oracle > one.right and one.method != "majority"),
        key=lambda one: (one.right - one.oracle, one.problem, one.method),
    )
    for choice in lost[: config.worst]:
        here = found[choice.problem, choice.method]  # type: ignore[index]  # the methods of choices are those of found
        pairs = list(zip(here.solutions, here.said, strict=True))
        pairs.sort(key=lambda one: (one[0].value is None, -(one[0].value or 0.0)))
        problem = problems[choice.problem]
        yield ReadCase(
            id=f"{choice.problem}/{choice.method}",
            part=choice.method,
            verdict="right one not chosen",
            weight=choice.oracle - choice.right,
            prompt=cut(problem.text),
            responses=tuple(
                ReadResponse(
                    text=cut(solution.path.text),
                    said="no value" if solution.value is None else f"{solution.value:.4g}",
                    value=solution.value,
                    note=f"gold {said.status if said.value is None else f'{said.value:.4g}'}",
                )
                for solution, said in pairs[:_READ]
            ),
            gold="" if problem.reference is None else cut(str(problem.reference)),
        )


def _mean(mine: Sequence[Choice], numbers: Sequence[float], config: SearchConfig) -> Interval:
    return mean_interval(numbers, [one.problem for one in mine], config.draws)


def _plain(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None
