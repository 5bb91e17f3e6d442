"""The small interface behind which the databases stand, and what they answer: tables of plain cells.

Cells hash and compare alike on every engine.  Python's own rules apply to numbers: `1 == 1.0 == True`.  A text is never
a number: `"1" != 1`.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge.verifiers.sql.databases.statement import Dialect, Statement

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


CHANGING: Final = frozenset(
    "random randomblob uuid uuidv4 uuidv7 gen_random_uuid setseed clock_timestamp timeofday changes total_changes "
    "last_insert_rowid".split()
)
"""Functions that do no harm but change from call to call."""

FaultKind: TypeAlias = Literal["error", "timeout", "memory", "output", "forbidden", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """What one query may use.

    Attributes:
        output_bytes: bytes of its result, eight for each number and each list.
        steps: thousands of instructions of SQLite's machine, which unlike seconds stop a query at the same place on
            every machine; 0 for no limit.  Other engines do not count them.
    """

    seconds: float = 5.0
    rows: int = 100_000
    output_bytes: int = 32 << 20
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a query has no result.

    Attributes:
        kind: "error" (the engine refused or failed it), "timeout", "memory", "output" (too many rows or bytes),
            "forbidden" (it tried what no query may), or "lost" (the engine itself is gone).
        text: what the engine or the guard said.
    """

    kind: FaultKind
    text: str


def refused_function(name: str) -> Fault:
    """Return the fault of a query that calls a function it may not call."""
    if name in CHANGING:
        return Fault("error", f"{name}() changes from call to call, so no score could be repeated")
    return Fault("forbidden", f"the function {name} is not allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """How databases are opened.

    Attributes:
        moment: what SQLite's clock shows, in UTC.
        memory_mb: MiB for the engine, where it can be told.
        synthetic: how many databases are made from a schema.
        variations: how many databases are made like the reference's first file; for `{"like": file}` not 0.
    """

    moment: str
    memory_mb: int = 512
    synthetic: int = 4
    variations: int = 6


class EngineUnavailableError(RuntimeError):
    """The database cannot be opened or reached; the message names the remedy."""


class Engine(ABC):
    """One open database on which queries run, none of which can change it."""

    dialect: ClassVar[Dialect]
    refused_prefixes: ClassVar[tuple[str, ...]] = ()
    refused: frozenset[str] = frozenset()  # lower-case names of functions that no query may call
    key: Hashable = None  # under which results may be kept

    def refusal(self, sql: str) -> Fault | None:
        """Return why a query may not run, as far as its text tells by the lexical rules of PostgreSQL."""
        statement = Statement(sql, self.dialect)
        if any(token.kind == "bad" or token.text[:2] in ("U&", "u&") for token in statement.tokens):
            return Fault("error", "the query has an open or an escaped quotation")
        if not statement.is_query:
            return Fault("error", "the text is not one query")
        calls = sorted(statement.calls())
        bad = next((name for name in calls if name in self.refused or name.startswith(self.refused_prefixes)), "")
        return refused_function(bad) if bad else None

    @abstractmethod
    def run(self, sql: str, limits: QueryLimits) -> Table | Fault:
        """Return the result of one query, or why there is none."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @property
    def alive(self) -> bool:
        """Whether another query can run."""
        return True


class Collector:
    """Takes in rows until a limit is reached.

    `convert` says that cells are of types beyond None, int, float, str and bytes.
    """

    def __init__(self, limits: QueryLimits, convert: bool) -> None:
        self.rows: list[Row] = []
        self._limits, self._convert = limits, convert
        self._bytes = 0

    def full(self, rows: Iterable[Sequence[Any]]) -> Fault | None:
        """Take in rows; return the fault as soon as they are too many.

        Rows that come lazily are not asked for beyond that, so a flood costs one row more than is allowed.
        """
        max_rows, max_bytes = self._limits.rows, self._limits.output_bytes
        for row in rows:
            cells = tuple([plain(cell) for cell in row]) if self._convert else tuple(row)
            self.rows.append(cells)
            self._bytes += sum([len(cell) if isinstance(cell, str) else cell_bytes(cell) for cell in cells])
            if len(self.rows) > max_rows:
                return Fault("output", f"more than {max_rows:,} rows")
            if self._bytes > max_bytes:
                return Fault("output", f"more than {max_bytes:,} bytes")
        return None
