"""Killable worker processes: call a function on many items, each within limits that hold.

Every item runs in a warm worker process.  What runs too long, eats memory or kills its process costs its own
outcome and nothing else: the worker is killed and replaced, and time is counted from when an item starts, never
while it queues.  Short items travel in chunks.  A pool works from any thread, inside a running event loop, in
processes made by fork or spawn, and in a Ray actor; it leaves no process behind, whatever happens to its owner.

Not covered: isolation of hostile *programs*.  A target is trusted code that reads untrusted data.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, TypeVar

from adjudge.protocol import Limits
from adjudge.runtime.deadline import seconds_left
from adjudge.runtime.dispatcher import Dispatcher
from adjudge.runtime.job import Job, Outcome, Results
from adjudge.runtime.pickling import pack
from adjudge.runtime.role import NestedPoolError, in_worker
from adjudge.runtime.worker_group import TargetError

__all__ = ["Outcome", "Pool", "Results", "TargetError", "as_default", "default_pool", "in_worker"]

T = TypeVar("T")
R = TypeVar("R")


class Pool:
    """A set of worker processes, started when there is work for them.

    A target is loaded once, in a process of its own from which workers are forked, so its imports are charged to no
    item; if it has a method `warm_up`, that is called there too.  Targets of one pool share its workers evenly, with
    at least one each.

    Args:
        workers: how many items run at a time; by default one per CPU this process may use.

    Raises:
        ValueError: `workers` is not positive.
        NestedPoolError: this process is itself a worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"a pool of {workers!r} workers can do nothing; give at least 1, or None for one per CPU")
        if in_worker():
            raise NestedPoolError("a worker of a pool cannot have a pool; call the function directly (see in_worker())")
        self.workers = usable_cpus() if workers is None else workers
        self._closed = False
        self._lock = threading.Lock()
        self._dispatcher: Dispatcher | None = None
        self._finalizer: weakref.finalize[..., Pool] | None = None
        _POOLS.add(self)

    def run(self, target: Callable[[T], R], items: Sequence[T], *, limits: Limits) -> list[Outcome[R]]:
        """Call `target` on each item and wait for all.

        Args:
            target: any picklable callable; functions and classes of `__main__` or a notebook travel by value.
            items: picklable values.
            limits: what each call may use.

        Returns:
            One outcome per item, in order.

        Raises:
            ValueError: the target cannot be pickled.
            TargetError: the target cannot be loaded in a worker process.
        """
        job = self._submit(target, items, limits)
        try:
            return job.future.result().outcomes()
        except BaseException:
            self._give_up(job)
            raise

    async def run_async(self, target: Callable[[T], R], items: Sequence[T], *, limits: Limits) -> list[Outcome[R]]:
        """Do what `run` does without blocking the event loop."""
        results = await self.collect(target, items, limits=limits)
        return results.outcomes()

    async def collect(
        self,
        target: Callable[[Any], R],
        items: Sequence[T],
        *,
        limits: Limits,
        encode: Callable[[T], Any] | None = None,
    ) -> Results[R]:
        """Do what `run_async` does, and return columns instead of an object per item.

        With `encode`, the target is called on what that makes of an item when its turn comes, in the pool's thread.
        Items without an outcome at the caller's deadline (`adjudge.runtime.deadline`) get the kind "late".
        """
        job = self._submit(target, items, limits, encode)
        left = seconds_left()
        timer = None if left is None else asyncio.get_running_loop().call_later(left, self._end, job)
        try:
            return await asyncio.wrap_future(job.future)
        except BaseException:
            self._give_up(job)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """End all processes and wait until they are gone; items without an outcome get the kind "closed"."""
        with self._lock:
            self._closed = True
            dispatcher, self._dispatcher = self._dispatcher, None
            if self._finalizer is not None:
                self._finalizer.detach()
        if dispatcher is not None:
            dispatcher.stop()
            dispatcher.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Pool(workers={self.workers})"

    def _submit(
        self,
        target: Callable[[Any], R],
        items: Sequence[T],
        limits: Limits,
        encode: Callable[[T], Any] | None = None,
    ) -> Job:
        job = Job(list(items), limits, encode)
        if not job.items:
            return job
        payload = _packed(target)
        with self._lock:
            if self._closed:
                job.settle_rest("closed", "the pool was closed")
            else:
                if self._dispatcher is None or self._dispatcher.ended:
                    self._dispatcher = Dispatcher(self.workers)
                    self._finalizer = weakref.finalize(self, self._dispatcher.stop)
                self._dispatcher.submit(target, payload, job)
        return job

    def _give_up(self, job: Job) -> None:
        job.future.cancel()
        dispatcher = self._dispatcher
        if dispatcher is not None:
            dispatcher.cancel(job)

    def _end(self, job: Job) -> None:
        dispatcher = self._dispatcher
        if dispatcher is not None:
            dispatcher.end(job, "late", "the time of the whole call was up")

    def _start_over(self) -> None:
        """In a forked child: the processes and the thread are the parent's; make others when needed."""
        self._lock = threading.Lock()
        self._dispatcher = None
        if self._finalizer is not None:
            self._finalizer.detach()
            self._finalizer = None


def _packed(target: Callable[..., Any]) -> bytes:
    try:
        return pack(target)
    except Exception as error:
        raise ValueError(
            f"{target!r} cannot be sent to worker processes ({type(error).__name__}: {error}); "
            "it must be picklable: hold plain data, and open files, locks and connections inside the call"
        ) from error


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()
_default: Pool | None = None
_chosen: ContextVar[Pool | None] = ContextVar("adjudge_pool", default=None)
_default_lock = threading.Lock()


@contextmanager
def as_default(pool: Pool) -> Iterator[None]:
    """Have scorers that were given no pool use this one, in the code inside and in the tasks it starts."""
    token = _chosen.set(pool)
    try:
        yield
    finally:
        _chosen.reset(token)


def default_pool() -> Pool:
    """Return the pool that scorers share unless they are given one: that of `as_default`, or else the process's.

    The process's own is made on first use and closed at exit.

    Raises:
        NestedPoolError: this process is itself a worker.
    """
    global _default
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    with _default_lock:
        if _default is None or _default._closed:
            _default = Pool()
        return _default


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


def _start_over_in_child() -> None:
    global _default_lock
    _default_lock = threading.Lock()
    for pool in list(_POOLS):
        pool._start_over()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_start_over_in_child)
