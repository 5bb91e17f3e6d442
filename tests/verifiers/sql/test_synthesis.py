"""Databases made from a schema: the same each time, legal, and able to tell queries apart."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.databases.mutants import constants, joined_columns, mutants, parsed
from adjudge.verifiers.sql.engine import EngineOptions, QueryLimits, Table
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.variation import synthesise
from adjudge.verifiers.sql.verifier import SqlVerifier

SCHEMA = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, age INT);
CREATE TABLE concert (id INTEGER PRIMARY KEY, theme VARCHAR(20), held DATE, fee REAL);
CREATE TABLE sings (singer_id INT REFERENCES singer (id), concert_id INT REFERENCES concert (id),
                    PRIMARY KEY (singer_id, concert_id));
"""
VALUES = {"singer": {"country": ["France", "Chile", "Japan"]}, "concert": {"theme": ["Free choice", "Jazz"]}}
MOMENT = "2025-01-01 00:00:00"
LIMITS = QueryLimits()


def made(sql: str, schema: Any = SCHEMA, count: int = 4) -> tuple[SqliteEngine, ...]:
    return synthesise({"schema": schema, "values": VALUES}, (sql,), EngineOptions(moment=MOMENT, synthetic=count))


def contents(found: tuple[SqliteEngine, ...], table: str) -> list[Any]:
    tables = [engine.run(f'SELECT * FROM "{table}"', LIMITS) for engine in found]
    return [one.rows for one in tables if isinstance(one, Table)]


GOLD = "SELECT name FROM singer WHERE age > 40 AND country = 'France'"


def test_the_same_reference_has_the_same_databases() -> None:
    assert contents(made(GOLD), "singer") == contents(made(GOLD), "singer")
    assert contents(made(GOLD), "singer") != contents(made(GOLD.replace("40", "41")), "singer")


def test_keys_hold() -> None:
    found = made(
        "SELECT name, theme FROM singer JOIN sings ON singer.id = singer_id JOIN concert ON concert.id = concert_id"
    )
    for engine in found:
        for sql in (
            "SELECT singer_id FROM sings WHERE singer_id IS NOT NULL AND singer_id NOT IN (SELECT id FROM singer)",
            "SELECT singer_id, concert_id FROM sings GROUP BY 1, 2 HAVING COUNT(*) > 1",
            "SELECT id FROM singer WHERE name IS NULL",
        ):
            done = engine.run(sql, LIMITS)
            assert isinstance(done, Table)
            assert done.rows == [], sql


COUNTED = "SELECT name, COUNT(concert_id) FROM singer LEFT JOIN sings ON id = singer_id GROUP BY singer.id, name"

# reference, queries that mean something else, queries that mean the same
TELL: dict[str, tuple[str, list[str], list[str]]] = {
    "comparison": (
        GOLD,
        [
            GOLD.replace(">", ">="),
            GOLD.replace("AND", "OR"),
            GOLD.replace("40", "41"),
            "SELECT name FROM singer WHERE age > 40",
            GOLD.replace("name", "DISTINCT name"),
        ],
        ["SELECT name FROM singer WHERE country = 'France' AND NOT age <= 40"],
    ),
    "one of the first": (
        "SELECT singer_id FROM sings GROUP BY singer_id ORDER BY COUNT(*) DESC LIMIT 1",
        ["SELECT MAX(singer_id) FROM sings", "SELECT singer_id FROM sings GROUP BY 1 ORDER BY COUNT(*) LIMIT 1"],
        [
            "SELECT singer_id FROM (SELECT singer_id, COUNT(concert_id) AS n FROM sings GROUP BY 1) "
            "ORDER BY n DESC, singer_id DESC LIMIT 1"
        ],
    ),
    "each once": (
        "SELECT COUNT(DISTINCT singer_id) FROM sings JOIN concert ON id = concert_id WHERE held > '2014-06-30'",
        [
            "SELECT COUNT(singer_id) FROM sings JOIN concert ON id = concert_id WHERE held > '2014-06-30'",
            "SELECT COUNT(DISTINCT singer_id) FROM sings JOIN concert ON id = concert_id WHERE held >= '2014-06-30'",
            "SELECT COUNT(DISTINCT singer_id) FROM sings JOIN concert ON id = concert_id WHERE held > '2014-07-01'",
        ],
        ["SELECT COUNT(DISTINCT singer_id) FROM sings, concert WHERE id = concert_id AND held >= '2014-07-01'"],
    ),
    "join": (
        COUNTED,
        [COUNTED.replace("LEFT ", ""), COUNTED.replace("concert_id", "*"), COUNTED.replace("singer.id, ", "")],
        ["SELECT name, (SELECT COUNT(*) FROM sings WHERE singer_id = singer.id) FROM singer"],
    ),
    "aggregate": (
        "SELECT AVG(age) FROM singer",
        [
            "SELECT SUM(age) / COUNT(*) FROM singer",
            "SELECT SUM(age) * 1.0 / COUNT(*) FROM singer",
            "SELECT AVG(DISTINCT age) FROM singer",
            "SELECT 23.5 FROM singer LIMIT 1",
        ],
        ["SELECT SUM(age) * 1.0 / COUNT(age) FROM singer"],
    ),
    "pattern": (
        "SELECT theme FROM concert WHERE theme LIKE '%free%'",
        ["SELECT theme FROM concert WHERE theme LIKE 'free%'", "SELECT theme FROM concert WHERE theme = 'Free choice'"],
        ["SELECT theme FROM concert WHERE instr(lower(theme), 'free') > 0"],
    ),
    "date": (
        "SELECT COUNT(*) FROM concert WHERE strftime('%Y', held) = '2014'",
        ["SELECT COUNT(*) FROM concert WHERE held > '2014'", "SELECT COUNT(*) FROM concert"],
        ["SELECT COUNT(*) FROM concert WHERE held LIKE '2014%'"],
    ),
    "clock": (
        "SELECT theme FROM concert WHERE held >= date('now', '-30 days')",
        ["SELECT theme FROM concert WHERE held >= date('now', '-7 days')", "SELECT theme FROM concert"],
        ["SELECT theme FROM concert WHERE held >= '2024-12-02'"],
    ),
}


@pytest.mark.parametrize(("gold", "wrong", "right"), TELL.values(), ids=TELL.keys())
def test_wrong_queries_differ_and_right_ones_do_not(gold: str, wrong: list[str], right: list[str]) -> None:
    reference = {"sql": gold, "database": {"schema": SCHEMA, "values": VALUES}}
    verifier = SqlVerifier()
    for sql, value in [(gold, 1.0), *((sql, 0.0) for sql in wrong), *((sql, 1.0) for sql in right)]:
        score = verifier.verify(Sample(prompt="", response=f"```sql\n{sql}\n```", reference=reference))
        assert score.value == value, (sql, score)


def test_most_mutants_are_told_apart() -> None:
    tree = parsed(GOLD)
    assert tree is not None
    results = [[engine.run(sql, LIMITS) for engine in made(GOLD)] for sql in (GOLD, *mutants(tree))]
    told = [[getattr(table, "rows", None) for table in tables] for tables in results]
    assert len(told) > 6
    assert sum(other != told[0] for other in told) >= 0.8 * (len(told) - 1)


SCHEMAS: dict[str, Any] = {
    "statements": SCHEMA,
    "mapping": {"singer": {"id": "INTEGER", "name": "TEXT", "country": "TEXT", "age": "INT"}},
    "listed": {
        "tables": {
            "singer": {
                "columns": [
                    {"name": "id", "type": "INTEGER", "primary_key": True},
                    {"name": "name", "type": "TEXT", "value_samples": ["Ada", "Bo"]},
                    {"name": "country", "type": "TEXT"},
                    {"name": "age", "type": "INT", "foreign_keys": [{"target_table": "singer", "target_column": "id"}]},
                ]
            },
            "sqlite_sequence": {"columns": [{"name": "name", "type": "TEXT"}]},
        }
    },
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_schemas_of_every_form(schema: Any) -> None:
    assert all(contents(made("SELECT name FROM singer WHERE country = 'France'", schema, 2), "singer"))


def test_databases_like_a_file_end_a_lucky_guess(shop: str) -> None:
    gold = "SELECT COUNT(*) FROM purchase WHERE item = 'lamp'"
    guesses = [
        "SELECT 4 FROM purchase LIMIT 1",
        "SELECT COUNT(*) - 3 FROM purchase",
        "SELECT MIN(id) + 3 FROM customer",
    ]
    same = "SELECT SUM(item = 'lamp') FROM purchase"
    for database, value in ((shop, 1.0), ([shop, {"like": shop}], 0.0)):
        for sql in guesses:
            sample = Sample(prompt="", response=f"```sql\n{sql}\n```", reference={"sql": gold, "database": database})
            assert SqlVerifier(variations=0).verify(sample).value == value, (database, sql)
    reference = {"sql": gold, "database": [shop, {"like": shop}]}
    assert SqlVerifier().verify(Sample(prompt="", response=f"```sql\n{same}\n```", reference=reference)).value == 1.0


BAD: dict[str, Any] = {
    "no table": "SELECT 1",
    "a write": f"{SCHEMA}; DROP TABLE singer",
    "not SQL": "CREATE TABLE (",
    "nothing": "",
    "a list": [1],
    "columns of nothing": {"singer": 5},
}


@pytest.mark.parametrize("schema", BAD.values(), ids=BAD.keys())
def test_bad_schemas_fail_the_sample(schema: Any) -> None:
    sample = Sample(prompt="", response="", reference={"sql": "SELECT 1", "database": {"schema": schema}})
    assert SqlVerifier().verify(sample).reason == "gold_unparsable"


def test_a_long_query_is_copied_for_its_mutants_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = parsed(f"SELECT {', '.join('a' * 300)} FROM t WHERE a > 1")
    assert tree is not None
    copies, copy = [], type(tree).copy

    def counting(node: Any) -> Any:
        copies.append(node)
        return copy(node)

    monkeypatch.setattr(type(tree), "copy", counting)
    assert len(mutants(tree)) == 6
    assert sum(node is tree for node in copies) < 12


def test_a_query_nested_too_deeply_to_be_written_has_no_mutants() -> None:
    tree = parsed(f"SELECT {'1 + 1 - ' * 1200}1")
    assert tree is not None
    assert mutants(tree) == []


def test_mutants_change_one_thing() -> None:
    tree = parsed("SELECT MAX(a) FROM t WHERE b > 5 ORDER BY c LIMIT 2")
    assert tree is not None
    found = set(mutants(tree))
    for other in (
        "SELECT MIN(a) FROM t WHERE b > 5 ORDER BY c LIMIT 2",
        "SELECT MAX(a) FROM t WHERE b >= 5 ORDER BY c LIMIT 2",
        "SELECT MAX(a) FROM t WHERE b > 6 ORDER BY c LIMIT 2",
        "SELECT MAX(a) FROM t ORDER BY c LIMIT 2",
        "SELECT MAX(a) FROM t WHERE b > 5 ORDER BY c LIMIT 3",
        "SELECT MAX(a) FROM t WHERE b > 5 ORDER BY c",
    ):
        assert other in found
    assert tree.sql() not in found


def test_constants_and_joined_columns() -> None:
    tree = parsed(
        "SELECT 1 FROM t JOIN u ON t.a = u.b "
        "WHERE c = \"Free\" AND d BETWEEN 2 AND 3.5 AND e LIKE '%x%' AND e LIKE 'y_'"
    )
    assert tree is not None
    columns = frozenset("abcde")
    found = list(constants(tree, columns, MOMENT))
    assert set(found) == {("c", "Free"), ("d", 2), ("d", 3.5), ("e", "abxab"), ("e", "yc"), ("e", "ycabxab")}
    assert list(joined_columns(tree, columns)) == [("a", "b")]
