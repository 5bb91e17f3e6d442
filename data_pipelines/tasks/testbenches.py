"""From a reference design to a bench that is worth keeping.

A bench is kept when the reference design passes it and it tells wrong designs from right ones: mutants of the
reference that a longer comparison, on rows of its own, shows to behave differently, and designs that the row itself
calls wrong.  Mutants that no comparison tells from the reference do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from adjudge.data_pipelines.tasks.bench_designs import (
    SAMPLES,
    Bench,
    Design,
    counted,
    design_mutants,
    read_design,
    read_samples,
    recorded_bench,
    recorder,
    rows_for,
)
from adjudge.data_pipelines.tasks.bench_writer import (
    TEMPLATES,
    BenchWriter,
    Budget,
    Trials,
    as_response,
    template,
)
from adjudge.data_pipelines.tasks.config import TestbenchesConfig
from adjudge.engines.interface import Engine, Sampling
from adjudge.io.columns import Choice
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of, texts_in
from adjudge.prompts.asking import Retry

VERSION = "1"
_GROWTH = 4  # each round of a recorded bench has so many times as many rows
_UNSOUND = frozenset({"reference_differs_from_itself", "reference_refused", "bench_judges_nobody"})


@dataclass(frozen=True, kw_only=True)
class Separation:
    """How a bench tells designs apart."""

    mutants: int
    killed: int
    wrong: int
    failed: int

    @property
    def share(self) -> float:
        """The share of all wrong designs that fail."""
        return (self.killed + self.failed) / max(1, self.mutants + self.wrong)


class BenchMaker(RowMaker[TestbenchesConfig]):
    """Makes a bench of each row; see the module."""

    name = "testbenches"
    reads = ("design", "prompt", "top", "files", "wrong", "id")
    fields: ClassVar[Mapping[str, Kind]] = {
        "id": "text",
        "prompt": "chat",
        "top": "text",
        "reference": "any",
        "writer": "text",
        "test_cases": "texts",
        "checks": "whole",
        "coverage": "number",
        "coverage_note": "text",
        "missed_lines": "wholes",
        "mutants": "whole",
        "killed": "whole",
        "wrong": "whole",
        "wrong_failed": "whole",
        "rounds": "whole",
    }

    def __init__(self, config: TestbenchesConfig, trials: Trials, engine: Engine | None = None) -> None:
        super().__init__(config)
        self._trials, self._engine = trials, engine

    @property
    def fingerprint(self) -> str:
        """Changes with the options, the scorers, the prompts and the model."""
        model = self._engine.fingerprint if self._engine else ""
        prompts = [template(name).digest for name in TEMPLATES] if self._engine else []
        return fingerprint_of(self.name, VERSION, self.config.own_options(), self._trials.fingerprint, model, prompts)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look for the columns; see `Maker`."""
        needed = {"design", *(["prompt"] if self._engine else [])}
        named = {name: column.name for name, column in self._columns.items()}
        usual = {name: getattr(TestbenchesConfig, f"{name}_column") for name in named}
        Choice(columns, first).check(
            {name: named[name] for name in named if name in needed or named[name] != usual[name]}
        )
        notes = ["the model writes the benches" if self._engine else "benches are recorded from the reference designs"]
        if not any(self.cell(row, "top") for row in first) and not self.config.top:
            notes.append("top: no such column, so the tested module has the reference's own name (--top names another)")
        return tuple(notes)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
        """Return the bench of a row."""
        (row,) = unit.rows
        self.chat(row)
        design = read_design(
            self.cell(row, "design"), self.cell(row, "top") or self.config.top, self.cell(row, "files")
        )
        wrong = [text for text in texts_in(self.cell(row, "wrong"), "bad_wrong_designs") if text.strip()]
        if self._engine is None:
            return [await self._made(unit, design, wrong, None, account)]
        writer = self._writer(self._engine, design, self.cell(row, "prompt"))
        try:
            return [await self._made(unit, design, wrong, writer, account)]
        finally:
            account.counts["calls"] += writer.calls
            account.cost += writer.cost

    async def _made(
        self, unit: Unit, design: Design, wrong: Sequence[str], writer: BenchWriter | None, account: Account
    ) -> dict[str, Any]:
        key = hashlib.sha256(f"{self.config.seed}\0{design.top}\0{design.source}".encode(errors="replace")).hexdigest()
        first = await self._recorded(design, key, 0)
        mutants = await self._trials.wrong(
            design, [design.under_top(text) for text in design_mutants(design.source, self.config.mutants, key)]
        )
        if not mutants and not wrong:
            raise DroppedError("nothing_to_tell_apart")
        if writer is not None:
            bench = await writer.write()
            found, rounds = await self._separation(bench, design, mutants, wrong), writer.rounds
        else:
            bench, found, rounds = await self._grown(first, design, mutants, wrong, key)
        if found.failed < found.wrong or found.share < self.config.min_killed:
            raise DroppedError("does_not_separate")
        account.counts |= {"mutants": found.mutants, "killed": found.killed, "rounds": rounds}
        return {
            "id": self.id_of(unit),
            "prompt": self.chat(unit.rows[0]),
            "top": design.top,
            "reference": design.reference(bench.source, bench.files),
            "writer": "recorded" if writer is None else "model",
            "test_cases": None if writer is None else writer.cases,
            "checks": bench.checks,
            "coverage": None if bench.coverage is None else round(bench.coverage, 4),
            "coverage_note": bench.note or None,
            "missed_lines": None if bench.coverage is None else list(bench.missed),
            "mutants": found.mutants,
            "killed": found.killed,
            "wrong": found.wrong,
            "wrong_failed": found.failed,
            "rounds": rounds,
        }

    async def _recorded(self, design: Design, key: str, number: int) -> Bench:
        """Return the recorded bench of one round."""
        stimulus = rows_for(design, self.config.effort * _GROWTH**number, f"{key}:{number}")
        bench = recorder(design, stimulus)
        done = await self._trials.run(bench, design, outputs=[SAMPLES])
        samples = read_samples(done["outputs"].get(SAMPLES), len(stimulus.rows))
        if samples is None:
            raise DroppedError("design_does_not_compile" if done["stage"] == "compile" else "design_does_not_run")
        if not any(set(sample) & {"0", "1"} for sample in samples[stimulus.settled :]):
            raise DroppedError("outputs_never_known")
        return recorded_bench(design, stimulus, samples)

    async def _grown(
        self, bench: Bench, design: Design, mutants: Sequence[str], wrong: Sequence[str], key: str
    ) -> tuple[Bench, Separation, int]:
        """Return the best of some recorded benches, how it separates, and how many were tried."""
        best, number = await self._tried(bench, design, mutants, wrong), 1
        tried = best
        while number < self.config.rounds and not self._enough(*tried):
            try:
                larger = await self._recorded(design, key, number)
                tried = await self._tried(larger, design, mutants, wrong)
            except DroppedError as error:
                if error.reason in _UNSOUND:
                    raise
                break  # it ran into the limits, which says nothing about the smaller ones
            number += 1
            best = max(best, tried, key=_worth)  # of equals the first, which is smaller
        return *best, number

    async def _tried(
        self, bench: Bench, design: Design, mutants: Sequence[str], wrong: Sequence[str]
    ) -> tuple[Bench, Separation]:
        bench = await self._proved(bench, design)
        return bench, await self._separation(bench, design, mutants, wrong)

    def _enough(self, bench: Bench, found: Separation) -> bool:
        return found.share == 1.0 and (bench.coverage is None or bench.coverage >= self.config.coverage)

    async def _proved(self, bench: Bench, design: Design) -> Bench:
        """Return a recorded bench with its checks and coverage, once the reference design has passed it."""
        found = counted((await self._trials.run(bench, design))["stdout"])
        if found is None:
            raise DroppedError("bench_does_not_run")
        if found[0]:
            raise DroppedError("reference_differs_from_itself")
        bench = replace(bench, checks=found[1])
        return await self._trials.measured(bench, design) if self.config.coverage else bench

    async def _separation(
        self, bench: Bench, design: Design, mutants: Sequence[str], wrong: Sequence[str]
    ) -> Separation:
        if not await self._trials.accepts_reference(bench, design):
            raise DroppedError("reference_refused")
        passing = await self._trials.passing(bench, design, [*map(as_response, mutants), *wrong])
        killed, failed = passing[: len(mutants)].count(False), passing[len(mutants) :].count(False)
        return Separation(mutants=len(mutants), killed=killed, wrong=len(wrong), failed=failed)

    def _writer(self, engine: Engine, design: Design, specification: Any) -> BenchWriter:
        if not isinstance(specification, str) or not specification.strip():
            raise DroppedError("no_specification")
        config = self.config
        return BenchWriter(
            engine=engine,
            sampling=Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed),
            retry=Retry(attempts=config.attempts),
            trials=self._trials,
            design=design,
            specification=specification,
            budget=Budget(
                compiling=config.compile_rounds,
                aligning=config.align_rounds,
                covering=config.rounds,
                coverage=config.coverage,
            ),
        )


def _worth(tried: tuple[Bench, Separation]) -> tuple[float, float]:
    """Return what makes one bench better than another: how it separates, then how many lines it reaches."""
    bench, found = tried
    return found.share, bench.coverage or 0.0


def make_testbenches(
    config: TestbenchesConfig, *, engine: Engine | None = None, progress: JobProgress | None = None
) -> JobReport:
    """Make test benches of reference designs, or go on with a job that was interrupted.

    Returns:
        The counts.  `dropped` says why rows came to nothing: "no_design", "bad_design", "outputs_never_known",
        "nothing_to_tell_apart" (no wrong design behaves differently), "does_not_separate", "bench_does_not_run",
        "misaligned" and others.
    """
    if engine is None and config.engine:
        engine = engine_named(config.engine)
    trials = Trials.of(config.isolation, config.seconds, config.seed)
    return run_job(config, BenchMaker(config, trials, engine), progress=progress)
