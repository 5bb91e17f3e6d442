"""`adjudge eval search`: a scorer as the guide of a search, beside best-of-n and a majority of the same budget."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.steps.solutions_in_rows import Problem
from adjudge.engines.interface import Engine
from adjudge.evals.best_of_n.config import SearchConfig, options_of
from adjudge.evals.best_of_n.search_report import (
    Choice,
    Found,
    Searched,
    Tools,
    choices_of,
    comparisons_of,
    figures_of,
    measures_of,
    search,
    worst_of,
)
from adjudge.evals.reports.config import input_facts
from adjudge.evals.reports.result import Counts, Result
from adjudge.io.columns import MISSING, Column
from adjudge.io.columns import Choice as ColumnChoice
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.opening import glance
from adjudge.io.jobs.report import JobProgress, JobSnapshot
from adjudge.io.row import Cursor
from adjudge.io.source import Source
from adjudge.io.values import prompt_of, reference_of
from adjudge.protocol import NO_COST, Cost
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry
from adjudge.statistics.significance import NOTE


def run_search(
    config: SearchConfig,
    *,
    engine: Engine | None = None,
    value: Any = None,
    gold: Any = None,
    progress: JobProgress | None = None,
) -> Result:
    """Measure searches under a guide.

    Args:
        config: the problems and options.
        engine: in place of the one that the config names.
        value: anything `adjudge.load` takes, in place of the config's.
        gold: anything `adjudge.load` takes, in place of the config's.
        progress: who is told how far it is.

    Raises:
        ValueError: a mistake in the call; no work was done.
        JobError: the engine, or the model behind a scorer, is gone; nothing was written.
        BrokenScorer: a scorer raised.
    """
    started = time.monotonic()
    source = config.opened()
    problems, unreadable, rows = _problems(config, source)
    tools = Tools(
        config=config,
        engine=engine if engine is not None else engine_named(config.engine),
        guide=_bench(value if value is not None else config.value),
        gold=_bench(gold if gold is not None else config.gold),
    )
    _check(tools, problems[0])
    searched = run_blocking(_all(problems, tools, progress))
    choices = choices_of(searched, config)
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
        options=options_of(config) | {"engine": tools.engine.fingerprint, "gold": tools.gold.fingerprint},
        seconds=time.monotonic() - started,
        cost=sum((cost for each in searched for cost in _costs(each)), NO_COST),
    )


async def _all(problems: Sequence[Problem], tools: Tools, progress: JobProgress | None) -> list[Searched]:
    """Search all problems, some at the same time; the first fault stops all."""
    room = asyncio.Semaphore(tools.config.in_flight)
    began, done = time.monotonic(), 0

    async def one(problem: Problem) -> Searched:
        nonlocal done
        async with room:
            found = await search(problem, tools)
        done += 1
        if progress is not None:
            rate = done / max(time.monotonic() - began, 1e-9)
            progress.update(
                JobSnapshot(
                    rows=done,
                    made=done,
                    dropped={},
                    rows_per_second=rate,
                    fraction=done / len(problems),
                    eta_seconds=(len(problems) - done) / rate,
                )
            )
        return found

    tasks = [asyncio.create_task(one(problem)) for problem in problems]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _problems(config: SearchConfig, source: Source) -> tuple[list[Problem], int, int]:
    """The problems, rows that hold none, and all rows."""
    seen = glance(source)
    named = {"prompt": config.prompt_column, "reference": config.reference_column, "id": config.id_column}
    choice = ColumnChoice(seen.columns, seen.rows)
    for role, name in named.items():
        if name:
            choice.given(role, name)
    found: dict[str, Problem] = {}
    unreadable = rows = 0
    for row in source.rows(Cursor()):
        if config.limit and row.index >= config.limit:
            break
        rows += 1
        cells = row.cells()
        problem = None if cells is None else _problem(cells, row.index, named, chat=config.chat)
        if problem is None:
            unreadable += 1
        elif problem.id in found:
            raise ValueError(
                f"two problems of {config.input} have the id {problem.id!r}; name unique ids with --id-column"
            )
        else:
            found[problem.id] = problem
    if not found:
        raise ValueError(f"no row of {config.input} holds a problem in {config.prompt_column!r}")
    return list(found.values()), unreadable, rows


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
    """See that both scorers can be asked.

    Raises:
        ValueError: one lacks something; a guide lacks the reference on purpose.
    """
    try:
        tools.guide.check(dataclasses.replace(problem, reference=None).sample("x"))
    except ValueError as error:
        raise ValueError(f"--value: {error}.  A guide never sees the reference; name one that needs none") from error
    try:
        tools.gold.check(problem.sample("x"))
    except ValueError as error:
        raise ValueError(f"--gold: {error}") from error


def _costs(searched: Searched) -> list[Cost]:
    return [searched.cost, *(one.account.cost for one in _paid(searched))]


def _paid(searched: Searched) -> list[Found]:
    """Each account once: best-of-n and the majority share theirs."""
    return list({id(one.account): one for one in searched.found}.values())


def _counts(searched: Sequence[Searched], unreadable: int) -> Counts:
    said = [
        (solution, verdict)
        for each in searched
        for found in _paid(each)
        for solution, verdict in zip(found.solutions, found.said, strict=True)
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


def _notes(choices: Sequence[Choice], searched: Sequence[Searched], config: SearchConfig) -> list[str]:
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
