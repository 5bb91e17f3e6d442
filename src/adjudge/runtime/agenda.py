"""What a group of workers has to do: jobs, cut into chunks, and what every result or death of a worker means for them.

Chunks are sized by measured time: one item at first, then what fills about 8 ms, and less towards the end, so that
all workers end together.  An item that cost a worker is tried once more, alone, in a fresh worker, before it is
charged; so neither its neighbours in the chunk nor what earlier items left in the worker's memory can decide its
outcome.
"""

from __future__ import annotations

import marshal
import pickle
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from adjudge.runtime.fork_lock import undivided
from adjudge.runtime.job import Chunk, Job, Kind, Outcome
from adjudge.runtime.pickling import collector_paused, pack, pack_plainly

_CHUNK_SECONDS = 0.008
_MIN_SECONDS = 0.0005  # below this, handing a chunk out costs more than an uneven end
_MAX_ITEMS = 256
_MAX_BYTES = 160 << 10  # of a chunk's frame, more or less; a socket takes 208 KiB without waiting, with overhead
_GROWTH = 4  # a chunk has at most so many times the items of the one before; single timings are noisy
_MAX_LOSSES = 2


class Agenda:
    """The work of one group of workers.

    Attributes:
        seconds_per_item: a running mean; None until the first result.
        by_value: names of modules that workers cannot import, whose contents are sent instead.
    """

    def __init__(self) -> None:
        self.seconds_per_item: float | None = None
        self.by_value: set[str] = set()
        self._jobs: set[Job] = set()
        self._over: deque[Job] = deque()
        self._queue: deque[Job] = deque()
        self._waiting = 0
        self._alone: deque[tuple[Job, int]] = deque()
        self._bytes_per_item = 0.0
        self._last_size = 1

    def __bool__(self) -> bool:
        """Whether anybody waits for an outcome."""
        return bool(self._jobs)

    @property
    def waiting(self) -> int:
        """How many items are to be handed out to any worker."""
        return self._waiting

    @property
    def alone(self) -> int:
        """How many items wait for a fresh worker of their own."""
        return len(self._alone)

    @property
    def quick(self) -> bool:
        """Whether chunks are so short that a worker should have the next one ahead."""
        return self._last_size > 1

    def add(self, job: Job) -> None:
        """Take on a job."""
        self._jobs.add(job)
        self._waiting += job.waiting
        self._queue.append(job)
        job.future.add_done_callback(lambda _: self._over.append(job))  # maybe in the thread of a caller that gave up

    def sweep(self) -> None:
        """Forget jobs that are complete or that nobody waits for any more."""
        while self._over:
            job = self._over.popleft()
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting -= job.waiting
                if self._alone:
                    self._alone = deque(entry for entry in self._alone if entry[0] is not job)

    # -- handing out

    def next_frame(self, share: int, *, unused: bool) -> tuple[Chunk, bytes] | None:
        """Return the next chunk and its pickle, or None when nothing waits that this worker may have.

        Args:
            share: among how many workers what waits is shared out.
            unused: whether the worker has not been handed anything yet.
        """
        while (chunk := self._next_chunk(share, unused)) is not None:
            frame = self._pickled(chunk)
            if frame is not None:
                self._bytes_per_item = len(frame) / len(chunk.indices)
                return chunk, frame
        return None

    def _next_chunk(self, share: int, unused: bool) -> Chunk | None:
        if unused and self._alone:
            job, index = self._alone.popleft()
            return Chunk(job, [index], alone=True, by_value=job.by_value)
        while self._queue:
            job = self._queue.popleft()
            if job not in self._jobs or not job.waiting:
                continue
            self._last_size = self._size(job, share)
            chunk = Chunk(job, job.take(self._last_size), first=unused, by_value=job.by_value)
            self._waiting -= len(chunk.indices)
            if job.waiting:
                self._queue.append(job)  # jobs take turns
            return chunk
        return None

    def _put_back(self, job: Job, indices: list[int]) -> None:
        if indices and job in self._jobs:
            if not job.waiting:
                self._queue.append(job)
            job.put_back(indices)
            self._waiting += len(indices)

    def _size(self, job: Job, share: int) -> int:
        if self.seconds_per_item is None or job.singly:
            return 1
        each = max(self.seconds_per_item, 1e-9)
        even = max(-(-job.waiting // (2 * share)), int(_MIN_SECONDS / each))
        size = min(_MAX_ITEMS, self._last_size * _GROWTH, even, int(_CHUNK_SECONDS / each))
        if self._bytes_per_item:
            size = min(size, int(_MAX_BYTES / self._bytes_per_item))
        return max(size, 1)

    def _pickled(self, chunk: Chunk) -> bytes | None:
        """Pickle a chunk, without the items that cannot be; None if that leaves none."""
        try:
            return self._frame(chunk)
        except Exception as error:  # noqa: BLE001 an item's own class decides what pickling raises
            if len(chunk.indices) == 1:
                text = f"the item cannot be pickled: {_name(error)}"
                chunk.job.settle(chunk.indices[0], Outcome("raised", error=text, delivered=False))
                return None
        single = [Chunk(chunk.job, [index], by_value=chunk.by_value) for index in chunk.indices]
        chunk.indices = [each.indices[0] for each in single if self._pickled(each) is not None]
        return self._frame(chunk) if chunk.indices else None

    def _frame(self, chunk: Chunk) -> bytes:
        job = chunk.job
        items = [job.items[index] for index in chunk.indices]
        with collector_paused():
            if job.encode is not None:
                items = [job.encode(item) for item in items]
            message = (job.limits.seconds, job.limits.memory_mb, items)
            if chunk.by_value:
                return pack(message, self.by_value)
            return pack_plainly(message)

    # -- taking in

    def settle(self, chunk: Chunk, frame: bytes) -> bool:
        """Take in a frame of results of a chunk; return whether its worker takes no more work."""
        try:
            with undivided():  # unpickling may import
                values, times, odd, unread, leaving = pickle.loads(frame)
        except Exception as error:  # noqa: BLE001 a value's own class decides what unpickling raises
            self._unreadable(chunk, f"the result cannot be unpickled: {_name(error)}")
            return True
        if unread:
            self._undelivered(chunk, *unread)
            return False
        indices = chunk.indices[chunk.done : chunk.done + len(times)]
        chunk.done += len(times)
        chunk.seconds += sum(times)
        if odd and isinstance(values, bytes):
            values = marshal.loads(values)
        for offset in sorted(odd, reverse=True):
            kind, text = odd[offset]
            index, seconds = indices.pop(offset), times.pop(offset)
            del values[offset]
            by_itself = chunk.alone or (chunk.first and chunk.indices[0] == index)
            if kind == "memory" and not by_itself:
                self._alone.append((chunk.job, index))  # earlier items may have filled the worker
            else:
                chunk.job.settle(index, Outcome(kind, None, text, seconds))
        chunk.job.settle_values(indices, values, times)
        if not chunk.open:
            self._measure(chunk)
        return bool(leaving)

    def _undelivered(self, chunk: Chunk, missing: str, text: str) -> None:
        """A worker could not unpickle a chunk: send items by value, then one by one, before giving up on one."""
        job = chunk.job
        if chunk.by_value and len(chunk.indices) == 1:
            error = f"the item cannot be unpickled in a worker: {text}"
            job.settle(chunk.indices[0], Outcome("raised", error=error, delivered=False))
        else:
            job.singly |= chunk.by_value and missing in self.by_value
            self.by_value.add(missing)
            job.by_value = True
            self._put_back(job, chunk.open)
        chunk.done = len(chunk.indices)

    def _unreadable(self, chunk: Chunk, text: str) -> None:
        if len(chunk.indices) == 1:
            chunk.job.settle(chunk.indices[0], Outcome("raised", error=text))
        else:
            self._alone.extend((chunk.job, index) for index in chunk.open)
        chunk.done = len(chunk.indices)

    def _measure(self, chunk: Chunk) -> None:
        each = chunk.seconds / len(chunk.indices)
        held = self.seconds_per_item
        self.seconds_per_item = each if held is None else (held + each) / 2

    # -- deaths of workers

    def after_death(
        self, chunks: Iterable[Chunk], position: int | None, cause: Outcome[Any] | None, *, handling: bool = False
    ) -> None:
        """Have done again what a dead worker left undone, and charge the item it died of.

        Args:
            chunks: what it had been handed, oldest first.
            position: the item of the first chunk that it was at, if any.
            cause: what to charge that item with; None if the worker was let go.
            handling: whether it was pickling or unpickling, when no item can be told apart from the others.
        """
        held = list(chunks)
        for chunk in reversed(held[1:]):
            self._put_back(chunk.job, chunk.open)
        if not held:
            return
        first, undone = held[0], held[0].open
        if cause is not None and position is not None:
            guilty = first.indices[position]
            if self._charge(first, guilty, cause):
                undone.remove(guilty)
        elif cause is not None and handling and len(undone) > 1:
            self._alone.extend((first.job, index) for index in undone)
            undone = []
        elif cause is not None and undone and self._charge(first, undone[0], replace(cause, kind="lost")):
            del undone[0]
        self._put_back(first.job, undone)

    def _charge(self, chunk: Chunk, index: int, cause: Outcome[Any]) -> bool:
        """Charge an item; False if it is to be put back with the others."""
        job = chunk.job
        if cause.kind in ("crash", "memory") and not chunk.alone:
            self._alone.append((job, index))
            return True
        if cause.kind == "lost":
            job.losses[index] = job.losses.get(index, 0) + 1
            if job.losses[index] < _MAX_LOSSES:
                return False
        job.settle(index, cause)
        return True

    # -- the end

    def end(self, kind: Kind, error: str) -> None:
        """Give every item without an outcome this one."""
        for job in tuple(self._jobs):
            job.settle_rest(kind, error)
        self.sweep()

    def fail(self, error: Exception) -> None:
        """End every job with an exception."""
        for job in tuple(self._jobs):
            job.fail(error)
        self.sweep()


def _name(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
