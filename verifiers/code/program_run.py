"""Programs that read standard input and print: in warm Python, or compiled once and run in a fresh sandbox each time.

A checker that comes with a reference: a Python function that judges printed output where several are right.

It runs in a sandbox of its own, away from the candidate, and gets three texts; it is trusted code that reads
untrusted text.

Not covered: files that a program writes; only what it prints is judged.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import Peer, PeerLostError, Raised, serves_nothing
from adjudge.sandbox.program import Program, RunLimits, RunResult
from adjudge.sandbox.runner import Runner
from adjudge.sandbox.warm_python import WarmPython, flavour_of
from adjudge.verifiers.code.comparison import Rules, same_output
from adjudge.verifiers.code.languages import LANGUAGES, Language, toolchain
from adjudge.verifiers.code.outcome import Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.python_candidate import Candidate, NotLoadedError
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
    """A program made ready.

    Attributes:
        done: what came of the compiler; None for languages without one.
        files: what the program needs in its working directory.
        environment: variables that it runs with.
        complete: whether it can be run.
    """

    done: RunResult | None
    files: Mapping[str, bytes]
    environment: Mapping[str, str]
    complete: bool


def build(sandbox: Runner, source: str, name: str, limits: RunLimits) -> Build:
    """Make a program ready to run.

    Args:
        sandbox: where the compiler runs.
        source: the program.
        name: its language, of `LANGUAGES`.
        limits: what the compiler may use.

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
    program = Program(command=command, files=files, outputs=language.built, environment=environment, read_only=folders)
    done = sandbox.run(program, limits)
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


_BY_TEXT = ("ValueError", "LookupError", "ArithmeticError", "AssertionError", "RecursionError", "StopIteration")


def ask_checker(warm: WarmPython, source: str, texts: tuple[str, str, str], limits: RunLimits) -> bool | str:
    """Return what `check(stdin, expected, printed)` says; where it gives no verdict, what it raised, if a text can.

    A checker that reads numbers raises ValueError for a text without any.  That is no verdict, but it is an answer,
    as a NameError is not, nor the end of the process, for which "" is returned.

    Args:
        warm: the sandboxes.
        source: the checker's source, which defines `check`.
        texts: what the program read, what the reference expects ("" if it does not say) and what was printed.
        limits: what the checker may use.
    """
    try:
        with Candidate(warm, source, limits, flavour_of(source), ["check"]) as checker:
            found = checker.names.get("check")
            if found is None or type(found[1]) is not codec.Handle:
                return ""
            peer = Peer(checker.run.channel, serves_nothing)
            checker.limit.restart(limits.seconds)
            peer.deadline = checker.limit.left
            answer = peer.exchange("call", found[1], texts, {})
    except (NotLoadedError, PeerLostError, frames.FrameError):
        return ""
    if isinstance(answer, Raised):
        return next((name for name in answer.names if name in _BY_TEXT), "")
    return answer if type(answer) is bool else ""


_COMPILE = RunLimits(seconds=60.0, memory_mb=2048, processes=256, output_bytes=1 << 20, disk_mb=512)
_CHECK = RunLimits(seconds=10.0, memory_mb=1024)
ENDINGS = {
    "timeout": "candidate_timeout",
    "memory": "candidate_memory",
    "output": "candidate_output",
    "disk": "candidate_memory",
    "signalled": "candidate_error",
}
"""The reason for a program that did not exit by itself."""

Once = Callable[[bytes], tuple[RunResult, str]]


def run_programs(
    warm: WarmPython,
    sandbox: Runner,
    source: str,
    suite: Suite,
    limits: RunLimits,
    rules: Rules,
    thorough: bool,
    budget: float,
) -> Verdict:
    """Run the program once for each test and compare what it prints.

    Args:
        warm: sandboxes for Python.
        sandbox: the sandbox for everything else.
        source: the program.
        suite: tests of the style "stdio".
        limits: what one run may use.
        rules: what counts as equal.
        thorough: whether to go on after a test has failed.
        budget: seconds for all tests together.
    """
    verdict = Verdict(total=suite.count)
    runner = _warm_run(warm, source, limits) if suite.language == "python" else None
    if runner is None:
        runner = _compiled_run(sandbox, source, suite.language, limits, verdict)
        if runner is None:
            return verdict
    for case in suite.cases:
        if budget <= 0:
            verdict.outcomes.append(Outcome(passed=False, reason="candidate_timeout", detail={"error": "no time left"}))
            break
        done, unparsable = runner(case.stdin.encode("utf-8", "surrogateescape"))
        if unparsable:
            verdict.stage, verdict.reason, verdict.detail = "parse", "candidate_error", unparsable
            return verdict
        budget -= done.charged
        verdict.memory_mb = max(verdict.memory_mb or 0.0, done.memory_mb or 0.0)
        verdict.outcomes.append(_judged(warm, case, done, suite, rules))
        if not verdict.outcomes[-1].passed and not thorough:
            break
    return verdict


def _warm_run(warm: WarmPython, source: str, limits: RunLimits) -> Once:
    flavour = flavour_of(source)
    return lambda stdin: warm.script(source, stdin, limits, flavour)


def _compiled_run(sandbox: Runner, source: str, name: str, limits: RunLimits, verdict: Verdict) -> Once | None:
    """Compile a program and return what runs it; None, with the verdict filled in, if it does not compile."""
    language = LANGUAGES[name]
    built = build(sandbox, source, name, _COMPILE)
    if not built.complete:
        assert built.done is not None
        verdict.stage = "compile"
        verdict.reason = ENDINGS.get(built.done.ending, "candidate_error")
        verdict.detail = (built.done.stderr or built.done.stdout).decode(errors="replace") or built.done.ending
        return None
    roomy = roomier(limits, language)

    def run(stdin: bytes) -> tuple[RunResult, str]:
        program = Program(command=language.run, files=built.files, stdin=stdin, environment=built.environment)
        return sandbox.run(program, roomy), ""

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
        TestsBrokenError: it cannot, and so is no judge.
    """
    expected = str(case.expected)
    verdict = ask_checker(warm, suite.checker, (case.stdin, expected, printed), _CHECK)
    if isinstance(verdict, str):
        other = ask_checker(warm, suite.checker, (case.stdin, expected, expected), _CHECK)
        if other == "" or (isinstance(other, str) and expected):
            raise TestsBrokenError("the checker gives no verdict, not even on the expected output")
    return verdict is True
