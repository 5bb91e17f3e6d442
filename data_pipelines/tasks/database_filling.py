"""One database of a schema as a SQLite file.

Rows at the edges are copies of rows that are there, under a key of their own, with one thing changed; one that breaks a
constraint is left out by SQLite.  A row that points nowhere gets the key of a parent, drawn by the seed; where there is
no parent row, NULL; and where NULL is not allowed, it is deleted.  SQLite's own check of foreign keys refuses schemas
whose parent columns are not declared unique, which real ones often are not, so the check here is a plain query.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from adjudge.io.errors import JobError
from adjudge.io.jobs.maker import DroppedError
from adjudge.verifiers.sql.databases.row_maker import RowMaker
from adjudge.verifiers.sql.databases.schema_shape import (
    MAX_BYTES,
    ColumnShape,
    Schema,
    SchemaError,
    TableShape,
    bound_work,
    quoted,
    schema_of_file,
)

_PASSES: Final = 8  # a row that was pointed elsewhere, or deleted, may have been a parent


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Columns of a table that point to columns of another."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]

    def same(self) -> str:
        """Return the condition of a row with given values, as parameters."""
        return " AND ".join(f"{quoted(name)} = ?" for name in self.columns)

    def orphans(self) -> str:
        """Return the condition of a row, called c, that points nowhere."""
        known = " AND ".join(f"c.{quoted(name)} IS NOT NULL" for name in self.columns)
        same = " AND ".join(
            f"p.{quoted(there)} = c.{quoted(here)}"
            for here, there in zip(self.columns, self.parent_columns, strict=True)
        )
        return f"{known} AND NOT EXISTS (SELECT 1 FROM {quoted(self.parent)} AS p WHERE {same})"


def foreign_keys(connection: sqlite3.Connection, schema: Schema) -> list[ForeignKey]:
    """Return the foreign keys of a database's tables, those to tables that are not there left out."""
    tables = {table.name.lower(): table for table in schema.tables}
    keys = []
    for table in schema.tables:
        parts: dict[int, list[tuple[str, str, str | None]]] = {}
        for number, _, parent, here, there, *_ in connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})"):
            parts.setdefault(number, []).append((parent, here, there))
        for columns in parts.values():
            target = tables.get(columns[0][0].lower())
            if target is None:
                continue
            own = [column.name for column in target.columns if column.key]
            there = [name or (own[at] if at < len(own) else "") for at, (_, _, name) in enumerate(columns)]
            known = {column.name.lower() for column in target.columns}
            if all(name.lower() in known for name in there):
                here = tuple(name for _, name, _ in columns)
                key = ForeignKey(table=table.name, columns=here, parent=target.name, parent_columns=tuple(there))
                keys.append(key)
    return keys


def repair(connection: sqlite3.Connection, schema: Schema, seed: str) -> int:
    """Make all foreign keys of a database hold, and return how many rows had to change."""
    chooser = random.Random(seed)
    keys = foreign_keys(connection, schema)
    changed = 0
    for number in range(_PASSES):
        now = sum(_repaired(connection, key, chooser, last=number >= _PASSES // 2) for key in keys)
        changed += now
        if not now:
            break
    while any(_deleted(connection, key) for key in keys):
        pass  # each round deletes at least a row
    return changed


def _repaired(connection: sqlite3.Connection, key: ForeignKey, chooser: random.Random, *, last: bool) -> int:
    rows = _orphans(connection, key)
    if not rows:
        return 0
    there = ", ".join(quoted(name) for name in key.parent_columns)
    known = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in key.parent_columns)
    parents = connection.execute(
        f"SELECT DISTINCT {there} FROM {quoted(key.parent)} WHERE {known} ORDER BY {there}"
    ).fetchall()
    put = ", ".join(f"{quoted(name)} = ?" for name in key.columns)
    # All rows with the old values are pointed elsewhere; those that a constraint forbids stay as they are.
    update = f"UPDATE OR IGNORE {quoted(key.table)} SET {put} WHERE {key.same()}"
    for old in rows:
        new = chooser.choice(parents) if parents and not last else (None,) * len(key.columns)
        connection.execute(update, (*new, *old))
    return len(rows)


def _orphans(connection: sqlite3.Connection, key: ForeignKey) -> list[tuple[Any, ...]]:
    """Return the different values of the columns that point nowhere."""
    here = ", ".join(f"c.{quoted(name)}" for name in key.columns)
    return connection.execute(
        f"SELECT DISTINCT {here} FROM {quoted(key.table)} AS c WHERE {key.orphans()} ORDER BY {here}"
    ).fetchall()


def _deleted(connection: sqlite3.Connection, key: ForeignKey) -> int:
    """Delete the rows that still point nowhere."""
    delete = f"DELETE FROM {quoted(key.table)} WHERE {key.same()}"
    return sum(connection.execute(delete, row).rowcount for row in _orphans(connection, key))


_DATES: Final = ("2024-02-29", "2024-12-31", "2025-01-01", "2023-12-31")
_NUMBERS: Final = ("integer", "real")
_COPIES: Final = 2  # rows that are copied for each change


def add_edge_rows(connection: sqlite3.Connection, schema: Schema, kinds: Collection[str], seed: str) -> int:
    """Add rows to every table that has some, and return how many."""
    chooser = random.Random(seed)
    before = connection.total_changes
    connection.execute("BEGIN")
    for table in schema.tables:
        names = ", ".join(quoted(column.name) for column in table.columns)
        rows = connection.execute(f"SELECT {names} FROM {quoted(table.name)}").fetchall()
        if not rows:
            continue
        fresh = _Keys(table, rows)
        marks = ", ".join("?" * len(table.columns))
        sql = f"INSERT OR IGNORE INTO {quoted(table.name)} ({names}) VALUES ({marks})"
        connection.executemany(sql, [fresh.under(row) for row in _changed(table, rows, kinds, chooser)])
    connection.execute("COMMIT")
    return connection.total_changes - before


class _Keys:
    """Keys that no row of a table has yet."""

    def __init__(self, table: TableShape, rows: list[tuple[Any, ...]]) -> None:
        keys = [at for at, column in enumerate(table.columns) if column.key]
        self._at = keys[0] if len(keys) == 1 else -1
        held = [row[self._at] for row in rows] if self._at >= 0 else []
        self._whole = all(isinstance(value, int) for value in held)
        self._next = max([value for value in held if isinstance(value, int)], default=0)

    def under(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a row under a fresh key; unchanged where the key has several columns, or there is none."""
        if self._at < 0 or self._next >= 2**62:
            return row
        self._next += 1
        key = self._next if self._whole else f"edge{self._next}"
        return (*row[: self._at], key, *row[self._at + 1 :])


def _changed(
    table: TableShape, rows: list[tuple[Any, ...]], kinds: Collection[str], chooser: random.Random
) -> Iterator[tuple[Any, ...]]:
    if "duplicates" in kinds:
        yield from (chooser.choice(rows) for _ in range(_COPIES))
    for at, column in enumerate(table.columns):
        if column.key:
            continue
        for value in _values(column, at, rows, kinds):
            for _ in range(_COPIES):
                row = chooser.choice(rows)
                yield (*row[:at], value, *row[at + 1 :])


def _values(column: ColumnShape, at: int, rows: list[tuple[Any, ...]], kinds: Collection[str]) -> Iterator[Any]:
    """Yield the values that a column takes at its edges."""
    if "nulls" in kinds and column.optional:
        yield None
    if column.parent is not None:
        return
    if "empty" in kinds and column.kind == "text":
        yield ""
    if "dates" in kinds and column.kind in ("date", "moment"):
        yield from _DATES if column.kind == "date" else (f"{day} 00:00:00" for day in _DATES)
    if column.kind in _NUMBERS:
        if "zeros" in kinds:
            yield 0
        held = [row[at] for row in rows if isinstance(row[at], int | float)]
        if "ties" in kinds and held:
            yield from (max(held), min(held))


class FillingError(ValueError):
    """A schema that takes no rows; the message is SQLite's."""


def fill(path: Path, schema: Schema, maker: RowMaker, number: int, edges: Collection[str], seed: str) -> int:
    """Make a SQLite file, and return how many rows it has; the same arguments make the same bytes.

    Raises:
        FillingError: SQLite refuses the schema or its rows.
        JobError: the disk is full, or fails.
    """
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        bound_work(connection)
        try:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("PRAGMA synchronous = OFF")
            maker.fill(connection, number)
            if number % 2 and edges:
                add_edge_rows(connection, schema, edges, f"{seed}:{number}")
            connection.execute("BEGIN")
            repair(connection, schema, f"{seed}:{number}")
            connection.execute("COMMIT")
            counts = [f"SELECT COUNT(*) FROM {quoted(table.name)}" for table in schema.tables]
            return sum(connection.execute(count).fetchone()[0] for count in counts)
        except (sqlite3.Error, ValueError, OverflowError) as error:  # ValueError: a NUL or a lone surrogate
            if _disk_fails(path, error):
                raise JobError(f"the disk refuses ({error}) while a database is made in {path.parent}") from error
            raise FillingError(f"SQLite refuses the schema's rows: {error}") from error


def _disk_fails(path: Path, error: Exception) -> bool:
    """Return whether an error is the disk's, and not that of a schema that asks for more than `MAX_BYTES`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return path.stat().st_size < MAX_BYTES // 2
    return code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


class GivenSchema(NamedTuple):
    """A schema as `schema_shape.read_schema` takes it, and the SQLite file that it belongs to, or ""."""

    schema: Mapping[str, Any]
    file: str


def read_schemas(path: str) -> Mapping[str, Any]:
    """Return the schemas of a JSON file, by name; raise `ValueError` where it holds none."""
    try:
        schemas = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"--schemas {path} cannot be read as JSON: {error}") from error
    if not isinstance(schemas, dict) or not schemas:
        raise ValueError(f"--schemas {path} holds no mapping of names to schemas")
    return schemas


def given_schema(
    schema: Any, values: Any, named: Any, file: Any, *, schemas: Mapping[str, Any], folder: str
) -> GivenSchema:
    """Return the schema of a row; the row's own comes first, then the named one, then the file's."""
    path = find_file(file, folder)
    if schema is None and isinstance(named, str) and named in schemas:
        schema = schemas[named]
    if schema is not None:
        if not isinstance(schema, str | Mapping):
            raise DroppedError("bad_schema", f"the schema is a {type(schema).__name__}")
        return GivenSchema({"schema": schema, **({"values": values} if values else {})}, path)
    if not path:
        raise DroppedError("no_schema", "the row names no schema and no file that is there")
    try:
        stat = Path(path).stat()
        return GivenSchema(_of_file(path, stat.st_mtime_ns, stat.st_size), path)
    except (SchemaError, OSError) as error:
        raise DroppedError("bad_database", str(error)) from error


def find_file(name: Any, folder: str) -> str:
    """Return the SQLite file that a name stands for; "" if there is none."""
    if not isinstance(name, str) or not name:
        return ""
    paths = (Path(folder, name), Path(folder, f"{name}.sqlite"), Path(folder, name, f"{name}.sqlite"))
    # `Path.is_file` raises where a name is too long, such as a schema's text.
    return next((str(path) for path in paths if os.path.isfile(path)), "")


@lru_cache(maxsize=256)
def _of_file(path: str, changed: int, size: int) -> Mapping[str, Any]:
    """Return a file's schema; `changed` and `size` make a file that was replaced another one."""
    del changed, size
    return schema_of_file(path)
