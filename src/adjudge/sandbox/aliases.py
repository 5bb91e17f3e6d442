"""Lists, dictionaries and the like that both processes hold: each end has a copy, and they are one and the same.

What crosses over refers to containers by number, those within others too, and each message tells what became of those
that both ends know: new ones, and changed ones.  So `row = grid[0]` stays a row of the grid, an object and the tests
may share a list, and a callback sees what was done before it was called.  An end that holds a container no longer says
so.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: containers inside
objects of library classes and named tuples, which are copied.  After a call a container is followed up to a bound: 64
KB of it, 1,000 of them, and 128 MB looked at in a test, which a list of 10,000 numbers takes 2,600 operations to
reach.  A message with more than 5,000 new ones has copies of all but the outermost.
"""

from __future__ import annotations

import itertools
import marshal
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from adjudge.sandbox.codec import CodecError, Handle

SHARED = "*shared"
"""The kind of a handle that stands for a container; no class has such a name."""

MAX_TOLD = 8_192
"""Containers of which one message may tell."""

_CONTAINERS = (list, dict, set, bytearray, deque, OrderedDict, Counter, defaultdict)
_ARRAYS = ("ndarray", "DataFrame", "Series")
_SCALARS = frozenset({int, float, str, bool, bytes, complex, type(None)})
_MAX_NEW = 5_000
_MAX_HELD = 1_000
_MAX_BYTES = 1 << 16  # of one, written down
_MAX_LOOKED_AT = 1 << 27  # bytes in a test, about 0.6 s; a bound on time that is the same on every machine
_LOOK = 128  # bytes that take as long as a look at something small
_SLOWER = 16  # times that it takes to write down what holds more than plain values
_NAMED = 1 << 64  # where the numbers of globals begin
_PLAIN = b"\0"  # before what is written by marshal: "[", the number of items in four bytes, and one after the other

Notes = tuple[dict[int, Any], list[int]]
"""The contents of containers that are new or changed, by number; and the numbers of those that an end lets go of."""


class _Held:
    """A container, what it held when this end looked last, and whether it holds copies of others."""

    __slots__ = ("flat", "text", "value")

    def __init__(self, value: Any, text: bytes | None = None, flat: bool = False) -> None:
        self.value, self.text, self.flat = value, text, flat


class _TooManyError(Exception):
    """More containers than one message tells of."""


class Aliases:
    """The containers that one end shares with the other.

    Args:
        sign: 1 or -1, that of the numbers which this end gives.
        dumps: encodes a value as it is sent.
    """

    def __init__(self, sign: int, dumps: Callable[[Any], bytes]) -> None:
        self._sign, self._dumps = sign, dumps
        self._held: dict[int, _Held] = {}
        self._numbers: dict[int, int] = {}
        self._queue: list[int] = []
        self._count = 0
        self._looked_at = 0
        self._copying = False
        self._renewed = False
        self.later: list[tuple[_Held, Any]] = []  # what is put off while the tests compare
        self._taking: set[int] = set()  # what is being filled in, while keys of dictionaries are asked for their hashes
        self.busy = 0  # how many messages are being read; nobody may hold yet what is in them

    def get(self, handle: Handle) -> Any:
        """Return what a handle stands for; None for nothing."""
        held = self._held.get(handle.number)
        return None if held is None else held.value

    def share(self, name: str, value: Any) -> None:
        """Follow a global of the program's, of which the tests have a copy until the program's end tells of it."""
        if type(value) in _CONTAINERS and id(value) not in self._numbers:
            held = self._add(_NAMED + int.from_bytes(name.encode("utf-8", "surrogatepass"), "big"), value)
            if self._sign > 0:
                held.flat = True
                held.text = self._looked(held)[1]

    def pack(self, values: list[Any], *, answering: bool = False) -> tuple[list[Any], Notes]:
        """Return values as they are sent, which empties their list, and the notes to send with them.

        Args:
            values: arguments or results.
            answering: whether an operation has ended, after which only what stays within the bounds is followed.

        Raises:
            CodecError: a value cannot be sent.
        """
        gone = [0] if self._renewed else []
        self._renewed = False
        self._trim(_MAX_NEW + _MAX_HELD, gone)  # more than an honest end has told of
        first = self._count
        self.busy += 1
        try:
            try:
                packed = [self._packed(value, outermost=True) for value in values]
                table, texts = self._told(first, gone)
            except _TooManyError:
                self._forget_since(first)
                self._copying = True
                packed = [self._packed(value, outermost=True) for value in values]
                table, texts = self._told(first, gone)
        except BaseException:
            self._forget_since(first)
            raise
        finally:
            self.busy -= 1
            self._copying = False
            self._queue.clear()
        values.clear()
        for number, text in texts.items():
            self._held[number].text = text
        spent = self._looked_at > _MAX_LOOKED_AT
        if answering and not self.busy:
            self._trim(_MAX_HELD, gone)
        for number, held in list(self._held.items()):
            if self.busy:
                break
            large = answering and (spent or len(held.text or b"") > _MAX_BYTES)
            if large or sys.getrefcount(held.value) <= 2:  # by what holds it and as the argument
                self.drop([number])
                gone.append(number)
        return packed, (table, gone)

    def take(self, table: dict[int, Any], lifted: Callable[[Any], Any], *, later: bool = False) -> None:
        """Do here what the other end did; `lifted` puts in what handles stand for.

        What happens to a container while it is compared would decide the comparison: a dictionary that is emptied is
        equal to any.  With `later`, those that were here before change by `settle`, or with the next table that does
        not say so.

        Raises:
            CodecError: the table is none.
        """
        known = self._held.keys() & table.keys() if later else ()
        for number, body in table.items():
            kind = _kind(body)
            if type(number) is int and _is_growth(body) and (number in self._held or number * self._sign > 0):
                continue
            if type(number) is not int or not _is_shared(kind):
                raise CodecError(f"{number!r:.20} is no container's number, or a {type(body).__name__} no container")
            if number not in self._held and number < _NAMED and (number > 0) != (self._sign > 0):
                if type(kind) is defaultdict:
                    kind = lifted(kind)  # with the factory that a handle stands for
                self._add(number, kind if type(kind).__name__ in _ARRAYS else _emptied(kind))
        there = {number: self._held[number] for number in table if number in self._held}
        self._taking |= there.keys()
        now: list[tuple[_Held, Any]] = []
        try:
            for number, held in there.items():
                (self.later if number in known else now).append((held, lifted(table[number])))
            if not later:
                self.settle()
            self._change(now)
        finally:
            self._taking -= there.keys()

    def settle(self) -> None:
        """Do what was put off."""
        changed = self.later[:]
        self.later.clear()
        self._change(changed)

    def _change(self, changed: list[tuple[_Held, Any]]) -> None:
        for held, body in changed:
            _update(held.value, body)
        self._copying = True
        for held, _ in changed:
            held.flat = any(_is_shared(item) and id(item) not in self._numbers for item in _objects(held.value))
            held.text = self._looked(held)[1]
        self._copying = False

    def renew(self) -> None:
        """Look at as much as before, since another test begins; the other end learns of it."""
        self._looked_at, self._renewed = 0, True

    def drop(self, numbers: list[int]) -> None:
        """Follow some no longer; a 0 among them says that another test begins, which the tests alone may say."""
        if 0 in numbers and self._sign < 0:
            self._looked_at = 0
        for number in numbers:
            if (held := self._held.pop(number, None)) is not None:
                del self._numbers[id(held.value)]

    def untold(self, notes: Notes) -> None:
        """Tell once more what was not sent."""
        for number in notes[0].keys() & self._held.keys():
            self._held[number].text = None

    def _add(self, number: int, value: Any) -> _Held:
        held = self._held[number] = _Held(value)
        self._numbers[id(value)] = number
        return held

    def _forget_since(self, count: int) -> None:
        self.drop([self._sign * number for number in range(count + 1, self._count + 1)])

    def _trim(self, count: int, gone: list[int]) -> None:
        """Let go of the oldest where there are more."""
        oldest = list(self._held)[: max(0, len(self._held) - count)]
        self.drop(oldest)
        gone += oldest

    def _packed(self, value: Any, *, outermost: bool = False) -> Any:
        """Return a value with handles for the containers in it."""
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is tuple:
            plain = _SCALARS.issuperset(map(type, value))
            return value if plain else tuple([self._packed(item, outermost=outermost) for item in value])
        if not _is_shared(value):
            return value
        number = self._numbers.get(id(value))
        if number is None:
            if self._copying and not outermost:
                return value
            if len(self._queue) >= _MAX_NEW and not self._copying:
                raise _TooManyError
            self._count += 1
            number = self._sign * self._count
            self._add(number, value).flat = self._copying
            self._queue.append(number)
        return Handle(number, SHARED)

    def _told(self, first: int, gone: list[int]) -> tuple[dict[int, Any], dict[int, bytes]]:
        """Return what new and changed containers hold, and how it is written; what cannot be sent any more is gone."""
        table, texts = {}, {}
        self._queue.clear()
        numbers = [number for number in self._held if number not in self._taking]
        at = 0
        while at < len(numbers):
            number = numbers[at]
            at += 1
            held = self._held[number]
            try:
                body, text = self._looked(held)
            except (CodecError, TypeError, RuntimeError):  # one of the program's threads may be changing it
                if abs(number) > first and (number > 0) == (self._sign > 0) and number < _NAMED:
                    raise
                self.drop([number])
                gone.append(number)
                continue
            numbers += self._queue
            self._queue.clear()
            if len(numbers) > _MAX_NEW + _MAX_HELD and not self._copying:
                raise _TooManyError
            if text != held.text:
                table[number], texts[number] = _grown(held, text) or body, text
        return table, texts

    def _looked(self, held: _Held) -> tuple[Any, bytes]:
        """Return what a container holds, to be sent, and how it is written."""
        value = held.value
        if type(value) is bytearray:
            return value.copy(), bytes(value)
        items = _items(value)
        if _SCALARS.issuperset(map(type, items)):
            text = _PLAIN + marshal.dumps(items, 2)
            self._looked_at += _LOOK + len(text)
            return value.copy(), text
        body = value.copy() if held.flat else self._body(value)
        text = self._dumps(body)
        self._looked_at += 4 * _LOOK + _SLOWER * len(text)
        return body, text

    def _body(self, value: Any) -> Any:
        """Return a copy of a container with handles for those in it; of a dictionary an empty one, keys and values.

        To put a key in would ask the other end for its hash, and send what is being packed.
        """
        if isinstance(value, dict):
            return _emptied(value), [*value], [self._packed(item) for item in value.values()]
        if isinstance(value, list):
            return [self._packed(item) for item in value]
        return deque([self._packed(item) for item in value], value.maxlen) if isinstance(value, deque) else value.copy()


def _is_shared(value: Any) -> bool:
    """Return whether a value can be changed in place and is sent as data."""
    return type(value) in _CONTAINERS or type(value).__name__ in _ARRAYS


def _items(value: Any) -> list[Any]:
    """Return what a container holds, each key before its value; an array itself, which is no scalar."""
    if isinstance(value, dict):
        return list(itertools.chain.from_iterable(value.items()))
    return list(value) if isinstance(value, list | set | deque) else [value]


def _objects(value: Any) -> list[Any]:
    """Return what a container holds, or [] if all of that is scalars."""
    items = _items(value)
    return [] if _SCALARS.issuperset(map(type, items)) else items


def _grown(held: _Held, text: bytes) -> tuple[int, list[Any]] | None:
    """Return how many items a list or dictionary had and those that it has more, if nothing else was changed in it."""
    before = held.text or b""
    if not before[:1] == text[:1] == _PLAIN or not isinstance(held.value, list | dict):
        return None
    if not text.startswith(before[6:], 6):
        return None
    count = int.from_bytes(before[2:6], "little")
    return count, _items(held.value)[count:]


def _is_growth(body: Any) -> bool:
    return type(body) is tuple and [*map(type, body)] == [int, list] and _SCALARS.issuperset(map(type, body[1]))


def _kind(body: Any) -> Any:
    """Return a container of the type that a body is of; None for a dictionary that is none."""
    if type(body) is not tuple:
        return body
    if [*map(type, body[1:])] != [list, list] or not isinstance(body[0], dict) or len(body[1]) != len(body[2]):
        return None
    return None if any(map(_is_shared, body[1])) else body[0]


def _same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and type(one) in _SCALARS and one == other)


def _emptied(body: Any) -> Any:
    empty = body.copy()
    empty.clear()
    return empty


def _update(held: Any, changed: Any) -> None:
    """Give a container of ours the contents of another of its type; anything else stays as it is."""
    if _is_growth(changed):
        count, more = changed
        if isinstance(held, dict):
            for key, value in zip(more[::2], more[1::2], strict=False):
                held[key] = value
        elif isinstance(held, list):
            held[count:] = more
    elif isinstance(held, dict):
        empty, keys, values = changed if type(changed) is tuple else (changed, [*changed], [*changed.values()])
        if type(held) is type(empty):
            there = [*held.items()]
            if len(there) > len(keys) or not all(_same(one, key) for (one, _), key in zip(there, keys, strict=False)):
                held.clear()  # else what goes through it goes on, and no key is asked for its hash again
                there = []
            for at, (key, value) in enumerate(zip(keys, values, strict=True)):
                if at >= len(there) or there[at][1] is not value:
                    held[key] = value
    elif type(held) is not type(changed) or held is changed:
        return
    elif isinstance(held, list | bytearray):
        held[:] = changed
    elif isinstance(held, set):
        held &= changed
        held |= changed
    elif isinstance(held, deque):
        while len(held) > len(changed):
            held.pop()
        for at, item in enumerate(changed):
            if at < len(held):
                held[at] = item
            else:
                held.append(item)
    elif type(held).__name__ == "ndarray" and held.shape == changed.shape and held.dtype == changed.dtype:
        held[...] = changed
    elif type(held).__name__ in ("DataFrame", "Series"):
        held.__init__(changed)
