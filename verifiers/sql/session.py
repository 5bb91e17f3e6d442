"""What a worker process keeps from sample to sample: open databases and the results of references.

A group of responses to one question shares both.  Each process has its own: after a fork a new one is made, and what
was inherited is never touched, because a connection has one user.

Not covered: databases that change while a run goes on; a file is opened anew when its size or time changes.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from adjudge.verifiers.sql.engine import Engine

MAX_OPEN: Final = 160  # 16 references with their files and what was made of them
MAX_BYTES: Final = 64 << 20
_LONG: Final = 200
_REASONS: Final = 1000

Value = TypeVar("Value")


class Shelf(Generic[Value]):
    """A bounded store; what was used longest ago goes first.

    Args:
        most: the total size it may hold.
    """

    def __init__(self, most: int) -> None:
        self._most, self._held = most, 0
        self._items: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        """Return what is kept under a key, or None."""
        found = self._items.get(key)
        if found is None:
            return None
        self._items.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Value, size: int) -> list[Value]:
        """Keep a value unless it alone is too large; return the values that had to go."""
        gone = []
        if key in self._items:
            gone.append(self.pop(key))
        if size <= self._most:
            self._items[key] = (value, size)
            self._held += size
        while self._held > self._most:
            oldest = next(iter(self._items))
            gone.append(self.pop(oldest))
        return [value for value in gone if value is not None]

    def pop(self, key: Hashable) -> Value | None:
        """Take a value out."""
        value, size = self._items.pop(key, (None, 0))
        self._held -= size
        return value


class Session:
    """Open databases and kept results of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.results: Shelf[object] = Shelf(MAX_BYTES)
        self.reasons: Shelf[str] = Shelf(_REASONS)  # why nothing was made of a file
        self._engines: Shelf[tuple[Engine, ...]] = Shelf(MAX_OPEN)

    def engines(self, key: Hashable, make: Callable[[], tuple[Engine, ...]]) -> tuple[Engine, ...]:
        """Return the open databases under a key, opened now if they are not, or no longer, open."""
        found = self._engines.get(key)
        if found is not None and all(engine.alive for engine in found):
            return found
        made = make()
        for group in self._engines.put(key, made, max(1, len(made))):
            for engine in group:
                engine.close()
        return made


def short(text: str) -> str | bytes:
    """Return what stands for a text in a key: a schema may have 100,000 characters, and each key would hold them."""
    return text if len(text) <= _LONG else hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


_sessions: list[Session] = []


def session() -> Session:
    """Return this process's session."""
    if not _sessions or _sessions[-1].pid != os.getpid():
        _sessions.append(Session())  # an inherited one stays in the list, so that nothing closes its connections
    return _sessions[-1]
