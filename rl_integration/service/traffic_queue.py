"""What waits for a scorer: a queue that its users share fairly, and groups that are not whole yet.

Training gets three quarters of what is taken while evaluations wait too, however many clients either of them has.  Each
client and kind of traffic has a line of its own, and one more for requests that do not fit into a call of the scorer.
The next item comes from the line that has had the least for its weight: start-time fair queueing (Goyal et al., 1996),
at the cost of the logarithm of the number of lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, takewhile
from typing import Generic, TypeAlias, TypeVar

from adjudge.rl_integration.service.tickets import WEIGHTS, Ticket, Traffic

_Name: TypeAlias = tuple[str, Traffic, str]


@dataclass(kw_only=True)
class Cohort:
    """The members of a group that have come so far, and when the group's time is over."""

    tickets: list[Ticket] = field(default_factory=list)
    ends: float = 0.0


class Cohorts:
    """Groups in the making, by client, traffic and group; not to be used from two threads at once.

    A scorer that compares the members of a group needs all of them in one call, while frameworks send one sample a
    request.  A group is let go when it has its number of members or its time is over; one more member begins it anew.

    Args:
        size: members of a group.
        seconds: how long a group waits, counted from its first member.
        clock: seconds from any start.
    """

    def __init__(self, *, size: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._seconds = seconds
        self._clock = clock
        self._open: dict[_Name, Cohort] = {}  # in the order of their ends, since all wait for as long

    def __len__(self) -> int:
        """How many members wait for others."""
        return sum(len(cohort.tickets) for cohort in self._open.values())

    def add(self, ticket: Ticket) -> list[Ticket] | None:
        """Add a member; return the whole group if this was its last."""
        name = _name(ticket)
        cohort = self._open.get(name)
        if cohort is None:
            cohort = self._open[name] = Cohort(ends=self._clock() + self._seconds)
        cohort.tickets.append(ticket)
        if len(cohort.tickets) < self._size:
            return None
        del self._open[name]
        return cohort.tickets

    def left(self, ticket: Ticket) -> list[Ticket]:
        """Remove those of a ticket's group whose score nobody waits for any more, and return them."""
        cohort = self._open.get(_name(ticket))
        if cohort is None or all(one.wanted() for one in cohort.tickets):
            return []
        gone = [one for one in cohort.tickets if not one.wanted()]
        cohort.tickets = [one for one in cohort.tickets if one.wanted()]
        return gone

    def overdue(self) -> list[list[Ticket]]:
        """Remove the groups whose time is over, and return them."""
        now = self._clock()
        over = list(takewhile(lambda name: self._open[name].ends <= now, self._open))
        return [self._open.pop(name).tickets for name in over]

    def next_end(self) -> float | None:
        """When the time of a group is over next, by the clock; None if none waits."""
        first = next(iter(self._open.values()), None)
        return None if first is None else first.ends

    def all(self) -> list[list[Ticket]]:
        """Remove all groups, and return them."""
        groups = [cohort.tickets for cohort in self._open.values()]
        self._open.clear()
        return groups


def _name(ticket: Ticket) -> _Name:
    return ticket.request.client, ticket.request.traffic, ticket.sample.group


T = TypeVar("T")

_FEW = 64  # flows that are remembered without a look at which of them may be forgotten


class FairQueue(Generic[T]):
    """Items in flows; not to be used from two threads at once."""

    def __init__(self) -> None:
        self._flows: dict[Hashable, deque[tuple[T, float]]] = {}
        self._order: list[tuple[float, int, Hashable]] = []  # what each waiting flow had, and which began to wait first
        self._turns = count()
        self._had: dict[Hashable, float] = {}  # of flows that wait for nothing now, and had more than their share
        self._max_remembered = _FEW
        self._now = 0.0
        self._count = 0

    def __len__(self) -> int:
        """How many items wait."""
        return self._count

    def put(self, item: T, *, flow: Hashable, weight: float = 1.0, cost: float = 1.0) -> None:
        """Add an item to the end of a flow's line.

        Args:
            item: what waits.
            flow: whose it is.
            weight: the flow's share, beside the weights of the others that wait.
            cost: what the item takes of it.
        """
        line = self._flows.get(flow)
        if line is None:
            line = self._flows[flow] = deque()
            begins = max(self._now, self._had.pop(flow, 0.0))  # a flow that did not wait has nothing saved up
            heappush(self._order, (begins, next(self._turns), flow))
        line.append((item, cost / weight))
        self._count += 1

    def peek(self) -> T | None:
        """Return the item that is next, and leave it."""
        return self._flows[self._order[0][2]][0][0] if self._count else None

    def take(self) -> T:
        """Return the next item and remove it."""
        if not self._count:
            raise IndexError("nothing waits")
        self._now, _, flow = heappop(self._order)
        line = self._flows[flow]
        item, share = line.popleft()
        self._count -= 1
        if line:
            heappush(self._order, (self._now + share, next(self._turns), flow))
        else:
            del self._flows[flow]
            self._had[flow] = self._now + share
            self._forget()
        return item

    def _forget(self) -> None:
        """Forget flows that would begin anew all the same; looked at as seldom as their number doubles."""
        if not self._count:
            self._had.clear()
            self._now = 0.0
        elif len(self._had) > self._max_remembered:
            self._had = {flow: had for flow, had in self._had.items() if had > self._now}
            self._max_remembered = max(_FEW, 2 * len(self._had))


class TrafficQueue(Generic[T]):
    """Items by traffic and flow; not to be used from two threads at once."""

    def __init__(self) -> None:
        self._turns: FairQueue[Traffic] = FairQueue()
        self._lines: dict[Traffic, FairQueue[T]] = {traffic: FairQueue() for traffic in WEIGHTS}

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._turns)

    def put(self, item: T, *, traffic: Traffic, flow: Hashable, cost: float = 1.0) -> None:
        """Add an item."""
        self._turns.put(traffic, flow=traffic, weight=WEIGHTS[traffic], cost=cost)
        self._lines[traffic].put(item, flow=flow, cost=cost)

    def peek(self) -> T | None:
        """Return the item that is next, and leave it."""
        traffic = self._turns.peek()
        return None if traffic is None else self._lines[traffic].peek()

    def take(self) -> T:
        """Return the next item and remove it."""
        return self._lines[self._turns.take()].take()
