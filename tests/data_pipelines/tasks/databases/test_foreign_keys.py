"""After a repair every foreign key holds, whatever the tables and rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.data_pipelines.tasks.database_filling import foreign_keys, repair
from adjudge.verifiers.sql.databases.schema_shape import Schema, read_schema

Rows = list[tuple[object, ...]]

RING = """
CREATE TABLE team (id INTEGER PRIMARY KEY, captain INT REFERENCES player (id));
CREATE TABLE player (id INTEGER PRIMARY KEY, team INT NOT NULL REFERENCES team (id), mentor INT REFERENCES player (id));
"""
PAIRS = """
CREATE TABLE seat (hall TEXT, row INT, PRIMARY KEY (hall, row));
CREATE TABLE ticket (id INTEGER PRIMARY KEY, hall TEXT, row INT, FOREIGN KEY (hall, row) REFERENCES seat);
CREATE TABLE stub (ticket INT REFERENCES ticket, note TEXT, PRIMARY KEY (ticket, note)) WITHOUT ROWID;
"""
SMALL = st.one_of(st.none(), st.integers(0, 3))


@contextmanager
def database(schema: str) -> Iterator[tuple[sqlite3.Connection, Schema]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(schema)
        yield connection, read_schema({"schema": schema})


def put(connection: sqlite3.Connection, table: str, rows: Rows) -> None:
    for row in rows:
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)


@settings(max_examples=60, deadline=None)
@given(
    teams=st.lists(st.tuples(SMALL, SMALL), max_size=5),
    players=st.lists(st.tuples(SMALL, st.integers(0, 3), SMALL), max_size=5),
)
def test_rings_and_tables_that_point_to_themselves(teams: Rows, players: Rows) -> None:
    with database(RING) as (connection, schema):
        put(connection, "team", teams)
        put(connection, "player", players)
        repair(connection, schema, "seed")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@settings(max_examples=60, deadline=None)
@given(
    seats=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), max_size=4),
    tickets=st.lists(st.tuples(SMALL, st.sampled_from(["a", "b", None]), SMALL), max_size=5),
    stubs=st.lists(st.tuples(st.integers(0, 4), st.sampled_from("xy")), max_size=5),
)
def test_keys_of_several_columns_and_tables_without_row_numbers(seats: Rows, tickets: Rows, stubs: Rows) -> None:
    with database(PAIRS) as (connection, schema):
        put(connection, "seat", seats)
        put(connection, "ticket", tickets)
        put(connection, "stub", stubs)
        repair(connection, schema, "seed")
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_rows_are_pointed_elsewhere_before_anything_is_lost() -> None:
    with database(RING) as (connection, schema):
        put(connection, "team", [(1, 9), (2, None)])
        put(connection, "player", [(1, 8, None), (2, 2, 7)])
        assert repair(connection, schema, "seed") == 3
        counts = [connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in ("team", "player")]
        assert counts == [2, 2]


def test_without_a_parent_row_the_key_is_unknown_or_the_row_goes() -> None:
    with database(RING) as (connection, schema):
        put(connection, "team", [(1, 9)])
        repair(connection, schema, "seed")
        assert connection.execute("SELECT * FROM team").fetchall() == [(1, None)]
    with database(RING) as (connection, schema):
        put(connection, "player", [(1, 5, None)])
        repair(connection, schema, "seed")
        assert connection.execute("SELECT * FROM player").fetchall() == []


def test_a_parent_that_is_not_declared_unique_counts_all_the_same() -> None:
    loose = "CREATE TABLE a (code TEXT); CREATE TABLE b (code TEXT REFERENCES a (code))"
    with database(loose) as (connection, schema):
        with pytest.raises(sqlite3.OperationalError, match="mismatch"):
            connection.execute("PRAGMA foreign_key_check").fetchall()
        put(connection, "a", [("x",)])
        put(connection, "b", [("y",), ("x",), (None,)])
        assert repair(connection, schema, "seed") == 1
        assert connection.execute("SELECT code FROM b ORDER BY rowid").fetchall() == [("x",), ("x",), (None,)]


def test_a_parent_table_that_is_not_there_asks_for_nothing() -> None:
    with database("CREATE TABLE b (code TEXT REFERENCES a (code))") as (connection, schema):
        assert foreign_keys(connection, schema) == []
