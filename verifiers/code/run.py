"""Programs that run once and print: in warm Python, or compiled once and run in a fresh sandbox each time.

For tests of the style "stdio" each run's output is compared, or judged where several are right by a checker that comes
with the reference: a Python function that runs in a sandbox of its own, away from the candidate, and gets three texts;
it is trusted code that reads untrusted text.

For `RunVerifier` nothing is compared: the evidence says how the program ended and what it printed, for callers that
judge for themselves, such as the server's `/run_code`.

Not covered: files that a program writes, or finds beside it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Range
from adjudge.protocol import Limits, Sample, Score
from adjudge.sandbox import frames, program
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Isolation, Sandbox, SandboxUnavailableError, sandbox
from adjudge.sandbox.warm_python import WarmPython, flavour_of, shared
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.verifier_base import Reasoning, TextVerifier
from adjudge.verifiers.code.comparison import Rules, same_output
from adjudge.verifiers.code.extraction import Block, program_in
from adjudge.verifiers.code.languages import LANGUAGES, Language, labels_of, language_of, missing, toolchain
from adjudge.verifiers.code.outcome import Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.python_candidate import NO_TIME, NotLoadedError, answer_of
from adjudge.verifiers.code.sandboxed import SandboxedVerifier, tried_twice
from adjudge.verifiers.code.suite import Case, Suite

_SILENT = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\"{3}.*?(?:\"{3}|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_DEEP = 64  # MiB of stack for C and C++, as Java has it; judges of contests give that or more
_PACKAGE = re.compile(r"\s*package\s+(\w{1,60}(?:\.\w{1,60}){0,9})\s*;", re.ASCII)
_OUTLINE = re.compile(
    r"(?P<brace>[{}])|(?P<main>\bvoid\s+main\s*\()|(?P<public>\bpublic\s+)?(?:\b(?:final|abstract|strictfp|sealed)\s+){0,3}"
    r"\b(?:class|enum|record|interface)\s+(?P<name>[A-Za-z_$][\w$]{0,99})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A program made ready: what came of its language's compiler, and what it runs with if it is complete."""

    runner: Sandbox
    language: Language
    done: RunResult | None
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    complete: bool

    def run(self, stdin: bytes, limits: RunLimits) -> RunResult:
        """Run it once; what its language's run time takes by itself is beyond the limits."""
        compiler = self.language.compile[:1]
        roomier = dataclasses.replace(
            limits,
            processes=limits.processes + self.language.processes,
            memory_mb=limits.memory_mb + self.language.memory_mb,
            stack_mb=_DEEP if compiler in (("gcc",), ("g++",)) else limits.stack_mb,
        )
        program = Program(command=self.language.run, files=self.files, stdin=stdin, environment=self.environment)
        return self.runner.run(program, roomier)


def build(isolation: Isolation, source: str, name: str, limits: RunLimits) -> Build:
    """Make a program ready to run; its language is a name of `LANGUAGES`, and the limits are the compiler's.

    Raises:
        SandboxUnavailableError: the sandbox cannot be made, or the compiler is not there.
    """
    if lack := missing(name):
        raise SandboxUnavailableError(lack)
    language, runner = LANGUAGES[name], sandbox(isolation)
    file = language.source
    names: tuple[str, ...] = ()
    if language.classes:
        names = _classes(source)
        file = f"{names[0]}.java"
    files = {file: source.encode("utf-8", "surrogatepass")}
    folders = toolchain(name)
    environment = dict(language.environment)
    if folders:
        environment["PATH"] = ":".join((*(f"{folder}/bin" for folder in folders), "/usr/local/bin:/usr/bin:/bin"))
    if not language.compile:
        return Build(runner=runner, language=language, done=None, files=files, environment=environment, complete=True)
    command = (f"{folders[0]}/bin/{language.compile[0]}", *language.compile[1:]) if folders else language.compile
    command = (*command, *names)
    compiler = Program(command=command, files=files, outputs=language.built, environment=environment, read_only=folders)
    done = runner.run(compiler, limits)
    return Build(
        runner=runner,
        language=language,
        done=done,
        files=dict(done.outputs),
        environment=environment,
        complete=done.ending == "exited" and not done.code and len(done.outputs) == len(language.built),
    )


def _classes(source: str) -> tuple[str, str]:
    """Return the name of a Java program's public class, or else of its main class; and the main class's full name."""
    code = _SILENT.sub(" ", source)
    depth, latest, main, public = 0, "Main", "", ""
    for token in _OUTLINE.finditer(code):
        if token["brace"]:
            depth += 1 if token["brace"] == "{" else -1
        elif token["main"]:
            main = main or latest
        elif not depth:
            latest = token["name"]
            public = public or (latest if token["public"] else "")
    package = _PACKAGE.match(code)
    main = main or "Main"
    return public or main, f"{package[1]}.{main}" if package else main


_CHECK = RunLimits(seconds=10.0, memory_mb=1024)
_BY_TEXT = ("ValueError", "LookupError", "ArithmeticError", "AssertionError", "RecursionError", "StopIteration")


def ask_checker(warm: WarmPython, source: str, texts: tuple[str, str, str]) -> bool | str:
    """Return what `check(stdin, expected, printed)` says; where it gives no verdict, what it raised, if a text can.

    A checker that reads numbers raises ValueError for a text without any.  That is not a verdict, but it is an answer,
    as a NameError is not, nor the end of the process, for which "" is returned.  Where the reference does not say what
    it expects, that is "".
    """
    try:
        answer = answer_of(warm, source, "check", texts, _CHECK, flavour_of(source))
    except (NotLoadedError, PeerLostError, frames.FrameError):
        return ""
    if isinstance(answer, Raised):
        return next((name for name in answer.names if name in _BY_TEXT), "")
    return answer if type(answer) is bool else ""


_COMPILE = RunLimits(seconds=60.0, memory_mb=2048, processes=256, output_bytes=1 << 20, disk_mb=512)
ENDINGS = {**program.ENDINGS, "disk": "candidate_memory", "signalled": "candidate_error"}
"""The reason for a program that did not exit by itself."""


def run_programs(
    warm: WarmPython, source: str, suite: Suite, limits: RunLimits, rules: Rules, thorough: bool, budget: float
) -> Verdict:
    """Run the program once for each test of the style "stdio" and compare what it prints.

    The limits are those of one run, the `budget` is in seconds and for all of them; `thorough` goes on after a test has
    failed.  Python runs in the warm sandboxes.
    """
    verdict = Verdict(total=suite.count)
    flavour = flavour_of(source)
    built = None if suite.language == "python" else build(warm.isolation, source, suite.language, _COMPILE)
    if built is not None and built.done is not None and not built.complete:
        said = (built.done.stderr or built.done.stdout).decode(errors="replace") or built.done.ending
        return verdict.stopped("compile", ENDINGS.get(built.done.ending, "candidate_error"), said)
    for case in suite.cases:
        if budget <= 0:
            verdict.outcomes.append(NO_TIME)
            break
        stdin = case.stdin.encode("utf-8", "surrogateescape")
        done, unparsable = (built.run(stdin, limits), "") if built else warm.script(source, stdin, limits, flavour)
        if unparsable:
            return verdict.stopped("parse", "candidate_error", unparsable)
        budget -= done.charged
        verdict.note_memory(done.memory_mb)
        verdict.outcomes.append(_judged(warm, case, done, suite, rules))
        if not verdict.outcomes[-1].passed and not thorough:
            break
    return verdict


def _judged(warm: WarmPython, case: Case, done: RunResult, suite: Suite, rules: Rules) -> Outcome:
    printed = done.stdout.decode("utf-8", "replace")
    detail = {
        "stdin": shorten(case.stdin),
        "expected": shorten(str(case.expected)),
        "actual": shorten(printed),
    }
    if done.stderr:
        detail["stderr"] = shorten(done.stderr.decode("utf-8", "replace"))
    if done.ending != "exited" or done.code:
        reason = ENDINGS.get(done.ending, "candidate_error")
        if done.ending == "exited":
            detail["exit_code"] = str(done.code)
        return Outcome(passed=False, reason=reason, seconds=done.seconds, detail=detail)
    right = _checked(warm, case, printed, suite) if suite.checker else same_output(str(case.expected), printed, rules)
    return Outcome(passed=right, reason="" if right else "wrong", seconds=done.seconds, detail={} if right else detail)


def _checked(warm: WarmPython, case: Case, printed: str, suite: Suite) -> bool:
    """Ask the reference's checker: a function `check(stdin, expected, printed)` that runs in a sandbox of its own.

    A text that it cannot read is wrong, as long as it can read another: the expected output, or, where there is none,
    one that it finds fault with by an exception that texts bring about.

    Raises:
        TestsBrokenError: it cannot, and so is not a judge.
    """
    expected = str(case.expected)
    verdict = ask_checker(warm, suite.checker, (case.stdin, expected, printed))
    if isinstance(verdict, str):
        other = ask_checker(warm, suite.checker, (case.stdin, expected, expected))
        if other == "" or (isinstance(other, str) and expected):
            raise TestsBrokenError("the checker gives no verdict, not even on the expected output")
    return verdict is True


_FIELDS = frozenset({"language", "stdin", "seconds", "compile_seconds", "memory_mb", "measured"})
_SECONDS = Range(ge=1e-3, le=3600)
_SPARE_SECONDS = 30.0  # starting sandboxes, killing, a second try


@dataclass(frozen=True, kw_only=True)
class RunVerifier(SandboxedVerifier, TextVerifier["_Request", str]):
    """Run the program in a response; 1 if it exits with status 0.

    The reference is nothing, or a mapping with any of "language", "stdin", "seconds", "compile_seconds", "memory_mb",
    and "measured": whether the evidence tells the seconds that the program took, which no two runs share.  A reference
    may ask for less time and memory than the options give, never for more.

    Attributes:
        block: which of several code blocks is the program, as for `code`.
        reasoning: "keep" looks at all of a response; "strip" only at what follows the end-of-thinking tag.
        seconds: seconds for the run.
        compile_seconds: for the compiler.
        memory_mb: MiB for the program.
        processes: processes and threads at one time.
        output_mb: MiB that a program may print, to each of its two outputs.
    """

    name: ClassVar[str] = "run"
    version: ClassVar[str] = "5"
    needs_reference: ClassVar[bool] = False

    block: Block = "last"
    reasoning: Reasoning = "keep"
    seconds: Annotated[float, _SECONDS] = 30.0
    compile_seconds: Annotated[float, _SECONDS] = 60.0
    memory_mb: Annotated[int, Range(ge=32)] = 1024
    processes: Annotated[int, Range(ge=1)] = 64
    output_mb: Annotated[int, Range(ge=1)] = 1

    @property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one call may use."""
        seconds = 2 * self.seconds + self.compile_seconds + _SPARE_SECONDS
        return Limits(seconds=seconds, memory_mb=2048, processes=4096)

    def read_reference(self, reference: Any) -> _Request:
        """Return what a reference asks for."""
        try:
            return self._request({} if reference is None else reference)
        except ValueError as error:
            raise BadReferenceError(str(error)) from error

    def _request(self, given: Any) -> _Request:
        if not isinstance(given, Mapping):
            raise ValueError(f"the run reference is a {type(given).__name__}; it must be a mapping, or nothing")
        given = {str(key): value for key, value in given.items() if value is not None}
        if unknown := sorted(given.keys() - _FIELDS):
            raise ValueError(f"the run reference has {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}")
        stdin = given.get("stdin", "")
        if not isinstance(stdin, str):
            raise ValueError(f"the run reference's stdin is a {type(stdin).__name__}; it must be text")
        measured = given.get("measured", False)
        if not isinstance(measured, bool):
            raise ValueError(f"the run reference's measured is {measured!r}; it must be true or false")
        run = RunLimits(
            seconds=_at_most(given, "seconds", self.seconds),
            memory_mb=int(_at_most(given, "memory_mb", self.memory_mb)),
            processes=self.processes,
            output_bytes=self.output_mb << 20,
        )
        compiling = dataclasses.replace(_COMPILE, seconds=_at_most(given, "compile_seconds", self.compile_seconds))
        name = given.get("language", "python")
        language = language_of(name) if isinstance(name, str) else ""
        if not language:
            raise ValueError(f"the run reference's language is {name!r}; known are python, {', '.join(LANGUAGES)}")
        return _Request(language, stdin.encode("utf-8", "surrogatepass"), run, compiling, measured)

    def nothing(self, reason: str, sample: Sample, gold: _Request) -> Score:
        """Return the score of a response without a text to run."""
        return Score.scored(0.0, reason, run=None)

    def find_in(self, text: str, sample: Sample, gold: _Request) -> str | Score:
        """Return the program."""
        return program_in(text, labels_of(gold.language), self.block, run=None)

    def judge(self, source: str, request: _Request) -> Score:
        """Return 1 for a program that exits with status 0, else 0.

        The evidence has "run", and "compile" where there is a compiler: how it ended ("exited", "signalled", "timeout",
        "memory", "output" or "disk"), its code or signal, "stdout" and "stderr"; None for what was not run.
        """
        return self._python(source, request) if request.language == "python" else self._built(source, request)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the zero of a program that took the worker with it."""
        return Score.scored(0.0, reason, run=None)

    def _python(self, source: str, request: _Request) -> Score:
        def run() -> Score:
            done, unparsable = shared(self.isolation).script(source, request.stdin, request.run, flavour_of(source))
            return _score({"run": _shown(done, request.measured, unparsable)})

        return tried_twice(
            self.isolation, run, lambda error: Score.scored(0.0, "candidate_crash", run=None, error=error)
        )

    def _built(self, source: str, request: _Request) -> Score:
        built = build(self.isolation, source, request.language, request.compiling)
        parts = {} if built.done is None else {"compile": _shown(built.done, request.measured)}
        if built.complete:
            parts["run"] = _shown(built.run(request.stdin, request.run), request.measured)
        return _score(parts)


@dataclass(frozen=True, slots=True)
class _Request:
    """What a reference asks for."""

    language: str
    stdin: bytes
    run: RunLimits
    compiling: RunLimits
    measured: bool


def _at_most(given: Mapping[str, Any], field: str, most: float) -> float:
    value = given.get(field)
    if value is None:
        return most
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"the run reference's {field} is {value!r}; it must be a number above 0")
    if value > most:
        raise ValueError(f"the run reference asks for {field}={value!r}, and the scorer's option allows {most:g}")
    return float(value)


def _score(parts: dict[str, dict[str, Any]]) -> Score:
    last = parts["run"] if "run" in parts else parts["compile"]
    if "run" in parts and last["ending"] == "exited" and last["code"] == 0:
        return Score(value=1.0, evidence=parts)
    return Score(value=0.0, reason=ENDINGS.get(last["ending"], "candidate_error"), evidence=parts)


def _shown(done: RunResult, measured: bool, unparsable: str = "") -> dict[str, Any]:
    errors = done.stderr.decode("utf-8", "replace")
    shown = {
        "ending": done.ending,
        "code": done.code,
        "stdout": done.stdout.decode("utf-8", "replace"),
        "stderr": "\n".join(filter(None, (errors, unparsable))),
    }
    return {**shown, "seconds": round(done.seconds, 4)} if measured else shown
