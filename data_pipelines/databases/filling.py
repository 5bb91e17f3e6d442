"""One database of a schema as a SQLite file.

Not covered: whether it tells queries apart; `adjudge.data_pipelines.databases.suite` chooses.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from adjudge.data_pipelines.databases.edge_rows import add_edge_rows
from adjudge.data_pipelines.databases.foreign_keys import repair
from adjudge.databases.row_maker import RowMaker
from adjudge.databases.schema_shape import MOST_BYTES, Schema, bound_work, quoted
from adjudge.io.errors import JobError


class FillingError(ValueError):
    """A schema that takes no rows; the message is SQLite's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A database that was made.

    Attributes:
        path: the file.
        number: which filling it is.
        rows: how many rows all its tables have.
    """

    path: Path
    number: int
    rows: int


def fill(path: Path, schema: Schema, maker: RowMaker, number: int, edges: Collection[str], seed: str) -> Filled:
    """Make a SQLite file; the same arguments make the same bytes.

    Args:
        path: a file that is not there.
        schema: the tables.
        maker: what draws the rows.
        number: which filling; every other one, from 1 on, has edge rows.
        edges: the kinds of edge rows.
        seed: decides edge rows and repairs; the maker has its own.

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
            counts = [
                connection.execute(f"SELECT COUNT(*) FROM {quoted(table.name)}").fetchone()[0]
                for table in schema.tables
            ]
        except (sqlite3.Error, ValueError, OverflowError) as error:  # ValueError: a NUL or a lone surrogate
            if _disk_fails(path, error):
                raise JobError(f"the disk refuses ({error}) while a database is made in {path.parent}") from error
            raise FillingError(f"SQLite refuses the schema's rows: {error}") from error
    return Filled(path=path, number=number, rows=sum(counts))


def _disk_fails(path: Path, error: Exception) -> bool:
    """Return whether an error is the disk's, and not that of a schema that asks for more than `MOST_BYTES`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return path.stat().st_size < MOST_BYTES // 2
    return code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
