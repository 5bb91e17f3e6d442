"""Columns that hang together in a row: made databases keep that, so that queries which rest on it stay right."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.databases.file_facts import TableFacts, file_facts
from adjudge.verifiers.sql.engine import EngineOptions, QueryLimits, Table
from adjudge.verifiers.sql.variation import LikeFile, varied_engines
from adjudge.verifiers.sql.verifier import SqlVerifier

SCHEMA = """
CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE game (
    id INTEGER PRIMARY KEY, home INTEGER REFERENCES team (id), away INTEGER REFERENCES team (id), shirt TEXT,
    other_shirt TEXT, goals INTEGER, other_goals INTEGER, result TEXT, day DATE, year INTEGER, month INTEGER,
    total INTEGER, passed INTEGER, failed INTEGER, due DATE, paid DATE, late INTEGER
);
"""


def played(path: Path, teams: int, games: int, seed: int = 5) -> str:
    chooser = random.Random(seed)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany("INSERT INTO team VALUES (?, ?)", [(at, f"Team {at}") for at in range(1, teams + 1)])
        for number in range(1, games + 1):
            home = number % teams + 1
            away = chooser.choice([at for at in range(1, teams + 1) if at != home])
            shirts = chooser.sample(["red", "blue", "green", "white"], 2)
            goals, others = chooser.randint(0, 4), chooser.randint(0, 4)
            year, month, day = chooser.randint(2018, 2022), chooser.randint(1, 12), chooser.randint(1, 28)
            passed, failed = chooser.randint(0, 40), chooser.randint(0, 40)
            due, paid = (f"2023-{chooser.randint(1, 12):02d}-{chooser.randint(1, 28):02d}" for _ in range(2))
            result = "D" if goals == others else "H" if goals > others else "A"
            moment = f"{year}-{month:02d}-{day:02d}"
            row = (number, home, away, *shirts, goals, others, result, moment, year, month, passed + failed, passed)
            connection.execute(
                f"INSERT INTO game VALUES ({', '.join('?' * 17)})", (*row, failed, due, paid, int(paid > due))
            )
    return str(path)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> str:
    return played(tmp_path_factory.mktemp("games") / "games.sqlite", 6, 70)


def value(sql: str, gold: str, file: str) -> float | None:
    head = "" if gold.startswith("SELECT") else "SELECT COUNT(*) FROM game WHERE "
    reference = {"sql": head + gold, "database": file}
    text = sql if sql.startswith("SELECT") else head + sql
    return SqlVerifier().verify(Sample(prompt="", response=f"```sql\n{text}\n```", reference=reference)).value


CASES = [
    (
        "home = 3 OR away = 3",
        [
            "SELECT (SELECT COUNT(*) FROM game WHERE home = 3) + (SELECT COUNT(*) FROM game WHERE away = 3)",
            "SELECT SUM((home = 3) + (away = 3)) FROM game",
        ],
        ["home = 3", "home = 3 AND away <> 3", "SELECT 2 * COUNT(*) FROM game WHERE home = 3"],
    ),
    (
        "shirt = 'red' OR other_shirt = 'red'",
        ["SELECT SUM(shirt = 'red') + SUM(other_shirt = 'red') FROM game"],
        ["shirt = 'red'", "shirt <> 'blue' AND other_shirt <> 'blue'"],
    ),
    ("result = 'D'", ["goals = other_goals"], ["goals = other_goals AND goals > 0", "goals >= other_goals"]),
    ("goals > other_goals", ["result = 'H'", "result NOT IN ('A', 'D')"], ["result <> 'A'", "goals > 2"]),
    ("late = 1", ["paid > due", "NOT paid <= due"], ["paid <> due", "paid > '2023-06-01'"]),
    (
        "SELECT SUM(passed) FROM game WHERE failed > 20",
        ["SELECT SUM(total - failed) FROM game WHERE failed > 20"],
        ["SELECT SUM(passed) FROM game WHERE failed > 21", "SELECT SUM(passed) FROM game WHERE total > 20"],
    ),
    ("total > 40", ["passed + failed > 40"], ["total > 45", "passed > 20"]),
    (
        "year = 2021",
        ["strftime('%Y', day) = '2021'", "day LIKE '2021%'", "day >= '2021-01-01' AND day < '2022-01-01'"],
        ["day > '2021-01-01' AND day < '2022-01-01'", "day BETWEEN '2021-01-01' AND '2021-12-30'", "year >= 2021"],
    ),
    ("day >= '2021-01-01'", ["year >= 2021", "year > 2020"], ["year > 2021", "day > '2021-01-01'"]),
    ("month = 3", ["strftime('%m', day) = '03'", "day LIKE '____-03-%'"], ["day LIKE '%-03'", "day LIKE '%03%'"]),
]


@pytest.mark.parametrize(("gold", "same", "wrong"), CASES, ids=[case[0] for case in CASES])
def test_a_query_may_rest_on_what_hangs_together(gold: str, same: list[str], wrong: list[str], games: str) -> None:
    assert [sql for sql in (gold, *same) if value(sql, gold, games) != 1.0] == []
    assert [sql for sql in wrong if value(sql, gold, games) != 0.0] == []


def rules_of(file: str) -> tuple[TableFacts, list[str]]:
    facts = file_facts(file, (1,)).tables["game"]
    return facts, [column.shape.name for column in facts.columns]


def test_the_rules_are_found(games: str) -> None:
    facts, names = rules_of(games)
    assert {(names[one], names[other]) for one, other in facts.unequal} == {("home", "away"), ("shirt", "other_shirt")}
    found = {names[rule.target]: tuple(names[at] for at in rule.sources) for rule in facts.derived}
    assert found == {"result": ("goals", "other_goals"), "year": ("day",), "month": ("day",), "late": ("due", "paid")}


def test_a_few_rows_prove_nothing(tmp_path: Path) -> None:
    facts, names = rules_of(played(tmp_path / "few.sqlite", 6, 5))
    assert {names[rule.target] for rule in facts.derived} <= {"year", "month"}
    assert not facts.unequal


def test_many_that_are_all_pointed_to_still_differ(tmp_path: Path) -> None:
    file = played(tmp_path / "many.sqlite", 30, 300)
    facts, names = rules_of(file)
    assert [facts.columns[names.index(name)].covers for name in ("home", "away")] == [False, False]  # ten games each
    gold = "SELECT COUNT(*) FROM game WHERE home = 3 OR away = 3"
    engines = varied_engines(LikeFile(file, (1,), (gold,), EngineOptions(moment="2025-01-01 00:00:00")))
    assert len(engines) == 6
    for engine in engines:
        table = engine.run("SELECT SUM(home = away) FROM game", QueryLimits())
        assert isinstance(table, Table)
        assert table.rows == [(0,)]


def customers(path: Path, count: int, orders: int) -> str:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE cust (id INTEGER PRIMARY KEY, name TEXT, city TEXT, age INTEGER);"
            "CREATE TABLE ord (id INTEGER PRIMARY KEY, cust_id INTEGER REFERENCES cust (id), amount INTEGER);"
        )
        cities = ("Rome", "Oslo", None, "Lima", "Rome")
        people = [(at, f"Name{at * 7 % 97}", cities[at % 5], at * 7 % 50 + 20) for at in range(1, count + 1)]
        connection.executemany("INSERT INTO cust VALUES (?, ?, ?, ?)", people)
        made = [(at, at % count + 1, at * 31 % 173) for at in range(1, orders + 1)]
        connection.executemany("INSERT INTO ord VALUES (?, ?, ?)", made)
    return str(path)


INNER, OUTER = "cust c JOIN ord o ON o.cust_id = c.id", "cust c LEFT JOIN ord o ON o.cust_id = c.id"
COUNTED = "SELECT c.name, COUNT(o.id) FROM {} GROUP BY c.id"
PAIRS = [  # accepted, the same, wrong where a customer may have no order
    (COUNTED.format(OUTER), "SELECT name, (SELECT COUNT(*) FROM ord WHERE cust_id = cust.id) FROM cust",
     COUNTED.format(INNER)),
    (COUNTED.format(INNER),
     "SELECT name, n FROM cust JOIN (SELECT cust_id, COUNT(*) n FROM ord GROUP BY 1) ON cust_id = id",
     COUNTED.format(OUTER)),
    ("SELECT COUNT(*) FROM cust WHERE id IN (SELECT cust_id FROM ord)", "SELECT COUNT(DISTINCT cust_id) FROM ord",
     "SELECT COUNT(*) FROM cust"),
    ("SELECT COUNT(*) FROM cust", "SELECT COUNT(id) FROM cust", "SELECT COUNT(DISTINCT cust_id) FROM ord"),
    ("SELECT SUM(amount) FROM ord", f"SELECT SUM(amount) FROM {INNER}",
     "SELECT SUM(amount) FROM ord WHERE cust_id > 1"),
]  # fmt: skip


@pytest.mark.parametrize(("gold", "same", "wrong"), PAIRS)
def test_that_all_have_some_may_be_an_accident(gold: str, same: str, wrong: str, tmp_path: Path) -> None:
    file = customers(tmp_path / "shop.sqlite", 40, 120)
    assert (value(same, gold, file), value(wrong, gold, file)) == (1.0, 0.0)


def test_that_all_have_some_is_a_rule_where_it_is_no_accident(tmp_path: Path) -> None:
    file = customers(tmp_path / "shop.sqlite", 120, 200)
    gold, same = "SELECT COUNT(*) FROM cust", "SELECT COUNT(DISTINCT cust_id) FROM ord"
    assert value(same, gold, file) == 1.0
    assert value(COUNTED.format(INNER), COUNTED.format(OUTER), file) == 0.0  # who joins so expects some without


NULLS = [
    ("SELECT name, city FROM cust WHERE age < 30", "", "city IS NOT NULL"),
    ("SELECT name, city FROM cust WHERE age < 30", "name IS NOT NULL", "city <> ''"),
    ("SELECT COUNT(city) FROM cust WHERE age < 30", "city IS NOT NULL", "city > 'M'"),
]


@pytest.mark.parametrize(("gold", "same", "wrong"), NULLS)
def test_null_where_the_result_had_none(gold: str, same: str, wrong: str, tmp_path: Path) -> None:
    file = customers(tmp_path / "shop.sqlite", 20, 30)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE cust SET city = 'Rome' WHERE age < 30")
    assert value(f"{gold} AND {wrong}", gold, file) == 0.0
    assert value(f"{gold} AND {same or 'id > 0'}", gold, file) == 1.0
