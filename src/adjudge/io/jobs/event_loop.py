"""Running a coroutine to its end from any thread, inside a running event loop too (a notebook)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


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
