"""The code verifier: does the program in a response pass its tests?

The program runs in a sandbox (`adjudge.sandbox`), and the verdict never trusts it: expected values are not
in its process, what it returns is decoded as plain data and compared elsewhere, and neither its exit status nor
anything it prints says that it passed.  Tests that are source run in a second sandbox and call the candidate through a
typed channel.

What the program does is its own score: an error, a crash, too much time, memory or output is 0 with a reason.  Tests
that fail by themselves or expect nothing, a checker without a verdict, or a reference solution that does not pass are
"failed".

What this cannot judge is "failed" as well, and no 0: where a program fails tests of its reference's own solution,
that is run, too; and tests that patch what the candidate uses need programs that you trust (`shared`).

Tests that are source, run in the candidate's own process, as the checkers of BigCodeBench and CanItEdit do.

Such tests may patch what the candidate uses, read the files that it writes, and compare its objects with their own.
The price: a program that shares a process with its tests can make them pass.  This is for programs that you trust to
try in earnest, and never for training; `python_candidate` is for all others.

Not covered: programs of several files, and dependencies that are not installed beside adjudge.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import WarmPython, flavour_of, shared
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.code.comparison import Output, Rules
from adjudge.verifiers.code.extraction import Block, completed, program_in
from adjudge.verifiers.code.languages import labels_of
from adjudge.verifiers.code.outcome import Credit, Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.program import question_of
from adjudge.verifiers.code.python_candidate import run_data, run_tests
from adjudge.verifiers.code.run import ENDINGS, run_programs
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice
from adjudge.verifiers.code.suite import Suite, read_suite

_PROGRAM: Final = """
import json, os, sys, types

def main(given):
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.setdefault("MPLBACKEND", "agg")
    os.environ["MPLCONFIGDIR"] = os.getcwd()
    sys.path.insert(0, os.getcwd())
    for name, text in given["files"].items():
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    import pytest
    reports = []

    class Recorder:
        def pytest_runtest_logreport(self, report):
            if report.failed or (report.when == "call" and report.passed):
                reports.append((report.nodeid, report.outcome, str(report.longrepr or "")[-600:]))

        def pytest_collectreport(self, report):
            if report.failed:
                reports.append(("collection", "failed", str(report.longrepr)[-600:]))

    options = ["-q", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider"]
    status = pytest.main([*options, given["tests"]], plugins=[Recorder()])
    sys.__stdout__.write("\\n" + json.dumps([int(status), reports]))

"""
_TESTS: Final = "test_candidate.py"
_WHOLE: Final = (0, 1)  # pytest's exit status when it has come to its end
_NO_TEST: Final = (0, 5)


def run_shared(warm: WarmPython, source: str, suite: Suite, limits: RunLimits) -> Verdict:
    """Run tests of the style "pytest" in one process with the candidate; the limits are those of all together.

    Raises:
        TestsBrokenError: pytest found no test that is not skipped.
    """
    given = {"files": {f"{suite.module}.py": source, _TESTS: _joined(suite)}, "tests": _TESTS}
    program = f"{_PROGRAM}main(json.loads({json.dumps(json.dumps(given))}))\n"
    flavour = flavour_of(source, *suite.sources, "import pytest")
    done, _ = warm.script(program, b"", limits, flavour)
    verdict = Verdict(total=suite.count, memory_mb=done.memory_mb)
    printed = done.stdout.decode("utf-8", "replace").rpartition("\n")[2]
    try:
        status, reports = json.loads(printed)
    except (ValueError, TypeError):  # the program ended the run, or printed after it
        status, reports = None, []
    if done.ending != "exited" or done.code or status is None:
        said = done.stderr.decode("utf-8", "replace") or f"the run of the tests {done.ending} before its end"
        return verdict.stopped("test", ENDINGS.get(done.ending, "candidate_error"), said)
    if not reports and status in _NO_TEST:
        raise TestsBrokenError("pytest found no test in the file that is not skipped")
    if status not in _WHOLE:
        reports.append(("the run", "failed", "pytest was ended before all tests were run"))
    failed = {name: text for name, outcome, text in reports if outcome == "failed"}
    for name in dict.fromkeys(name for name, _, _ in reports):
        detail = {"source": shorten(name), "error": shorten(failed[name], 600)} if name in failed else {}
        reason = "wrong" if name in failed else ""
        verdict.outcomes.append(Outcome(passed=name not in failed, reason=reason, detail=detail))
    verdict.total = len(verdict.outcomes)
    return verdict


def _joined(suite: Suite) -> str:
    """Return the test file: it sees all that the candidate has, modules too."""
    names = f"import {suite.module}; globals().update((k, v) for k, v in vars({suite.module}).items() if k[:2] != '__')"
    return "\n".join([names, suite.setup, *suite.sources])


_COMPILE_SECONDS = 70.0
_SECONDS = Range(ge=1e-3, le=3600)
_VACUOUS = "every test expects nothing, so a program of nothing passes"
_SPARE_SECONDS = 30.0  # beyond the budget of the tests: starting sandboxes, killing, a second try

_reference_seconds: dict[tuple[str, str, str], float | str] = {}
_MAX_REFERENCES = 10_000


@dataclass(frozen=True, kw_only=True)
class CodeVerifier(SandboxedVerifier, TextVerifier[Suite, str]):
    """Run the program in a response against tests.

    The reference is a mapping with "tests": calls (`{"args": [..], "expected": ..}`, with "entry_point"), programs
    (`{"stdin": .., "stdout": ..}`), assert statements, a HumanEval `check` function, or a pytest file; or tests as
    public data sets have them, such as APPS or LiveCodeBench (docs/code.md).

    Attributes:
        credit: what passing some tests is worth: "all" (nothing), "fraction" (their share) or "staged" (something
            for parsing and running, then the share).
        block: which of several code blocks is the program: "last" or "first" of those that define what the tests call
            (or read input, or have a main function), "longest", "all" (joined), or "only", with which several
            different ones score 0.
        bare: whether a response without a code block is itself the program.
        seconds: seconds for one test, where the reference has no "timeout".
        total_seconds: for all tests together.
        slowdown: with a reference solution, the time for a test is this many times what the slowest test takes it,
            but at least `min_seconds` and at most `seconds`; 0 switches that off.
        min_seconds: see `slowdown`.
        memory_mb: MiB for the program, where the reference has no "memory_mb".
        processes: processes and threads at the same time.
        output_mb: MiB that a program may print.
        tolerance: relative difference that numbers may have where a float is expected (printed: a word with a
            point); 0 for none.  An expected integer is exact.
        unordered: whether a returned list may have its items in any order.
        output: how printed text is compared: "lines", "tokens" or "exact".
        shared: whether a pytest file runs in the candidate's own process, where it may patch what the candidate uses;
            for programs you trust, since those can then make any test pass.
        measured: whether the evidence tells the seconds of each test and the memory, which no two runs share.
    """

    name: ClassVar[str] = "code"
    version: ClassVar[str] = "12"

    credit: Credit = "all"
    block: Block = "last"
    bare: bool = True
    seconds: Annotated[float, _SECONDS] = 5.0
    total_seconds: Annotated[float, _SECONDS] = 60.0
    slowdown: Annotated[float, Range(ge=0)] = 0.0
    min_seconds: Annotated[float, _SECONDS] = 1.0
    memory_mb: Annotated[int, Range(ge=32)] = 1024
    processes: Annotated[int, Range(ge=1)] = 64
    output_mb: Annotated[int, Range(ge=1)] = 8
    tolerance: Annotated[float, Range(ge=0)] = 1e-6
    unordered: bool = False
    output: Output = "lines"
    shared: bool = False
    measured: bool = False

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: the tests' budget, and room for what happens around them."""
        seconds = 2 * self.total_seconds + _COMPILE_SECONDS + _SPARE_SECONDS
        return Limits(seconds=seconds, memory_mb=2048, processes=4096)

    def read_reference(self, reference: Any) -> Suite:
        """Return the tests, where they need nothing of the prompt."""
        return read_suite(reference, "")

    def gold_of(self, sample: Sample) -> Suite:
        """Return the tests of a sample."""
        suite = read_suite(sample.reference, question_of(sample))
        if suite.vacuous:
            raise BadReferenceError(_VACUOUS)
        return suite

    def find_in(self, text: str, sample: Sample, gold: Suite) -> str | Score:
        """Return the program."""
        source = program_in(text, labels_of(gold.language), self.block, self.bare, gold.whole, stage="extract")
        if isinstance(source, Score) or not gold.function:
            return source
        return completed(source, question_of(sample), gold.function)

    def judge(self, source: str, suite: Suite) -> Score:
        """Return 1 when all tests pass, else 0 or the partial credit; see the module for the rest."""
        seconds = suite.timeout or self.seconds
        if suite.silent and isinstance(self._known(suite.nothing, suite), float):
            raise TestsBrokenError(_VACUOUS)
        if suite.solution and self.slowdown:
            taken = self._solution_seconds(suite)
            seconds = min(seconds, max(self.min_seconds, self.slowdown * taken))
        verdict = self._tested(source, suite, seconds)
        if verdict.value("all") != 1.0:
            if suite.solution:
                self._solution_seconds(suite)  # tests that their own solution does not pass judge nobody
            elif (word := self._reached(suite, verdict, source)) and not self.shared:
                raise TestsBrokenError(
                    f"the tests use {word!r}, which needs the candidate's own process or objects, and they "
                    'run apart; give the reference a "solution" that shows that they work so, or trust the programs '
                    "(shared=True)"
                )
        evidence = verdict.evidence(self.measured)
        if self.isolation == "none":
            evidence["isolation"] = "none"
        if self.shared and suite.style == "pytest":
            evidence["shared"] = True
        value = verdict.value(self.credit)
        return Score.scored(value, "" if value == 1.0 else verdict.first_reason(), **evidence)

    def _tested(self, source: str, suite: Suite, seconds: float) -> Verdict:
        return tried_twice(
            self.isolation,
            lambda: self._run(source, suite, seconds),
            lambda error: Verdict(total=suite.count).stopped("run", "candidate_crash", error),
        )

    def _run(self, source: str, suite: Suite, seconds: float) -> Verdict:
        warm = shared(self.isolation)
        source = suite.program(source)
        memory = suite.memory_mb or self.memory_mb
        limits = RunLimits(
            seconds=seconds, memory_mb=memory, processes=self.processes, output_bytes=self.output_mb << 20
        )
        thorough = self.credit != "all"
        with warm.lock:
            if suite.style == "stdio":
                return run_programs(warm, source, suite, limits, self.rules, thorough, self.total_seconds)
            if suite.style == "calls" or suite.claims:
                return run_data(warm, source, suite, limits, self.rules, thorough, self.total_seconds)
            if suite.style == "pytest" and self.shared:
                return run_shared(warm, source, suite, dataclasses.replace(limits, seconds=self.total_seconds))
            return run_tests(warm, source, suite, limits, thorough, self.total_seconds)

    def _reached(self, suite: Suite, verdict: Verdict, source: str) -> str:
        """Return what keeps tests that run apart from judging the failed ones; "" where they judge.

        A single failure that judges is enough where all tests must pass.
        """
        failed = [(number, outcome) for number, outcome in enumerate(verdict.outcomes) if not outcome.passed]
        words = [suite.reached(number, outcome, source) for number, outcome in failed]
        return next(filter(None, words), "") if all(words) or self.credit != "all" else ""

    def _solution_seconds(self, suite: Suite) -> float:
        """Return how long the slowest test takes the reference solution.

        Raises:
            TestsBrokenError: the solution does not pass.
        """
        known = self._known(suite.solution, suite)
        if isinstance(known, str):
            raise TestsBrokenError(f"the reference solution does not pass: {known}")
        return known

    def _known(self, program: str, suite: Suite) -> float | str:
        """Return how long the slowest test takes a program of ours, or what came of it where it does not pass."""
        key = (self.fingerprint, program, repr(suite.cases or suite.sources))
        known = _reference_seconds.get(key)
        if known is None:
            verdict = self._tested(program, suite, suite.timeout or self.seconds)
            known = max((outcome.seconds for outcome in verdict.outcomes), default=0.0)
            if verdict.value("all") != 1.0:
                known = str(verdict.evidence())
                if verdict.first_reason() == "candidate_timeout":  # which may be the machine's
                    return known
            if len(_reference_seconds) >= _MAX_REFERENCES:
                _reference_seconds.clear()
            _reference_seconds[key] = known
        return known

    @cached_property
    def rules(self) -> Rules:
        """The options that bear on equality."""
        return Rules(tolerance=self.tolerance, unordered=self.unordered, output=self.output)
