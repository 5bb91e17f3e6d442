"""From a reference design to a test bench that is worth keeping: recorded from it, or written by a model.

A bench is kept when the reference design passes it and it tells wrong designs from right ones: mutants of the
reference that a longer comparison, on rows of its own, shows to behave differently, and designs that the row itself
calls wrong.

A model writes function points, test cases, and the text; then it repairs, in three loops with budgets of their own:
until the bench compiles and ends; until the reference design passes it, which corrects expected values that the model
got wrong; until enough of the reference's lines are reached.  The reference design is taken to be right throughout.
Where a repair makes a good bench worse, the good one is kept.

Benches and designs are tried through the scorers `simulation` and `verilog`, which say what sandbox and limits are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

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
from adjudge.data_pipelines.tasks.config import TestbenchesConfig
from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE, engine_named
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.maker import DroppedError, Kind, Unit
from adjudge.io.jobs.report import JobProgress, JobReport
from adjudge.io.jobs.row_maker import Account, RowMaker, fingerprint_of, texts_in
from adjudge.prompts.asking import Answer, NoVerdict, Reader, Retry, ask
from adjudge.prompts.reading import json_value
from adjudge.prompts.template import Rendered, load_template
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import score_checked
from adjudge.scoring import registry
from adjudge.verifiers.verilog.front_end import SyntaxFaultError, parse
from adjudge.verifiers.verilog.stimulus import make_stimulus

SIMULATION = "adjudge.verifiers.verilog.simulation:SimulationVerifier"
_FENCE = "~" * 12  # no design has so many in a line


@dataclass(frozen=True, kw_only=True)
class Trials:
    """The scorers that try things.

    `simulation` runs a bench and tells what came of it, `in_bench` judges designs in a bench, and `beside` judges them
    beside the reference, on other rows than any bench has.
    """

    simulation: Scorer
    in_bench: Scorer
    beside: Scorer

    @classmethod
    def of(cls, isolation: Literal["bubblewrap", "none"], seconds: float, seed: int) -> Trials:
        """Return the trials of a job; raise `ValueError` where a tool is not installed."""

        def verilog(**options: Any) -> Scorer:
            return registry.load(
                {"verilog": {"reasoning": "keep", "isolation": isolation, "seconds": seconds, **options}}
            )

        return cls(
            simulation=registry.load({SIMULATION: {"isolation": isolation, "seconds": seconds}}),
            in_bench=verilog(check="bench"),
            beside=verilog(check="differential", effort=4000, seed=seed),
        )

    @property
    def fingerprint(self) -> str:
        """Changes whenever a trial could come out otherwise."""
        return " ".join(scorer.fingerprint for scorer in (self.simulation, self.in_bench, self.beside))

    async def run(
        self, bench: Bench, design: Design, *, outputs: Sequence[str] = (), coverage: bool = False
    ) -> Mapping[str, Any]:
        """Return the evidence of a bench's run on the reference design; see the scorer `simulation`."""
        reference = {
            "top": bench.module,
            "design": design.under_top(),
            "files": {**design.files, **bench.files},
            "outputs": list(outputs),
            "coverage": coverage,
        }
        sample = Sample(prompt="", response=bench.source, reference=reference)
        (score,) = _tried(await score_checked(self.simulation, [sample]), "bad_files")
        return score.evidence

    async def measured(self, bench: Bench, design: Design) -> Bench:
        """Return a bench with its coverage."""
        done = await self.run(bench, design, coverage=True)
        lines: Mapping[str, Any] = done.get("coverage") or {"error": "the bench does not run"}
        missed = tuple(lines.get("missed", ()))
        total = lines.get("reached", 0) + len(missed)
        if not total:
            note = str(lines.get("error", "Verilator counts no line of the design"))
            return replace(bench, coverage=None, note=note)
        return replace(bench, coverage=lines["reached"] / total, missed=missed)

    async def wrong(self, design: Design, others: Sequence[str]) -> list[str]:
        """Return those of some designs that behave differently from the reference."""
        samples = [Sample(prompt="", response=as_response(text), reference=design.reference()) for text in others]
        scores = _tried(await score_checked(self.beside, samples), "design_not_comparable")
        return [text for text, score in zip(others, scores, strict=True) if score.reason == "wrong"]

    async def passing(self, bench: Bench, design: Design, responses: Sequence[str]) -> list[bool]:
        """Return for each response whether its design passes the bench."""
        reference = design.reference(bench.source, bench.files)
        samples = [Sample(prompt="", response=text, reference=reference) for text in responses]
        scores = _tried(await score_checked(self.in_bench, samples), "bench_judges_nobody")
        return [score.value == 1.0 for score in scores]


def as_response(design: str) -> str:
    """Return a design as a response that holds nothing else."""
    return f"{_FENCE}verilog\n{design}\n{_FENCE}"


def _tried(scores: list[Score], refused: str) -> list[Score]:
    """Return scores that all have a number; `refused` is the reason where the reference is no good."""
    for score in scores:
        if score.value is None:
            said = str(score.evidence.get("error", ""))
            if score.reason == "engine_unavailable":
                raise JobError(f"the simulator cannot be used: {said}")
            raise DroppedError("reference_too_slow" if score.reason == "gold_timeout" else refused, said)
    return scores


T = TypeVar("T")

_BLOCK = re.compile(r"^[ \t]*```[ \t]*([\w-]*)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_LABELS = frozenset({"verilog", "systemverilog", "sv", ""})
_MAX_POINTS = 64
_SHOWN = 3000  # characters of what a run printed
TEMPLATES = ("function_points", "test_cases", "testbench", "repair")


def template(name: str) -> Any:
    """Return one of the prompts of this folder."""
    return load_template(f"data_pipelines/tasks/{name}")


@dataclass(kw_only=True)
class BenchWriter:
    """Writes one bench."""

    config: TestbenchesConfig
    engine: Engine
    trials: Trials
    design: Design
    specification: str
    account: Account
    rounds: int = 0
    cases: list[str] = field(default_factory=list)

    async def write(self) -> Bench:
        """Return a bench that the reference design passes.

        Raises:
            DroppedError: the model did not come to one.
        """
        config, top = self.config, self.design.top
        given: dict[str, Any] = {"specification": self.specification, "design": self.design.source}
        points = await self._asked("function_points", given, _texts)
        self.cases = await self._asked("test_cases", {**given, "points": _listed(points)}, _texts)
        shape = {"specification": self.specification, "interface": _shape(self.design), "top": top}
        bench = await self._asked("testbench", {**shape, "cases": _listed(self.cases)}, self._bench)
        left = {"compile": config.compile_rounds, "align": config.align_rounds, "cover": config.rounds}
        best: Bench | None = None
        while True:
            try:
                tried, loop, problem, seen = await self._after_run(bench)
                if tried.checks and (best is None or (tried.coverage or 0.0) > (best.coverage or 0.0)):
                    best = tried
                if not loop or not left[loop]:
                    raise DroppedError("bench_does_not_run" if loop == "compile" else "misaligned")
                left[loop] -= 1
                self.rounds += 1
                asked = {"testbench": bench.source, "said": seen or "nothing", "top": top, "problem": problem}
                bench = await self._asked("repair", {**given, **asked}, self._bench)
            except DroppedError:
                if best is None:
                    raise
                return best

    async def _after_run(self, bench: Bench) -> tuple[Bench, str, str, str]:
        """Return a bench after its run, the loop that it is due for ("" if none), the problem, and what was seen."""
        done = await self.trials.run(bench, self.design)
        if done["stage"] == "compile":
            return bench, "compile", "It does not compile.", done["stderr"][:_SHOWN]
        if done["ending"] != "exited" or done["code"] != 0:
            return bench, "compile", "It does not come to its end.", f"it ended by {done['ending']}"
        wrong, samples = counted(done["stdout"]) or (0, 0)
        if not samples:
            return bench, "compile", "It does not print the line that counts its checks.", done["stdout"][-_SHOWN:]
        if wrong:
            problem = f"{wrong} of its {samples} checks expect what the reference design does not do."
            return bench, "align", problem, done["stdout"][:_SHOWN]
        good = replace(bench, checks=samples)
        if self.config.coverage:  # 0 does not measure it
            good = await self.trials.measured(good, self.design)
        if good.coverage is None or good.coverage >= self.config.coverage:
            return good, "", "", ""
        return good, "cover", "It does not reach all lines of the reference design.", _missed(self.design, good.missed)

    async def _asked(self, name: str, values: Mapping[str, Any], read: Reader[T]) -> T:
        config = self.config
        rendered: Rendered = template(name).render(values, special=getattr(self.engine, "special_tokens", ()))
        sampling = Sampling(max_tokens=config.max_tokens, temperature=config.temperature, seed=config.seed)
        (answer,) = await ask(self.engine, [rendered], sampling, read, retry=Retry(attempts=config.attempts))
        if isinstance(answer, Answer | NoVerdict):
            self.account.counts["calls"] += answer.attempts
            self.account.cost += answer.cost
        if isinstance(answer, Fault):
            raise _stopped(name, answer)
        return answer.value

    def _bench(self, text: str, nonce: str = "", /) -> Bench | None:
        """Read the one code block of an answer as a bench; None if it is none."""
        blocks = [body for label, body in _BLOCK.findall(text) if label.lower() in _LABELS]
        if len(blocks) != 1:
            return None
        try:
            parsed = parse(blocks[0])
        except SyntaxFaultError:
            # A bench with a mistake is still the bench: the simulator's message goes back to the model.
            named = re.search(r"^\s*module\s+(\w+)", blocks[0], re.MULTILINE)
            return Bench(source=blocks[0], module=named[1]) if named and named[1] != self.design.top else None
        tops = parsed.tops()
        if len(tops) != 1 or self.design.top in parsed.modules:
            return None
        below = {name for module in parsed.reachable(tops[0]) for name in parsed.instantiated(module)}
        return Bench(source=blocks[0], module=tops[0]) if self.design.top in below else None


def _stopped(name: str, fault: Fault) -> Exception:
    if fault.reason in GONE:
        return JobError(f"the model cannot be asked ({fault.reason}): {fault.detail}. The same call goes on")
    if fault.too_long:
        return DroppedError("prompt_too_long")
    return DroppedError(f"{name}_unparsable" if isinstance(fault, NoVerdict) else "model_fault")


def _texts(text: str, nonce: str = "", /) -> list[str] | None:
    """Read a JSON array of texts, none of them blank; None if there is none."""
    items = json_value(text, list)
    if not items or len(items) > _MAX_POINTS:
        return None
    texts = [item.strip() for item in items if isinstance(item, str) and item.strip()]
    return texts if len(texts) == len(items) else None


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def _shape(design: Design) -> str:
    lines = [f"{port.direction} [{port.width - 1}:0] {port.name}" for port in design.interface.ports]
    lines += [f"clock: {name}" for name in design.interface.clocks]
    lines += [f"reset: {name}, active {'high' if high else 'low'}" for name, high in design.interface.resets]
    return "\n".join(lines)


def _missed(design: Design, numbers: Sequence[int]) -> str:
    lines = design.source.splitlines()
    shown = [f"line {number}: {lines[number - 1].strip()}" for number in numbers if number <= len(lines)]
    return ("These lines are never executed:\n" + "\n".join(shown))[:_SHOWN]


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
        writer = None
        if self._engine is not None:
            writer = self._writer(self._engine, design, self.cell(row, "prompt"), account)
            account.counts["calls"] += 0  # told where none is made, too
        return [await self._made(unit, design, wrong, writer, account)]

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
        if not all(await self._trials.passing(bench, design, [as_response(design.under_top())])):
            raise DroppedError("reference_refused")
        passing = await self._trials.passing(bench, design, [*map(as_response, mutants), *wrong])
        killed, failed = passing[: len(mutants)].count(False), passing[len(mutants) :].count(False)
        return _Separation(mutants=len(mutants), killed=killed, wrong=len(wrong), failed=failed)

    def _writer(self, engine: Engine, design: Design, asked: Any, account: Account) -> BenchWriter:
        if not isinstance(asked, str) or not asked.strip():
            raise DroppedError("no_specification")
        return BenchWriter(
            config=self.config,
            engine=engine,
            trials=self._trials,
            design=design,
            specification=asked,
            account=account,
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
