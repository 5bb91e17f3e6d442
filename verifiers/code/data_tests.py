"""Tests that are data: calls of the candidate, asked and judged in this process.

Two kinds: calls with expected values, and claims, which are asserts read as data (`adjudge.verifiers.code.claims`).
Expected values never leave this process.  What the candidate answers is plain data, or a stand-in, which equals
nothing.

Not covered: tests that have to be executed (`python_candidate`).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.sandbox import codec, frames
from adjudge.sandbox.peer import PeerLostError, Raised
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.warm_python import WarmPython, flavour_of
from adjudge.verifiers.code.claims import Claim, Target
from adjudge.verifiers.code.comparison import Rules, same_value
from adjudge.verifiers.code.outcome import SHOWN, Outcome, Verdict, shorten
from adjudge.verifiers.code.python_candidate import NO_TIME, Candidate, NotLoadedError
from adjudge.verifiers.code.suite import Case, Suite


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
    # copies, because what the call changes in place is changed here, too
    args, named = copy.deepcopy(args), dict(copy.deepcopy(kwargs))
    if target.method:  # each call of a method makes an instance of its own
        return _asked(candidate, "method", handle, (target.method, *args), named)
    return _asked(candidate, "call", handle, args, named)


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
