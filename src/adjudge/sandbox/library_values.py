"""Values that are plain data in all but their type.

Those of libraries are a closed table, each made again from texts and numbers; series, indexes and data frames of pandas
are taken apart; an instance of a class that extends a plain type is what that type holds.

The file uses the standard library alone, and numpy and pandas where a value is one of theirs.  Not covered: paths of a
file system, which stay where it is; moments of pandas in a time zone; arrays of records; tables with dtypes other than
numpy's, texts, categories and the nullable numbers; time zones, periods, intervals; frames' `attrs`.
"""

from __future__ import annotations

import collections
import datetime
import functools
import importlib
import os
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

_ZONE = re.compile(r"[A-Za-z]\w*(/[A-Za-z][\w+-]*)*")
_MAX_ITEMS = 1_000_000
_NETWORK = ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")


BASES: tuple[type, ...] = (str, int, float, complex, dict, list, tuple, set, frozenset, collections.deque)
"""Types of plain data that a class may extend."""


class Kept:
    """Plain data that goes back as the object that it was, such as a member of an enumeration.

    What plain data has not, and how it is shown, that object is asked for.
    """

    home: Any = None
    """The handle of that object; what is made of a named tuple has none."""
    remote: Any = None
    """Returns the stand-in for the object of a handle."""

    def __getattr__(self, name: str) -> Any:
        if self.home is None or self.remote is None or name[:1] == "_":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.remote(self.home), name)

    def _shown(self, name: str, *spec: str) -> Any:
        asked = super() if self.home is None or self.remote is None else self.remote(self.home)
        return getattr(asked, name)(*spec)


for _name in ("__str__", "__repr__", "__format__"):
    setattr(Kept, _name, functools.partialmethod(Kept._shown, _name))


def kept(value: Any, home: Any) -> Any:
    """Return a text, a number or a tuple as such data, the same for the same one; anything else as it is."""
    if type(value) in (str, int, float):
        return _kept(value, home)
    return _made(value, home) if isinstance(value, tuple) else value


def _made(value: Any, home: Any) -> Any:
    kind: Any = type(value)
    base: Any = tuple if isinstance(value, tuple) else kind  # a named tuple's own `__new__` takes its fields
    made = base.__new__(_kind(kind), value)
    made.home = home
    return made


_kept = functools.lru_cache(maxsize=4096, typed=True)(_made)


@functools.lru_cache(maxsize=256)
def _kind(base: Any) -> Any:
    return type(base.__name__, (Kept, base), _FLAGS if base is int else {})


def _joined(name: str) -> Callable[[Any, Any], Any]:
    """Return an operator of flags, which gives a flag."""

    def method(self: Any, other: Any) -> Any:
        value = getattr(int, name)(self, other)
        if not isinstance(other, Kept) or self.remote is None:
            return value
        joined = getattr(self.remote(self.home), name)(self.remote(other.home))
        return joined if isinstance(joined, Kept) and joined == value else value

    return method


def _within(self: Any, other: Any) -> bool:
    """Return whether a flag is part of others of its class."""
    if not isinstance(other, Kept) or other.home.kind != self.home.kind:
        raise TypeError(f"argument of type {type(self).__name__!r} is not iterable")
    part: Any = as_base(other, int)
    return bool(int.__and__(self, part) == part)


_FLAGS: dict[str, Any] = {**{name: _joined(name) for name in ("__or__", "__and__", "__xor__")}, "__contains__": _within}


def as_plain(value: Any) -> Any:
    """Return what an instance of a subclass of a plain type holds, and a path's name."""
    if isinstance(value, pathlib.PurePosixPath):
        return pathlib.PurePosixPath(value)
    if isinstance(value, type({}.keys()) | type({}.items())):
        return set(value)
    return next((as_base(value, base) for base in BASES if isinstance(value, base)), value)


def as_base(value: Any, base: type) -> Any:
    """Return the part of a subclass's instance that the base class keeps."""
    if base is str:
        return str.__getitem__(value, slice(None))
    if base is int:
        return int.__add__(value, 0)
    if base is float:
        return float.__add__(value, 0.0)
    if base is complex:
        return complex.__add__(value, 0j)
    if base is dict:
        return dict(dict.items(value))
    return base(base.__iter__(value))  # type: ignore[attr-defined]


def parts_of(value: Any) -> list[Any] | None:
    """Return ["kind", ..] of plain data for a value of the table; None for any other."""
    take = _TAKEN.get((str(type(value).__module__).partition(".")[0], type(value).__name__))
    return None if take is None else take(value)


def value_of(parts: Any, imports: bool) -> Any:
    """Return the value that `parts_of` took apart; None for pandas' where it is not loaded and may not be imported.

    Raises:
        ValueError, TypeError, LookupError, ImportError: the parts make none.
    """
    name, *rest = parts
    if name in ("Timestamp", "Timedelta", "NaT") and not imports and "pandas" not in sys.modules:
        return None
    return _MADE[name](*rest)


def zone_of(key: Any) -> Any:
    """Return a time zone by its key, from this system's files alone.

    Raises:
        ValueError: there is none.
    """
    zoneinfo: Any = importlib.import_module("zoneinfo")
    if type(key) is not str or not _ZONE.fullmatch(key):
        raise ValueError("no key of a time zone")
    if not any(os.path.isfile(os.path.join(root, key)) for root in zoneinfo.TZPATH):
        raise ValueError(f"no time zone {key!r:.60}")
    return zoneinfo.ZoneInfo(key)


def _pandas(kind: str) -> Callable[[Any, Any], Any]:
    def made(number: Any, unit: Any) -> Any:
        if type(number) is not int or unit not in ("s", "ms", "us", "ns"):
            raise ValueError("no number of units of time")
        return getattr(importlib.import_module("pandas"), kind)(number, unit="ns").as_unit(unit)

    return made


def _network(kind: str) -> Callable[[Any], Any]:
    return lambda text: getattr(importlib.import_module("ipaddress"), kind)(str(text)[:80])


def _array(code: str, items: list[Any]) -> Any:
    made: Any = importlib.import_module("array").array(code)
    made.extend(items)
    return made


def _offset(value: Any) -> list[Any]:
    offset = value.utcoffset(None)
    return ["timezone", offset.days, offset.seconds, offset.microseconds]


_TAKEN: dict[tuple[str, str], Callable[[Any], list[Any] | None]] = {
    ("uuid", "UUID"): lambda value: ["UUID", value.hex],
    ("pathlib", "PurePosixPath"): lambda value: ["PurePosixPath", str(value)],
    ("datetime", "timezone"): _offset,
    ("array", "array"): lambda value: ["array", value.typecode, value.tolist()] if len(value) <= _MAX_ITEMS else None,
    ("pandas", "Timestamp"): lambda value: (
        None if value.tzinfo is not None else ["Timestamp", int(value.value), value.unit]
    ),
    ("pandas", "Timedelta"): lambda value: ["Timedelta", int(value.value), value.unit],
    ("pandas", "NaTType"): lambda value: ["NaT"],
    **{("ipaddress", kind): (lambda value: [type(value).__name__, str(value)]) for kind in _NETWORK},
}
_MADE: dict[str, Callable[..., Any]] = {
    "UUID": lambda text: importlib.import_module("uuid").UUID(hex=str(text)[:40]),
    "PurePosixPath": lambda text: importlib.import_module("pathlib").PurePosixPath(str(text)),
    "timezone": lambda days, seconds, parts: datetime.timezone(datetime.timedelta(days, seconds, parts)),
    "array": _array,
    "Timestamp": _pandas("Timestamp"),
    "Timedelta": _pandas("Timedelta"),
    "NaT": lambda: importlib.import_module("pandas").NaT,
    **{kind: _network(kind) for kind in _NETWORK},
}

_DTYPE = re.compile(r"object|str|string|boolean|U?Int(8|16|32|64)|Float(32|64)")


class _RareError(ValueError):
    """A table that is not covered."""


def parts_of_table(value: Any) -> list[Any] | None:
    """Return what a table is made of, as lists, arrays and plain values; None for what is not a table."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.DataFrame | pandas.Series | pandas.Index):
        return None
    try:
        return _table_parts(pandas, value)
    except _RareError:
        return None


def _table_parts(pandas: Any, value: Any) -> list[Any]:
    if isinstance(value, pandas.DataFrame):
        columns = [_column(value.iloc[:, at].array) for at in range(value.shape[1])]
        return ["frame", columns, _table_parts(pandas, value.index), _table_parts(pandas, value.columns)]
    if isinstance(value, pandas.Series):
        return ["series", _column(value.array), _table_parts(pandas, value.index), value.name]
    if isinstance(value, pandas.RangeIndex):
        return ["range", value.start, value.stop, value.step, value.name]
    if isinstance(value, pandas.MultiIndex):
        return ["multi", value.tolist(), list(value.names)]
    return ["index", _column(value.array), value.name]


def _column(values: Any) -> list[Any]:
    """Return an array of pandas' as ["numpy", array], ["category", categories, codes, ordered] or [dtype, list]."""
    kind = str(values.dtype)
    if kind == "category":
        return [kind, _column(values.categories.array), values.codes, bool(values.ordered)]
    if _DTYPE.fullmatch(kind):
        missing = values.isna()
        return [kind, [None if lacks else item for item, lacks in zip(values.tolist(), missing, strict=True)]]
    array = values.to_numpy()
    if array.dtype.kind not in "biufcmM" or str(array.dtype) != kind:
        raise _RareError(f"a column of the dtype {kind}")
    return ["numpy", array]


def table(parts: Any) -> Any:
    """Return the table that `parts_of_table` took apart.

    Raises:
        ImportError: there is no pandas.
        TypeError, ValueError, LookupError: the parts make none.
    """
    pandas: Any = importlib.import_module("pandas")
    kind, *rest = parts
    if kind == "range":
        start, stop, step, name = rest
        return pandas.RangeIndex(start, stop, step, name=name)
    if kind == "multi":
        return pandas.MultiIndex.from_tuples(rest[0], names=rest[1])
    if kind == "index":
        return pandas.Index(_pandas_array(pandas, rest[0]), name=rest[1])
    if kind == "series":
        column, index, name = rest
        return pandas.Series(_pandas_array(pandas, column), index=table(index), name=name)
    if kind != "frame":
        raise ValueError(f"{kind!r:.20} is not a kind of table")
    columns, index, labels = rest
    frame = pandas.DataFrame(
        {at: _pandas_array(pandas, column) for at, column in enumerate(columns)}, index=table(index)
    )
    frame.columns = table(labels)
    return frame


def _pandas_array(pandas: Any, column: Any) -> Any:
    kind, *rest = column
    if kind == "numpy":
        (array,) = rest
        if type(array).__name__ != "ndarray" or array.ndim != 1:
            raise ValueError("a column that is none")
        return array
    if kind == "category":
        categories, codes, ordered = rest
        return pandas.Categorical.from_codes(codes, _pandas_array(pandas, categories), ordered=bool(ordered))
    (items,) = rest
    if not _DTYPE.fullmatch(kind):
        raise ValueError(f"a column of the dtype {kind!r:.40}")
    return pandas.Series(items, dtype=kind).array
