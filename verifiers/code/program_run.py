"""Programs that read standard input and print: in warm Python, or compiled once and run in a fresh sandbox each time.

A checker that comes with a reference: a Python function that judges printed output where several are right.

It runs in a sandbox of its own, away from the candidate, and gets three texts; it is trusted code that reads
untrusted text.

Not covered: files that a program writes; only what it prints is judged.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adjudge.sandbox import frames, program
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.warm_python import WarmPython, flavour_of
from adjudge.verifiers.code.comparison import Rules, same_output
from adjudge.verifiers.code.languages import LANGUAGES, Language, toolchain
from adjudge.verifiers.code.outcome import Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.python_candidate import NO_TIME, NotLoadedError, answer_of
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

    done: RunResult | None
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    complete: bool


def build(sandbox: Sandbox, source: str, name: str, limits: RunLimits) -> Build:
    """Make a program ready to run; its language is a name of `LANGUAGES`, and the limits are the compiler's.

    Raises:
        SandboxUnavailableError: the sandbox cannot be made, or the compiler is not there.
    """
    language = LANGUAGES[name]
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
        return Build(done=None, files=files, environment=environment, complete=True)
    command = (f"{folders[0]}/bin/{language.compile[0]}", *language.compile[1:]) if folders else language.compile
    command = (*command, *names)
    compiler = Program(command=command, files=files, outputs=language.built, environment=environment, read_only=folders)
    done = sandbox.run(compiler, limits)
    complete = done.ending == "exited" and not done.code and len(done.outputs) == len(language.built)
    return Build(done=done, files=dict(done.outputs), environment=environment, complete=complete)


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


def roomier(limits: RunLimits, language: Language) -> RunLimits:
    """Return the limits of a run with room for what the language's run time takes by itself."""
    return dataclasses.replace(
        limits,
        processes=limits.processes + language.processes,
        memory_mb=limits.memory_mb + language.memory_mb,
        stack_mb=_DEEP if language.compile and language.compile[0] in ("gcc", "g++") else limits.stack_mb,
    )


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

Once = Callable[[bytes], tuple[RunResult, str]]


def run_programs(
    warm: WarmPython,
    sandbox: Sandbox,
    source: str,
    suite: Suite,
    limits: RunLimits,
    rules: Rules,
    thorough: bool,
    budget: float,
) -> Verdict:
    """Run the program once for each test of the style "stdio" and compare what it prints.

    The limits are those of one run, the `budget` is in seconds and for all of them; `thorough` goes on after a test has
    failed.  Python runs in the warm sandboxes.
    """
    verdict = Verdict(total=suite.count)
    runner: Once | None
    if suite.language == "python":
        runner = functools.partial(warm.script, source, limits=limits, flavour=flavour_of(source))
    else:
        runner = _compiled_run(sandbox, source, suite.language, limits, verdict)
    if runner is None:
        return verdict
    for case in suite.cases:
        if budget <= 0:
            verdict.outcomes.append(NO_TIME)
            break
        done, unparsable = runner(case.stdin.encode("utf-8", "surrogateescape"))
        if unparsable:
            return verdict.stopped("parse", "candidate_error", unparsable)
        budget -= done.charged
        verdict.note_memory(done.memory_mb)
        verdict.outcomes.append(_judged(warm, case, done, suite, rules))
        if not verdict.outcomes[-1].passed and not thorough:
            break
    return verdict


def _compiled_run(sandbox: Sandbox, source: str, name: str, limits: RunLimits, verdict: Verdict) -> Once | None:
    """Compile a program and return what runs it; None, with the verdict filled in, if it does not compile."""
    language = LANGUAGES[name]
    built = build(sandbox, source, name, _COMPILE)
    if not built.complete:
        assert built.done is not None
        said = (built.done.stderr or built.done.stdout).decode(errors="replace") or built.done.ending
        verdict.stopped("compile", ENDINGS.get(built.done.ending, "candidate_error"), said)
        return None
    roomy = roomier(limits, language)

    def run(stdin: bytes) -> tuple[RunResult, str]:
        once = Program(command=language.run, files=built.files, stdin=stdin, environment=built.environment)
        return sandbox.run(once, roomy), ""

    return run


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
