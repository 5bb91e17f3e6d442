"""What a query may take of memory: in the PostgreSQL backend that runs it, on this host, and here.

No setting of PostgreSQL bounds a backend: `work_mem` makes sorts and hashes spill, but `array_agg` or `repeat` take
what they take, 1 GB for one value and any number of values.  Each connection has a backend process of its own.  Who
runs the server, or is root, may limit that process, and its `malloc` fails in good time.  Everybody else can see its
memory grow, cancel the query and hang up.

Not covered: servers on other hosts or in another process namespace (a container), other systems than Linux, and,
without the right to limit the backend, a value that is made in one step: `array_fill` took 5 GB before it was stopped.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg.pq import ExecStatus

if TYPE_CHECKING:
    from psycopg.abc import PQGen

Result = TypeVar("Result")

INTERVAL: Final = 0.02
"""Seconds between two looks; in that time `array_agg` took 2 MB more where this was tried, `repeat` 15 MB."""

_LOCAL: Final = ("", "127.0.0.1", "::1", "localhost")


class MemoryExceededError(Exception):
    """A query took more memory than it may; the connection is closed."""


class OversizedRowError(Exception):
    """A row has more bytes than the whole result may have; the connection is closed."""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that bounds what a query takes, from `watch` to `unwatch`."""

    _watched_processes: dict[int, int] | None = None  # bytes that each may hold; None while nothing is watched
    _backend: int | None = None  # its number, 0 if this process cannot see it, None before that is known
    _growth = 0
    _row_bytes = 0
    _next_look = 0.0

    def watch(self, growth: int, row_bytes: int) -> None:
        """Bound what runs from now on.

        Args:
            growth: bytes by which the backend's memory may grow, and this process's.
            row_bytes: bytes that one row may have as it is sent; psycopg makes up to 30 times as many of them.
        """
        self._watched_processes = {}
        self._growth, self._row_bytes = growth, row_bytes
        self._next_look = time.monotonic() + INTERVAL
        if self._backend is None:
            self._backend = self.info.backend_pid if self._is_local() else 0
        if self._backend and (memory := _memory(self._backend)) is not None:
            self._watched_processes[self._backend] = memory.private + growth
            _limit(self._backend, memory.data + growth)

    def unwatch(self) -> None:
        """Look no longer."""
        self._watched_processes = None

    def wait(self, gen: PQGen[Result], interval: float = INTERVAL, timeout: float | None = None) -> Result:
        """Wait as a connection does, look from time to time, and at each row.

        Raises:
            MemoryExceededError: the backend or this process has grown too much.
            OversizedRowError: a row is too large to be read.
        """
        if self._watched_processes is None:
            return super().wait(gen, interval=interval, timeout=timeout)
        result = super().wait(self._watched(gen), interval=interval, timeout=timeout)
        if isinstance(result, psycopg.pq.PGresult) and result.status == ExecStatus.SINGLE_TUPLE:
            size = sum([len(result.get_value(0, at) or b"") for at in range(result.nfields)])
            if size > self._row_bytes:
                self._hang_up()
                raise OversizedRowError(f"a row of {size:,} bytes")
        return result

    def _watched(self, gen: PQGen[Result]) -> Generator[Any, Any, Result]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if time.monotonic() >= self._next_look:
                    self._look()
                wanted = gen.send(ready)
        except StopIteration as end:
            result: Result = end.value
            return result

    def _look(self) -> None:
        watched = self._watched_processes
        if watched is None:
            return
        for pid in {*watched, os.getpid()}:
            memory = _memory(pid)
            # This process is weighed when a query has run for a while: most end before, and a look costs 10 us.
            if memory is not None and memory.private > watched.setdefault(pid, memory.private + self._growth):
                self._hang_up()
                raise MemoryExceededError
        self._next_look = time.monotonic() + INTERVAL

    def _hang_up(self) -> None:
        self.unwatch()
        with contextlib.suppress(psycopg.Error):  # then the deadline ends the query
            self.pgconn.get_cancel().cancel()
        self.close()

    def _is_local(self) -> bool:
        """Whether the backend is a process that this one can see."""
        if not (self.info.host.startswith("/") or self.info.host in _LOCAL):
            return False
        try:
            with open(f"/proc/{self.info.backend_pid}/cmdline", "rb") as file:
                title = file.read(500)
        except OSError:
            return False
        # A server in a container counts its processes anew, so the number alone may be somebody else's.
        return title.startswith(b"postgres:") and f" {self.info.user} {self.info.dbname} ".encode() in title


class Memory(NamedTuple):
    """Bytes of a process.

    Attributes:
        private: what it alone holds; the server's shared buffers are left out.
        data: what it has asked for, held or not, as `RLIMIT_DATA` counts it.
    """

    private: int
    data: int


def _memory(pid: int) -> Memory | None:
    """Return the memory of a process, which Linux tells every user; None if it is not seen."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            _, resident, shared, _, _, data, _ = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return Memory((resident - shared) * resource.getpagesize(), data * resource.getpagesize())


def _limit(pid: int, most: int) -> None:
    """Limit what a process may ask for, where this one has the right to; its hard limit stays as it is."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: more than the hard limit, which then holds
        _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
        resource.prlimit(pid, resource.RLIMIT_DATA, (most, hard))
