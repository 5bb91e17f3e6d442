"""Rows for a schema, drawn so that the constants of a query hit some and just miss others.

A column's values come from the constants it is compared with and their neighbours, from its samples, and from its type.
Small pools make equal values, ties and NULLs frequent: that is where wrong queries differ from right ones.

Not covered: likeness to real data.  The rows are for telling queries apart, not for reading.
"""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.verifiers.sql.databases.schema_shape import ColumnShape, Schema, TableShape, quoted

Constants = Mapping[str, tuple[Any, ...]]
"""Lower-case column name -> the constants it is compared with."""

_WORDS: Final = "amber birch cedar delta ember fjord grove haven indigo juniper".split()
_NULL_SHARE: Final = 0.08
_MAX_SQLITE_INT: Final = 2**63 - 1


class RowMaker:
    """Fills databases of one schema.

    Columns that the reference joins have one number in `groups`; the seed and a database's number decide every row.
    """

    def __init__(self, schema: Schema, constants: Constants, groups: Mapping[str, int], seed: str) -> None:
        self._schema, self._constants, self._groups, self._seed = schema, constants, groups, seed

    def fill(self, connection: sqlite3.Connection, number: int) -> None:
        """Make the tables and rows of database `number` (0, 1, ...)."""
        chooser = random.Random(f"{self._seed}:{number}")
        for statement in self._schema.statements:
            connection.execute(statement)
        made: dict[tuple[str, str], list[Any]] = {}
        connection.execute("BEGIN")
        for table in parents_first(self._schema.tables):
            rows = self.rows(table, chooser, made)
            insert(connection, table, rows)
            for at, column in enumerate(table.columns):
                made[table.name.lower(), column.name.lower()] = [row[at] for row in rows if row[at] is not None]
        connection.execute("COMMIT")

    def rows(
        self, table: TableShape, chooser: random.Random, made: Mapping[tuple[str, str], list[Any]]
    ) -> list[tuple[Any, ...]]:
        """Return rows of a table; `made` has the values, without NULL, of the columns that were filled before."""
        count = chooser.choice((4, 9, 16, 24, 48))
        columns = []
        keys = [column for column in table.columns if column.key]
        for column in table.columns:
            pool = self._pool(column, chooser, made)
            if column.key and len(keys) == 1:
                columns.append(_unique(column, pool, count, chooser))
                continue
            values = [chooser.choice(pool) for _ in range(count)]
            if column.optional:
                values = [None if chooser.random() < _NULL_SHARE else value for value in values]
            columns.append(values)
        return list(zip(*columns, strict=True))

    def _pool(
        self, column: ColumnShape, chooser: random.Random, made: Mapping[tuple[str, str], list[Any]]
    ) -> list[Any]:
        """Return the values to draw from, those to be frequent several times."""
        if column.parent is not None:
            parents = made.get((column.parent[0].lower(), column.parent[1].lower()))
            if parents:
                return [chooser.choice(parents) for _ in range(max(3, len(parents) // 2))]
        if column.name.lower() in self._groups:
            return self._shared(column)
        constants = [fitting(column, value) for value in self._constants.get(column.name.lower(), ())]
        near = [other for value in constants for other in _neighbours(value)]
        samples = [_bindable(value) for value in chooser.sample(column.samples, min(4, len(column.samples)))]
        own = _typical(column, chooser)
        return constants * 4 + near + samples * 2 + (own if not samples else own[:2])

    def _shared(self, column: ColumnShape) -> list[Any]:
        """Return the values of columns that are joined without a foreign key: the same few for all of them."""
        group = self._groups[column.name.lower()]
        names = sorted(name for name, number in self._groups.items() if number == group)
        constants = [fitting(column, value) for name in names for value in self._constants.get(name, ())]
        if column.kind in ("integer", "real", "boolean"):
            return constants * 2 + list(range(1, 7))
        if column.kind in ("date", "moment"):
            return constants * 2 + [f"2020-03-{day:02d}" for day in range(1, 6)]
        return constants * 2 + [_bindable(value) for value in column.samples[:4]] + _WORDS[:5]


def insert(connection: sqlite3.Connection, table: TableShape, rows: Sequence[tuple[Any, ...]]) -> None:
    """Put rows into a table, but for those that break one of its rules."""
    columns = ", ".join(quoted(column.name) for column in table.columns)
    marks = ", ".join("?" * len(table.columns))
    connection.executemany(f"INSERT OR IGNORE INTO {quoted(table.name)} ({columns}) VALUES ({marks})", rows)


def parents_first(tables: tuple[TableShape, ...]) -> list[TableShape]:
    """Return tables such that those that foreign keys point to come first."""
    left, placed, ordered = list(tables), set[str](), list[TableShape]()
    while left:
        ready = [table for table in left if _parents(table) <= placed] or left[:1]  # a ring is cut at its first table
        for table in ready:
            ordered.append(table)
            placed.add(table.name.lower())
        left = [table for table in left if table.name.lower() not in placed]
    return ordered


def _parents(table: TableShape) -> set[str]:
    return {column.parent[0].lower() for column in table.columns if column.parent} - {table.name.lower()}


def _unique(column: ColumnShape, pool: list[Any], count: int, chooser: random.Random) -> list[Any]:
    whole = column.kind == "integer"  # SQLite takes nothing else for the key that numbers the rows
    taken: dict[Any, None] = dict.fromkeys(value for value in pool if isinstance(value, int) or not whole)
    values = list(taken)[:count]
    number = 1
    while len(values) < count:
        value: Any = (
            number if column.kind in ("integer", "real", "boolean") else f"{_WORDS[number % len(_WORDS)]}{number}"
        )
        if value not in taken:
            taken[value] = None
            values.append(value)
        number += 1
    chooser.shuffle(values)
    return values


def fitting(column: ColumnShape, value: Any) -> Any:
    """Return a constant in the form that the column stores."""
    if column.kind in ("date", "moment", "text") and isinstance(value, int) and 1000 <= value <= 9999:
        return str(value) if all(len(str(sample)) == 4 for sample in column.samples or ("",)) else f"{value}-06-15"
    if column.kind in ("date", "moment") and isinstance(value, str) and len(value) == 4 and value.isdigit():
        return f"{value}-06-15"
    if column.kind in ("date", "moment") and isinstance(value, str) and len(value) == 2 and value.isdigit():
        return f"2020-{value}-15"
    if column.kind in ("integer", "real") and isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if number.is_integer() and abs(number) < _MAX_SQLITE_INT else number
    return _bindable(value)


def _neighbours(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [value - 1, value + 1] if abs(value) < _MAX_SQLITE_INT - 1 else []
    if isinstance(value, float):
        return [value - 0.5, value + 0.5]
    text = str(value)
    if len(text) == 10 and text[4:5] == text[7:8] == "-":
        try:
            day = datetime.date.fromisoformat(text)
            beside = [(day + datetime.timedelta(days=days)).isoformat() for days in (-1, 1, 366)]
        except (ValueError, OverflowError):
            beside = []
        return [*beside, f"{text[:8]}01", f"{text[:8]}28"]
    # Not the same letters in another case: real columns rarely mix cases, and `LIKE 'France'` is a fair answer.
    return [f"{text}s", text[:-1] or "x"]


def _typical(column: ColumnShape, chooser: random.Random) -> list[Any]:
    match column.kind:
        case "integer":
            return [chooser.randint(0, 9), chooser.randint(0, 9), chooser.randint(10, 99), chooser.randint(100, 5000)]
        case "real":
            return [float(chooser.randint(0, 5)), chooser.randint(1, 400) / 4, chooser.randint(1, 4000) / 8]
        case "boolean":
            return [0, 1]
        case "date" | "moment":
            days = [
                f"{chooser.randint(2008, 2024)}-{chooser.randint(1, 12):02d}-{chooser.randint(1, 28):02d}"
                for _ in range(4)
            ]
            if column.kind == "date":
                return days
            return [f"{day} {chooser.randint(0, 23):02d}:{chooser.randint(0, 59):02d}:00" for day in days]
        case "blob":
            return [bytes([chooser.randint(0, 255)]) for _ in range(3)]
    return chooser.sample(_WORDS, 4)


def _bindable(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= _MAX_SQLITE_INT else str(value)
    return value if value is None or isinstance(value, float | str | bytes) else str(value)
