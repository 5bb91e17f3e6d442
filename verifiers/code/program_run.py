"""Programs that read standard input and print: in warm Python, or compiled once and run in a fresh sandbox each time.

Not covered: files that a program writes; only what it prints is judged.
"""

from __future__ import annotations

from collections.abc import Callable

from adjudge.verifiers.code.building import build, roomier
from adjudge.verifiers.code.comparison import Rules, same_output
from adjudge.verifiers.code.languages import LANGUAGES
from adjudge.verifiers.code.outcome import Outcome, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.suite import Case, Suite
from adjudge.verifiers.execution.program import Program, RunLimits, RunResult
from adjudge.verifiers.execution.runner import Runner
from adjudge.verifiers.execution.warm_python import WarmPython, flavour_of

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
    from adjudge.verifiers.code.checker import ask_checker

    expected = str(case.expected)
    verdict = ask_checker(warm, suite.checker, (case.stdin, expected, printed), _CHECK)
    if isinstance(verdict, str):
        other = ask_checker(warm, suite.checker, (case.stdin, expected, expected), _CHECK)
        if other == "" or (isinstance(other, str) and expected):
            raise TestsBrokenError("the checker gives no verdict, not even on the expected output")
    return verdict is True
