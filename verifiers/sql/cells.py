"""Results of queries as plain data: cells that hash and compare alike on every engine, and tables of them.

Python's own rules apply to numbers: `1 == 1.0 == True`.  A text is never a number: `"1" != 1`.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

Cell: TypeAlias = Any
"""None, int, float (never NaN), str, bytes, or a tuple of a kind and cells for what SQL has beyond those."""

Row: TypeAlias = tuple[Cell, ...]

NAN: Cell = ("nan",)  # a float NaN differs from itself; as a cell it is a value like others
_MAX_EXPONENT = 400  # beyond the floats; an integer of more digits than this stays text


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The result of one query.

    Attributes:
        columns: the names, in order.
        rows: the rows, in order, each as long as `columns`.
        reads: lower-case names of the database's tables that the query read; None where the engine does not tell.
        seconds: seconds it took; those of the processor where the engine runs in this process.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    reads: frozenset[str] | None = None
    seconds: float = 0.0

    @property
    def tells(self) -> bool:
        """Whether it holds anything but NULL: a query that finds nothing has no rows, or one of NULL."""
        return any(cell is not None for row in self.rows for cell in row)

    @property
    def size(self) -> int:
        """Bytes of memory, about: what the cells hold, and 64 for each cell, each row and the table."""
        cells = sum(cell_bytes(cell) for row in self.rows for cell in row)
        return cells + 64 * (1 + len(self.rows) * (1 + len(self.columns))) + 2000


def cell_bytes(cell: Cell) -> int:
    """Return what a cell counts for where results are limited: a text its length, a number 8, a list its items."""
    if isinstance(cell, str | bytes):
        return len(cell)
    return 8 + sum(map(cell_bytes, cell)) if isinstance(cell, tuple) else 8


def plain(value: Any) -> Cell:
    """Return an engine's value as a cell.

    Decimals become ints where they are whole and floats otherwise; dates and times become ISO text, moments with a
    time zone in UTC; lists, structures and intervals become tuples.
    """
    if value is None or type(value) in (int, str, bytes):
        return value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return NAN if math.isnan(value) else float(value)
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC)
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return ("interval", value // datetime.timedelta(microseconds=1))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return ("map", *sorted(((str(key), plain(item)) for key, item in value.items()), key=repr))
    if isinstance(value, list | tuple | set | frozenset):
        return ("list", *(plain(item) for item in value))
    return str(value)


def _number(value: Decimal) -> Cell:
    if value.is_nan():
        return NAN
    if value.is_infinite():
        return math.inf if value > 0 else -math.inf
    if abs(value.adjusted()) > _MAX_EXPONENT:
        return str(value.normalize())
    return int(value) if value == value.to_integral_value() else float(value)
