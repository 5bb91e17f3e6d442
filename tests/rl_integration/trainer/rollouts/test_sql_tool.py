"""Queries read one file, for a while, and do nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adjudge.rl_integration.trainer.rollouts.sql_tool import SqlTool
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolDown


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("a b?#%20") / "data.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE towns (name TEXT, people INTEGER, seal BLOB)")
        rows = [("Ulm", 126_000, b"\x00\xff"), ("Bonn", 331_000, None), ("Trier\nan der Mosel", 111_000, None)]
        connection.executemany("INSERT INTO towns VALUES (?, ?, ?)", rows)
        connection.execute("CREATE TABLE many AS SELECT value FROM json_each(?)", [str(list(range(500)))])
        connection.execute("INSERT INTO towns VALUES (CAST(x'ff41' AS TEXT), 1, NULL)")
        connection.commit()
    return path


def asked(database: Path, query: str, **options: float) -> ToolAnswer:
    return SqlTool(database=str(database), **options).call({"query": query})  # type: ignore[arg-type]


def test_rows_come_as_lines(database: Path) -> None:
    found = asked(database, "SELECT name, people, seal FROM towns WHERE people > 1 ORDER BY people DESC")
    assert found.ok
    assert found.text == (
        "name | people | seal\nBonn | 331000 | NULL\nUlm | 126000 | (2 bytes)\nTrier\\nan der Mosel | 111000 | NULL"
    )


def test_no_rows_are_no_error(database: Path) -> None:
    assert asked(database, "SELECT name FROM towns WHERE people < 0") == ToolAnswer(text="name\n(no rows)")


def test_texts_that_are_no_utf8_are_shown_as_far_as_they_go(database: Path) -> None:
    assert asked(database, "SELECT name FROM towns WHERE people = 1").text == "name\n\ufffdA"


def test_long_answers_are_cut_where_it_shows(database: Path) -> None:
    found = asked(database, "SELECT * FROM many", max_rows=3)
    assert found.text == "value\n0\n1\n2\n... more rows follow"
    wide = asked(database, "SELECT printf('%5000d', 7)", max_output=300)
    assert wide.text.endswith("... (5000 characters)")
    tall = asked(database, "SELECT * FROM many", max_rows=500, max_output=100)
    assert len(tall.text) < 200
    assert "left out" in tall.text


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM towns",
        "INSERT INTO towns VALUES ('x', 1, NULL) RETURNING name",
        "UPDATE towns SET people = 0",
        "DROP TABLE towns",
        "CREATE TEMP TABLE t (a)",
        "ATTACH DATABASE '{other}' AS other",
        "VACUUM INTO '{other}'",
        "PRAGMA query_only = OFF",
        "SELECT * FROM pragma_table_info('towns')",
        "SELECT load_extension('evil')",
        "SELECT random()",
        "BEGIN IMMEDIATE",
        "CREATE VIRTUAL TABLE v USING fts5(a)",
    ],
)
def test_nothing_but_reading_is_allowed(database: Path, query: str) -> None:
    before, other = database.read_bytes(), database.parent / "other.sqlite"
    found = asked(database, query.format(other=other))
    assert not found.ok
    assert found.text.startswith("error: ")
    assert "only SELECT is allowed" in found.text
    assert database.read_bytes() == before
    assert sorted(database.parent.iterdir()) == [database]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "no SELECT statement"),
        ("-- nothing", "no SELECT statement"),
        ("SELECT 1; DROP TABLE towns", "one statement"),
        ("SELEC name", "syntax error"),
        ("SELECT height FROM towns", "no such column: height"),
        ("SELECT '\0'", "null character"),
        ("SELECT '\ud800'", "surrogates not allowed"),
        ("SELECT " + "1+" * 20_000 + "1", "too large"),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, "overflow"),
    ],
)
def test_what_a_query_is_to_blame_for_is_its_answer(database: Path, query: str, words: str) -> None:
    found = asked(database, query)
    assert not found.ok
    assert words in found.text


@pytest.mark.parametrize(
    "query",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        "SELECT count(*) FROM many a, many b, many c, many d",
        "SELECT a.value FROM many a, many b, many c, many d ORDER BY a.value + b.value",
    ],
)
def test_a_query_without_end_is_stopped(database: Path, query: str) -> None:
    found = asked(database, query, seconds=0.1)
    assert found == ToolAnswer(text="error: the query was stopped after 0.1 seconds", ok=False)


def test_values_of_any_size_stay_small(database: Path) -> None:
    grown = "SELECT length(replace(replace(printf('%90000d', 1), ' ', 'xxxxxxxxxx'), 'x', 'yyyyyyyyyy'))"
    found = asked(database, grown)
    assert not found.ok
    assert "too big" in found.text


def test_a_file_that_is_gone_or_locked_is_nothing_the_policy_did(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(database.read_bytes())
    tool = SqlTool(database=str(copy), seconds=0.05)
    with closing(sqlite3.connect(copy, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ToolDown, match="locked"):
            tool.call({"query": "SELECT * FROM towns"})
        other.execute("ROLLBACK")
    assert tool.call({"query": "SELECT count(*) FROM towns"}).ok
    copy.unlink()
    with pytest.raises(ToolDown, match="unable to open"):
        tool.call({"query": "SELECT * FROM towns"})


def test_mistakes_of_the_configuration_are_told_before_any_work(database: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but long enough to look like one" * 100)
    with pytest.raises(ValueError, match="cannot be read: file is not a database"):
        SqlTool(database=str(text))
    with pytest.raises(ValueError, match="is not a file"):
        SqlTool(database=str(tmp_path / "none.sqlite"))
    with pytest.raises(ValueError, match="seconds=0"):
        SqlTool(database=str(database), seconds=0)
    with pytest.raises(ValueError, match="max_rows=0"):
        SqlTool(database=str(database), max_rows=0)
