"""Groups whose members come one by one, kept until they are whole.

A scorer that compares the members of a group needs all of them in one call, while frameworks send one sample a
request.  Members are kept by client, traffic and group; the group is let go when it has its number of members or its
time is over.  A group that was let go and gets another member begins anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeAlias

from adjudge.rl_integration.service.request import Ticket, Traffic

_Name: TypeAlias = tuple[str, Traffic, str]


@dataclass(kw_only=True)
class Cohort:
    """The members of a group that have come so far, and when the group's time is over."""

    tickets: list[Ticket] = field(default_factory=list)
    ends: float = 0.0


class Cohorts:
    """Groups in the making; not to be used from two threads at once.

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
