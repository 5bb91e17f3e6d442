"""Calls a scorer (`scoring.api.score_rows`) on a thread of its own, and finds out whose fault it is when that fails.

A call that fails is divided until the sample that makes it fail is found: one response that breaks a scorer costs
nobody else's score.  What a call finished before its time was up counts, where the scorer's workers or servers tell
(`adjudge.runtime.deadline`), and what it did not is asked for again.  A scorer with a blocking call inside `async def
score` stops its own thread alone, not the other scorers, deadlines and the server: the next call gets a new thread.
The old one cannot be killed (no thread can): it is counted, and ends when the blocking call does.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Literal, TypeAlias

from adjudge.protocol import Sample, Score, Scorer
from adjudge.reasons import TRANSIENT
from adjudge.rl_integration.service.tickets import Ticket
from adjudge.runtime.contract import BrokenScorer
from adjudge.runtime.deadline import set_deadline
from adjudge.scoring.api import score_rows

State: TypeAlias = Literal["closed", "open", "trial"]


class Breaker:
    """Counts calls that gave no score at all; not to be used from two threads at once.

    Args:
        trip: the share of such calls among the last `window` that opens it.
        window: calls looked back upon; it opens no earlier than after half of them.
        rest: seconds of the first rest; doubled with each failed trial, up to `longest`.
        longest: see `rest`.
        clock: seconds from any start.
    """

    def __init__(
        self, *, trip: float, window: int, rest: float, longest: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._trip = trip
        self._calls: deque[bool] = deque(maxlen=window)
        self._enough = max(1, window // 2)
        self._first = rest
        self._longest = longest
        self._clock = clock
        self._rest = rest
        self._until = 0.0
        self._term = 0  # one more whenever calls that are under way stop to count
        self._trying = False
        self._open = False
        self.opened = 0
        """How often it opened."""

    @property
    def state(self) -> State:
        """Whether all is well ("closed"), the scorer rests ("open"), or one call may be tried ("trial")."""
        if not self._open:
            return "closed"
        return "trial" if self._clock() >= self._until else "open"

    @property
    def wait(self) -> float:
        """Seconds until a trial; 0 unless open."""
        return max(0.0, self._until - self._clock()) if self._open else 0.0

    @property
    def admits(self) -> bool:
        """Whether a call may begin: any while it is closed, one as the trial."""
        return not self._open or (self.state == "trial" and not self._trying)

    def begin(self) -> int:
        """Tell that a call begins that it admits; return what `ended` wants to know of it."""
        if self._open:
            self._trying = True
            self._term += 1
        return self._term

    def ended(self, term: int, *, good: bool) -> None:
        """Tell the end of a call, and whether it gave any score.

        Args:
            term: what `begin` returned; a call from before it opened, or from before a trial, tells nothing any more.
            good: whether there was a score.
        """
        if term != self._term:
            return
        if self._open:
            self._trying = False
            if good:
                self._open = False
                self._calls.clear()
                self._rest = self._first
            else:
                self._rest = min(self._longest, 2 * self._rest)
                self._until = self._clock() + self._rest
            return
        self._calls.append(not good)
        if len(self._calls) >= self._enough and sum(self._calls) >= self._trip * len(self._calls) and not good:
            self._open = True
            self._term += 1
            self.opened += 1
            self._until = self._clock() + self._rest


ANSWERS_WITHIN = 1.0
"""Seconds; a loop that does not come round in that time is blocked."""


class Desk:
    """Runs the calls of one scorer; to be used from one thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self.given_up = 0
        """How many threads were left behind."""

    def begin(self, scorer: Scorer, samples: Sequence[Sample], seconds: float) -> Future[list[Score]]:
        """Begin a call of the scorer, which is to give out what it has after so many seconds."""
        if self._loop is None or self._loop.is_closed():
            self._loop = _started(self._name)
        return asyncio.run_coroutine_threadsafe(_scored(scorer, samples, seconds), self._loop)

    async def give_up_if_blocked(self) -> None:
        """See whether the thread comes round; if not, the next call gets another one."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        round_trip: Future[None] = Future()
        loop.call_soon_threadsafe(_answer, round_trip)
        try:
            await asyncio.wait_for(asyncio.wrap_future(round_trip), ANSWERS_WITHIN)
        except TimeoutError:
            if self._loop is loop:
                self._loop = None
                self.given_up += 1
                loop.call_soon_threadsafe(loop.stop)  # should the blocking call ever end

    def close(self) -> None:
        """Let the thread end."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)


async def _scored(scorer: Scorer, samples: Sequence[Sample], seconds: float) -> list[Score]:
    set_deadline(seconds)
    try:
        return await score_rows(scorer, samples)
    except KeyboardInterrupt as error:  # nobody's Ctrl-C: those come to the main thread, and this would end the thread
        raise BrokenScorer(f"the scorer {scorer.name!r} raised KeyboardInterrupt") from error


def _answer(round_trip: Future[None]) -> None:
    if round_trip.set_running_or_notify_cancel():
        round_trip.set_result(None)


def _started(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=ANSWERS_WITHIN))
            loop.close()

    threading.Thread(target=run, name=f"adjudge-{name}", daemon=True).start()
    return loop


Unit: TypeAlias = list[Ticket]
"""Tickets that belong into one call: one of a pointwise scorer, or a group."""

Answer: TypeAlias = Callable[[Ticket, Score], None]

_NO_SCORE = TRANSIENT | {"verifier_error"}  # a call of these alone gave no score at all


def _no_score(score: Score) -> bool:
    """Return whether the scorer itself failed, or a part of it, and not the sample."""
    if score.reason == "part_failed":
        return any(map(_no_score, score.parts.values()))
    return score.reason in _NO_SCORE


_UNFINISHED = frozenset({"scorer_timeout", "engine_timeout"})
# The search for the sample that makes a call fail: 16 parts find one of 256 with three calls that fail, and the time of
# four is all that it may take.
_PARTS = 16
_FAILURES = 4
_HANDING_OVER = 0.1  # the share of a call's time, and at most a second, that is left for giving out what is done


class _Call:
    def __init__(self, *, company: bool) -> None:
        self.company = company  # whether another call was on the thread at the same time


class Caller:
    """Calls one scorer; lives on the service's loop."""

    def __init__(self, scorer: Scorer, desk: Desk, seconds: float, answer: Answer) -> None:
        self._scorer = scorer
        self._desk = desk
        self._seconds = seconds
        self._answer = answer
        self._under_way: set[_Call] = set()
        self._one_at_a_time = asyncio.Lock()

    async def call(self, units: list[Unit]) -> bool:
        """Score units and answer their tickets; return whether any got a score that the scorer meant."""
        return await self._score(units, time.monotonic() + _FAILURES * (self._seconds + ANSWERS_WITHIN))

    async def _score(self, units: list[Unit], give_up: float, *, again: bool = True) -> bool:
        call = _Call(company=bool(self._under_way))
        for other in self._under_way:
            other.company = True
        self._under_way.add(call)
        threads = self._desk.given_up
        enough = self._seconds - min(1.0, _HANDING_OVER * self._seconds)
        ends = time.monotonic() + enough
        try:
            outcome = await self._called([ticket for unit in units for ticket in unit], enough)
        finally:
            self._under_way.discard(call)
        if not isinstance(outcome, Score):
            rest = self._answered(units, outcome, late=time.monotonic() >= ends)
            good = not all(map(_no_score, outcome))
            return (await self._score(rest, give_up) if rest else False) or good
        if len(units) > 1 and time.monotonic() < give_up:
            size = -(-len(units) // _PARTS)
            parts = [units[start : start + size] for start in range(0, len(units), size)]
            return any([await self._score(part, give_up) for part in parts])
        if again and call.company and self._desk.given_up > threads:
            async with self._one_at_a_time:  # the one that blocked it is tried again too, and must not do it to another
                return await self._score(units, give_up, again=False)
        for unit in units:
            for ticket in unit:
                self._answer(ticket, outcome)
        return False

    def _answered(self, units: list[Unit], scores: list[Score], *, late: bool) -> list[Unit]:
        """Answer units with their scores, and return those that are to be asked for again: the time was up for them."""
        given = iter(scores)
        verdicts = [[next(given) for _ in unit] for unit in units]
        undone = [late and any(score.reason in _UNFINISHED for score in found) for found in verdicts]
        if all(undone):  # nothing came of it: once more would be the same
            undone = [False] * len(units)
        now = time.monotonic()
        undone = [
            again and any(ticket.wanted(now) for ticket in unit) for unit, again in zip(units, undone, strict=True)
        ]
        for unit, found, again in zip(units, verdicts, undone, strict=True):
            for ticket, score in zip(unit, found, strict=True) if not again else ():
                self._answer(ticket, score)
        return [unit for unit, again in zip(units, undone, strict=True) if again]

    async def _called(self, tickets: list[Ticket], enough: float) -> list[Score] | Score:
        """Return the scores, or the failed score of a call that gave none."""
        future = self._desk.begin(self._scorer, [ticket.sample for ticket in tickets], enough)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            await self._desk.give_up_if_blocked()
            return Score.failed("scorer_timeout", seconds=self._seconds)
        except BrokenScorer as error:
            return Score.failed("verifier_error", error=str(error)[:500])
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # it is us who are told to stop
            return Score.failed("verifier_error", error=f"the call of {self._scorer.name!r} was cancelled from within")
