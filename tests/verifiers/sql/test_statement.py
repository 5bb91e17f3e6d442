"""Tokens and statements: what the guards see must be what the engines see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.verifiers.sql.databases.statement import Dialect, Statement, tokens

TOKENS: dict[str, tuple[Dialect, str, list[str]]] = {
    "sqlite: doubled quotes": ("sqlite", "'a''b' \"c\"\"d\" `e``f` [g h]", ["'a''b'", '"c""d"', "`e``f`", "[g h]"]),
    "sqlite: no backslashes": ("sqlite", r"'\' x", [r"'\'", "x"]),
    "sqlite: comments": ("sqlite", "a -- b\nc /* d */ e", ["a", "c", "e"]),
    "sqlite: comments do not nest": ("sqlite", "/* /* */ a", ["a"]),
    "sqlite: open comment": ("sqlite", "a /* b", ["a"]),
    "sqlite: blob": ("sqlite", "x'00' || y", ["x'00'", "||", "y"]),
    "sqlite: open text": ("sqlite", "a 'b", ["a", "'b"]),
    "postgres: escape string": ("postgres", r"E'\' pg_sleep(1) --' a", [r"E'\' pg_sleep(1) --'", "a"]),
    "postgres: escape string, then a call": (
        "postgres",
        r"E'\'' , f(1) , ''",
        [r"E'\''", ",", "f", "(", "1", ")", ",", "''"],
    ),
    "postgres: plain string": ("postgres", r"'\' a", [r"'\'", "a"]),
    "postgres: dollar quotes": ("postgres", "$a$ ' $$ $a$ b $$ ; $$", ["$a$ ' $$ $a$", "b", "$$ ; $$"]),
    "postgres: comments nest": ("postgres", "/* /* */ a */ b", ["b"]),
    "postgres: carriage return ends a comment": ("postgres", "-- a\rb", ["b"]),
    "postgres: brackets are signs": ("postgres", "a[1]", ["a", "[", "1", "]"]),
}


@pytest.mark.parametrize(("dialect", "sql", "expected"), TOKENS.values(), ids=TOKENS.keys())
def test_tokens(dialect: Dialect, sql: str, expected: list[str]) -> None:
    assert [token.text for token in tokens(sql, dialect)] == expected


@pytest.mark.parametrize("sql", ["'a", '"a', "$$a", "/* a", "E'a\\'", "U&'a"], ids=str)
def test_what_is_not_closed_is_seen(sql: str) -> None:
    assert tokens(sql, "postgres")[-1].kind == "bad"


@given(st.text(alphabet="a'\"`[]$-/*\\ \nEx;(", max_size=40))
def test_tokens_are_parts_of_the_text_in_order(sql: str) -> None:
    for dialect in ("sqlite", "postgres"):
        at = 0
        for token in tokens(sql, dialect):
            assert sql[token.start : token.end] == token.text
            assert token.start >= at
            at = token.end


SORTED = {
    "SELECT a FROM t ORDER BY a": True,
    "SELECT a FROM t ORDER -- x\n BY a LIMIT 1": True,
    "WITH x AS (SELECT a FROM t) SELECT a FROM x ORDER BY a": True,
    "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1": True,
    "SELECT a FROM (SELECT a FROM t ORDER BY a)": False,
    "SELECT RANK() OVER (ORDER BY a) FROM t": False,
    "SELECT 'ORDER BY a' FROM t -- ORDER BY a": False,
    'SELECT a AS "ORDER" , by FROM t': False,
}


@pytest.mark.parametrize(("sql", "expected"), SORTED.items(), ids=SORTED.keys())
def test_only_the_outermost_order_counts(sql: str, expected: bool) -> None:
    assert Statement(sql, "sqlite").sorts is expected


DISTINCT: dict[str, str] = {
    "SELECT DISTINCT a FROM t": "SELECT  a FROM t",
    "SELECT COUNT(DISTINCT a) FROM t": "SELECT COUNT( a) FROM t",
    "SELECT a IS DISTINCT FROM b FROM t": "SELECT a IS DISTINCT FROM b FROM t",
    "SELECT DISTINCT ON (a) b FROM t": "SELECT DISTINCT ON (a) b FROM t",
    "SELECT 'DISTINCT' FROM t": "SELECT 'DISTINCT' FROM t",
}


@pytest.mark.parametrize(("sql", "expected"), DISTINCT.items(), ids=DISTINCT.keys())
def test_distinct_is_dropped_where_a_query_is_left(sql: str, expected: str) -> None:
    assert Statement(sql, "postgres").without_distinct() == expected


KINDS: dict[str, tuple[bool, str]] = {
    "SELECT 1": (True, ""),
    "(SELECT 1)": (True, ""),
    "values (1)": (True, ""),
    "/* x */ WITH a AS (SELECT 1) SELECT * FROM a ;": (True, ""),
    "SELECT 1; SELECT 2": (False, ""),
    "SELECT 1;; ;": (True, ""),
    "EXPLAIN SELECT 1": (False, ""),
    "delete from t": (False, "DELETE"),
    "SELECT 1; drop table t": (False, "DROP"),
    "": (False, ""),
    "FROM t": (False, ""),
}


@pytest.mark.parametrize(("sql", "expected"), KINDS.items(), ids=KINDS.keys())
def test_what_a_statement_is(sql: str, expected: tuple[bool, str]) -> None:
    statement = Statement(sql, "sqlite")
    assert (statement.is_query, statement.intruder) == expected


def test_calls_are_seen_however_they_are_written() -> None:
    sql = "SELECT \"Pg_Sleep\" (1), pg_catalog.set_config(a), f/* x */(2), g, 'h(1)' FROM t"
    assert Statement(sql, "postgres").calls() == {"pg_sleep", "set_config", "f"}
