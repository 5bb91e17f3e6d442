"""Values as text between two processes of which one may lie: only plain data can arrive.

Decoding never imports, calls or looks up anything the text names; it builds values of a fixed list of types, each of
exactly that type, so no class of the sender can come along.  Subclasses travel as what they extend (an `IntEnum` as
an int); a named tuple keeps its field names.  What is not data (functions, instances of other classes, generators)
travels as a `Handle`, a number that only its sender can resolve.

What a text can cost its reader is bounded before and while it is read: parts, digits, bits, kinds of named tuples, keys
with equal hashes.

The file uses the standard library alone, because the sandbox's Python loads it too.  Not covered: shared and cyclic
structure (a list that holds one object twice arrives with two), and nesting deeper than `DEPTH`.
"""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import enum
import fractions
import functools
import json
import keyword
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adjudge.sandbox import library_values

DEPTH = 200
"""Deepest nesting of containers."""

_MAX_ITEMS = 1 << 22  # commas in a text: an item each, 0.1 microseconds and up to 60 bytes
_MAX_CONTAINERS = 1 << 20  # brackets and braces in a text: a list or tagged value each, a microsecond, up to 200 bytes
_MAX_ALIKE = 1000  # keys that may share their hashes with others: a table of n keys of one hash takes n * n steps
_MAX_BITS = 1 << 24  # of an integer
_MAX_DIGITS = 200_000  # of a `Decimal`, and its largest exponent: it may become an integer of as many digits
_MAX_WORK = 1_000_000  # microseconds, by estimate, for the parts of a text whose cost its length does not bound
_MAX_SECONDS = 3.0
"""Seconds of CPU for a text, looked at every so many tagged values: a million of the slowest would take 5."""

_SOME = 256
_MAX_FLOAT = 40  # characters of a float
_DTYPE = re.compile(r"[<>|=][biufcSUVmM]\d*(\[\w+\])?")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_SMALL = 1 << 63  # larger integers travel in hexadecimal, which has no digit limit and no quadratic cost


class CodecError(ValueError):
    """A value that is not plain data, or a text that does not stand for one."""


class SlowError(CodecError):
    """A text that takes too long to read."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A stand-in for an object that stays with its sender.

    Attributes:
        number: the sender's number for it.
        kind: the name of its class.
        plain: whether it extends a type of plain data, as which it could have travelled.
        parts: of an exception: the fields of a `Raised`.
    """

    number: int
    kind: str
    plain: bool = False
    parts: Any = field(default=None, compare=False)

    def __call__(self) -> Any:
        """Make nothing, as the factory of a `defaultdict`."""
        raise KeyError


OWN = "solution"
"""The module that a candidate is."""
BETWEEN = "&"
"""Before an operator that tests use between two instances of a class, and perhaps never with plain data."""
_USED_AS = {**dict.fromkeys(("__missing__", "__setitem__", "__delitem__"), "__getitem__"), "__ne__": "__eq__"}
Keep = Callable[[object], Handle]
"""Called by the encoder with an object that is not data; returns what goes in its place, or raises `CodecError`."""


def _refuse(value: object) -> Handle:
    raise CodecError(f"a value of type {type(value).__name__} is not plain data")


def dumps(value: object, keep: Keep = _refuse) -> bytes:
    """Return a value, plain data as in the module's docstring, as JSON text; `keep` is given what is not.

    Raises:
        CodecError: the value is not plain data, or nested too deeply.
    """
    return _AS_JSON(_encode(value, keep, 0)).encode("ascii")


class _Reading(threading.local):
    """What the text that this thread reads has cost so far, and whether heavy packages may be imported for it."""

    spent = 0
    tags = 0
    until = 0.0
    imports = True
    uses: Mapping[str, frozenset[str]] | None = None


_reading = _Reading()


def loads(
    text: bytes, imports: bool = True, trusted: bool = False, uses: Mapping[str, frozenset[str]] | None = None
) -> Any:
    """Return the value that `dumps` wrote.

    Args:
        text: JSON.
        imports: whether pandas may be imported for a table; without, and where nobody has, the table is a `Handle`.
        trusted: whether it comes from who may send as much as it likes.
        uses: by name, classes of the sender's that may extend plain types, with the attributes that are used on their
            instances: one that lacks some of them as plain data, or has its own, is a `Handle`; None keeps nothing.

    Raises:
        CodecError: the text stands for no value, or for one that takes too much to read.
    """
    if not trusted and (text.count(b",") > _MAX_ITEMS or text.count(b"[") + text.count(b"{") > _MAX_CONTAINERS):
        raise CodecError("an encoded value has too many parts")
    _reading.imports, _reading.tags, _reading.uses = imports, 0, uses
    _reading.spent, _reading.until = (-sys.maxsize, math.inf) if trusted else (0, time.thread_time() + _MAX_SECONDS)
    try:
        return _decode(_FROM_JSON(text.decode("ascii")), 0)
    except CodecError:
        raise
    except _MALFORMED as error:
        raise CodecError(f"not an encoded value: {type(error).__name__}: {error}") from None


_AS_JSON = json.JSONEncoder(separators=(",", ":")).encode  # made once: `json.dumps` makes one for each call
_FROM_JSON = json.JSONDecoder().decode
_MALFORMED = (
    ValueError, TypeError, KeyError, ArithmeticError, RecursionError, AttributeError, LookupError, SyntaxError,
    ImportError, NotImplementedError, MemoryError,
)  # fmt: skip


def _charge(cost: int, what: str) -> None:
    _reading.spent += cost
    if _reading.spent > _MAX_WORK:
        raise SlowError(f"an encoded value takes too long to read: {what}")


def _encode(value: Any, keep: Keep, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_SMALL < value < _SMALL else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if depth >= DEPTH:
        raise CodecError(f"a value is nested more than {DEPTH} levels deep, or contains itself")
    if kind is list:
        return [_encode(item, keep, depth + 1) for item in value]
    if (writer := _WRITERS.get(kind)) is not None:
        return writer(value, keep, depth + 1)
    return _encode_other(value, keep, depth)


def _encode_other(value: Any, keep: Keep, depth: int) -> Any:
    if isinstance(value, library_values.Kept) and value.home and keep is not _refuse:
        return _handle(value.home)
    if isinstance(value, type):
        return {"y": value.__name__} if _BUILTIN_TYPES.get(value.__name__) is value else _handle(keep(value))
    if (tagged := _encode_array(value)) is not None:
        return tagged
    if (parts := library_values.parts_of_table(value)) is not None:
        return {"p": _items(parts, keep, depth + 1)}
    if (parts := library_values.parts_of(value)) is not None:
        return {"v": _items(parts, _refuse, depth + 1)}
    if keep is not _refuse and type(value).__module__ == OWN and isinstance(value, library_values.BASES):
        handle, data = keep(value), _encode_base(value, keep, depth + 1)
        return {"x": [handle.number, handle.kind, data, _overridden(type(value)), isinstance(value, enum.Enum)]}
    return _encode_base(value, keep, depth)


def _encode_base(value: Any, keep: Keep, depth: int) -> Any:
    """Encode what an instance of a subclass of a plain type holds, and keep anything else."""
    fields = getattr(type(value), "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple) and len(fields) == tuple.__len__(value):
        return {"k": [type(value).__name__, list(fields), _items(tuple.__iter__(value), keep, depth + 1)]}
    for base in library_values.BASES:
        if isinstance(value, base):
            return _encode(library_values.as_base(value, base), keep, depth)
    return _handle(keep(value))


def _overridden(kind: type) -> list[str]:
    """Return the methods of a plain type that a class has in its own way, as the tests' text has them."""
    base = next(base for base in library_values.BASES if issubclass(kind, base))
    own = {
        _USED_AS.get(name, name)
        for above in kind.__mro__
        if above.__module__ == OWN
        for name, value in vars(above).items()
        if getattr(value, "__module__", "") == OWN  # what `NamedTuple` and the like make is of other modules
    }
    return sorted(name for name in own - {"__init__", "__new__"} if hasattr(base, name))


def _handle(handle: Handle) -> Any:
    parts = () if handle.parts is None else (_encode(handle.parts, _refuse, 1),)
    return {"h": [handle.number, handle.kind, *parts]}


def _items(values: Any, keep: Keep, depth: int) -> list[Any]:
    return [_encode(item, keep, depth) for item in values]


def _pairs(value: Any, keep: Keep, depth: int) -> list[Any]:
    return [[_encode(key, keep, depth), _encode(item, keep, depth)] for key, item in dict.items(value)]


def _factory(made: Any, keep: Keep) -> Any:
    name = getattr(made, "__name__", "")
    return name if _FACTORIES.get(name) is made else None if made is None or keep is _refuse else _handle(keep(made))


def _encode_array(value: Any) -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray | numpy.generic):
        return None
    if value.dtype == object and isinstance(value, numpy.ndarray):
        return {"a": [list(value.shape), _items(value.ravel().tolist(), _refuse, 1)]}
    if value.dtype.hasobject or value.dtype.fields:
        raise CodecError(f"a numpy value of dtype {value.dtype} is not plain data")
    data = base64.b64encode(numpy.ascontiguousarray(value).tobytes()).decode()
    return {"n" if isinstance(value, numpy.ndarray) else "N": [value.dtype.str, list(value.shape), data]}


_BUILTIN_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (bool, bytes, complex, dict, float, frozenset, int, list, object, set, str, tuple, type(None))
}

_COUNTING = (collections.Counter, collections.OrderedDict, collections.deque)
_FACTORIES = {**_BUILTIN_TYPES, **{kind.__name__: kind for kind in _COUNTING}}

_WRITERS: dict[type, Callable[[Any, Keep, int], Any]] = {
    tuple: lambda value, keep, depth: {"t": _items(value, keep, depth)},
    dict: lambda value, keep, depth: {"d": _pairs(value, keep, depth)},
    set: lambda value, keep, depth: {"s": _items(value, keep, depth)},
    frozenset: lambda value, keep, depth: {"z": _items(value, keep, depth)},
    bytes: lambda value, keep, depth: {"b": base64.b64encode(value).decode()},
    bytearray: lambda value, keep, depth: {"B": base64.b64encode(value).decode()},
    complex: lambda value, keep, depth: {"c": [repr(value.real), repr(value.imag)]},
    range: lambda value, keep, depth: {"r": [value.start, value.stop, value.step]},
    slice: lambda value, keep, depth: {"l": _items((value.start, value.stop, value.step), keep, depth)},
    type(...): lambda value, keep, depth: {"e": 0},
    decimal.Decimal: lambda value, keep, depth: {"D": str(value)},
    fractions.Fraction: lambda value, keep, depth: {"F": [hex(value.numerator), hex(value.denominator)]},
    collections.deque: lambda value, keep, depth: {"q": [_items(value, keep, depth), value.maxlen]},
    collections.OrderedDict: lambda value, keep, depth: {"O": _pairs(value, keep, depth)},
    collections.Counter: lambda value, keep, depth: {"C": _pairs(value, keep, depth)},
    collections.defaultdict: lambda value, keep, depth: {
        "m": [_factory(value.default_factory, keep), _pairs(value, keep, depth)]
    },
    datetime.datetime: lambda value, keep, depth: {"T": ["datetime", _iso(value), value.fold]},
    datetime.date: lambda value, keep, depth: {"T": ["date", value.isoformat(), 0]},
    datetime.time: lambda value, keep, depth: {"T": ["time", _iso(value), value.fold]},
    datetime.timedelta: lambda value, keep, depth: {"u": [value.days, value.seconds, value.microseconds]},
    Handle: lambda value, keep, depth: _handle(value),
}


def _iso(value: Any) -> str:
    offset, zone = value.utcoffset(), value.tzinfo
    if type(zone).__module__ == "zoneinfo" and type(value) is datetime.datetime and getattr(zone, "key", None):
        return f"{value.replace(tzinfo=None).isoformat()} {getattr(zone, 'key', '')}"
    if value.tzinfo is not None and (offset is None or value.tzinfo != datetime.timezone(offset)):
        raise CodecError(f"a {type(value).__name__} in the time zone {value.tzinfo} is not plain data")
    text: str = value.isoformat()
    return text


def _decode(value: Any, depth: int) -> Any:
    if type(value) is list:
        if depth >= DEPTH:
            raise CodecError(f"a value is nested more than {DEPTH} levels deep")
        return [item if type(item) in _SCALARS else _decode(item, depth + 1) for item in value]
    if type(value) is not dict:
        return value
    if len(value) != 1 or depth >= DEPTH:
        raise CodecError("an encoded value has not exactly one tag, or is nested too deeply")
    ((tag, body),) = value.items()
    _reading.tags += 1
    if not _reading.tags % _SOME and time.thread_time() > _reading.until:
        raise SlowError("an encoded value takes too long to read")
    reader = _READERS.get(tag)
    if reader is None:
        raise CodecError(f"an encoded value has the unknown tag {tag!r:.20}")
    return reader(body, depth + 1)


def _decoded(body: Any, depth: int) -> list[Any]:
    return [item if type(item) in _SCALARS else _decode(item, depth) for item in _typed(body, list)]


def _decoded_pairs(body: Any, depth: int) -> list[tuple[Any, Any]]:
    pairs = [(_decode(key, depth), _decode(item, depth)) for key, item in _typed(body, list)]
    _tell_apart([key for key, _ in pairs])
    return pairs


def _decoded_members(body: Any, depth: int) -> list[Any]:
    members = _decoded(body, depth)
    _tell_apart(members)
    return members


def _tell_apart(keys: list[Any]) -> None:
    """Refuse keys that were chosen to collide: a megabyte of multiples of 2**61 - 1 takes a dictionary 20 s."""
    hashes = [hash(key) for key in keys]
    if len(set(hashes)) == len(keys):
        return
    alike = collections.Counter(hashes)
    if len(keys) - len(alike) > _MAX_ALIKE:
        raise CodecError(f"more than {_MAX_ALIKE} keys have hashes that others have")
    sizes = {number: 0 for number, count in alike.items() if count > 1}
    for key, number in zip(keys, hashes, strict=True):
        if number in sizes:
            sizes[number] = max(sizes[number], _size(key))
    _charge(sum(alike[number] ** 2 * size for number, size in sizes.items()) // 50, "keys with equal hashes")


def _size(key: Any) -> int:
    """Return how many steps it takes to compare a key with one that is nearly the same."""
    if isinstance(key, tuple | frozenset):
        return 3 + sum(map(_size, key))
    return 3 + (len(key) // 1000 if isinstance(key, str | bytes) else 0)


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise CodecError(f"an encoded value holds a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _named_tuple(body: Any, depth: int) -> Any:
    name, fields, items = body
    values = _decoded(items, depth)
    if len(fields) != len(values) or len(set(fields)) != len(fields):
        raise CodecError("a named tuple's fields do not fit its values")
    if any(field.startswith("_") for field in fields):
        return tuple(values)
    return _named(name, tuple(fields))._make(values)


@functools.lru_cache(maxsize=64)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    """Return the class of named tuples; Python compiles a program for it."""
    _charge(500 + 20 * len(fields), "kinds of named tuples")
    for word in (name, *fields):
        if not word.isidentifier() or keyword.iskeyword(word):
            raise CodecError(f"{word!r:.40} is not a name")
    return collections.namedtuple(name, fields)


def _integer(text: Any) -> int:
    if len(_typed(text, str)) > _MAX_BITS // 4:
        raise CodecError(f"an integer of more than {_MAX_BITS} bits")
    return int(text, 16)


def _fraction(body: Any) -> fractions.Fraction:
    above, below = map(_integer, body)
    _charge(above.bit_length() * below.bit_length() // 300_000, "fractions")  # to reduce it
    return fractions.Fraction(above, below)


def _decimal(text: Any) -> decimal.Decimal:
    if len(_typed(text, str)) > _MAX_DIGITS:
        raise CodecError(f"a Decimal of more than {_MAX_DIGITS} digits")
    value = decimal.Decimal(text)
    if value.is_finite() and abs(value.adjusted()) > _MAX_DIGITS:
        raise CodecError("a Decimal with an exponent that is too large")
    return value


def _finite(text: Any) -> float:
    if len(_typed(text, str)) > _MAX_FLOAT:
        raise CodecError("a number with too many digits")
    return float(text)


def _table(body: Any, depth: int) -> Any:
    if not _reading.imports and "pandas" not in sys.modules:
        return Handle(0, "DataFrame")
    return library_values.table(_decoded(body, depth))


def _of_library(body: Any, depth: int) -> Any:
    value = library_values.value_of(_decoded(body, depth), _reading.imports)
    return Handle(0, str(body[0])) if value is None else value


def _extended(body: Any, depth: int) -> Any:
    number, kind, data, overridden, member = body
    value, known = _decode(data, depth), _reading.uses
    uses = (known or {}).get(kind, frozenset())
    lacks = any(not word.startswith(("__", BETWEEN)) and not hasattr(value, word) for word in uses)
    lacks = (lacks and not member) or not uses.isdisjoint([*overridden, *(f"{BETWEEN}{word}" for word in overridden)])
    handle = Handle(_typed(number, int), _typed(kind, str), plain=True)
    kept = known is not None and (member or kind in known)  # a member is asked for what it lacks
    return handle if lacks else library_values.kept(value, handle) if kept else value


def _array(body: Any, scalar: bool) -> Any:
    try:
        import numpy
    except ImportError:
        raise CodecError("a numpy value where there is no numpy") from None
    code, shape, data = body
    if not _DTYPE.fullmatch(_typed(code, str)[:40]) or (scalar and shape):
        raise CodecError(f"a numpy value of dtype {code!r:.40} is not plain data")
    kind = numpy.dtype(code)
    raw = base64.b64decode(data, validate=True)
    array = numpy.frombuffer(raw, dtype=kind).reshape(_typed(shape, list))
    points = {"b": "u1", "U": f"{code[0]}u4"}.get(kind.kind)
    if points and raw and numpy.frombuffer(raw, points).max() > (1 if kind.kind == "b" else sys.maxunicode):
        raise CodecError("a numpy value that is neither true nor false, or no text")
    return array[()] if scalar else array.copy()


def _objects(body: Any, depth: int) -> Any:
    """Return an array of any plain values."""
    import numpy

    shape, items = body
    values = _decoded(items, depth)
    array = numpy.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        array[at] = value
    return array.reshape(_typed(shape, list))


def _default_dict(body: Any, depth: int) -> Any:
    factory = _FACTORIES.get(body[0]) if type(body[0]) is str else _decode(body[0], depth)
    return collections.defaultdict(factory, _decoded_pairs(body[1], depth))


def _moment(body: Any, depth: int) -> Any:
    name, text, fold = body
    kinds: dict[str, Any] = {"datetime": datetime.datetime, "date": datetime.date, "time": datetime.time}
    text, _, zone = _typed(text, str).partition(" ")
    moment = kinds[name].fromisoformat(text)
    if zone:
        moment = moment.replace(tzinfo=library_values.zone_of(zone))
    return moment.replace(fold=1) if fold else moment


_READERS: dict[str, Callable[[Any, int], Any]] = {
    "i": lambda body, depth: _integer(body),
    "f": lambda body, depth: _finite(body),
    "t": lambda body, depth: tuple(_decoded(body, depth)),
    "d": lambda body, depth: dict(_decoded_pairs(body, depth)),
    "s": lambda body, depth: set(_decoded_members(body, depth)),
    "z": lambda body, depth: frozenset(_decoded_members(body, depth)),
    "b": lambda body, depth: base64.b64decode(_typed(body, str), validate=True),
    "B": lambda body, depth: bytearray(base64.b64decode(_typed(body, str), validate=True)),
    "c": lambda body, depth: complex(*map(_finite, body)),
    "r": lambda body, depth: range(*body),
    "l": lambda body, depth: slice(*_decoded(body, depth)),
    "e": lambda body, depth: ...,
    "D": lambda body, depth: _decimal(body),
    "F": lambda body, depth: _fraction(body),
    "q": lambda body, depth: collections.deque(_decoded(body[0], depth), body[1]),
    "O": lambda body, depth: collections.OrderedDict(_decoded_pairs(body, depth)),
    "C": lambda body, depth: collections.Counter(dict(_decoded_pairs(body, depth))),
    "m": _default_dict,
    "T": _moment,
    "u": lambda body, depth: datetime.timedelta(*body),
    "k": _named_tuple,
    "x": _extended,
    "v": _of_library,
    "p": _table,
    "n": lambda body, depth: _array(body, scalar=False),
    "N": lambda body, depth: _array(body, scalar=True),
    "a": _objects,
    "y": lambda body, depth: _BUILTIN_TYPES[body],
    "h": lambda body, depth: Handle(_typed(body[0], int), _typed(body[1], str), False, *_decoded(body[2:], depth)),
}
