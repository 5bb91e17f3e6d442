"""Where a scorer runs: an event loop on a thread of its own, which is given up when a scorer blocks it.

A scorer with a blocking call inside `async def score` would stop every other scorer, all deadlines and the server if
it ran on their loop.  Here it stops its own thread; the deadline is kept outside, and the next call gets a new thread.
The old one cannot be killed (no thread can): it is counted, and ends when the blocking call does.  Programs that check
should be verifiers, which run in processes that are killed.

Not covered: processes and memory, and calls that keep Python's interpreter lock: those stop the whole process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future

from adjudge.api import score_rows
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import BrokenScorer

ANSWERS_WITHIN = 1.0
"""Seconds; a loop that does not come round in that time is blocked."""


class Desk:
    """Runs the calls of one scorer; to be used from one thread.

    Args:
        name: names the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self.given_up = 0
        """How many threads were left behind."""

    def begin(self, scorer: Scorer, samples: Sequence[Sample]) -> Future[list[Score]]:
        """Begin a call of the scorer."""
        if self._loop is None or self._loop.is_closed():
            self._loop = _started(self._name)
        return asyncio.run_coroutine_threadsafe(_scored(scorer, samples), self._loop)

    async def give_up_if_blocked(self) -> None:
        """See whether the thread comes round; if not, the next call gets another one."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        round_trip: Future[None] = Future()
        loop.call_soon_threadsafe(_answer, round_trip)
        try:
            await asyncio.wait_for(asyncio.wrap_future(round_trip), ANSWERS_WITHIN)
        except TimeoutError:
            if self._loop is loop:
                self._loop = None
                self.given_up += 1
                loop.call_soon_threadsafe(loop.stop)  # should the blocking call ever end

    def close(self) -> None:
        """Let the thread end."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)


async def _scored(scorer: Scorer, samples: Sequence[Sample]) -> list[Score]:
    try:
        return await score_rows(scorer, samples)
    except KeyboardInterrupt as error:  # nobody's Ctrl-C: those come to the main thread, and this would end the thread
        raise BrokenScorer(f"the scorer {scorer.name!r} raised KeyboardInterrupt") from error


def _answer(round_trip: Future[None]) -> None:
    if round_trip.set_running_or_notify_cancel():
        round_trip.set_result(None)


def _started(name: str) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=ANSWERS_WITHIN))
            loop.close()

    threading.Thread(target=run, name=f"adjudge-{name}", daemon=True).start()
    return loop
