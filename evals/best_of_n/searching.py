"""`adjudge eval search`: a scorer as the guide of a search, beside best-of-n and a majority of the same budget.

Best-of-n and the searches take the solution with the highest value of the guide, equal ones with equal chances; the
majority takes the commonest answer.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Engine
from adjudge.evals.best_of_n.candidates import TEXT, classes_by_scorer, classes_by_text, vote_worth
from adjudge.evals.best_of_n.config import SearchConfig
from adjudge.evals.best_of_n.searches import MethodRun, Searched, Tools, search
from adjudge.evals.reports.config import PartsProgress, input_facts, timed
from adjudge.evals.reports.result import Comparison, Counts, Measure, ReadCase, ReadResponse, Result, cut, paired
from adjudge.io.columns import MISSING, Choice, Column
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.opening import glance
from adjudge.io.jobs.report import JobProgress
from adjudge.io.row import Cursor
from adjudge.io.source import Source
from adjudge.io.values import prompt_of, reference_of
from adjudge.pages.figures import Bar, Bars, Curves, Series
from adjudge.protocol import NO_COST
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry
from adjudge.statistics.arrays import np
from adjudge.statistics.bootstrap import mean_interval
from adjudge.statistics.intervals import Interval
from adjudge.statistics.significance import NOTE
from adjudge.statistics.subsets import chances


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodWorth:
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


def choices_of(searched: Sequence[Searched], config: SearchConfig) -> list[MethodWorth]:
    """Return what each method chose, problem by problem."""
    votes = [one for each in searched for one in each.runs if one.method == "majority"]
    answers = [[said.answer for said in one.said] for one in votes]
    if config.equality == TEXT:
        classes = classes_by_text(answers)
    else:
        classes = classes_by_scorer(answers, registry.load(config.equality))
    numbers = {id(one): own for one, own in zip(votes, classes.numbers, strict=True)}
    return [_choice(each.problem, one, numbers.get(id(one)), config) for each in searched for one in each.runs]


def _choice(problem: str, run: MethodRun, answers: list[int] | None, config: SearchConfig) -> MethodWorth:
    right = [float(one) for one in run.right(config.pass_at)]
    budget = [config.tokens * part for part in PARTS[:-1]]
    by_then = [sum(one.spent <= most for one in run.solutions) for most in budget]
    within = [_worth(run, right, answers, count) for count in [*by_then, len(right)]]
    return MethodWorth(
        problem=problem,
        method=run.method,
        right=within[-1],
        oracle=max(right, default=0.0),
        random=sum(right) / len(right) if right else 0.0,
        finished=len(right),
        tokens=run.account.tokens,
        draws=run.account.draws,
        valued=run.account.valued,
        within=tuple(within),
    )


def _worth(run: MethodRun, right: Sequence[float], answers: list[int] | None, count: int) -> float:
    """What is chosen among the first so many solutions is worth; 0 where there is none."""
    if not count:
        return 0.0
    truth = np.array(right[:count])
    if answers is not None:
        return float(vote_worth(answers[:count], np.ones((1, count)), truth, count).values[0])
    values = np.array([np.nan if one.value is None else one.value for one in run.solutions[:count]])
    return float(chances(values, [count])[0] @ truth)


BASE = "best_of_n"
_READ = 6  # solutions of a problem that are shown


def measures_of(choices: Sequence[MethodWorth], config: SearchConfig) -> Iterator[Measure]:
    """Yield how often each method is right, and then what it spent."""
    by_method = _by_method(choices, config)
    for method, mine in by_method.items():
        yield Measure(
            name="right",
            part=method,
            interval=_mean(mine, [one.right for one in mine], config),
            baselines={"random": _plain([one.random for one in mine])},
        )
    for method, mine in by_method.items():
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


def comparisons_of(choices: Sequence[MethodWorth], config: SearchConfig) -> list[Comparison]:
    """Return every method against best-of-n, problem by problem; none where that was not asked for."""
    if BASE not in config.method:
        return []
    right = {method: [one.right for one in mine] for method, mine in _by_method(choices, config).items()}
    problems = [one.problem for one in choices if one.method == BASE]
    return paired(right, BASE, problems, config.draws, of="problems")


def figures_of(choices: Sequence[MethodWorth], config: SearchConfig) -> list[Bars | Curves]:
    """Return how often methods are right, and what they would have chosen with less to spend."""
    bars, lines = [], []
    for method, mine in _by_method(choices, config).items():
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
    choices: Sequence[MethodWorth], searched: Sequence[Searched], problems: Mapping[str, Problem], config: SearchConfig
) -> Iterator[ReadCase]:
    """Yield solutions that a method found and did not choose, the surest losses first."""
    runs = {(each.problem, one.method): one for each in searched for one in each.runs}
    lost = sorted(
        (one for one in choices if one.oracle > one.right and one.method != "majority"),
        key=lambda one: (one.right - one.oracle, one.problem, one.method),
    )
    for choice in lost[: config.worst]:
        here = runs[choice.problem, choice.method]  # type: ignore[index]  # each choice is of a run
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


def _by_method(choices: Sequence[MethodWorth], config: SearchConfig) -> dict[str, list[MethodWorth]]:
    return {method: [one for one in choices if one.method == method] for method in config.method}


def _mean(mine: Sequence[MethodWorth], numbers: Sequence[float], config: SearchConfig) -> Interval:
    return mean_interval(numbers, [one.problem for one in mine], config.draws)


def _plain(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


@timed
def run_search(
    config: SearchConfig,
    *,
    engine: Engine | None = None,
    value: Any = None,
    gold: Any = None,
    final: Any = None,
    progress: JobProgress | None = None,
) -> Result:
    """Measure searches under a guide.

    An engine may be given in place of the one that the config names, and anything that `adjudge.load` takes in place of
    its scorers.

    Raises:
        ValueError: a mistake in the call; no work was done.
        JobError: the engine, or the model behind a scorer, is gone; nothing was written.
        BrokenScorer: a scorer raised.
    """
    source = config.opened()
    problems, unreadable, rows = _problems(config, source)
    tools = Tools(
        config=config,
        engine=engine if engine is not None else engine_named(config.engine),
        guide=_bench(value if value is not None else config.value),
        gold=_bench(gold if gold is not None else config.gold),
        final=LocalBench(registry.load(final or config.final)) if final or config.final else None,
    )
    _check(tools, problems[0])
    searched = run_blocking(_all(problems, tools, progress))
    choices, judged = choices_of(searched, config), sum((each.cost for each in searched), NO_COST)
    return Result(
        kind="search",
        title="Searches under a guide",
        scorer={"name": tools.guide.name, "fingerprint": tools.guide.fingerprint},
        source=input_facts(source, rows),
        measures=tuple(measures_of(choices, config)),
        counts=_counts(searched, unreadable),
        comparisons=tuple(comparisons_of(choices, config)),
        figures=tuple(figures_of(choices, config)),
        worst=tuple(worst_of(choices, searched, {one.id: one for one in problems}, config)),
        notes=tuple(_notes(choices, searched, config)),
        options=config.told(empty=("", (), None))
        | {"engine": tools.engine.fingerprint, "gold": tools.gold.fingerprint}
        | ({"final": tools.final.fingerprint} if tools.final is not None else {}),
        cost=sum((one.account.cost for each in searched for one in _paid(each)), judged),
    )


async def _all(problems: Sequence[Problem], tools: Tools, progress: JobProgress | None) -> list[Searched]:
    """Search all problems, some at the same time; the first fault stops all."""
    room = asyncio.Semaphore(tools.config.in_flight)
    progressed, done = PartsProgress(progress, ("problems",)), 0

    async def one(problem: Problem) -> Searched:
        nonlocal done
        async with room:
            searched = await search(problem, tools)
        done += 1
        progressed("problems", done / len(problems), rows=done, made=done)
        return searched

    tasks = [asyncio.create_task(one(problem)) for problem in problems]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _problems(config: SearchConfig, source: Source) -> tuple[list[Problem], int, int]:
    seen = glance(source)
    named = {"prompt": config.prompt_column, "reference": config.reference_column, "id": config.id_column}
    choice = Choice(seen.columns, seen.rows)
    for role, name in named.items():
        if name:
            choice.given(role, name)
    problems: dict[str, Problem] = {}
    unreadable = rows = 0
    for row in source.rows(Cursor()):
        if config.limit and row.index >= config.limit:
            break
        rows += 1
        cells = row.cells()
        problem = None if cells is None else _problem(cells, row.index, named, chat=config.chat)
        if problem is None:
            unreadable += 1
        elif problem.id in problems:
            raise ValueError(
                f"two problems of {config.input} have the id {problem.id!r}; name unique ids with --id-column"
            )
        else:
            problems[problem.id] = problem
    if not problems:
        raise ValueError(f"no row of {config.input} holds a problem in {config.prompt_column!r}")
    return list(problems.values()), unreadable, rows


def _problem(row: Mapping[str, Any], number: int, named: Mapping[str, str], *, chat: bool) -> Problem | None:
    try:
        prompt = prompt_of(Column(named["prompt"]).of(row), named["prompt"])
    except ValueError:
        return None
    if not (prompt.strip() if isinstance(prompt, str) else chat):
        return None
    name = Column(named["id"]).of(row) if named["id"] else number
    return Problem(
        prompt=prompt,
        reference=reference_of(Column(named["reference"]).of(row)) if named["reference"] else None,
        id=str(number if name in (None, MISSING, "") else name),
        group="",
    )


def _bench(spec: Any) -> LocalBench:
    bench = LocalBench(registry.load(spec))
    if bench.groupwise:
        raise ValueError(
            f"the scorer {bench.name!r} compares responses with each other, and here each is judged by itself; name "
            "one that scores single responses"
        )
    return bench


def _check(tools: Tools, problem: Problem) -> None:
    """See that both scorers can be asked."""
    try:
        tools.guide.check(dataclasses.replace(problem, reference=None).sample("x"))
    except ValueError as error:
        raise ValueError(f"--value: {error}.  A guide never sees the reference; name one that needs none") from error
    try:
        tools.gold.check(problem.sample("x"))
    except ValueError as error:
        raise ValueError(f"--gold: {error}") from error


def _paid(searched: Searched) -> list[MethodRun]:
    """Each account once: best-of-n and the majority share theirs."""
    return list({id(one.account): one for one in searched.runs}.values())


def _counts(searched: Sequence[Searched], unreadable: int) -> Counts:
    said = [
        (solution, verdict)
        for each in searched
        for run in _paid(each)
        for solution, verdict in zip(run.solutions, run.said, strict=True)
    ]
    reasons = Counter(f"gold: {one.reason or one.status}" for _, one in said if one.value is None)
    abstained = sum(one.status == "abstained" for _, one in said)
    scored = sum(one.value is not None for _, one in said)
    return Counts(
        cases=len(searched),
        samples=len(said),
        scored=scored,
        abstained=abstained,
        failed=len(said) - scored - abstained,
        cut_off=sum(solution.path.cut for solution, _ in said),
        unreadable=unreadable,
        reasons=dict(sorted(reasons.items())),
    )


def _notes(choices: Sequence[MethodWorth], searched: Sequence[Searched], config: SearchConfig) -> list[str]:
    notes = [
        f"every method had {config.tokens} generated tokens for each problem, and {config.draws_at_most} texts at "
        "most; the call in which they ran out was finished"
    ]
    if not any(one.tokens for one in choices):
        notes.append("the engine reports no tokens, so only the number of texts was bounded")
    faults: Counter[str] = sum((one.account.faults for each in searched for one in _paid(each)), Counter())
    notes += [f"{count} x {name}" for name, count in sorted(faults.items()) if count]
    nothing = Counter(one.method for one in choices if not one.finished)
    notes += [
        f"{method} found no solution of {count} problems; they count as wrong" for method, count in nothing.items()
    ]
    if len(config.method) > 2:
        notes.append(NOTE)
    return notes
