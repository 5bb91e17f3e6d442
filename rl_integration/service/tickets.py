"""What a caller asked for, the samples of it on their way, and the queue and the groups that they wait in.

Training gets three quarters of what is taken while evaluations wait too, however many clients either of them has.  Each
client and kind of traffic has a line of its own, and one more for requests that do not fit into a call of the scorer.
The next item comes from the line that has had the least for its weight: start-time fair queueing (Goyal et al., 1996),
at the cost of the logarithm of the number of lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count, takewhile
from typing import Generic, Literal, TypeAlias, TypedDict, TypeVar

from adjudge.protocol import NO_COST, Sample, Score


class Refused(RuntimeError):
    """The service does not take the request now.

    Args:
        message: what is the matter, for a person.
        retry_after: seconds after which it is worth another try; None if it is not.
    """

    def __init__(self, message: str, *, retry_after: float | None) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Callable[[str], Refused], tuple[str]]:
        return partial(type(self), retry_after=self.retry_after), (str(self),)


class Overloaded(Refused):
    """More samples wait than the scorer may keep waiting."""


class Suspended(Refused):
    """The scorer failed too often and rests."""


class Draining(Refused):
    """The service is being shut down."""


Traffic: TypeAlias = Literal["train", "eval"]


class Asking(TypedDict, total=False):
    """What may be said beside samples; see `RewardService.score`."""

    client: str
    traffic: Traffic
    within: float | None


WEIGHTS: dict[Traffic, float] = {"train": 3.0, "eval": 1.0}
"""How the scorer's time is shared while both kinds of traffic wait."""


class Request:
    """Samples that are answered together.

    Args:
        samples: what to score.
        client: whose they are; each client gets its share.
        traffic: "train" or "eval".
        on_score: told the place and the score of each sample, on the service's thread.
        expires: the `time.monotonic` after which nobody waits for an answer any more: what has not begun by then is
            not begun.  None: somebody waits, however long it takes.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        *,
        client: str,
        traffic: Traffic,
        expires: float | None = None,
        on_score: Callable[[int, Score], None] | None = None,
    ) -> None:
        self.samples = samples
        self.client = client
        self.traffic: Traffic = traffic
        self.expires = expires
        self.future: Future[list[Score]] = Future()
        self._on_score = on_score
        self._scores: list[Score | None] = [None] * len(samples)
        self._missing = len(samples)

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for the answer."""
        return self.future.cancelled()

    @property
    def complete(self) -> bool:
        """Whether every sample has a score."""
        return not self._missing

    @property
    def missing(self) -> list[int]:
        """The places of samples without a score."""
        return [place for place, score in enumerate(self._scores) if score is None]

    def lacks(self, place: int) -> bool:
        """Return whether a sample has no score yet."""
        return self._scores[place] is None

    def deliver(self, place: int, score: Score) -> bool:
        """Give the score of a sample; the last one completes the request.

        Returns:
            Whether it was the sample's first, and somebody waits for it.
        """
        if self._scores[place] is not None:
            return False
        self._scores[place] = score
        self._missing -= 1
        if self.given_up:
            return False
        if self._on_score is not None:
            self._on_score(place, score)
        if not self._missing:
            with suppress(InvalidStateError):  # cancelled by the caller meanwhile
                self.future.set_result([score for score in self._scores if score is not None])
        return True


@dataclass(slots=True, eq=False)
class Ticket:
    """One sample of a request.

    Attributes:
        request: whose it is.
        place: its place there.
        key: what it has in common with samples that would get the same score; None if that cannot be told.
        entered: when it came, by `time.monotonic`.
        begun: whether it was taken off the queue.
        leader: the ticket of an equal sample that was on its way already, whose score this one gets.
        twins: tickets of equal samples that came while this one was on its way.
        size: characters of the prompt and the response.
    """

    request: Request
    place: int
    key: Hashable = None
    entered: float = field(default_factory=time.monotonic)
    begun: bool = False
    leader: Ticket | None = None
    twins: list[Ticket] = field(default_factory=list)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = _length(self.sample.prompt) + _length(self.sample.response)

    @property
    def sample(self) -> Sample:
        """The sample itself."""
        return self.request.samples[self.place]

    @property
    def under_way(self) -> bool:
        """Whether the scorer has it, or an equal one."""
        return (self.leader or self).begun

    def wanted(self, now: float | None = None) -> bool:
        """Return whether anybody waits for its score, or that of a twin.

        Args:
            now: by `time.monotonic`: nor does anybody whose deadline was before.
        """
        return any(one.awaited(now) for one in (self, *self.twins))

    def awaited(self, now: float | None) -> bool:
        """Return whether somebody waits for this very one."""
        request = self.request
        late = now is not None and request.expires is not None and request.expires <= now
        return not late and not request.given_up and request.lacks(self.place)

    def answer(self, score: Score) -> list[Ticket]:
        """Deliver the score here and to all twins, and return those who got it; it was paid once."""
        told: list[Ticket] = []
        again = replace(score, cost=NO_COST) if self.twins else score
        for one in (self, *self.twins):
            if one.request.deliver(one.place, again if told else score):
                told.append(one)
        return told


def _length(text: object) -> int:
    if isinstance(text, str):
        return len(text)
    if not isinstance(text, list | tuple):
        return 0
    return sum(len(str(turn.get("content", ""))) for turn in text if isinstance(turn, Mapping))


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
