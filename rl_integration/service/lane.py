"""One scorer in the service: what waits for it, what it is given, and what becomes of its answers.

A lane lives on the service's loop; only `submit` is called from other threads.  The scorer runs elsewhere (`caller`),
so nothing that it does can hold up a deadline or another lane.  Whatever happens, each accepted sample is scored once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TypeAlias

from adjudge.protocol import Sample, Score, Scorer
from adjudge.rl_integration.service.caller import Breaker, Caller, Desk, Unit
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.stats import Flows, LaneStats, Tally
from adjudge.rl_integration.service.tickets import (
    Cohorts,
    Draining,
    Overloaded,
    Request,
    Suspended,
    Ticket,
    TrafficQueue,
)
from adjudge.runtime.cache import score_key
from adjudge.runtime.contract import is_groupwise

Watch: TypeAlias = Callable[[str, Sample, Score], None]
"""Told each score: the lane's name, the sample and its score; called on the service's thread, so it must be quick."""

_SHOWN_AT_ONCE = 64  # samples, of which a watch takes some 50 microseconds each


class Lane:
    """Queues samples for a scorer and calls it.

    Args:
        name: the scorer's name in the service.
        config: what it may take.
        scorer: the scorer.
        loop: the service's loop.
        watch: told each score.
        generation: how many scorers of this name there were, this one included.
        flows: counts outcomes by traffic and client; goes on from one scorer of this name to the next.
    """

    def __init__(
        self,
        name: str,
        config: LaneConfig,
        scorer: Scorer,
        loop: asyncio.AbstractEventLoop,
        watch: Watch | None = None,
        generation: int = 1,
        flows: Flows | None = None,
    ) -> None:
        self.name = name
        self.config = config
        self.scorer = scorer
        self.flows = flows or Flows()
        self._groups = is_groupwise(scorer)
        self._fingerprint = scorer.fingerprint
        self._generation = generation
        self._loop = loop
        self._watch = watch
        self._queue: TrafficQueue[Unit] = TrafficQueue()
        self._cohorts = Cohorts(size=config.cohort or 1, seconds=config.cohort_seconds)
        self._cohort_timer: asyncio.TimerHandle | None = None
        self._pump_timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._open: dict[Request, asyncio.TimerHandle | None] = {}  # not complete, and what tells their deadlines
        self._known: dict[Hashable, Ticket] = {}
        self._unseen: deque[tuple[Sample, Score]] = deque()  # of what was answered, by the watch
        self._breaker = Breaker(trip=config.trip, window=config.window, rest=config.rest, longest=config.longest_rest)
        self._desk = Desk(name)
        self._caller = Caller(scorer, self._desk, config.seconds, self._answer)
        self._tally = Tally()
        self._gate = threading.Lock()  # guards what `submit` and the loop both change
        self._inbox: list[tuple[Request, list[Ticket]]] = []
        self._waiting = 0
        self._running = 0
        self._closed = False
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, request: Request) -> None:
        """Accept all samples of a request, or none; may be called from any thread.

        Raises:
            Overloaded: too many wait already.
            Suspended: the scorer rests.
            Draining: the lane was closed.
        """
        tickets = [Ticket(request, place) for place in range(len(request.samples))]
        count = len(tickets)
        with self._gate:
            refusal = self._refusal(count)
            if refusal is not None:
                self._tally.refused += count
                raise refusal
            self._tally.accepted += count
            self._waiting += count
            self._inbox.append((request, tickets))
            woken = len(self._inbox) > 1
        if not woken:  # one waking of the loop for all that come meanwhile; it is what a submission costs most
            self._loop.call_soon_threadsafe(self._take_in)

    async def drain(self) -> None:
        """Accept nothing more, and return when all that was accepted is answered.

        Members of a group that is not whole fail as `closed`: its other members can come only to who is asked next.
        """
        with self._gate:
            self._closed = True
        self._enter_all()
        for tickets in self._cohorts.all():
            self._give(tickets, Score.failed("closed"))
        self._pump()
        while self._waiting or self._calls or self._unseen:
            self._empty.clear()
            await self._empty.wait()
        self._desk.close()

    async def abandon(self) -> bool:
        """Accept nothing more, and fail what was not answered yet; return whether there was such."""
        with self._gate:
            self._closed = True
        self._enter_all()
        left = bool(self._open)
        closed = Score.failed("closed")
        for tickets in self._cohorts.all():
            self._give(tickets, closed)
        while len(self._queue):
            unit = self._queue.take()
            if not unit[0].begun:
                self._give(unit, closed)
        for request in list(self._open):
            self._fail(request, request.missing, closed)
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        while self._unseen:
            await asyncio.sleep(0)
        self._desk.close()
        return left

    def stats(self) -> LaneStats:
        """Return the lane's numbers as they are now."""
        tally = self._tally
        return LaneStats(
            name=self.name,
            scorer=self.scorer.name,
            fingerprint=self._fingerprint,
            generation=self._generation,
            state=self._breaker.state,
            waiting=self._waiting,
            running=self._running,
            suspensions=self._breaker.opened,
            threads_left=self._desk.given_up,
            **{**vars(tally), "reasons": dict(tally.reasons), "latency": tuple(tally.latency.counts)},
            latency_sum=tally.latency.sum,
        )

    def _refusal(self, count: int) -> Overloaded | Suspended | Draining | None:
        if self._closed:
            return Draining(f"the service is closing, and takes nothing more for {self.name!r}", retry_after=None)
        if self._breaker.state == "open":
            wait = self._breaker.wait
            return Suspended(
                f"{self.name!r} gave no scores lately and rests for another {wait:.1f} s", retry_after=wait
            )
        if count > self.config.waiting:
            return Overloaded(
                f"{count} samples are more than the {self.config.waiting} that may wait for {self.name!r}; send fewer "
                "at once (the client option `chunk`), or give the scorer a larger `waiting`",
                retry_after=None,
            )
        if self._waiting + count > self.config.waiting:
            return Overloaded(
                f"{self._waiting} samples wait for {self.name!r}, and at most {self.config.waiting} may",
                retry_after=self._time_to_clear(),
            )
        return None

    def _time_to_clear(self) -> float:
        """Seconds until about half of what waits is done, at the rate so far; between 1 and 60."""
        rate = self._tally.answered / self._tally.seconds * self.config.concurrency if self._tally.seconds else 0.0
        return min(60.0, max(1.0, self._waiting / 2 / rate)) if rate else 1.0

    def _take_in(self) -> None:
        self._enter_all()
        self._pump()

    def _enter_all(self) -> None:
        with self._gate:
            came, self._inbox = self._inbox, []
        for request, tickets in came:
            self._enter(request, tickets)

    def _enter(self, request: Request, tickets: list[Ticket]) -> None:
        """Queue an accepted request's samples; equal ones ride along with what is on its way already."""
        timer = None
        if request.expires is not None:
            timer = self._loop.call_later(request.expires - time.monotonic(), self._expire, request, tickets)
        self._open[request] = timer
        request.future.add_done_callback(partial(self._hear_of, tickets))
        if self._groups:
            self._enter_groups(tickets)
        else:
            for ticket in tickets:
                self._enter_one(ticket)

    def _enter_one(self, ticket: Ticket) -> None:
        ticket.key = key = _key(self._fingerprint, ticket.sample)
        first = self._known.get(key) if key is not None else None
        if first is None:
            if key is not None:
                self._known[key] = ticket
            self._put([ticket], ticket.request)
            return
        ticket.leader = first
        first.twins.append(ticket)
        self._leave_queue(1)
        line = first.request
        if not first.begun and (line.traffic, line.client) != (ticket.request.traffic, ticket.request.client):
            self._put([first], ticket.request)  # it waits in both lines, and is taken off the quicker one

    def _enter_groups(self, tickets: Sequence[Ticket]) -> None:
        if self.config.cohort is None:
            groups: dict[str, Unit] = {}
            for ticket in tickets:
                groups.setdefault(ticket.sample.group, []).append(ticket)
            for unit in groups.values():
                self._put(unit, unit[0].request)
            return
        for ticket in tickets:
            if not ticket.sample.group:
                why = "its group is made of samples that come one by one, and it names none; set Sample.group"
                self._give([ticket], Score.failed("bad_sample", error=why))
                continue
            self._give(self._cohorts.left(ticket), Score.failed("expired"))
            whole = self._cohorts.add(ticket)
            if whole is not None:
                self._put(whole, ticket.request)
        self._set_cohort_timer()

    def _set_cohort_timer(self) -> None:
        if self._cohort_timer is not None:
            self._cohort_timer.cancel()
            self._cohort_timer = None
        end = self._cohorts.next_end()
        if end is not None:
            self._cohort_timer = self._loop.call_later(max(0.0, end - time.monotonic()), self._end_cohorts)

    def _end_cohorts(self) -> None:
        for tickets in self._cohorts.overdue():
            self._let_go(tickets)
        self._set_cohort_timer()
        self._pump()

    def _let_go(self, tickets: Unit) -> None:
        """Do what was configured with a group that did not become whole."""
        if self.config.incomplete == "scored":
            self._put(tickets, tickets[0].request)
            return
        missing = (self.config.cohort or 0) - len(tickets)
        self._give(tickets, Score.failed("cohort_incomplete", group=tickets[0].sample.group, missing=missing))

    def _give(self, tickets: Unit, score: Score) -> None:
        """Answer tickets that wait without asking the scorer."""
        for ticket in tickets:
            ticket.begun = True
            self._leave_queue(1)
            self._answer(ticket, score)

    def _expire(self, request: Request, tickets: Sequence[Ticket]) -> None:
        """Fail what has not begun at a request's deadline; the scorer is not asked for it, unless for a twin."""
        late = [ticket.place for ticket in tickets if not ticket.under_way and request.lacks(ticket.place)]
        waited = round(time.monotonic() - tickets[0].entered, 3)
        self._fail(request, late, Score.failed("expired", waited=waited))

    def _hear_of(self, tickets: list[Ticket], future: Future[list[Score]]) -> None:
        """A request ended; where its caller left, this is told on the caller's thread."""
        if future.cancelled():
            with suppress(RuntimeError):  # the loop is closed, and nothing waits in it
                self._loop.call_soon_threadsafe(self._forsake, tickets)

    def _forsake(self, tickets: list[Ticket]) -> None:
        """Take off the queue what nobody waits for any more; a unit that others share stays."""
        for ticket in tickets:
            first = ticket.leader or ticket
            if self.config.cohort is not None:
                self._give(self._cohorts.left(ticket), Score.failed("expired"))
            elif not (first.begun or first.wanted()):
                self._give([first], Score.failed("expired"))

    def _fail(self, request: Request, places: Sequence[int], score: Score) -> None:
        for place in places:
            if request.deliver(place, score):
                self._tally.count(score, 1)
                self.flows.count(request.traffic, request.client, score)
                self._show(request.samples[place], score)
        if request.complete:
            self._done(request)

    def _put(self, unit: Unit, request: Request) -> None:
        # What fits into one call does not wait behind a whole data set of the same client, or of all who name none.
        flow = request.client, len(request.samples) > self.config.batch
        self._queue.put(unit, traffic=request.traffic, flow=flow, cost=len(unit))

    def _leave_queue(self, count: int) -> None:
        with self._gate:
            self._waiting -= count
        self._look_if_empty()

    def _look_if_empty(self) -> None:
        if not self._waiting and not self._calls and not self._unseen:
            self._empty.set()

    def _pump(self) -> None:
        while len(self._calls) < self.config.concurrency and len(self._queue):
            if not self._breaker.admits:
                if wait := self._breaker.wait:
                    self._pump_in(wait)
                return  # else a trial is under way, and its end pumps
            if wait := self._lingers():
                self._pump_in(wait)
                return
            units = self._batch()
            if units:
                call = self._loop.create_task(self._call(units, self._breaker.begin()))
                self._calls.add(call)
                call.add_done_callback(self._ended)

    def _pump_in(self, seconds: float) -> None:
        if self._pump_timer is None:
            self._pump_timer = self._loop.call_later(seconds, self._pump_now)

    def _pump_now(self) -> None:
        self._pump_timer = None
        self._pump()

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        if not (self._closed and call.cancelled()):
            self._pump()
        self._look_if_empty()
        if not call.cancelled():
            call.result()  # a mistake of ours is told by the loop

    def _lingers(self) -> float:
        """Seconds for which what is next may still wait for company."""
        if not self.config.linger or len(self._queue) >= self.config.batch or self._closed:
            return 0.0
        first = self._queue.peek()
        return max(0.0, first[0].entered + self.config.linger - time.monotonic()) if first is not None else 0.0

    def _batch(self) -> list[Unit]:
        """Take units off the queue until a call is full; nobody's, and those that are too late, are not begun."""
        units: list[Unit] = []
        groups: set[str] = set()
        count = size = 0
        now = time.monotonic()
        while (unit := self._queue.peek()) is not None:
            if unit[0].begun:  # from another line, or by its deadline
                self._queue.take()
                continue
            more = sum(ticket.size for ticket in unit)
            if units and (count + len(unit) > self.config.batch or size + more > self.config.characters):
                break
            if self._groups and unit[0].sample.group in groups:
                break  # another client's group of the same name; in one call the scorer would take the two for one
            self._queue.take()
            if not any(ticket.wanted(now) for ticket in unit):
                self._give(unit, Score.failed("expired", waited=round(now - unit[0].entered, 3)))
                continue
            for ticket in unit:
                ticket.begun = True
            self._leave_queue(len(unit))
            units.append(unit)
            groups.add(unit[0].sample.group)
            count += len(unit)
            size += more
            self._tally.queued += sum(now - ticket.entered for ticket in unit)
        return units

    async def _call(self, units: list[Unit], term: int) -> None:
        tickets = [ticket for unit in units for ticket in unit]
        self._running += len(tickets)
        begun = time.monotonic()
        good = False
        try:
            good = await self._caller.call(units)
        finally:
            self._running -= len(tickets)
            self._tally.calls += 1
            self._tally.called += len(tickets)
            self._tally.empty_calls += not good
            self._tally.seconds += time.monotonic() - begun
            self._breaker.ended(term, good=good)
            for ticket in tickets:  # whatever went wrong in the service itself
                if ticket.request.lacks(ticket.place):
                    self._answer(ticket, Score.failed("verifier_error", error="a fault of the service; see its log"))

    def _answer(self, ticket: Ticket, score: Score) -> None:
        if ticket.key is not None and self._known.get(ticket.key) is ticket:
            del self._known[ticket.key]
        told = ticket.answer(score)
        if told:
            self._tally.count(score, len(told))
        untold = set(ticket.twins).union([ticket]).difference(told)
        self._tally.given_up += sum(one.request.given_up for one in untold)
        now = time.monotonic()
        for one in told:
            self._tally.latency.add(now - one.entered)
            self.flows.count(one.request.traffic, one.request.client, score)
            self._show(one.sample, score)  # equal responses too: a watch for them must see them
        for one in (ticket, *ticket.twins):
            if one.request.complete:
                self._done(one.request)

    def _done(self, request: Request) -> None:
        timer = self._open.pop(request, None)
        if timer is not None:
            timer.cancel()

    def _show(self, sample: Sample, score: Score) -> None:
        if self._watch is None:
            return
        self._unseen.append((sample, score))
        if len(self._unseen) == 1:
            self._loop.call_soon(self._show_some)

    def _show_some(self) -> None:
        """Tell the watch of some answers; what it raises costs nobody's score, and ten thousand hold up nobody."""
        assert self._watch is not None
        try:
            for _ in range(min(_SHOWN_AT_ONCE, len(self._unseen))):
                self._watch(self.name, *self._unseen.popleft())
        finally:
            if self._unseen:
                self._loop.call_soon(self._show_some)
            self._look_if_empty()


def _key(fingerprint: str, sample: Sample) -> Hashable:
    """What equal samples have in common; None where that cannot be told."""
    texts = (sample.prompt, sample.response, sample.reference, sample.finish_reason)
    try:
        if not sample.extra and all(text is None or type(text) is str for text in texts):
            return texts  # as good a key as the digest, at a tenth of its time
        return score_key(fingerprint, sample)
    except (TypeError, ValueError, RecursionError):  # a reference that JSON cannot hold
        return None
