"""Time in which a process could have computed and was given no processor; it is charged to nobody.

The kernel counts a wait when it is over.  One that is still going on shows as a thread that is ready to run and does
not.

Source: kernel documentation "Scheduler Statistics".  Not covered: the steal time of virtual machines.  Where `/proc`
says nothing, nobody waits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

BACKSTOP = 30
"""How many times longer than its limit something may take when it is let wait; then it was judged by nobody."""

GRACE = 0.5
"""Seconds that a wait may last that is still going on and was not seen to."""

TICKS = 0.02
"""Seconds after which the time that a running thread has had is surely another."""

_excuse: Callable[[float], None] | None = None


class Thread(NamedTuple):
    """A thread at one look.

    Attributes:
        waited: seconds since it was made, but for a wait that is still going on.
        ran: nanoseconds.
        ready: whether it computes, or could.
    """

    waited: float
    ran: int = 0
    ready: bool = False


def by_task(pid: int) -> dict[int, Thread]:
    """Return the threads of a process."""
    threads = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:
                ran, waited, _ = map(int, file.read().split())
            with open(f"/proc/{pid}/task/{task}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
            threads[int(task)] = Thread(waited / 1e9, ran, state == b"R")
    return threads


def longest(before: Mapping[int, Thread], now: Mapping[int, Thread]) -> float:
    """Return the longest wait of a thread between two looks: others may be what the rest waited for."""
    new = Thread(0.0)
    return max((one.waited - before.get(task, new).waited for task, one in now.items()), default=0.0)


def going_on(before: Mapping[int, Thread], now: Mapping[int, Thread]) -> bool:
    """Return whether a thread waits that did so at an earlier look, at least `TICKS` ago, or has not run since."""
    return any(one.ready and task in before and before[task].ran == one.ran for task, one in now.items())


def excuse(seconds: float) -> None:
    """Tell the pool, in one of its workers, that its item waited for others that waited for so long."""
    if _excuse is not None:
        _excuse(seconds)


def excuse_by(tell: Callable[[float], None]) -> None:
    """Say how that is told; for the worker."""
    global _excuse
    _excuse = tell
