"""One private event loop on a background thread, for synchronous callers of asynchronous scorers.

`run_blocking` works from any thread, inside a running event loop, in a notebook, in a Ray actor and after
`os.fork`: the caller's own loop, if it has one, is never touched.  A process has at most one such loop; a forked
child starts its own on first use, because threads do not survive a fork.

Not covered: time limits.  A coroutine that never ends blocks its caller until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def together(calls: Sequence[Awaitable[T]]) -> list[T]:
    """Wait for all calls at once; if one raises, the others are cancelled and its error is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class BackgroundLoop:
    """An event loop that runs on a daemon thread of its own, started on first use; `name` is the thread's."""

    def __init__(self, name: str = "adjudge-loop") -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return its result, blocking the calling thread."""
        if threading.current_thread() is self._thread:
            return _on_fresh_thread(work)
        future = asyncio.run_coroutine_threadsafe(work, self.started())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in the caller must not leave the work running
            raise

    def close(self) -> None:
        """Stop the loop; a later `run` starts another."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=1.0)

    def started(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_forever, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


# By process id: a forked child must not even wait for the lock of its parent's entry, which may be held forever there.
_LOOPS: dict[tuple[int, str], BackgroundLoop] = {}


def process_loop(name: str = "adjudge-loop") -> BackgroundLoop:
    """Return this process's loop of a name; a forked child gets its own."""
    key = (os.getpid(), name)
    return _LOOPS.get(key) or _LOOPS.setdefault(key, BackgroundLoop(name))


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this process's background loop and return its result.

    A scorer that calls this from inside the background loop itself gets a thread of its own, so it cannot
    wait for itself.
    """
    return process_loop().run(work)


def in_thread(work: Callable[[], T], name: str = "adjudge-call") -> Future[T]:
    """Run work on a daemon thread: those of an executor are joined at exit, and a call that hangs never ends."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 it is raised again where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _on_fresh_thread(work: Coroutine[Any, Any, T]) -> T:
    nested = BackgroundLoop()
    try:
        return nested.run(work)
    finally:
        nested.close()
