"""Reading, working and writing overlap, and what is written keeps the order of what was read.

One thread reads, one writes, and the event loop works on several items at once.  An item that is slow lets a
bounded number of others pass, and is written before all of them.  `run_to_end` runs such work from any thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from adjudge.io.errors import JobError


def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in this thread, or beside the loop that runs in it already; Ctrl-C cancels it and waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def run() -> None:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        await work

    with ThreadPoolExecutor(1, "adjudge-job") as beside:
        running = beside.submit(asyncio.run, run())
        try:
            running.result()
        except KeyboardInterrupt:
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
            raise


T = TypeVar("T")
R = TypeVar("R")

_PAUSE: Final = 0.5  # seconds


def _nothing() -> None:
    """Do nothing."""


def _no_size(item: object) -> int:
    return 0


async def in_order(
    chunks: Iterator[Sequence[T]],
    work: Callable[[T], Awaitable[R]],
    write: Callable[[Sequence[tuple[T, R]]], None],
    *,
    at_once: int,
    ahead: int,
    size: Callable[[T], int] = _no_size,
    ahead_bytes: int = 1 << 62,
    told: Callable[[], None] = _nothing,
    rest: Callable[[], None] = _nothing,
) -> None:
    """Work on every item and write what came of it, in order.

    Args:
        chunks: yields items, a few at a time; `next` is called in a thread of its own.
        work: called in the running loop, for at most `at_once` items at the same time.
        write: takes items with their results, called in a thread of its own.
        at_once: how many items are worked on.
        ahead: no chunk is read while so many items are read and not yet handed to `write`.
        size: bytes that an item holds, roughly.
        ahead_bytes: nor is one while those items hold so many.
        told: called in the loop after each write.
        rest: called in the thread that writes, when half a second has passed and the next item is not done.

    Raises:
        JobError: the input broke off; all that was read before is written first.
        Exception: whatever `work` or `write` raised; all before the item that failed is written first.
    """
    loop = asyncio.get_running_loop()
    room = asyncio.Semaphore(at_once)
    pending: deque[tuple[T, asyncio.Task[R]]] = deque()
    held = 0
    cut: JobError | None = None
    written: asyncio.Task[None] | None = None

    async def worked(item: T) -> R:
        async with room:
            return await work(item)

    async def put(done: Sequence[tuple[T, R]]) -> None:
        await loop.run_in_executor(writing, write, done)
        told()

    # Leaving the `with` waits for both threads, so nothing is written behind the back of whoever comes next.
    with ThreadPoolExecutor(1, "adjudge-write") as writing, ThreadPoolExecutor(1, "adjudge-read") as reading:
        try:
            more = True
            while more or pending:
                while more and len(pending) < ahead and (held < ahead_bytes or not pending):
                    try:
                        chunk = await loop.run_in_executor(reading, next, chunks, None)
                    except JobError as error:
                        chunk, cut = None, error
                    more = chunk is not None
                    for item in chunk or ():
                        pending.append((item, asyncio.create_task(worked(item))))
                        held += size(item)
                if not pending:
                    continue
                first = pending[0][1]
                slow = not first.done() and not (await asyncio.wait([first], timeout=_PAUSE))[0]
                if written is not None:
                    await asyncio.shield(written)
                if slow:
                    await loop.run_in_executor(writing, rest)
                await first
                done = _finished(pending)  # nothing is awaited from here on, so a cancellation cannot lose them
                held -= sum(size(item) for item, _ in done)
                written = asyncio.create_task(put(done))
            if written is not None:
                await asyncio.shield(written)
        finally:
            done = _finished(pending)
            if await _all_written([task for _, task in pending], written) and done:  # what is done is kept
                await put(done)
    if cut is not None:
        raise cut


async def _all_written(left: Sequence[asyncio.Task[R]], written: asyncio.Task[None] | None) -> bool:
    """Give up what is under way, and return whether all that was handed over is written."""
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    if written is None:
        return True
    (problem,) = await asyncio.gather(written, return_exceptions=True)
    return problem is None


def _finished(pending: deque[tuple[T, asyncio.Task[R]]]) -> list[tuple[T, R]]:
    """Take the items from the front that came to a result."""
    done: list[tuple[T, R]] = []
    while pending:
        item, task = pending[0]
        if not task.done() or task.cancelled() or task.exception() is not None:
            break
        done.append((item, task.result()))
        pending.popleft()
    return done
