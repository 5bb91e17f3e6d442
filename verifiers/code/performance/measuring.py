"""A program and a baseline, run in turns on the same cases: baseline, program, program, baseline, and so on.

Every run is a fresh process, and every result is looked at: a program that computes once and then pretends pays
nothing less and is wrong.  The first run of each is the warm-up of the machine and counts for the gate alone; to a
program it looks like any other.

From repeated times to a speed-up, its noise, and the number that it is worth.

    case:     log2 (median of the baseline's times / median of the program's times)
    speed-up: mean of the cases (the geometric mean of the ratios)
    area:     of searches at several settings, the area under runs per second over recall takes the place of the times
    noise:    sqrt (pi / 2) * deviation of the paired log2 ratios / sqrt (repeats), over all cases in quadrature
    grain:    the speed-up rounded to whole steps of log2, then clipped to the range
    value:    "unit" puts the range's ends at 0 and 1, evenly in log2; "raw" is the speed-up itself

`sqrt (pi / 2)` is what the median of normal noise loses against the mean.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from adjudge.responses.answer_span import shorten
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.time_limit import OverloadedError
from adjudge.sandbox.warm_python import Flavour, WarmPython
from adjudge.verifiers.code.comparison import Rules, same_value
from adjudge.verifiers.code.outcome import text_of
from adjudge.verifiers.code.performance.task import Task, given_cases
from adjudge.verifiers.code.performance.timed_run import Callee, Timed, packed, timed_call

Scale: TypeAlias = Literal["unit", "raw"]

Times: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Seconds of the baseline and of the program on one case, in pairs that were run one after the other."""

_WIDTH = 2.0  # standard errors to each side


@dataclass(frozen=True, slots=True)
class Estimate:
    """A speed-up in powers of two, and its standard error in the same unit."""

    log2: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruler:
    """How a speed-up is made a number.

    Attributes:
        slowest: the lower end of the range, above 0.
        fastest: the upper end.
        grain: the step in log2 that values are rounded to, above 0.
        scale: "unit" or "raw".
    """

    slowest: float
    fastest: float
    grain: float
    scale: Scale

    def value(self, log2: float) -> float:
        """Return what a speed-up of 2 ** log2 is worth."""
        low, high = math.log2(self.slowest), math.log2(self.fastest)
        held = min(max(self.grain * round(log2 / self.grain), low), high)
        return (held - low) / (high - low) if self.scale == "unit" else math.exp2(held)

    def settled(self, estimate: Estimate) -> bool:
        """Return whether two standard errors to either side make no other value."""
        spread = _WIDTH * estimate.error
        return self.value(estimate.log2 - spread) == self.value(estimate.log2 + spread)

    def uncertainty(self, estimate: Estimate) -> float:
        """Return the half-width of the value: half a grain, or as many halves as two standard errors need.

        In halves of a grain, because a finer number would be another one each time.
        """
        half = self.grain / 2
        wide = half * max(1, math.ceil(_WIDTH * estimate.error / half - 1e-9))
        if self.scale == "unit":
            return wide / math.log2(self.fastest / self.slowest)
        return self.value(estimate.log2) * (math.exp2(wide) - 1)


def estimated(cases: Sequence[Times]) -> Estimate:
    """Return the speed-up over all cases.

    Raises:
        ValueError: there is no case, a case has fewer than two pairs or another number of either, or a time is not
            above 0.
    """
    if not cases:
        raise ValueError("there are no cases; give the times of at least one")
    means, squares = [], []
    for baseline, program in cases:
        if len(baseline) != len(program) or len(baseline) < 2:
            raise ValueError(f"{len(baseline)} and {len(program)} times; give as many of both, and at least two")
        if not all(math.isfinite(seconds) and seconds > 0 for seconds in (*baseline, *program)):
            raise ValueError("a time is not above 0 seconds")
        means.append(math.log2(statistics.median(baseline) / statistics.median(program)))
        ratios = [math.log2(one / other) for one, other in zip(baseline, program, strict=True)]
        squares.append(math.pi / 2 * statistics.variance(ratios) / len(ratios))
    return Estimate(statistics.fmean(means), math.sqrt(math.fsum(squares)) / len(cases))


def area(recalls: Sequence[float], seconds: Sequence[float], least: float, most: float) -> float:
    """Return the area under runs per second over recall, from one recall to another (CRINN, arXiv 2508.02091).

    At a recall the fastest setting counts that has at least so much, so more settings never cost anything.

    Args:
        recalls: of each setting.
        seconds: that a run with each takes, above 0.
        least: where the area begins.
        most: where it ends.
    """
    points = sorted(zip(recalls, seconds, strict=True), reverse=True)
    total = fastest = 0.0
    for (recall, took), below in zip(points, [*(recall for recall, _ in points[1:]), least], strict=True):
        fastest = max(fastest, 1 / took)
        total += max(0.0, min(recall, most) - max(below, least)) * fastest
    return total


class NoListError(ValueError):
    """A result that is not a list of found items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a result must be.

    Attributes:
        rules: what counts as equal, where results must be equal.
        recall: the least recall, where results are lists of items found; None where they must be equal.
        most: where cases are settings of one search, the recall up to which speed counts; one must be above the least.
    """

    rules: Rules
    recall: float | None = None
    most: float | None = None

    def passes(self, expected: Sequence[Any], got: Sequence[Any]) -> bool:
        """Return whether the results of all cases are good enough.

        Raises:
            NoListError: an expected result is not a list, and recall is asked for.
        """
        if self.recall is None:
            return all(same_value(one, other, self.rules) for one, other in zip(expected, got, strict=True))
        if self.most is not None:
            return max(recalls_of(expected, got)) > self.recall
        return mean_recall(expected, got) >= self.recall


def recalls_of(expected: Sequence[Any], results: Sequence[Any]) -> list[float]:
    """Return the recall of each case; see `mean_recall`."""
    return [mean_recall([right], [given]) for right, given in zip(expected, results, strict=True)]


def mean_recall(expected: Sequence[Any], results: Sequence[Any]) -> float:
    """Return the mean recall over all cases' queries, in [0, 1].

    A result is a list of items, or a list of lists, one for each query.  Of k right items a query's answer has the
    first k counted, each once: a longer list buys nothing.  An answer of another shape finds nothing.

    Raises:
        NoListError: an expected result is not a list, or an empty one.
    """
    shares: list[float] = []
    for right, given in zip(expected, results, strict=True):
        rows = _rows(right)
        if rows is None or not all(rows):
            raise NoListError("recall is asked for, and the right result of a case is not a list of items to find")
        answers = _rows(given)
        if answers is None or len(answers) != len(rows):
            answers = [[] for _ in rows]
        shares += [_recall(row, answer) for row, answer in zip(rows, answers, strict=True)]
    return sum(shares) / len(shares)


def _rows(result: Any) -> list[list[Any]] | None:
    """A result as one list of items for each query; None if it is none."""
    result = _listed(result)
    if result is None:
        return None
    rows = [_listed(item) for item in result]
    listed = [row for row in rows if row is not None]
    return listed if rows and len(listed) == len(rows) else [result]


def _listed(value: Any) -> list[Any] | None:
    if _is_array(value):
        value = value.tolist()
    return list(value) if isinstance(value, list | tuple) else None


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and getattr(value, "ndim", 0) > 0


def _recall(right: Sequence[Any], answer: Sequence[Any]) -> float:
    wanted = {_key(item) for item in right}
    return len(wanted & {_key(item) for item in answer[: len(right)]}) / len(wanted)


def _key(item: Any) -> tuple[str, Any]:
    """What an item is known by; what cannot be in a set is known by its text."""
    if type(item).__module__ == "numpy":
        item = repr(item) if _is_array(item) else item.item()
    plain = isinstance(item, int | float | str | bytes | None)
    return ("", item) if plain else (type(item).__name__, repr(item))


_GENEROUS: Final = 4.0  # times what the slowest program of the range may take, before it is killed
_START_SECONDS: Final = 1.0  # in which a program is loaded
_LIMITS: Final = frozenset({"candidate_timeout", "candidate_memory", "candidate_output"})


class ReferenceFaultError(Exception):
    """A program of the reference's did not do what it must, or took all the time there is (`over`)."""

    def __init__(self, reason: str, detail: str, over: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.over = over


class ProgramFaultError(Exception):
    """The program is not worth timing, or the time for all runs together is over (`over`)."""

    def __init__(self, reason: str, over: bool = False, **evidence: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.over = over
        self.evidence = evidence


@dataclass(slots=True, kw_only=True)
class Measuring:
    """Runs of one program beside the baseline.

    Attributes:
        min_seconds: what the baseline must take at least, for a ratio to mean anything.
        slowest: the lower end of the range of speed-ups, which bounds how long a program is waited for.
        budget: seconds for all runs together.
        max_waiting: share of its time that the baseline may be let wait by the machine.
        cases: those of the reference, or those that `make_cases` has made.
    """

    task: Task
    program: Callee
    gate: Gate
    warm: WarmPython
    flavour: Flavour
    limits: RunLimits
    loading: bool
    min_seconds: float
    slowest: float
    budget: float
    max_waiting: float
    cases: tuple[bytes, ...] = ()
    expected: list[Any] = field(default_factory=list)
    waits: list[RunLimits] = field(default_factory=list)
    times: list[tuple[list[float], list[float]]] = field(default_factory=list)
    recalls: list[list[float]] = field(default_factory=list)
    _spent: float = 0.0
    _waited: float = 0.0
    _began: float = 0.0

    def make_cases(self, seed: int) -> None:
        """Take the cases of the reference, or those that its generator makes from a seed.

        Raises:
            ReferenceFaultError: the generator failed.
            BadReferenceError: what it made are not cases.
        """
        self.cases = self.task.cases
        if self.task.generator is not None:
            made = self._run(self.task.generator, packed([seed], {}), self.limits)
            if made.reason:
                raise _fault("the generator of inputs", made)
            self.cases = given_cases(made.value)

    def warm_up(self) -> None:
        """Run everything once, and let through who gives the right results.

        Raises:
            ReferenceFaultError, ProgramFaultError: one of its programs failed, or the program did; or the time is over.
        """
        self._began = time.monotonic()
        for number, case in enumerate(self.cases):
            done = self._reference("the baseline", self.task.baseline, case)
            if done.seconds < self.min_seconds:
                raise ReferenceFaultError(
                    "gold_unparsable",
                    f"the baseline takes {done.seconds * 1000:.1f} ms on case {number}, and below "
                    f"{self.min_seconds * 1000:g} ms there is more noise than work; give larger inputs",
                )
            self.waits.append(self._patience(done.seconds))
            self.expected.append(done.value)
            self.times.append(([], []))
        baseline = self.expected
        if self.task.truth is not self.task.baseline:
            self.expected = [self._reference("the exact program", self.task.truth, case).value for case in self.cases]
            if not self._passes(baseline):
                raise ReferenceFaultError("gold_unparsable", "the baseline does not have the recall that is asked for")
        self._judge([self._program(number) for number in range(len(self.cases))])
        if self.gate.most is not None:
            self.recalls.append(recalls_of(self.expected, baseline))

    def round(self, odd: bool) -> None:
        """Time both on each case; in odd rounds the program goes first.

        Raises:
            ReferenceFaultError, ProgramFaultError: the baseline failed, or the program did; or the time is over.
            OverloadedError: the machine is too busy for times to tell anything.
        """
        results = []
        for number, case in enumerate(self.cases):
            baseline, program = self.times[number]
            for ours in (odd, not odd):
                done = self._program(number) if ours else self._reference("the baseline", self.task.baseline, case)
                (program if ours else baseline).append(done.seconds)
                if ours:
                    results.append(done)
        self._judge(results)
        if self.gate.most is not None:  # of this round, for a program may be right once and then pretend
            self.recalls.append(recalls_of(self.expected, [done.value for done in results]))
        self._look_at_the_machine()

    def estimate(self) -> Estimate:
        """Return the speed-up of the rounds so far: of all cases, or of the areas under both curves."""
        if self.gate.recall is None or self.gate.most is None:
            return estimated(self.times)
        (known, *found), ends = self.recalls, (self.gate.recall, self.gate.most)
        baseline = [1 / area(known, [times[at] for times, _ in self.times], *ends) for at in range(len(found))]
        program = [1 / area(row, [times[at] for _, times in self.times], *ends) for at, row in enumerate(found)]
        return estimated([(baseline, program)])

    def _patience(self, seconds: float) -> RunLimits:
        """Return how long a program is waited for where the baseline takes so many seconds.

        Where loading is not timed, nobody knows how much of it there is, and the limit of a run is all there is.
        """
        if not self.loading:
            return self.limits
        most = _GENEROUS * seconds / min(self.slowest, 1.0) + _START_SECONDS
        return replace(self.limits, seconds=min(self.limits.seconds, most))

    def _run(self, callee: Callee, case: bytes, limits: RunLimits) -> Timed:
        return timed_call(self.warm, callee, case, limits, self.flavour, loading=self.loading)

    def _program(self, number: int) -> Timed:
        done = self._run(self.program, self.cases[number], self.waits[number])
        if done.reason:
            raise ProgramFaultError(done.reason, case=number, error=shorten(done.detail, 300))
        self._look_at_the_time()
        return done

    def _reference(self, what: str, callee: Callee, case: bytes) -> Timed:
        started = time.monotonic()
        done = self._run(callee, case, self.limits)
        if done.reason:
            raise _fault(what, done)
        self._spent += time.monotonic() - started
        self._waited += done.waited
        self._look_at_the_time()
        return done

    def _look_at_the_time(self) -> None:
        """Raise when it is up: the reference's fault if its own programs took half of it, whoever was running."""
        if time.monotonic() - self._began <= self.budget:
            return
        self._look_at_the_machine()
        told = f"the {self.budget:g} s for all runs together are over"
        if self._spent > self.budget / 2:
            told = f"{told}, {self._spent:.1f} s of them the reference's own"
            raise ReferenceFaultError("gold_timeout", told, over=True)
        raise ProgramFaultError("candidate_timeout", over=True, error=told)

    def _look_at_the_machine(self) -> None:
        """Raise `OverloadedError` where it was busy; of the program's own waits nothing follows, it may make them."""
        if self._waited > self.max_waiting * self._spent:
            raise OverloadedError(
                f"the machine let the baseline wait for {self._waited:.1f} of {self._spent:.1f} s, so the times say "
                "more about what else it does than about the program"
            )

    def _judge(self, results: Sequence[Timed]) -> None:
        """Raise `ProgramFaultError` unless the results of a round are good enough."""
        values = [done.value for done in results]
        if self._passes(values):
            return
        if self.gate.recall is not None:
            wanted = "below" if self.gate.most is None else "nowhere above"
            raise ProgramFaultError("wrong", error=f"its recall is {wanted} {self.gate.recall:g}")
        plain = Gate(rules=self.gate.rules)
        for number, (right, value) in enumerate(zip(self.expected, values, strict=True)):
            if not plain.passes([right], [value]):
                raise ProgramFaultError(
                    "wrong", case=number, expected=shorten(text_of(right), 200), actual=shorten(text_of(value), 200)
                )

    def _passes(self, results: Sequence[Any]) -> bool:
        try:
            return self.gate.passes(self.expected, results)
        except NoListError as error:
            raise ReferenceFaultError("gold_unparsable", str(error)) from error


def _fault(what: str, done: Timed) -> ReferenceFaultError:
    reason = "gold_timeout" if done.reason in _LIMITS else "gold_unparsable"
    return ReferenceFaultError(reason, f"{what} failed: {done.reason} {done.detail}")
