"""A queue with two kinds of traffic, and clients that share what each kind gets.

Training gets three quarters of what is taken while evaluations wait too, however many clients either of them has.

A queue that shares a scorer fairly between its users.

Each flow (a client, a kind of traffic) has a line of its own, and the next item comes from the flow that has had the
least for its weight.  So a burst of evaluations does not hold up training, and one run's burst does not hold up
another run.  Within a flow the order is that of arrival.  This is start-time fair queueing (Goyal et al., 1996); adding
and taking an item costs the logarithm of the number of flows, so that many names slow nobody down.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from adjudge.rl_integration.service.request import WEIGHTS, Traffic

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
        """Return the next item and remove it.

        Raises:
            IndexError: nothing waits.
        """
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
    """Items by traffic and client; not to be used from two threads at once."""

    def __init__(self) -> None:
        self._turns: FairQueue[Traffic] = FairQueue()
        self._lines: dict[Traffic, FairQueue[T]] = {traffic: FairQueue() for traffic in WEIGHTS}

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._turns)

    def put(self, item: T, *, traffic: Traffic, client: str, cost: float = 1.0) -> None:
        """Add an item."""
        self._turns.put(traffic, flow=traffic, weight=WEIGHTS[traffic], cost=cost)
        self._lines[traffic].put(item, flow=client, cost=cost)

    def peek(self) -> T | None:
        """Return the item that is next, and leave it."""
        traffic = self._turns.peek()
        return None if traffic is None else self._lines[traffic].peek()

    def take(self) -> T:
        """Return the next item and remove it.

        Raises:
            IndexError: nothing waits.
        """
        return self._lines[self._turns.take()].take()
