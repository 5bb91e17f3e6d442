"""`TimeLimit`: the seconds that a run may take, less those in which the machine let it wait.

A verdict must not depend on what else the machine does.  So a run is charged for the time in which it computes or
sleeps, and not for the time in which it could compute and was given no processor (the kernel's `run_delay`).  What
computes is stopped by its CPU time, what sleeps by the clock; a run that was let wait for nearly all of a time many
times longer has been judged by nobody, which is an error of ours.

Several processes and threads are charged together: their CPU time is added up, and of their waits the longest counts
in each interval, because others of them may have been what it waited for.  One that is ready and does not run waits.

Source: kernel documentation "Scheduler Statistics" and `proc(5)`.  Not covered: waits of processes that begin and end
between two looks, and the steal time of virtual machines.  Where `/proc` says nothing, waits count as well.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Sequence
from typing import ClassVar

from adjudge.runtime import waits
from adjudge.sandbox.bubblewrap import SandboxUnavailableError, wait_readable
from adjudge.sandbox.cgroup import tree

_INTERVAL = 0.25
"""Seconds between two looks; one costs 0.1 ms a process."""
_TICK = 1 / os.sysconf("SC_CLK_TCK")


class OverloadedError(SandboxUnavailableError):
    """The machine let a run wait for so long that nothing can be said about it."""

    reason: ClassVar[str] = "overloaded"


class TimeLimit:
    """A limit that begins now.

    Args:
        seconds: what may be charged.
        roots: processes that, with their descendants, are charged; more can be added later.
        fresh: whether the roots have just been started, so that what they did until now counts.

    Attributes:
        waited: seconds since it was made in which the run was let wait, as far as was seen.
    """

    def __init__(self, seconds: float, roots: Sequence[int], fresh: bool = True) -> None:
        self.seconds = seconds
        self.waited = 0.0
        self.roots = [*roots]
        self._made = self._seen = time.monotonic()
        self._before: dict[int, waits.Thread] | None = {} if fresh else None
        self._cpu = self._cpu_made = 0.0
        self.restart(seconds)

    def restart(self, seconds: float, within: float = math.inf) -> None:
        """Begin anew for the same run: what was charged until now counts for `total` and `within` alone."""
        self._within = within - self.total
        self.seconds = min(seconds, self._within)
        self._began = time.monotonic()
        self._waited_before, self._cpu_before = self.waited, self._cpu

    def extend(self, seconds: float) -> None:
        """Allow more, within what `restart` was given."""
        self.seconds = min(self.seconds + seconds, self._within)

    @property
    def total(self) -> float:
        """Seconds charged since it was made."""
        wall = time.monotonic() - self._made
        return max(wall - self.waited, min(self._cpu - self._cpu_made, wall))

    def left(self) -> float:
        """Return for how many seconds to wait before asking again; 0 or less once the limit has passed.

        Raises:
            OverloadedError: the run was let wait for too long.
        """
        if self.seconds <= 0:
            return 0.0
        now = time.monotonic()
        wall = now - self._began
        if now - self._seen >= (min(_INTERVAL, self.seconds / 4) if wall < self.seconds else waits.TICKS):
            self.look()
        if wall < self.seconds:
            return min(self.seconds - wall, _INTERVAL)
        waited, cpu = self.waited - self._waited_before, self._cpu - self._cpu_before
        grace = min(waits.GRACE, self.seconds) if waited > wall / 50 else 0.0
        over = wall - waited - self.seconds
        if cpu >= self.seconds or over >= grace:
            return 0.0
        if wall >= waits.BACKSTOP * self.seconds:
            raise OverloadedError(
                f"of {wall:.0f} s the machine gave a run {cpu:.1f} s of processor time; its limit is "
                f"{self.seconds:g} s. Run less on the machine at a time, or give the scorer longer limits"
            )
        return min(_INTERVAL, max(grace - over, waits.TICKS))

    def wait(self, fd: int) -> bool:
        """Return whether a descriptor can be read, or has ended, before the limit passes.

        Raises:
            OverloadedError: see `left`.
        """
        while (left := self.left()) > 0:
            if wait_readable(fd, left):
                return True
        return wait_readable(fd, 0.0)

    def look(self) -> None:
        """See how long the run has computed and waited; `left` does so now and then."""
        now = time.monotonic()
        cpu, threads = _used(self.roots)
        if self._before is None:
            self._cpu_before = self._cpu_made = cpu
        else:
            passed = now - self._seen
            going_on = passed >= waits.TICKS and waits.going_on(self._before, threads)
            more = passed if going_on else min(waits.longest(self._before, threads), passed)
            self.waited += more
            waits.excuse(more)
        self._cpu = max(self._cpu, cpu)
        self._before = threads
        self._seen = now


def _used(roots: Sequence[int]) -> tuple[float, dict[int, waits.Thread]]:
    """Return the CPU seconds of processes and their descendants, and their threads."""
    cpu = 0.0
    threads: dict[int, waits.Thread] = {}
    for pid in {member for root in roots for member in tree(root)}:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            cpu += sum(map(int, fields[11:15])) * _TICK  # own, and of children that were waited for
        threads |= waits.by_task(pid)
    return cpu, threads
