"""Time in which a process could have computed and was given no processor; it is charged to nobody.

Source: kernel documentation "Scheduler Statistics".  Not covered: a wait that is still going on, which the kernel
counts when it is over, and the steal time of virtual machines.  Where `/proc` says nothing, nobody waits.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping

BACKSTOP = 30
"""How many times longer than its limit something may take when it is let wait; then it was judged by nobody."""

GRACE = 0.5
"""Seconds that a wait may last that is still going on."""

_excuse: Callable[[float], None] | None = None


def by_task(pid: int) -> dict[int, float]:
    """Return for how many seconds each thread of a process has waited since it was made."""
    waits = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", "rb") as file:
                waits[int(task)] = int(file.read().split()[1]) / 1e9
    return waits


def longest(before: Mapping[int, float], now: Mapping[int, float]) -> float:
    """Return the longest wait of a thread between two looks: others may be what the rest waited for."""
    return max((wait - before.get(task, 0.0) for task, wait in now.items()), default=0.0)


def excuse(seconds: float) -> None:
    """Tell the pool, in one of its workers, that its item waited for others that waited for so long."""
    if _excuse is not None:
        _excuse(seconds)


def excuse_by(tell: Callable[[float], None]) -> None:
    """Say how that is told; for the worker."""
    global _excuse
    _excuse = tell
