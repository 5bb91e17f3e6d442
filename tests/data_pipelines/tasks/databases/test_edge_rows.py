"""Each kind of edge row is there when it is asked for, and not otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from adjudge.data_pipelines.tasks.config import EDGES
from adjudge.data_pipelines.tasks.database_filling import add_edge_rows
from adjudge.verifiers.sql.databases.schema_shape import read_schema

SCHEMA = """CREATE TABLE sale (id INTEGER PRIMARY KEY, name TEXT, price REAL, sold DATE, code INT UNIQUE,
                               fixed TEXT NOT NULL, paid TEXT CHECK (paid IN ('yes', 'no')))"""
ROWS = [(1, "ann", 4.5, "2020-03-01", 7, "f", "yes"), (2, "bo", 9.0, "2021-05-06", 8, "g", "no")]
FOUND = {
    "nulls": "SELECT COUNT(*) > 0 FROM sale WHERE name IS NULL",
    "duplicates": "SELECT COUNT(*) > 0 FROM sale AS a JOIN sale AS b USING (name, price, sold) WHERE a.id < b.id",
    "ties": "SELECT COUNT(*) > 1 FROM sale WHERE price = 9.0",
    "empty": "SELECT COUNT(*) > 0 FROM sale WHERE name = ''",
    "dates": "SELECT COUNT(*) > 0 FROM sale WHERE sold = '2024-02-29'",
    "zeros": "SELECT COUNT(*) > 0 FROM sale WHERE price = 0",
}


def rows_with(kinds: tuple[str, ...], schema: str = SCHEMA) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(schema)
    connection.executemany("INSERT INTO sale VALUES (?, ?, ?, ?, ?, ?, ?)", ROWS)
    add_edge_rows(connection, read_schema({"schema": schema}), kinds, "seed")
    return connection


@pytest.mark.parametrize("kind", EDGES)
def test_a_kind_brings_its_rows(kind: str) -> None:
    without_unique = SCHEMA.replace(" UNIQUE", "")
    with closing(rows_with((kind,), without_unique)) as connection:
        assert connection.execute(FOUND[kind]).fetchone() == (1,)
    with closing(rows_with((), without_unique)) as connection:
        assert connection.execute(FOUND[kind]).fetchone() == (0,)
        assert connection.execute("SELECT COUNT(*) FROM sale").fetchone() == (2,)


def test_constraints_hold_and_keys_are_new() -> None:
    with closing(rows_with(EDGES)) as connection:
        rows = connection.execute("SELECT * FROM sale").fetchall()
        assert rows[:2] == ROWS
        assert len({row[0] for row in rows}) == len(rows)
        codes = [row[4] for row in rows if row[4] is not None]
        assert len(set(codes)) == len(codes)
        assert all(row[5] is not None and row[6] in ("yes", "no", None) for row in rows)


def test_text_keys_and_tables_without_rows() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema = "CREATE TABLE tag (name TEXT PRIMARY KEY, size INT); CREATE TABLE bare (a INT)"
        connection.executescript(schema)
        connection.execute("INSERT INTO tag VALUES ('red', 3)")
        assert add_edge_rows(connection, read_schema({"schema": schema}), EDGES, "seed") > 0
        assert connection.execute("SELECT COUNT(*) FROM bare").fetchone() == (0,)
        assert connection.execute("SELECT COUNT(DISTINCT name) = COUNT(*) FROM tag").fetchone() == (1,)
