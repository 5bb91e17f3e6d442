"""Do a repository's tests pass after the edits of a response?

The edits are applied here.  Edits of the tests, of what tests share and of every other protected file are left out, and
the evidence names them.  Where the reference tells the change that was made, that one has to pass first: tests that
cannot be run this way are the reference's fault, not a response's.

The machinery is that of the `code` verifier's pytest style.  The repository is written and imported in one sandbox; the
tests, with every file that is protected, are in another.  What they import from the repository are stand-ins whose
calls travel over a typed channel (`adjudge.sandbox.peer`), so nothing that the change does to its own process reaches
pytest: no conftest.py, plugin, configuration, `sys.exit`, printed word or file.  A module that a change adds is taken
for one of the repository's only where nothing else has its name: a new `unittest` or `numpy` of the candidate's stays
in its own process.

Not covered: repositories that have to be built or installed, dependencies that are not installed beside adjudge, and
tests that subclass or replace what they import from the repository.
"""

from __future__ import annotations

import base64
import json
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox import frames
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import flavour_of, shared
from adjudge.verifiers.code.outcome import TestsBrokenError, Verdict
from adjudge.verifiers.code.patches.edits import BadEditError, apply_edits
from adjudge.verifiers.code.patches.repository import MAX_BYTES, MAX_FILES, text_files
from adjudge.verifiers.code.patches.task import PROTECTED, Modules, Task, is_taken, read_task
from adjudge.verifiers.code.patches.verifier import EditsVerifier
from adjudge.verifiers.code.python_candidate import run_tests
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice
from adjudge.verifiers.code.suite import Suite

_MAX_PROGRAM = frames.MOST - (1 << 16)
_OPTIONS = ("-p", "adjudge_chosen", "--continue-on-collection-errors")


def _apart(task: Task, files: Mapping[str, bytes], tests: tuple[str, ...], counted: bool) -> tuple[str, Suite]:
    """Return the candidate, and what runs one list of tests against it.

    Where the tests are `counted`, to be compared with those of a gold change, what is marked to be skipped, or to fail,
    is left out, whatever the repository has said before.

    Raises:
        TestsBrokenError: tests would get another module than the repository's, or all that is too large.
    """
    folders = sorted({_base(test.split("::")[0], task.tests) for test in tests})
    modules = _modules(task, files, folders)
    program = _program(task, files, modules)
    suite = Suite(
        style="pytest",
        sources=("# the tests are in files of their own\n",),
        setup=_setup(task, tests, modules, folders, counted),
        module="adjudge_candidate",
        named=tuple(sorted({name.rpartition(".")[2] for name in task.imports} & task.classes)),
    )
    if max(len(program.encode()), len(suite.setup.encode())) > _MAX_PROGRAM:
        raise TestsBrokenError(f"the repository or its tests, as a program, take more than {_MAX_PROGRAM} bytes")
    return program, suite


def _modules(task: Task, files: Mapping[str, bytes], folders: Sequence[str]) -> Modules:
    """Return the modules that are stand-ins where the tests run."""
    made = Modules.of((path for path in files if not task.guarded(path)), task.roots)
    # what the tests' own folders have is theirs, whatever the repository has under the same name
    theirs = Modules.of(task.tests, [*task.roots, *(folder for folder in folders if folder != ".")]).paths
    known = task.modules.tops
    wanted = {name.partition(".")[0] for name in task.imports}
    if taken := sorted(known & wanted & sys.stdlib_module_names):
        raise TestsBrokenError(
            f"the repository's module {taken[0]!r} has the name of a standard one, which tests would get"
        )
    refused = {top for top in made.tops - known if top not in wanted or is_taken(top)}
    refused |= made.tops & (sys.stdlib_module_names | set(theirs))
    return made.without(refused, theirs)


def _program(task: Task, files: Mapping[str, bytes], modules: Modules) -> str:
    """Return the candidate: a program that makes the repository and imports what the tests want of it."""
    texts = text_files(files)
    job = {
        "files": texts,
        "packed": {path: base64.b64encode(data).decode() for path, data in files.items() if path not in texts},
        "roots": task.roots,
        "wanted": sorted(task.imports & set(modules.packages)),
        "modules": sorted(modules.packages),
    }
    sources = (text for path, text in texts.items() if path.endswith(".py"))
    return _with_job("repository_guest.py", sources, "_offer", job)


def _with_job(guest: str, sources: Iterable[str], call: str, job: Mapping[str, Any]) -> str:
    """Return one of the guest files with a call at its end, and hints at what other sources import."""
    return f"{_guest(guest)}\n{_hints(sources)}\n{call}({json.dumps(job, ensure_ascii=False)!r})\n"


def _setup(task: Task, tests: tuple[str, ...], modules: Modules, folders: Sequence[str], counted: bool) -> str:
    """Return what the tests' process does first."""
    paths = dict.fromkeys(test.split("::")[0] for test in tests)
    job = {
        "files": task.tests,
        "modules": modules.packages,
        "places": modules.places,
        "own": sorted(task.bound),
        "folders": folders,
        "counted": counted,
        "ids": [] if all("::" not in test for test in tests) else list(tests),
        "options": shlex.join([*_OPTIONS, *paths]),
    }
    return _with_job("stand_ins_guest.py", task.tests.values(), "_prepare", job)


def _base(path: str, files: Mapping[str, str]) -> str:
    """Return the first folder above a test that is not a package, which pytest puts on the path."""
    folder = PurePosixPath(path).parent
    while str(folder) != "." and f"{folder}/__init__.py" in files:
        folder = folder.parent
    return str(folder)


def _hints(sources: Iterable[str]) -> str:
    """Return lines that are never run and tell `flavour_of` which packages a program's other files import."""
    foreign, loaded = flavour_of(*sources)
    if not foreign:
        return ""
    return "if False:\n" + "".join(f"    import {name}\n" for name in ("installed_packages", *loaded))


@cache
def _guest(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_Gold: TypeAlias = tuple[Task, Mapping[str, int]]
_Change: TypeAlias = Mapping[str, str]

PatchCredit = Literal["all", "fraction"]
Touched = Literal["ignore", "zero"]

_SPARE_SECONDS = 60.0
_RUNS = 6  # two lists for the gold change and the response, and each of the latter's a second time
_MAX_KNOWN = 4096
_gold_totals: dict[tuple[str, str], dict[str, int]] = {}  # how many tests a gold change passed, by list


@dataclass(frozen=True, kw_only=True)
class PatchTestsVerifier(SandboxedVerifier, EditsVerifier[_Gold, _Change]):
    """Do the tests of a repository pass after the edits of a response?

    The reference is a mapping with "files" (`{path: text}`) or "repository" (the path of a folder or an archive), and
    any of "tests" (`{path: text}`), "command" ("python -m unittest ..."), "fail_to_pass" and "pass_to_pass", "patch" or
    "edits" or "after" (the gold change), "roots", "timeout" and "memory_mb" (docs/code.md).

    Attributes:
        credit: "all" is 1 if every test passes; "fraction" the share of tests, or of fail_to_pass if all of
            pass_to_pass pass.
        protected: patterns of paths that edits do not reach; the tests' own files never are reached.
        touched: what a response gets that edits such a path: "ignore" leaves the edit out, "zero" is 0.
        check_gold: whether the gold change, where the reference has one, must pass first.
        seconds: seconds for one test, and for importing the repository.
        total_seconds: for all tests of a list together.
        memory_mb: MiB for the repository's process, where the reference has no "memory_mb".
        processes: processes and threads at one time.
    """

    name: ClassVar[str] = "patch_tests"
    version: ClassVar[str] = "3"

    credit: PatchCredit = "all"
    protected: tuple[str, ...] = PROTECTED
    touched: Touched = "ignore"
    check_gold: bool = True
    seconds: Annotated[float, Range(ge=1e-3, le=3600)] = 10.0
    total_seconds: Annotated[float, Range(ge=1e-3, le=3600)] = 120.0
    memory_mb: Annotated[int, Range(ge=32)] = 1024
    processes: Annotated[int, Range(ge=1)] = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(isinstance(pattern, str) for pattern in self.protected):
            raise ValueError(f"{self.name} option protected={self.protected!r}; it must be a list of patterns")

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use: the tests' budget for each run there can be, and room for what happens around them."""
        return Limits(seconds=_RUNS * self.total_seconds + _SPARE_SECONDS, memory_mb=2048, processes=4096)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; nothing is run."""
        read_task(sample.reference, self.matching, self.protected)

    def read_reference(self, reference: Any) -> _Gold:
        """Return the task, and how many tests its gold change passes."""
        task = read_task(reference, self.matching, self.protected)
        return task, self._gold_counts(task)

    def find(self, sample: Sample, gold: _Gold) -> _Change | Score:
        """Return what the edits of a response make of the files."""
        try:
            return apply_edits(gold[0].texts, self.edits_of(sample), self.matching)
        except BadEditError as error:
            return Score.scored(0.0, error.reason, stage="apply", error=str(error))

    def judge(self, change: _Change, gold: _Gold) -> Score:
        """Return 1 when all chosen tests pass, else 0 or the partial credit; the evidence has each list's tests."""
        task, counts = gold
        left_out = sorted(path for path in change if task.guarded(path))
        evidence: dict[str, object] = {"left_out": left_out} if left_out else {}
        if left_out and self.touched == "zero":
            return Score.scored(0.0, "tampering", stage="apply", **evidence)
        if left_out and len(left_out) == len(change):
            return Score.scored(0.0, "wrong", stage="apply", error="the edits reach protected files alone", **evidence)
        files = task.changed(change)
        if reason := self._unfit(task, change, files):
            return Score.scored(0.0, reason, stage="apply", **evidence)
        try:
            verdicts = self._run(task, files, self.credit != "all")
        except TestsBrokenError as error:
            if self._broken_before(task):
                raise
            return Score.scored(0.0, "candidate_error", stage="run", error=str(error), **evidence)
        for name, verdict in verdicts.items():  # tests that are gone, as those of a parameter's fewer values, fail
            verdict.total = max(verdict.total, counts.get(name, 0))
        return self._score(verdicts, evidence)

    def _unfit(self, task: Task, change: Mapping[str, str], files: Mapping[str, bytes]) -> str:
        """Return why a changed repository cannot be written, as a reason code; "" if it can."""
        if len(files) > MAX_FILES or sum(map(len, files.values())) > MAX_BYTES:
            return "too_complex"
        folders = {path[:at] for path in files for at, sign in enumerate(path) if sign == "/"}
        binary = any(path in task.files and path not in task.texts for path in change)
        return "bad_format" if binary or not folders.isdisjoint(files) else ""

    def _score(self, verdicts: Mapping[str, Verdict], evidence: dict[str, object]) -> Score:
        shares = {name: verdict.value("fraction") for name, verdict in verdicts.items()}
        complete = all(verdict.value("all") == 1.0 for verdict in verdicts.values())
        value = float(complete)
        if self.credit == "fraction" and not complete:
            kept = shares.get("pass_to_pass", 1.0) == 1.0
            others = [share for name, share in shares.items() if name != "pass_to_pass"]
            value = (others[0] if others else shares["pass_to_pass"]) if kept or not others else 0.0
        told = {name: verdict.evidence(False) for name, verdict in verdicts.items()}
        told = told["tests"] if set(told) == {"tests"} else told
        failed = [verdict for verdict in verdicts.values() if verdict.value("all") != 1.0]
        reason = failed[0].first_reason() if failed else ""
        if self.isolation == "none":
            evidence = {**evidence, "isolation": "none"}
        return Score.scored(value, reason, **{**told, **evidence})

    def _run(self, task: Task, files: Mapping[str, bytes], thorough: bool) -> dict[str, Verdict]:
        """Run each list of tests; those behind a list that does not pass can change nothing, unless `thorough`."""
        verdicts: dict[str, Verdict] = {}
        for name, tests in task.chosen.items():
            verdicts[name] = self._run_list(task, files, tests, thorough)
            share = verdicts[name].value("fraction")
            if share == 0.0 or (share < 1.0 and not thorough):
                break
        return verdicts

    def _run_list(self, task: Task, files: Mapping[str, bytes], tests: tuple[str, ...], thorough: bool) -> Verdict:
        warm = shared(self.isolation)
        limits = RunLimits(
            seconds=task.timeout or self.seconds,
            memory_mb=task.memory_mb or self.memory_mb,
            processes=self.processes,
            output_bytes=8 << 20,
        )
        program, suite = _apart(task, files, tests, counted=self.check_gold and task.gold is not None)
        with warm.lock:
            return tried_twice(
                self.isolation,
                lambda: run_tests(warm, program, suite, limits, thorough, self.total_seconds),
                lambda error: Verdict(total=1).stopped("run", "candidate_crash", error),
            )

    def _gold_counts(self, task: Task) -> dict[str, int]:
        """Return how many tests of each list the gold change passes; nothing where there is none to try.

        Raises:
            TestsBrokenError: it does not pass all of them.
        """
        if not self.check_gold or task.gold is None:
            return {}
        key = (self.fingerprint, task.key)
        if key not in _gold_totals:
            verdicts = self._run(task, task.changed(task.gold), thorough=False)
            if any(verdict.value("all") != 1.0 for verdict in verdicts.values()):
                told = {name: verdict.evidence(False) for name, verdict in verdicts.items()}
                raise TestsBrokenError(f"the gold change does not pass: {told}")
            if len(_gold_totals) >= _MAX_KNOWN:
                _gold_totals.clear()
            _gold_totals[key] = {name: verdict.total for name, verdict in verdicts.items()}
        return _gold_totals[key]

    def _broken_before(self, task: Task) -> bool:
        """Return whether the tests break by themselves: where no gold change has passed, without any edit, too."""
        if self.check_gold and task.gold is not None:
            return False
        try:
            self._run(task, task.files, thorough=False)
        except TestsBrokenError:
            return True
        return False
