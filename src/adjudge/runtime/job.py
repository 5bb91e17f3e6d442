"""One call of `Pool.run` on its way: the items, what has become of them, and what is still to do."""

from __future__ import annotations

import marshal
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from adjudge.protocol import Limits

R = TypeVar("R")

Kind: TypeAlias = Literal["ok", "raised", "timeout", "memory", "crash", "lost", "overloaded", "closed", "late"]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """The result of one call of a target, or why there is none.

    Attributes:
        kind: "ok"; "raised" (the target raised); "timeout", "memory" (a limit was passed and the worker replaced);
            "crash" (the worker process died of the item, twice); "lost" (it was killed from outside, twice);
            "overloaded" (the machine let it wait until its time was up many times over); "closed" (the pool was closed
            first); "late" (the caller's deadline passed first).
        value: what the target returned when `kind` is "ok", else None.
        error: "" when `kind` is "ok", else one line that says what happened.
        seconds: wall-clock seconds from the start of the call, queueing not counted; 0 when it never started.
        delivered: False when the item could not be pickled or unpickled, so the target never saw it.
    """

    kind: Kind
    value: R | None = None
    error: str = ""
    seconds: float = 0.0
    delivered: bool = True


_OPEN: Final = object()
_PACKED: Final = object()


class Results(Generic[R]):
    """What became of the items of a call, in columns, because most outcomes are plain values.

    Values come packed, a few hundred at a time, and stay so until somebody asks: unpacked in the pool's thread one
    after the other, they would keep the garbage collector busy with objects that are all in use.

    Attributes:
        seconds: how long each call took.
        odd: the outcomes that are not "ok", by the item's index.
    """

    __slots__ = ("_packed", "_values", "odd", "seconds")

    def __init__(self, count: int) -> None:
        self._values: list[Any] = [_OPEN] * count
        self._packed: list[tuple[Sequence[int], bytes]] = []
        self.seconds: list[float] = [0.0] * count
        self.odd: dict[int, Outcome[R]] = {}

    def is_open(self, index: int) -> bool:
        """Whether nothing is known of an item yet."""
        return self._values[index] is _OPEN

    def put(self, indices: Sequence[int], values: Sequence[Any] | bytes, seconds: Sequence[float]) -> None:
        """Record what the target returned for several items, plainly or marshalled, and how long each call took."""
        if isinstance(values, bytes):
            self._packed.append((indices, values))
            values = [_PACKED] * len(indices)
        held, times = self._values, self.seconds
        for index, value, time in zip(indices, values, seconds, strict=True):
            held[index] = value
            times[index] = time

    @property
    def values(self) -> list[Any]:
        """What the target returned, by item; None where it did not."""
        held = self._values
        while self._packed:
            indices, packed = self._packed.pop()
            for index, value in zip(indices, marshal.loads(packed), strict=True):
                held[index] = value
        return held

    def outcomes(self) -> list[Outcome[R]]:
        """Return one outcome per item, in order."""
        made = [Outcome("ok", value, "", seconds) for value, seconds in zip(self.values, self.seconds, strict=True)]
        for index, outcome in self.odd.items():
            made[index] = outcome
        return made


class Job:
    """The items of one call, in the hands of the pool's thread alone.

    Attributes:
        items: what to call the target on.
        limits: what each call may use.
        encode: what makes of an item what is sent; None to send the item itself.
        future: set when every item has its outcome.
        by_value: whether items are sent with cloudpickle, because a worker could not read plain pickles.
        singly: whether they are sent one at a time, because one cannot be read at all.
        losses: how often an item's worker was killed from outside.
    """

    def __init__(self, items: Sequence[Any], limits: Limits, encode: Callable[[Any], Any] | None = None) -> None:
        self.items = items
        self.limits = limits
        self.encode = encode
        self.future: Future[Results[Any]] = Future()
        self.by_value = False
        self.singly = False
        self.losses: dict[int, int] = {}
        self._results: Results[Any] = Results(len(items))
        self._left = len(items)
        self._cursor = 0
        self._again: deque[int] = deque()
        if not items:
            self._complete()

    @property
    def waiting(self) -> int:
        """How many items are to be handed out."""
        return len(self._again) + len(self.items) - self._cursor

    def take(self, most: int) -> list[int]:
        """Return the indices of the next items, those that come back from a lost worker first."""
        taken = [self._again.popleft() for _ in range(min(most, len(self._again)))]
        fresh = min(most - len(taken), len(self.items) - self._cursor)
        taken.extend(range(self._cursor, self._cursor + fresh))
        self._cursor += fresh
        return taken

    def put_back(self, indices: Sequence[int]) -> None:
        """Have items handed out again, before the others."""
        self._again.extendleft(reversed(indices))

    def settle(self, index: int, outcome: Outcome[Any]) -> None:
        """Record what became of an item that has no value; the last one completes the call."""
        if not self._results.is_open(index):
            return
        self._results.put([index], [None], [0.0])
        self._results.odd[index] = outcome
        self._settled(1)

    def settle_values(self, indices: Sequence[int], values: Sequence[Any] | bytes, seconds: Sequence[float]) -> None:
        """Record what the target returned for several items (see `Results.put`), and how long it took."""
        self._results.put(indices, values, seconds)
        self._settled(len(indices))

    def settle_rest(self, kind: Kind, error: str) -> None:
        """Give every item without an outcome this one."""
        for index in range(len(self.items)):
            self.settle(index, Outcome(kind, error=error))

    def fail(self, error: Exception) -> None:
        """End the call with an exception."""
        try:
            self.future.set_exception(error)
        except InvalidStateError:
            return  # the caller gave up

    def _settled(self, count: int) -> None:
        self._left -= count
        if self._left == 0:
            self._complete()

    def _complete(self) -> None:
        try:
            self.future.set_result(self._results)
        except InvalidStateError:
            return  # the caller gave up


@dataclass(slots=True)
class Chunk:
    """Items of one job that travel to a worker together.

    Attributes:
        job: whose items.
        indices: which items; results come back in this order.
        alone: whether it is the second try of one item that cost a worker, in a fresh one.
        by_value: whether it is pickled with cloudpickle.
        first: whether the worker had done nothing before.
        done: how many results came back.
        seconds: working time of those.
    """

    job: Job
    indices: list[int]
    alone: bool = False
    by_value: bool = False
    first: bool = False
    done: int = 0
    seconds: float = 0.0

    @property
    def open(self) -> list[int]:
        """The indices without a result."""
        return self.indices[self.done :]
