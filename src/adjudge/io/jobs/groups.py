"""From the rows of a source to the units of a job: single rows, or the rows of one group.

A group is a run of rows with the same value in the group column.  A row that cannot be read belongs to the group
it stands in; a row without a group belongs to no unit and is counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from adjudge.io.columns import Column
from adjudge.io.jobs.maker import Unit
from adjudge.io.row import Cursor, Part, Place, Row
from adjudge.io.source import Source
from adjudge.io.values import is_empty


class _Numbers(Part):
    def __init__(self, rows: int) -> None:
        self.path, self.names = "", ["index"]
        self._rows = rows

    def count(self) -> int | None:
        return self._rows

    def rows(self, start: Place) -> Iterator[Row]:
        for index in range(start.record, self._rows):
            yield Row({"index": index}, "", Place(index + 1), 16)


class NumberSource(Source):
    """Rows {"index": 0}, {"index": 1}, ...: a source for `run_job`.

    Raises:
        ValueError: fewer than none.
    """

    def __init__(self, rows: int, name: str = "numbers") -> None:
        if rows < 0:
            raise ValueError(f"there cannot be {rows} rows; give 0 or more")
        super().__init__(name, [_Numbers(rows)], [], {"rows": rows})


GROUP_BYTES: Final = 256 << 20  # a group is worked on as a whole, so it must fit in memory
_CHUNK_BYTES: Final = 4 << 20


class RowSource(Protocol):
    """Numbered rows that can be entered at any place; `io.source.Source` is one, `NumberSource` another."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        ...

    def columns(self) -> list[str] | None:
        """Return the top-level columns, or None where only the rows tell."""
        ...

    def count(self) -> int | None:
        """Return the number of rows, or None if unknown."""
        ...

    def fraction(self, cursor: Cursor) -> float | None:
        """Return the share of the rows before a place, from 0 to 1, or None if unknown."""
        ...

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the rows behind a place."""
        ...


@dataclass(slots=True)
class Piece:
    """Rows read together, and the place behind them.

    Attributes:
        after: where reading goes on.
        rows: how many were read.
        unit: what they are to the maker; None if nothing of them can be used.
        dropped: how many could not be used, by reason.
        size: bytes they take, roughly.
    """

    after: Cursor
    rows: int = 0
    unit: Unit | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def drop(self, reason: str) -> None:
        """Count a row that cannot be used."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReader:
    """Cuts a source into units.

    Attributes:
        source: the rows.
        group: the column that groups share, or None: each row is a unit.
        limit: rows to read; None reads all.
        whole: whether rows are taken as they were read, with what Arrow filled in, because they are written again.
    """

    source: RowSource
    group: Column | None = None
    limit: int | None = None
    whole: bool = False

    def pieces(self, start: Cursor) -> Iterator[Piece]:
        """Yield all rows behind a place, in pieces of one unit or none."""
        return self._single(start) if self.group is None else self._grouped(start, self.group)

    def chunks(self, start: Cursor, most: int) -> Iterator[list[Piece]]:
        """Yield the pieces behind a place, up to `most` at a time, fewer where rows are long."""
        chunk: list[Piece] = []
        held = 0
        for piece in self.pieces(start):
            chunk.append(piece)
            held += piece.size
            if len(chunk) >= most or held >= _CHUNK_BYTES:
                yield chunk
                chunk, held = [], 0
        if chunk:
            yield chunk

    def units(self) -> Iterator[Unit]:
        """Yield every unit from the beginning."""
        return (piece.unit for piece in self.pieces(Cursor()) if piece.unit is not None)

    def check_groups(self) -> None:
        """Read the input once and see that the rows of each group stand together and fit in memory.

        Keeps 8-byte hashes of the groups, about 60 bytes of memory for each.

        Raises:
            ValueError: a group goes on after another one began, or is too large.
        """
        if self.group is None:
            return
        seen: set[int] = set()
        last, size = "", 0
        for row in self._rows(Cursor()):
            key = group_key(self.group.of(row.data)) if row.data is not None else last
            if key != last:
                if key and hash(key) in seen:
                    raise ValueError(
                        f"the rows of a group are worked on together, and the group {key[:80]!r} goes on at row "
                        f"{row.index} after other rows; sort the input by its column {self.group.name!r}"
                    )
                seen.add(hash(key))
                size = 0
            last, size = key, size + row.size
            if key and size > GROUP_BYTES:
                raise ValueError(
                    f"the group {key[:80]!r} takes more than {GROUP_BYTES >> 20} MiB, and a group is worked on as a "
                    f"whole; choose another column than {self.group.name!r}, or drop columns that are not needed"
                )

    def _rows(self, start: Cursor) -> Iterator[Row]:
        if self.limit is not None and start.row >= self.limit:
            return
        for row in self.source.rows(start):
            if not self.whole:
                row.data = row.cells()
            yield row
            if row.index + 1 == self.limit:
                return

    def _single(self, start: Cursor) -> Iterator[Piece]:
        for row in self._rows(start):
            piece = Piece(_behind(row), 1, size=row.size)
            if row.data is None:
                piece.drop("unreadable")
            else:
                piece.unit = Unit(rows=(row.data,), first=row.index)
            yield piece

    def _grouped(self, start: Cursor, column: Column) -> Iterator[Piece]:
        group, first = "", 0
        held: list[Mapping[str, Any]] = []
        piece: Piece | None = None
        for row in self._rows(start):
            key = group_key(column.of(row.data)) if row.data is not None else group
            if piece is not None and key != group:
                yield _closed(piece, held, first, group)
                piece, held = None, []
            if piece is None:
                piece, first, group = Piece(_behind(row)), row.index, key
            piece.after, piece.rows, piece.size = _behind(row), piece.rows + 1, piece.size + row.size
            if row.data is None:
                piece.drop("unreadable")
            elif key:
                held.append(row.data)
            else:
                piece.drop("no_group")
            if not key:  # a row that belongs to no group belongs to no other row either
                yield piece
                piece, group = None, ""
        if piece is not None:
            yield _closed(piece, held, first, group)


def group_key(value: Any) -> str:
    """Return the group that a value of the group column names, or "" if it names none.

    Text and numbers name themselves; chat turns and other data are named by their JSON text.  NaN, which is what a
    missing one often became on its way here, names none, as a number and as a text.
    """
    if is_empty(value) or value == []:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def _closed(piece: Piece, rows: list[Mapping[str, Any]], first: int, group: str) -> Piece:
    if rows:
        piece.unit = Unit(rows=tuple(rows), first=first, group=group)
    return piece


def _behind(row: Row) -> Cursor:
    return Cursor(row.index + 1, row.part, row.place, row.index + 1)
