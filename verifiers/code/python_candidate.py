"""A Python candidate, loaded in a warm sandbox, and the tests that call it.

Tests that are data are asked and judged in this process: calls with expected values, and claims, which are asserts read
as data (`adjudge.verifiers.code.claims`).  Tests that are source run in a second sandbox.  Expected values stay where
the tests are; the candidate's process gets the program and the arguments.  Whatever it answers is decoded as plain
data, or is a stand-in that equals nothing.

Not covered: programs that read standard input (`run`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import Peer, PeerLostError, Raised, serves_nothing
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.time_limit import TimeLimit
from adjudge.sandbox.warm_python import Flavour, WarmPython, flavour_of
from adjudge.sandbox.zygote import Run
from adjudge.verifiers.code.claims import Claim, Target
from adjudge.verifiers.code.comparison import Rules, same_value
from adjudge.verifiers.code.outcome import SHOWN, Outcome, Stage, TestsBrokenError, Verdict, shorten
from adjudge.verifiers.code.suite import Case, Suite
from adjudge.verifiers.code.task_classes import idle_methods, task_classes

NO_TIME = Outcome(passed=False, reason="candidate_timeout", detail={"error": "no time left for this test"})
_FEW = 1000
_BLAMES = {"wrong": "wrong", "memory": "candidate_memory"}


class NotLoadedError(Exception):
    """The candidate did not come as far as being called: it stopped at a stage, for a code of `adjudge.reasons`."""

    def __init__(self, stage: Stage, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.stage: Stage = stage
        self.reason = reason


class Candidate:
    """A loaded candidate.

    The limits' seconds are for loading it, and the caller keeps those of each test.  Wanted are names, and with "*" all
    others that it defines, but for large data.

    Raises:
        NotLoadedError: on entering.
        OverloadedError: the machine let it wait for too long, here or later.
    """

    def __init__(
        self, warm: WarmPython, source: str, limits: RunLimits, flavour: Flavour, wanted: Sequence[str]
    ) -> None:
        self._warm = warm
        self.source = source
        self.limits = limits
        self._flavour = flavour
        self._wanted = list(wanted)
        self.run: Run  # from `start` on
        self.limit: TimeLimit  # of what it may be charged; it begins when the program is loaded
        self.names: dict[str, tuple[str, Any]] = {}
        self.memory_mb: float | None = None
        self.lost = False

    def __enter__(self) -> Self:
        return self.start().load()

    def start(self) -> Self:
        """Start the run; it waits for its program."""
        self.run = self._warm.zygote("candidate", self._flavour).run(self.limits)
        return self

    def load(self) -> Self:
        """Load the program.

        Raises:
            NotLoadedError: it did not load; the run has ended.
        """
        job = {"source": self.source, "filename": "solution.py", "wanted": self._wanted}
        try:
            self.run.begin("serve", job)
            self.limit = TimeLimit(self.limits.seconds, [self.run.pid], fresh=False)
            frame = frames.receive(self.run.channel, self.limit.left)
            answer = None if frame is None else codec.loads(frame)
            if type(answer) is tuple and answer[:1] == ("ready",) and len(answer) == 2:
                self.names = _names(answer[1])
                return self
            raise self._failure(answer)
        except frames.FrameTimeoutError:
            self.close()
            raise NotLoadedError("run", "candidate_timeout", "it did not load in time") from None
        except (frames.FrameError, codec.CodecError) as error:
            self.close()
            raise NotLoadedError("run", self.fate("tampering"), f"no well-formed answer: {error}") from None
        except BaseException:
            self.close()
            raise

    @cached_property
    def peer(self) -> Peer:
        """Our end of its channel: its answers are plain data, or handles, which do nothing."""
        peer = Peer(self.run.channel, serves_nothing, lifts=False)
        peer.deadline = self.limit.left
        return peer

    def _failure(self, answer: Any) -> NotLoadedError:
        match answer:
            case ("unparsable", str(text)):
                return NotLoadedError("parse", "candidate_error", text)
            case ("failed", "MemoryError", str(text)):
                return NotLoadedError("run", "candidate_memory", text)
            case ("failed", str(_), str(text)):
                return NotLoadedError("run", "candidate_error", text)
            case None:
                return NotLoadedError("run", self.fate("candidate_error"), "the program ended while it was loaded")
            case _:
                return NotLoadedError("run", "tampering", "not an answer that our loader gives")

    def fate(self, otherwise: str) -> str:
        """End the run and return the reason for its end that the kernel knows, or the one given."""
        self.lost = True
        ended = self.run.end()
        self.memory_mb = ended.memory_mb
        return "candidate_memory" if ended.out_of_memory else otherwise

    def close(self) -> None:
        """End the run, without waiting for it where its memory is known before."""
        if self.memory_mb is None:
            self.memory_mb = self.run.zygote.peak_mb
        if self.memory_mb is None:
            self.fate("")
        else:
            self.run.end_later()

    def __exit__(self, *exception: object) -> None:
        self.close()


def answer_of(
    warm: WarmPython, source: str, function: str, arguments: Sequence[Any], limits: RunLimits, flavour: Flavour
) -> Any:
    """Load a program in a sandbox of its own and return what its function answers: plain data, a handle or a `Raised`.

    Raises:
        NotLoadedError: it does not load, or has no such function.
        PeerLostError: it ended or broke the protocol.
        FrameError: it took too long.
    """
    with warm.lock, Candidate(warm, source, limits, flavour, [function]) as loaded:
        _, handle = loaded.names.get(function, ("", None))
        if type(handle) is not codec.Handle:
            raise NotLoadedError("run", "no_answer", f"it defines no function {function!r}")
        loaded.limit.restart(limits.seconds)
        return loaded.peer.exchange("call", handle, arguments, {})


def _names(given: Any) -> dict[str, tuple[str, Any]]:
    """Return what a candidate says it defines; a malformed list is an attempt to confuse us."""
    if type(given) is not list:
        raise codec.CodecError("the list of names is none")
    names = {}
    for entry in given:
        if type(entry) is not tuple or len(entry) != 3 or not all(type(word) is str for word in entry[:2]):
            raise codec.CodecError("the list of names is none")
        name, kind, value = entry
        if name.startswith("__"):  # our loader leaves these out, and a module would become something else with them
            raise codec.CodecError("the list of names has one that it cannot have")
        parts = [type(item) for item in value] if type(value) is list else []
        named = set(parts[:-1]) == {str} and parts[-1] is codec.Handle
        if kind not in ("object", "exception") or (kind == "exception" and not named):
            raise codec.CodecError("the list of names is none")
        names[name] = (kind, value)
    return names


def run_tests(warm: WarmPython, source: str, suite: Suite, limits: RunLimits, thorough: bool, budget: float) -> Verdict:
    """Run tests that are source in a sandbox of their own, against the candidate in another; see `run_data`.

    Raises:
        TestsBrokenError: the tests failed before anything of the candidate's reached them.
    """
    verdict = Verdict(total=suite.count)
    flavour = flavour_of(source, suite.setup, *suite.sources)  # it is given what the tests make with their packages
    extra = ("import pytest",) if suite.style == "pytest" else ()
    wanted = (*suite.needs, "*") if suite.style == "pytest" else suite.needs
    tests_zygote = warm.zygote("tests", flavour_of(source, suite.setup, *suite.sources, *extra))
    while True:
        if budget <= 0:
            verdict.outcomes += [NO_TIME] * (verdict.total - len(verdict.outcomes))
            return verdict
        try:
            with contextlib.ExitStack() as held:
                candidate = Candidate(warm, source, limits, flavour, wanted).start()
                held.callback(candidate.close)
                # both forks are made before either is waited for
                tests = held.enter_context(tests_zygote.run(RunLimits(seconds=limits.seconds), light=True))
                candidate.load()
                more = _test_all(tests, candidate, suite, budget, verdict)
                budget -= candidate.limit.total
                tests.end_later()
                candidate.close()
                verdict.note_memory(candidate.memory_mb)
        except NotLoadedError as error:
            return verdict.stopped(error.stage, error.reason, str(error))
        failed = any(not outcome.passed for outcome in verdict.outcomes)
        if not more or (failed and not thorough):
            return verdict


def _test_all(tests: Run, candidate: Candidate, suite: Suite, budget: float, verdict: Verdict) -> bool:
    """Run the tests that are left; return whether some still are, because the candidate was lost."""
    absent = [name for name in suite.needs if name not in candidate.names]
    if absent:
        raise NotLoadedError("run", "no_answer", f"it does not define {absent[0]!r}")
    sources = (*filter(None, [suite.setup]), *suite.sources)
    entry = [f"check({suite.entry_point})"] if suite.style == "humaneval" and suite.entry_point in suite.stated else []
    classes = task_classes((*sources, *entry), suite.module, suite.stated)
    job = {
        "style": suite.style,
        "setup": suite.setup,
        "tests": list(suite.sources),
        "names": [(name, *described) for name, described in candidate.names.items()],
        "take": list(suite.take),
        "imports": dict(suite.imports),
        "entry_point": suite.entry_point,
        "named": list(suite.named),
        "idle": idle_methods(sources),
        "classes": {name: list(uses) for name, uses in classes.items()},
        "own": list(suite.own),
        "start": len(verdict.outcomes) + verdict.skipped,
        "module": suite.module,
    }
    return _listen(tests, candidate, job, budget, verdict)


def _listen(tests: Run, candidate: Candidate, job: dict[str, Any], budget: float, verdict: Verdict) -> bool:
    try:
        tests.begin("tests", job, peer=candidate.run.channel)
    except codec.CodecError as error:
        raise NotLoadedError("run", "candidate_error", f"what it defines cannot go to the tests: {error}") from None
    candidate.run.channel.close()  # from here on it is the tests'
    candidate.limit.roots.append(tests.pid)
    asked = not _harmless(candidate.names)
    started = time.monotonic()
    candidate.limit.restart(candidate.limits.seconds, budget)
    while True:
        try:
            frame = frames.receive(tests.channel, candidate.limit.left)
        except frames.FrameTimeoutError:
            if not asked:
                raise TestsBrokenError("the tests took too long before they asked anything of the candidate") from None
            spent = time.monotonic() - started
            reason = candidate.fate("candidate_timeout")
            verdict.outcomes.append(Outcome(passed=False, reason=reason, seconds=spent))
            break
        except frames.FrameError:
            frame = None
        if frame is None:
            if not asked:
                raise TestsBrokenError("the tests' process ended before anything was asked of the candidate")
            # what the candidate answered can have brought it about
            verdict.outcomes.append(Outcome(passed=False, reason=candidate.fate("candidate_crash")))
            break
        message = codec.loads(frame)
        if message[0] == "end":
            _finish(message[1], job, verdict)
            return False
        if message[0] == "asked" and message[1]:
            candidate.limit.extend(message[1])
            continue
        started = time.monotonic()
        candidate.limit.restart(candidate.limits.seconds, budget)
        if message[0] == "asked":
            asked = True
            continue
        if message[0] == "collected":
            verdict.total = message[1] - verdict.skipped
            continue
        if message[0] == "skipped":
            verdict.skipped += 1
            verdict.total -= 1
            continue
        _, _, name, passed, blame, text, spent = message
        if blame == "tests":
            raise TestsBrokenError(text)
        reason = "" if passed else _BLAMES.get(blame, "candidate_error")
        detail = {} if passed else {"source": shorten(name), "error": shorten(text, 600)}
        lost = blame == "lost"
        if lost:
            reason = candidate.fate("candidate_error")
        verdict.outcomes.append(Outcome(passed=passed, reason=reason, seconds=spent, detail=detail))
        if lost:
            break
    return len(verdict.outcomes) < verdict.total


def _harmless(names: dict[str, tuple[str, Any]]) -> bool:
    """Return whether what a candidate defines cannot by itself end the process that tests it: a few stand-ins."""
    stand_ins = [value for _, value in names.values() if type(value) is codec.Handle]
    return len(names) == len(stand_ins) <= _FEW and all(len(value.kind) <= _FEW for value in stand_ins)


def _finish(count: int, job: dict[str, Any], verdict: Verdict) -> None:
    """Take the number of tests that a pytest file turned out to hold; one that holds none proves nothing."""
    if job["style"] != "pytest":
        return
    verdict.total = max(count - verdict.skipped, len(verdict.outcomes))
    if not verdict.total:
        raise TestsBrokenError("pytest found no test in the file that is not skipped")
    ended_early = {"error": "the candidate ended the test run"}
    verdict.outcomes += [
        Outcome(passed=False, reason="candidate_error", detail=ended_early)
        for _ in range(verdict.total - len(verdict.outcomes))
    ]


@dataclass(frozen=True, slots=True)
class _Lost:
    """In the place of an answer: the candidate gave none, for a code of `adjudge.reasons`."""

    reason: str


def run_data(
    warm: WarmPython, source: str, suite: Suite, limits: RunLimits, rules: Rules, thorough: bool, budget: float
) -> Verdict:
    """Ask the candidate what each test asks, and judge its answers here.

    Tests are of the style "calls", or others that have claims; the rules are for calls, claims say it themselves.  The
    seconds of the limits are those of one test, and the `budget` is for all; `thorough` goes on after one has failed.
    """
    verdict = Verdict(total=suite.count)
    flavour = flavour_of(source)
    while len(verdict.outcomes) < suite.count:
        if budget <= 0:
            verdict.outcomes.append(NO_TIME)
            continue
        try:
            with Candidate(warm, source, limits, flavour, suite.needs) as candidate:
                _ask_all(candidate, suite, rules, thorough, budget, verdict.outcomes)
                budget -= candidate.limit.total
                candidate.close()
                verdict.note_memory(candidate.memory_mb)
        except NotLoadedError as error:
            return verdict.stopped(error.stage, error.reason, str(error))
        if not thorough and verdict.outcomes and not verdict.outcomes[-1].passed:
            break
    return verdict


def _ask_all(
    candidate: Candidate, suite: Suite, rules: Rules, thorough: bool, budget: float, outcomes: list[Outcome]
) -> None:
    """Run tests until all are done, one failed (unless thorough), or the candidate's process is lost."""
    target = next((target for target in suite.targets if target.name in candidate.names), None)
    absent = [name for name in suite.needs if name not in candidate.names]
    if _handle(candidate, target) is None if target is not None else absent:
        names = " or ".join(map(repr, suite.needs)) if suite.targets else repr(absent[0])
        raise NotLoadedError("run", "no_answer", f"it defines no function or class {names}")
    for index in range(len(outcomes), suite.count):
        started = time.monotonic()
        candidate.limit.restart(candidate.limits.seconds, budget)
        if target is not None:
            reason, detail = _call(candidate, target, suite.cases[index], rules)
        else:
            reason, detail = _claims(candidate, suite.claims[index], suite.sources[index])
        seconds = time.monotonic() - started
        outcomes.append(Outcome(passed=not reason, reason=reason, seconds=seconds, detail=detail))
        if candidate.lost or (reason and not thorough):
            return


_Judged = tuple[str, dict[str, str]]
"""The reason and the details of a failure, or "" and nothing."""


def _call(candidate: Candidate, target: Target, case: Case, rules: Rules) -> _Judged:
    answer = _answer(candidate, target, case.args, case.kwargs)
    detail = {"args": shorten(case.args), "expected": shorten(case.expected)}
    if case.kwargs:
        detail["kwargs"] = shorten(dict(case.kwargs))
    if reason := _no_answer(answer):
        if isinstance(answer, Raised):
            detail["error"] = shorten(_raised(answer))
        return reason, detail
    right = (case.expected, *case.also)
    if not isinstance(answer, codec.Handle) and any(same_value(value, answer, rules) for value in right):
        return "", {}
    return "wrong", {**detail, "actual": _shown(answer)}


def _claims(candidate: Candidate, claims: Sequence[Claim], source: str) -> _Judged:
    """Put the questions of one test, until one is not answered as it says."""
    for claim in claims:
        answer = _answer(candidate, claim.target, claim.args, claim.kwargs)
        if isinstance(answer, codec.Handle) and claim.relation in ("true", "false"):
            answer = _asked(candidate, "bool", answer, (), {})
            if not isinstance(answer, bool | Raised | _Lost):
                answer = Raised(("TypeError",), "a truth that is neither true nor false", ())
        detail = {"source": shorten(source), "error": f"line {claim.line}: "}
        if reason := _no_answer(answer):
            detail["error"] += shorten(_raised(answer), 2 * SHOWN) if isinstance(answer, Raised) else "no answer"
            return reason, detail
        if not claim.holds(answer):
            detail["error"] += f"AssertionError{f': {claim.message}' if claim.message else ''}"
            return "wrong", {**detail, "actual": _shown(answer)}
    return "", {}


def _answer(candidate: Candidate, target: Target, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return what a call gives: plain data, a `Handle`, a `Raised` or a `_Lost`."""
    handle = _handle(candidate, target)
    if handle is None:
        return Raised(("TypeError",), f"{target.name!r} cannot be called", ())
    if target.method:  # each call of a method makes an instance of its own
        return _asked(candidate, "method", handle, (target.method, *args), dict(kwargs))
    return _asked(candidate, "call", handle, args, dict(kwargs))


def _asked(
    candidate: Candidate, operation: str, handle: codec.Handle, args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    try:
        return candidate.peer.exchange(operation, handle, args, kwargs)
    except frames.FrameTimeoutError:
        return _Lost(candidate.fate("candidate_timeout"))
    except PeerLostError as error:
        return _Lost(candidate.fate("candidate_error" if "ended" in str(error) else "tampering"))


def _handle(candidate: Candidate, target: Target) -> codec.Handle | None:
    value = candidate.names[target.name][1]
    return value if type(value) is codec.Handle else None


def _no_answer(answer: Any) -> str:
    """Return the reason why there is none, or ""."""
    if isinstance(answer, _Lost):
        return answer.reason
    if isinstance(answer, Raised):
        return "candidate_memory" if answer.names[:1] == ("MemoryError",) else "candidate_error"
    return ""


def _raised(answer: Raised) -> str:
    return f"{answer.names[0] if answer.names else ''}: {answer.text}"


def _shown(answer: Any) -> str:
    return "an object that is not plain data" if isinstance(answer, codec.Handle) else shorten(answer)
