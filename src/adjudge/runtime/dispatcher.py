"""The pool's one background thread: it waits on all sockets at once and lets each target's group of workers get on.

Callers only append to a queue and write a byte to a pipe; everything else belongs to the thread alone, so there is
nothing to lock but the moment in which file descriptors are made (a fork must not see half of it).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from adjudge.runtime.channel import Channel
from adjudge.runtime.clients import SupervisorClient, WorkerClient
from adjudge.runtime.fork_lock import undivided
from adjudge.runtime.job import Job, Kind
from adjudge.runtime.worker_group import WorkerGroup

_MAX_CREWS = 8  # targets kept warm; beyond, the one unused for longest is let go

_LIVE: weakref.WeakSet[Dispatcher] = weakref.WeakSet()


class Dispatcher:
    """A thread that runs jobs on worker processes until it is stopped.

    Args:
        workers: how many processes work at a time.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._inbox: deque[Callable[[], None]] = deque()
        self._gate = threading.RLock()  # a finalizer may call stop while its thread is in here
        self._stopping = False
        self._number = 0
        self._groups: dict[tuple[bytes, bool], WorkerGroup] = {}
        self._parting: list[SupervisorClient] = []
        with undivided():
            self._selector = selectors.DefaultSelector()
            self._wake_read, self._wake_write = os.pipe()
            os.set_blocking(self._wake_read, False)
            os.set_blocking(self._wake_write, False)
            self._selector.register(self._wake_read, selectors.EVENT_READ, self._drain)
            _LIVE.add(self)
        self._thread = threading.Thread(target=self._run, name="adjudge-pool", daemon=True)
        self._thread.start()

    # -- from any thread

    @property
    def ended(self) -> bool:
        """Whether it takes no more jobs."""
        return self._stopping

    def submit(self, target: Callable[[Any], Any], payload: bytes, job: Job) -> None:
        """Have a job done; its future tells the rest.  One that comes too late ends as closed."""
        if not self._call(lambda: self._begin(target, payload, job)):
            job.settle_rest("closed", "the pool was closed")

    def cancel(self, job: Job) -> None:
        """Drop a job whose caller gave up."""
        self._call(lambda: self._drop(job))

    def end(self, job: Job, kind: Kind, error: str) -> None:
        """Give every item of a job that has no outcome this one, and drop the job."""

        def end() -> None:
            job.settle_rest(kind, error)
            self._drop(job)

        self._call(end)

    def stop(self) -> None:
        """Have the thread close everything and end."""
        self._call(lambda: None, last=True)

    def join(self) -> None:
        """Wait for that, unless the caller is the thread itself."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _call(self, action: Callable[[], None], *, last: bool = False) -> bool:
        """Have the thread do something; False if it takes nothing more."""
        with self._gate:
            if self._stopping:
                return False
            self._stopping = last
            self._inbox.append(action)
            with contextlib.suppress(BlockingIOError):  # full of earlier wake-ups
                os.write(self._wake_write, b"\0")
            return True

    # -- what groups ask for

    def start_supervisor(self) -> SupervisorClient:
        """Start a supervisor."""
        with undivided():
            return SupervisorClient()

    def fork(self, supervisor: SupervisorClient, confined: bool) -> WorkerClient:
        """Have a supervisor fork a worker."""
        self._number += 1
        with undivided():
            return supervisor.fork(self._number, confined)

    def watch(self, channel: Channel, ready: Callable[[], None]) -> None:
        """Call `ready` whenever the channel can be read, or written while it has a backlog."""
        self._selector.register(channel.socket, selectors.EVENT_READ, ready)
        channel.on_backlog = lambda backlog: self._want_write(channel, ready, backlog)

    def unwatch(self, channel: Channel) -> None:
        """Stop that; harmless if it was stopped before."""
        channel.on_backlog = None
        try:
            self._selector.unregister(channel.socket)
        except KeyError:
            return

    def _want_write(self, channel: Channel, ready: Callable[[], None], backlog: bool) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if backlog else 0)
        self._selector.modify(channel.socket, events, ready)

    def share(self) -> int:
        """Return how many workers each group with work to do may use: an even part, at least one."""
        busy = sum(bool(group.agenda) for group in self._groups.values())
        return max(self._workers // max(busy, 1), 1)

    def part_with(self, supervisor: SupervisorClient) -> None:
        """Hang up on a supervisor and see to its end."""
        supervisor.hang_up()
        self._parting.append(supervisor)

    # -- the thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._turn()
        except BaseException as error:
            self._fail_all(error)
            raise
        finally:
            with self._gate:
                self._stopping = True
            self._close()

    def _turn(self) -> None:
        now = time.monotonic()
        looks = [group.next_look(now) for group in self._groups.values()]
        if self._parting:
            looks.append(now + 0.05)
        until = min(looks, default=float("inf"))
        timeout = None if until == float("inf") else max(until - now, 0.0)
        for key, _ in self._selector.select(timeout):
            key.data()
        while self._inbox:
            self._inbox.popleft()()
        now = time.monotonic()
        for group in self._groups.values():
            group.advance(now)
        self._parting = [supervisor for supervisor in self._parting if not supervisor.ended()]

    def _drain(self) -> None:
        try:
            while len(os.read(self._wake_read, 4096)) == 4096:
                pass
        except BlockingIOError:
            return

    def _begin(self, target: Callable[[Any], Any], payload: bytes, job: Job) -> None:
        key = (payload, job.limits.processes == 0)
        group = self._groups.get(key)
        if group is None:
            self._let_one_go()
            group = self._groups[key] = WorkerGroup(target, payload, key[1], self)
        group.agenda.add(job)

    def _let_one_go(self) -> None:
        idle = [key for key, group in self._groups.items() if not group.agenda]
        if len(self._groups) >= _MAX_CREWS and idle:
            key = min(idle, key=lambda key: self._groups[key].used_at)
            self._groups.pop(key).close("closed", "")

    def _drop(self, job: Job) -> None:
        for group in self._groups.values():
            group.drop(job)

    def _fail_all(self, error: BaseException) -> None:
        broken = RuntimeError(f"the worker pool broke: {type(error).__name__}: {error}")
        broken.__cause__ = error
        for group in self._groups.values():
            group.fail(broken)

    def _close(self) -> None:
        while self._inbox:
            self._inbox.popleft()()
        for group in self._groups.values():
            group.close("closed", "the pool was closed")
        self._groups.clear()
        for supervisor in self._parting:
            supervisor.wait()
        with undivided():
            _LIVE.discard(self)
            self._selector.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    # -- in a forked child

    def forget(self) -> None:
        """Drop what belongs to the parent: supervisors end when nobody else holds their sockets."""
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        for group in self._groups.values():
            group.forget()
        for supervisor in self._parting:
            supervisor.forget()


def _forget_all() -> None:
    for dispatcher in list(_LIVE):
        dispatcher.forget()
    _LIVE.clear()


os.register_at_fork(after_in_child=_forget_all)
