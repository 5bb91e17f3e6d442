"""Columns of a row as what they must be; what is missing or of another kind is an error that names the column.

Not covered: reading files (`adjudge.io`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeVar

from adjudge.io.row import Cursor
from adjudge.io.source import open_source

Key = TypeVar("Key", bound=Hashable)

_LONGEST = 1 << 26  # bytes of one row of a text file
_SHOWN = 60


def text_of(row: Mapping[str, Any], *names: str) -> str:
    """Return the text in the first of these columns that the row has.

    Raises:
        ValueError: it has none of them, or it holds no text.
    """
    value = value_of(row, *names)
    if not isinstance(value, str):
        raise ValueError(f"the column {_first(row, names)!r} holds {shown(value)}; it must be text")
    return value


def said_of(row: Mapping[str, Any], *names: str) -> str:
    """Return the same, where "True" or "15" may have been written to the file as what they look like.

    Raises:
        ValueError: the row has none of these columns, or it holds neither text nor a number nor truth.
    """
    value = value_of(row, *names)
    return str(value) if isinstance(value, bool | int | float) else text_of(row, *names)


def whole_of(row: Mapping[str, Any], *names: str) -> int:
    """Return the whole number in the first of these columns that the row has; "3" and 3.0 are 3.

    Raises:
        ValueError: it has none of them, or it holds no whole number.
    """
    value = value_of(row, *names)
    number = as_whole(value)
    if number is None:
        raise ValueError(f"the column {_first(row, names)!r} holds {shown(value)}; it must be a whole number")
    return number


def texts_of(row: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """Return the list of texts in the first of these columns that the row has.

    Raises:
        ValueError: it has none of them, or it holds no list of texts, or an empty one.
    """
    value = value_of(row, *names)
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise ValueError(f"the column {_first(row, names)!r} holds {shown(value)}; it must be a list of texts")
    for item in value:
        if not isinstance(item, str):
            raise ValueError(f"the column {_first(row, names)!r} has the item {shown(item)}; all must be texts")
    return tuple(value)


def value_of(row: Mapping[str, Any], *names: str) -> Any:
    """Return what stands in the first of these columns that the row has.

    Raises:
        ValueError: it has none of them.
    """
    return row[_first(row, names)]


def as_whole(value: Any) -> int | None:
    """Return a whole number that is written as one, as a float or as text; None for anything else, truth included."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    text = value.strip() if isinstance(value, str) else ""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def digest_of(*texts: str) -> str:
    """Return 16 hex digits that stand for texts: the name of the cluster of all cases that share a prompt."""
    made = blake2b(digest_size=8)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8))
        made.update(data)
    return made.hexdigest()


def keyed_rows(
    path: str, key: Callable[[Mapping[str, Any]], Key | None], *, several: bool = False
) -> dict[Key, list[dict[str, Any]]]:
    """Return the rows of a second file by a key, to be joined with those of the input.

    Args:
        path: any file, folder or dataset that the input may be too.
        key: of a row; None leaves the row out.
        several: whether a key may come more than once.

    Raises:
        ValueError: there is no such file, a row cannot be read or lacks the key's columns, or a key comes twice.
    """
    found: dict[Key, list[dict[str, Any]]] = {}
    for row in open_source(path, limit=_LONGEST).rows(Cursor()):
        if row.data is None:
            raise ValueError(f"row {row.index} of {path!r} cannot be read: {row.error}")
        try:
            name = key(row.data)
        except ValueError as error:
            raise ValueError(f"row {row.index} of {path!r}: {error}") from error
        if name is None:
            continue
        if name in found and not several:
            raise ValueError(f"row {row.index} of {path!r} is the second one for {shown(name)}; keep one of them")
        found.setdefault(name, []).append(dict(row.data))
    return found


def shown(value: Any) -> str:
    """Return a value as an error may show it: short, and with nothing that a terminal would obey."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."


def _first(row: Mapping[str, Any], names: Sequence[str]) -> str:
    for name in names:
        if row.get(name) is not None:
            return name
    wanted = " or ".join(repr(name) for name in names)
    there = ", ".join(shown(name) for name in list(row)[:12]) or "none"
    raise ValueError(f"the row has no column {wanted}; its columns are {there}")
