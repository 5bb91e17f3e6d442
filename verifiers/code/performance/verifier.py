"""A reward in the manner of CRINN: how much faster than a baseline a program is, if its results are right.

    gate:  its tests pass, and its results on fresh inputs equal the baseline's, or have enough recall; else 0
    value: the geometric mean of the speed-ups over the inputs, or how much more area is under the curve of queries per
           second over recall where inputs are settings of one search; rounded to a grain and clipped to a range

Both run in turns in fresh sandboxed processes that a clock outside of them times (`timed_run`).  Inputs come from a
generator that runs apart, seeded by the program, the reference and an option, so nobody can have seen them before.

Time is not a pure function.  The grain and the clipping make most scores repeat; where the noise reaches from one value
to the next, more rounds are run, and then the option `undecided` says what happens.

Not covered: memory as a goal, programs that read standard input, languages other than Python, and other work on the
same machine: it makes more noise, not other ratios.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox import codec
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import flavour_of, shared
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.comparison import Rules
from adjudge.verifiers.code.extraction import Block, program_in
from adjudge.verifiers.code.languages import PYTHON_LABELS
from adjudge.verifiers.code.performance.measuring import (
    Estimate,
    Gate,
    Measuring,
    ProgramFaultError,
    ReferenceFaultError,
    Ruler,
    Scale,
)
from adjudge.verifiers.code.performance.task import Task, read_task
from adjudge.verifiers.code.performance.timed_run import Callee
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice
from adjudge.verifiers.code.verifier import CodeVerifier

_MODEL = re.compile(r"^model name[ \t]*:[ \t]*(.+)$", re.MULTILINE)


@cache
def machine() -> str:
    """Return the kind of processor and the number of its cores."""
    try:
        model = _MODEL.search(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        model = None
    return f"{platform.machine()} {model[1] if model else platform.processor()} x{os.cpu_count()}"


_OF_TESTS = (  # options that the tests share
    *("block", "bare", "reasoning", "truncated", "seconds", "total_seconds", "processes", "tolerance", "unordered"),
    "isolation",
)
_SPARE_SECONDS = 60.0  # beyond the budget: starting sandboxes, the tests' compiler, killing


@dataclass(frozen=True, kw_only=True)
class PerformanceVerifier(SandboxedVerifier, TextVerifier[Task, tuple[str, Sample]]):
    """Measured speed of a program beside a baseline, behind a gate of right results (CRINN).

    The reference is `{"entry_point": "f", "baseline": source, "inputs": source of inputs(seed) or a list of cases}`,
    and where wanted "tests" (as for `code`), "recall": {"least": 0.9, "truth": source} and "memory_mb".  A recall from
    "least" to "most" takes the cases for settings of one search, and the areas under both curves for the speed.

    Attributes:
        scale: "unit" puts `slowest` at 0 and `fastest` at 1, evenly in log2; "raw" is the speed-up itself.
        slowest: the lower end of the range that speed-ups are clipped to.
        fastest: the upper end.
        grain: the step in log2 that speed-ups are rounded to; 0.5 is a factor of 1.41.
        undecided: where the noise reaches another value after `max_repeats`: "nearest" takes the likeliest value,
            "failed" gives none.
        repeats: timed rounds.
        max_repeats: rounds at most, where the noise reaches another value.
        loading: whether the time to load a program, and so what it does on import, counts.
        seed: where the seeds of inputs start; who does not know it cannot know the inputs.  Without `loading` it must
            be one of your own: a program that knows it could make its inputs, and their results, while it loads.
        min_seconds: what the baseline must take at least on every case; 0 for no bound.
        seconds: seconds for one run.
        total_seconds: for all runs of a sample together.
        max_waiting: the share of its time that the baseline may be let wait by the machine; on one that is busier
            nothing can be timed, and the score is failed, `overloaded`.
        memory_mb: MiB for a run, where the reference has no "memory_mb".
        processes: processes and threads at one time.
        output_mb: MiB that a result may have.
        tolerance: relative difference that numbers may have if one is a float; 0 for none.
        unordered: whether a returned list may have its items in any order.
        block: which of several code blocks is the program, as for `code`.
        bare: whether a response without a code block is itself the program.
        measured: whether the evidence tells seconds and noise, which no two runs share.
    """

    name: ClassVar[str] = "performance"
    version: ClassVar[str] = "5"

    scale: Scale = "unit"
    slowest: Annotated[float, Range(ge=1e-3, le=1e3)] = 0.5
    fastest: Annotated[float, Range(ge=1e-3, le=1e6)] = 8.0
    grain: Annotated[float, Range(ge=0.01, le=4.0)] = 0.5
    undecided: Literal["nearest", "failed"] = "nearest"
    repeats: Annotated[int, Range(ge=3)] = 5
    max_repeats: Annotated[int, Range(ge=3)] = 15
    loading: bool = True
    seed: Annotated[int, Range(ge=0)] = 0
    min_seconds: Annotated[float, Range(ge=0.0, le=3600.0)] = 0.01
    seconds: Annotated[float, Range(ge=1e-3, le=3600.0)] = 10.0
    total_seconds: Annotated[float, Range(ge=1e-3, le=36000.0)] = 120.0
    max_waiting: Annotated[float, Range(ge=0.0, le=1.0)] = 0.2
    memory_mb: Annotated[int, Range(ge=32)] = 1024
    processes: Annotated[int, Range(ge=1)] = 16
    output_mb: Annotated[int, Range(ge=1)] = 32
    tolerance: Annotated[float, Range(ge=0.0, le=1.0)] = 1e-6
    unordered: bool = False
    block: Block = "last"
    bare: bool = True
    measured: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.loading and not self.seed:
            raise ValueError(
                f"{self.name}: loading is false and seed 0; give a seed of your own, for a program that knows the seed "
                "could make its inputs while it loads"
            )
        if not self.slowest < self.fastest:
            raise ValueError(f"{self.name} option slowest={self.slowest} and fastest={self.fastest}; they are a range")
        if self.max_repeats < self.repeats:
            raise ValueError(f"{self.name} option max_repeats={self.max_repeats}, and repeats are {self.repeats}")

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: two tries of the budget, the tests, and room for what happens around them."""
        return Limits(seconds=4 * self.total_seconds + _SPARE_SECONDS, memory_mb=2048, processes=4096)

    def surroundings(self) -> str:
        """Return what programs find installed, and the kind of machine, since both change what a clock shows."""
        return f"{super().surroundings()} {machine()}"

    def read_reference(self, reference: Any) -> Task:
        """Return the task."""
        return read_task(reference)

    def find_in(self, text: str, sample: Sample, gold: Task) -> tuple[str, Sample] | Score:
        """Return the program, and the sample for its tests."""
        source = program_in(text, PYTHON_LABELS, self.block, self.bare, stage="extract")
        return source if isinstance(source, Score) else (source, sample)

    def judge(self, answer: tuple[str, Sample], task: Task) -> Score:
        """Return the speed-up's value, or 0 for a program that is not right; see the module for the rest."""
        source, sample = answer
        try:
            return self._tested(sample, task) or self._tried(source, task)
        except codec.CodecError as error:
            raise BadReferenceError(str(error)) from error

    def _tested(self, sample: Sample, task: Task) -> Score | None:
        """Return the score of a program that does not pass its tests, or None."""
        if task.tests is None:
            return None
        options = {name: getattr(self, name) for name in _OF_TESTS}
        code = CodeVerifier(memory_mb=task.memory_mb or self.memory_mb, **options)
        score = code.verify(replace(sample, reference=task.tests))
        if score.value == 1.0:
            return None
        return replace(score, evidence={**score.evidence, "stage": "tests"})

    def _tried(self, source: str, task: Task) -> Score:
        try:
            return tried_twice(
                self.isolation,
                lambda: self._measured(source, task),
                lambda error: Score.scored(0.0, "candidate_crash", stage="gate", error=error),
            )
        except ReferenceFaultError as error:
            return Score.failed(error.reason, error=str(error))
        except ProgramFaultError as error:
            return Score.scored(0.0, error.reason, stage="gate", **error.evidence)

    def _measured(self, source: str, task: Task) -> Score:
        measuring = self._measuring(source, task)
        measuring.make_cases(self._seed(source, task))
        estimate = None
        try:
            measuring.warm_up()
            for number in range(self.max_repeats):
                measuring.round(odd=number % 2 == 1)
                if number + 1 >= self.repeats:
                    estimate = measuring.estimate()
                    if self._ruler.settled(estimate):
                        break
        except (ReferenceFaultError, ProgramFaultError) as fault:
            if estimate is None or not fault.over:  # who is noisy until the time is over would else get no score
                raise
        assert estimate is not None, "there are as many rounds as repeats at least"
        return self._score(estimate, measuring)

    def _measuring(self, source: str, task: Task) -> Measuring:
        programs = (source, task.baseline.source, task.truth.source, task.generator.source if task.generator else "")
        rules = Rules(tolerance=self.tolerance, unordered=self.unordered)
        return Measuring(
            task=task,
            program=Callee(source, task.baseline.name),
            gate=Gate(rules=rules, recall=task.recall, most=task.most),
            warm=shared(self.isolation),
            flavour=flavour_of(*programs),
            limits=RunLimits(
                seconds=self.seconds,
                memory_mb=task.memory_mb or self.memory_mb,
                processes=self.processes,
                output_bytes=self.output_mb << 20,
            ),
            loading=self.loading,
            min_seconds=self.min_seconds,
            slowest=self.slowest,
            budget=self.total_seconds,
            max_waiting=self.max_waiting,
        )

    def _seed(self, source: str, task: Task) -> int:
        """Return the seed of a program's inputs: the same for the same program, and known to no program."""
        texts = [str(self.seed), task.baseline.source, task.generator.source if task.generator else "", source]
        whole = "".join(f"{len(text)}:{text}" for text in texts)
        return int.from_bytes(hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()[:7])

    def _score(self, estimate: Estimate, measuring: Measuring) -> Score:
        ruler = self._ruler
        settled = ruler.settled(estimate)
        evidence: dict[str, Any] = {"stage": "timed", "settled": settled, "cases": len(measuring.cases)}
        if self.measured:
            evidence |= {
                "log2": round(estimate.log2, 4),
                "error": round(estimate.error, 4),
                "seconds": [
                    {"baseline": [round(one, 5) for one in baseline], "program": [round(one, 5) for one in program]}
                    for baseline, program in measuring.times
                ],
            }
        if self.isolation == "none":
            evidence["isolation"] = "none"
        if not settled and self.undecided == "failed":
            return Score.failed("undecided", **evidence)
        raw = replace(ruler, scale="raw").value(estimate.log2)
        return Score(
            value=ruler.value(estimate.log2),
            evidence={**evidence, "speedup": round(raw, 4)},
            uncertainty=ruler.uncertainty(estimate),
        )

    @property
    def _ruler(self) -> Ruler:
        return Ruler(slowest=self.slowest, fastest=self.fastest, grain=self.grain, scale=self.scale)
