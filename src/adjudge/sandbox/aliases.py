"""Lists, dictionaries and the like that both processes hold: what one does to its copy is done to the other's.

A candidate may keep a list that it was given (an object, a generator, a context manager), and tests may change one that
they got (`stack.peek().append(2)`).  The candidate's end sees that something of the program still holds a container
after an operation, and gives it a number; from then on each end tells, with every request and answer, what became of
its own copy.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: containers within
containers, which change with the outer one and are others then; what takes more than 64 KB; what is changed after an
end has looked at 64 MB of containers, which a list of 10,000 numbers takes 1,300 operations to reach.
"""

from __future__ import annotations

import marshal
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adjudge.sandbox.codec import CodecError

RESULT = -1
"""Stands for the result where numbers stand for arguments."""

_CONTAINERS = (list, dict, set, bytearray, deque, OrderedDict, Counter, defaultdict)
_ARRAYS = ("ndarray", "DataFrame", "Series")
_MAX_ALIASES = 64
_MAX_BYTES = 1 << 16  # of one, written down
_MAX_LOOKED_AT = 1 << 26  # bytes, about 0.3 s; a bound on time that is the same on every machine
_LOOK = 256  # bytes that take as long as a look at something small
_SLOWER = 16  # times that it takes to write down what holds more than plain values


def is_mutable(value: Any) -> bool:
    """Return whether a value can be changed in place and is sent as data."""
    return type(value) in _CONTAINERS or type(value).__name__ in _ARRAYS


def update(held: Any, changed: Any) -> None:
    """Give a container of ours the contents of another of its type; anything else stays as it is."""
    if type(held) is not type(changed) or held is changed:
        return
    if isinstance(held, list | bytearray):
        held[:] = changed
    elif isinstance(held, dict | set):
        held.clear()
        held.update(changed)
    elif isinstance(held, deque):
        held.clear()
        held.extend(changed)
    elif type(held).__name__ == "ndarray" and held.shape == changed.shape and held.dtype == changed.dtype:
        held[...] = changed
    elif type(held).__name__ in ("DataFrame", "Series"):
        held.__init__(changed)


class Aliases:
    """The containers of one end, by what both ends know them by: a number, or the name of a global.

    Args:
        dumps: encodes a value as it is sent.
    """

    def __init__(self, dumps: Callable[[Any], bytes]) -> None:
        self._dumps = dumps
        self._aliases: dict[int | str, list[Any]] = {}  # a container, and what it held when this end looked last
        self._numbers: dict[int, int | str] = {}
        self._count = 0
        self._looked_at = 0

    def number(self, value: Any) -> int | str:
        """Return what a value is known by, or 0."""
        return self._numbers.get(id(value), 0)

    def known(self, values: Sequence[Any]) -> dict[int, int | str]:
        """Return the numbers of those of some values that have one; `~index` stands for the same one as an earlier."""
        first: dict[int, int] = {}
        known: dict[int, int | str] = {}
        for index, value in enumerate(values):
            if is_mutable(value):
                number = self.number(value) or ~first.setdefault(id(value), index)
                if number != ~index:
                    known[index] = number
        return known

    def put(self, values: list[Any], known: dict[int, Any]) -> None:
        """Put what this end holds in place of the other end's copies, and do to it what was done to them."""
        for index, number in known.items():
            if type(number) is int and number < 0:
                values[index] = values[~number]
            elif type(own := self.get(number)) is type(values[index]):
                self.take({number: values[index]})
                values[index] = own

    def get(self, number: Any) -> Any:
        """Return what is known by a number, or None."""
        alias = self._aliases.get(number) if type(number) in (int, str) else None
        return None if alias is None else alias[0]

    def add(self, value: Any, number: int | str = 0) -> int | str:
        """Follow a container, by what the other end knows it by or a new number; return that, or 0 if it cannot be."""
        known = self.number(value)
        if known and known == number:
            return known
        if type(value) not in _CONTAINERS or (text := self._written(value)) is None:
            return 0
        self.drop(known)
        if len(self._aliases) >= _MAX_ALIASES:
            self.drop(next(iter(self._aliases)))
        self._count += 1
        number = number or self._count
        self.drop(number)
        self._aliases[number] = [value, text]
        self._numbers[id(value)] = number
        return number

    def returned(self, result: list[Any]) -> int | str:
        """Follow what an operation gave, the item of a list, if the program still holds it; return its number, or 0."""
        return self.number(result[0]) or (self.add(result[0]) if sys.getrefcount(result[0]) > 2 else 0)

    def drop(self, number: int | str) -> None:
        """Follow something no longer."""
        alias = self._aliases.pop(number, None)
        if alias is not None:
            del self._numbers[id(alias[0])]

    def take(self, told: dict[Any, Any]) -> None:
        """Do here what the other end did to its copies; None says that it holds one no longer."""
        for number, value in told.items():
            held = self.get(number)
            if held is None:
                continue
            update(held, value)
            text = None if value is None else self._written(held)
            if text is None:
                self.drop(number)
            else:
                self._aliases[number][1] = text

    def told(self) -> dict[int | str, Any]:
        """Return what was changed here since the last look, by number: its contents, or None if nobody holds it now."""
        changed: dict[int | str, Any] = {}
        for number, alias in list(self._aliases.items()):
            held = sys.getrefcount(alias[0]) > 2  # by the table and as the argument
            text = self._written(alias[0])
            if text is not None and text != alias[1]:
                alias[1] = text
                changed[number] = alias[0]
            if text is None or not held:
                self.drop(number)
                changed.setdefault(number, None)
        return changed

    def untold(self, told: Iterable[int | str]) -> None:
        """Tell these once more."""
        for number in self._aliases.keys() & told:
            self._aliases[number][1] = b""

    def _written(self, value: Any) -> bytes | None:
        """Return what a container holds, or None if it takes too much."""
        if len(value) > _MAX_BYTES // 2:  # an item takes 2 bytes or more
            return None
        try:
            text = marshal.dumps(value, 2)  # which calls no method of what it writes, and refuses what is not plain
            self._looked_at += _LOOK + len(text)
        except ValueError:
            try:
                text = self._dumps(value)
            except (CodecError, TypeError, RuntimeError):  # one of the program's threads may be changing it
                return None
            self._looked_at += _SLOWER * (_LOOK + len(text))
        return text if len(text) <= _MAX_BYTES and self._looked_at <= _MAX_LOOKED_AT else None
