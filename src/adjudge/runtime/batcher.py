"""Dynamic batching: calls from anywhere become batches on one thread, and every caller gets its own results back.

`Batcher.submit` queues pieces of work.  One thread takes what waits, computes equal pieces once, and runs batches of
similar size within a budget; work that arrives meanwhile joins the next batch.  The batch that holds the oldest piece
runs first, so a large job cannot keep a small call waiting.  What a batch holds is planned by pure functions (`plan`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from adjudge.runtime.fork_lock import anew_in_child, undivided

R = TypeVar("R")

# A thread that has nothing to do ends after so many seconds: it holds the model, and nobody can free what it holds.
_IDLE_SECONDS = 10.0


class OutOfRoom(RuntimeError):
    """A batch needs more memory than there is; the batcher tries smaller ones."""


class BatcherClosed(RuntimeError):
    """The batcher was closed before the work was begun."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece of work.

    Attributes:
        kind: pieces of one kind may share a batch.
        key: what is to be done; pieces of one kind with equal keys are done once.
        size: how much of the budget it takes, in tokens; at least 1.
        family: pieces of one family gain from sharing a batch (a common prefix).
    """

    kind: Hashable
    key: Hashable
    size: int
    family: Hashable = None


@dataclass(frozen=True, kw_only=True)
class Result(Generic[R]):
    """What came of a piece of work.

    Attributes:
        value: what `run` returned for it; None if no batch was small enough for the memory.
        shared: the same work was asked for before, so this copy cost nothing.
    """

    value: R | None
    shared: bool = False


def plan(works: Sequence[Work], budget: int) -> list[list[int]]:
    """Return batches of indices, the largest pieces first; families stay together where they fit.

    A batch costs its number of pieces times the size of its largest, as padding makes it; that stays within the budget,
    but a piece that exceeds the budget alone gets a batch alone.  The order of `works` changes nothing but the order of
    equal pieces.
    """
    largest: dict[Hashable, int] = {}
    for work in works:
        if work.family is not None:
            largest[work.family] = max(largest.get(work.family, 0), work.size)
    rank = {family: at for at, family in enumerate(largest)}

    def place(index: int) -> tuple[int, int, int]:
        work = works[index]
        # Families of equal size must not mix, and pieces without one stand where their size puts them.
        return -largest.get(work.family, work.size), rank.get(work.family, -1), -work.size

    batches: list[list[int]] = []
    widest = 0
    for index in sorted(range(len(works)), key=place):
        size = works[index].size
        if batches and max(widest, size) * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(index)
            widest = max(widest, size)
        else:
            batches.append([index])
            widest = size
    return batches


@dataclass(eq=False)
class _Call(Generic[R]):
    results: list[Result[R] | None]
    missing: int
    future: Future[list[Result[R]]] = field(default_factory=Future)

    def settle(self, at: int, result: Result[R]) -> None:
        self.results[at] = result
        self.missing -= 1
        if not self.missing:
            try:
                self.future.set_result([result for result in self.results if result is not None])
            except InvalidStateError:
                return  # the caller was cancelled meanwhile

    def fail(self, error: BaseException) -> None:
        try:
            self.future.set_exception(error)
        except InvalidStateError:
            return  # cancelled, or another batch failed before


@dataclass(eq=False)
class _Piece(Generic[R]):
    work: Work
    waiting: list[tuple[_Call[R], int]]

    def wanted(self) -> bool:
        return any(not call.future.done() for call, _ in self.waiting)


class Batcher(Generic[R]):
    """Runs work in batches on one thread of its own.

    Args:
        run: gets the kind and the keys of a batch, and returns one result per key, in order.  It may raise `OutOfRoom`;
            the batch is then halved, and later ones are kept as small.  Anything else it raises is raised by all
            calls that wait for the batch.
        budget: most padded tokens of a batch.
        name: of the thread.
    """

    def __init__(
        self, run: Callable[[Hashable, Sequence[Hashable]], Sequence[R]], *, budget: int, name: str = "batcher"
    ):
        if budget < 1:
            raise ValueError(f"the batcher's budget is {budget!r}; it must be at least 1 token")
        self._run = run
        self._name = name
        self.budget = budget
        self.begin_anew()
        anew_in_child(self)

    def begin_anew(self) -> None:
        """Forget all work, as a forked child must: neither locks nor threads survive a fork."""
        self._changed = threading.Condition()
        self._pieces: dict[tuple[Hashable, Hashable], _Piece[R]] = {}  # what waits, oldest first
        self._running: dict[tuple[Hashable, Hashable], _Piece[R]] = {}
        self._batches: deque[list[_Piece[R]]] = deque()
        self._thread: threading.Thread | None = None
        self._closing = False

    def submit(self, works: Sequence[Work]) -> Future[list[Result[R]]]:
        """Queue work; the future holds one result per piece, in order.

        Cancelling the future withdraws what has not begun and what nobody else waits for.
        """
        call: _Call[R] = _Call(results=[None] * len(works), missing=len(works))
        if not works:
            call.future.set_result([])
            return call.future
        with undivided(), self._changed:
            for at, work in enumerate(works):
                slot = (work.kind, work.key)
                piece = self._running.get(slot) or self._pieces.get(slot)
                if piece is None:
                    self._pieces[slot] = _Piece(work, [(call, at)])
                    self._batches.clear()  # the plan no longer holds
                else:
                    piece.waiting.append((call, at))
            if self._thread is None:
                self._start()
            self._changed.notify()
        return call.future

    def close(self) -> None:
        """Finish what was begun, fail what waits (`BatcherClosed`), and end the thread; `submit` starts another."""
        with self._changed:
            thread, self._closing = self._thread, self._thread is not None
            waiting = list(self._pieces.values())
            self._pieces.clear()
            self._batches.clear()
            self._changed.notify()
        for piece in waiting:
            for call, _ in piece.waiting:
                call.fail(BatcherClosed(f"the {self._name} was closed before this was done"))
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name=f"adjudge-{self._name}", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while batch := self._next():
            for done in self._attempt(batch):
                self._settle(*done)

    def _next(self) -> list[_Piece[R]]:
        """Wait for work and return the batch with the oldest piece; nothing when the thread is to end."""
        with self._changed:
            while True:
                for slot in [slot for slot, piece in self._pieces.items() if not piece.wanted()]:
                    del self._pieces[slot]
                    self._batches.clear()
                if self._pieces and not self._closing:
                    break
                if self._closing or not self._changed.wait(_IDLE_SECONDS):
                    self._thread, self._closing = None, False
                    if self._pieces:  # they came while the batcher was being closed
                        self._start()
                    return []
            if not self._batches:
                self._batches.extend(self._planned())
            batch = self._batches.popleft()
            for piece in batch:
                slot = (piece.work.kind, piece.work.key)
                self._running[slot] = self._pieces.pop(slot)
            return batch

    def _planned(self) -> list[list[_Piece[R]]]:
        """Batches of everything that waits and is of the oldest piece's kind, the oldest piece's batch first."""
        oldest = next(iter(self._pieces.values()))
        alike = [piece for piece in self._pieces.values() if piece.work.kind == oldest.work.kind]
        batches = [[alike[at] for at in batch] for batch in plan([piece.work for piece in alike], self.budget)]
        batches.sort(key=lambda batch: oldest not in batch)
        return batches

    def _attempt(self, batch: list[_Piece[R]]) -> Iterator[tuple[list[_Piece[R]], Sequence[R | None] | BaseException]]:
        """Run a batch, in halves where it does not fit; yield pieces with their results or with what was raised."""
        outcome: Sequence[R | None] | BaseException | None
        try:
            outcome = self._checked(batch)
        except OutOfRoom:
            outcome = [None] if len(batch) == 1 else None
        except Exception as error:  # noqa: BLE001 whatever it is, it is raised where the results are awaited
            outcome = error
        if outcome is not None:
            yield batch, outcome
            return
        # Not inside `except`: there, the error's traceback would still hold the memory of the batch that did not fit.
        middle = len(batch) // 2
        with self._changed:
            self.budget = max(1, min(self.budget, middle * max(piece.work.size for piece in batch)))
            self._batches.clear()
        yield from self._attempt(batch[:middle])
        yield from self._attempt(batch[middle:])

    def _checked(self, batch: list[_Piece[R]]) -> Sequence[R]:
        results = self._run(batch[0].work.kind, [piece.work.key for piece in batch])
        if len(results) != len(batch):
            raise RuntimeError(f"the {self._name} returned {len(results)} results for {len(batch)} pieces of work")
        return results

    def _settle(self, batch: list[_Piece[R]], outcome: Sequence[R | None] | BaseException) -> None:
        with self._changed:  # from here on, equal work is done again: nothing is kept
            for piece in batch:
                del self._running[piece.work.kind, piece.work.key]
        for at, piece in enumerate(batch):
            for number, (call, place) in enumerate(piece.waiting):
                if isinstance(outcome, BaseException):
                    call.fail(outcome)
                else:
                    call.settle(place, Result(value=outcome[at], shared=number > 0))
