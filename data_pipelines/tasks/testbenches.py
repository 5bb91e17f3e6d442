"""From a reference design to a bench that is worth keeping.

A bench is kept when the reference design passes it and it tells wrong designs from right ones: mutants of the
reference that a longer comparison, on rows of its own, shows to behave differently, and designs that the row itself
calls wrong.
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
)
from adjudge.data_pipelines.tasks.bench_writer import TEMPLATES, BenchWriter, Trials, as_response, template
from adjudge.data_pipelines.tasks.config import TestbenchesConfig
from adjudge.engines.interface import Engine
from adjudge.io.jobs.engines import engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of, texts_in
from adjudge.verifiers.verilog.stimulus import make_stimulus

VERSION = "1"
_GROWTH = 4  # each round of a recorded bench has so many times as many rows
_UNSOUND = frozenset({"reference_differs_from_itself", "reference_refused", "bench_judges_nobody"})


@dataclass(frozen=True, kw_only=True)
class _Separation:
    """How a bench tells designs apart."""

    mutants: int
    killed: int
    wrong: int
    failed: int

    @property
    def share(self) -> float:
        return (self.killed + self.failed) / max(1, self.mutants + self.wrong)


class _BenchMaker(RowMaker[TestbenchesConfig]):
    name = "testbenches"
    reads = ("design", "prompt", "top", "files", "wrong", "id")
    fields: ClassVar[Mapping[str, Kind]] = {
        "id": "text", "prompt": "chat", "top": "text", "reference": "any", "writer": "text", "test_cases": "texts",
        "checks": "whole", "coverage": "number", "coverage_note": "text", "missed_lines": "wholes",
        "mutants": "whole", "killed": "whole", "wrong": "whole", "wrong_failed": "whole", "rounds": "whole",
    }  # fmt: skip

    def __init__(self, config: TestbenchesConfig, trials: Trials, engine: Engine | None = None) -> None:
        super().__init__(config)
        self._trials, self._engine = trials, engine

    @property
    def fingerprint(self) -> str:
        model = self._engine.fingerprint if self._engine else ""
        prompts = [template(name).digest for name in TEMPLATES] if self._engine else []
        return fingerprint_of(self.name, VERSION, self.config.own_options(), self._trials.fingerprint, model, prompts)

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        needed = {"design", *(["prompt"] if self._engine else [])}
        self.check_columns(columns, first, optional=set(self.reads) - needed)
        notes = ["the model writes the benches" if self._engine else "benches are recorded from the reference designs"]
        if not any(self.cell(row, "top") for row in first) and not self.config.top:
            notes.append("top: no such column, so the tested module has the reference's own name (--top names another)")
        return tuple(notes)

    async def rows_of(self, unit: Unit, account: Account) -> Sequence[Mapping[str, Any]]:
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
            separation, rounds = await self._separation(bench, design, mutants, wrong), writer.rounds
        else:
            bench, separation, rounds = await self._grown(first, design, mutants, wrong, key)
        if separation.failed < separation.wrong or separation.share < self.config.min_killed:
            raise DroppedError("does_not_separate")
        account.counts |= {"mutants": separation.mutants, "killed": separation.killed, "rounds": rounds}
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
            "mutants": separation.mutants,
            "killed": separation.killed,
            "wrong": separation.wrong,
            "wrong_failed": separation.failed,
            "rounds": rounds,
        }

    async def _recorded(self, design: Design, key: str, number: int) -> Bench:
        effort = self.config.effort * _GROWTH**number
        stimulus = make_stimulus(design.interface, design.integers, f"{key}:{number}", effort)
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
    ) -> tuple[Bench, _Separation, int]:
        """Return the best of some recorded benches, how it separates, and how many were tried."""
        rounds: list[tuple[Bench, _Separation]] = []
        while True:
            try:
                larger = await self._recorded(design, key, len(rounds)) if rounds else bench
                proved = await self._proved(larger, design)
                rounds.append((proved, await self._separation(proved, design, mutants, wrong)))
            except DroppedError as error:
                if not rounds or error.reason in _UNSOUND:
                    raise
                break  # it ran into the limits, which says nothing about the smaller ones
            if len(rounds) == self.config.rounds or self._enough(*rounds[-1]):
                break
        return *max(rounds, key=_worth), len(rounds)  # of equals the first, which is smaller

    def _enough(self, bench: Bench, separation: _Separation) -> bool:
        return separation.share == 1.0 and (bench.coverage is None or bench.coverage >= self.config.coverage)

    async def _proved(self, bench: Bench, design: Design) -> Bench:
        """Return a recorded bench with its checks and coverage, once the reference design has passed it."""
        said = counted((await self._trials.run(bench, design))["stdout"])
        if said is None:
            raise DroppedError("bench_does_not_run")
        if said[0]:
            raise DroppedError("reference_differs_from_itself")
        bench = replace(bench, checks=said[1])
        return await self._trials.measured(bench, design) if self.config.coverage else bench

    async def _separation(
        self, bench: Bench, design: Design, mutants: Sequence[str], wrong: Sequence[str]
    ) -> _Separation:
        if not await self._trials.accepts_reference(bench, design):
            raise DroppedError("reference_refused")
        passing = await self._trials.passing(bench, design, [*map(as_response, mutants), *wrong])
        killed, failed = passing[: len(mutants)].count(False), passing[len(mutants) :].count(False)
        return _Separation(mutants=len(mutants), killed=killed, wrong=len(wrong), failed=failed)

    def _writer(self, engine: Engine, design: Design, specification: Any) -> BenchWriter:
        if not isinstance(specification, str) or not specification.strip():
            raise DroppedError("no_specification")
        return BenchWriter(
            config=self.config, engine=engine, trials=self._trials, design=design, specification=specification
        )


def _worth(tried: tuple[Bench, _Separation]) -> tuple[float, float]:
    """Return what makes one bench better than another: how it separates, then how many lines it reaches."""
    bench, separation = tried
    return separation.share, bench.coverage or 0.0


def make_testbenches(
    config: TestbenchesConfig, *, engine: Engine | None = None, progress: JobProgress | None = None
) -> JobReport:
    """Make test benches of reference designs, or go on with a job that was interrupted.

    `dropped` of the report says why rows came to nothing: "no_design", "bad_design", "outputs_never_known",
    "nothing_to_tell_apart" (no wrong design behaves differently), "does_not_separate", "bench_does_not_run",
    "misaligned" and others.
    """
    if engine is None and config.engine:
        engine = engine_named(config.engine)
    trials = Trials.of(config.isolation, config.seconds, config.seed)
    return run_job(config, _BenchMaker(config, trials, engine), progress=progress)
