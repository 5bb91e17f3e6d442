"""Databases made like a file: coincidences differ there, and what the file keeps they keep."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.verifiers.sql.databases.file_facts import MAX_ROWS, file_facts
from adjudge.verifiers.sql.engine import Engine, EngineOptions, QueryLimits, Table
from adjudge.verifiers.sql.variation import LikeFile, varied_engines
from adjudge.verifiers.sql.verifier import SqlVerifier

KEPT: dict[str, Any] = json.loads(Path(__file__).with_name("variation_cases.json").read_text(encoding="utf-8"))
MOMENT = "2025-01-01 00:00:00"


def filled(path: Path, script: str) -> str:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("kept")
    return {name: filled(folder / f"{name}.sqlite", "\n".join(lines)) for name, lines in KEPT["schemas"].items()}


def verdict(sql: str, gold: str, database: Any, **options: Any) -> Any:
    reference = {"sql": gold, "database": database}
    return SqlVerifier(**options).verify(Sample(prompt="", response=f"```sql\n{sql}\n```", reference=reference))


def engines(path: str, *queries: str, count: int = 6) -> tuple[Engine, ...]:
    return varied_engines(LikeFile(path, (1,), queries, EngineOptions(moment=MOMENT, variations=count)))


def rows(engine: Engine, sql: str) -> list[Any]:
    table = engine.run(sql, QueryLimits())
    assert isinstance(table, Table), table
    return table.rows


def test_the_cases_are_enough() -> None:
    assert sum(len(case["wrong"]) for case in KEPT["cases"]) >= 60
    assert sum(len(case["same"]) for case in KEPT["cases"]) >= 60


@pytest.mark.parametrize("case", KEPT["cases"], ids=lambda case: case["gold"][:60])
def test_a_coincidence_is_not_paid_and_the_same_in_other_words_is(case: dict[str, Any], files: dict[str, str]) -> None:
    file = files[case["schema"]]
    for sql in case["wrong"]:
        assert verdict(sql, case["gold"], file, variations=0).value == 1.0, sql
        assert verdict(sql, case["gold"], file).reason == "wrong", sql
    for sql in (case["gold"], *case["same"]):
        score = verdict(sql, case["gold"], file)
        assert (score.value, score.evidence["made"]) == (1.0, 6), (sql, score.evidence)
    assert verdict(sql, case["gold"], [file, {"like": file}]).value == 1.0, sql


BROKEN = {  # a query for each rule that finds the rows that break it
    "clinic": [
        "SELECT id FROM doctor WHERE senior NOT IN (0, 1)",
        "SELECT name FROM patient GROUP BY name HAVING COUNT(*) > 1",
        "SELECT id FROM patient WHERE insured IS NULL OR insured NOT IN (0, 1) OR name IS NULL OR city IS NULL",
        "SELECT id FROM patient WHERE born NOT GLOB '[12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'",
        "SELECT phone FROM patient WHERE phone NOT GLOB '555-01[0-9][0-9]'",
        "SELECT id FROM visit WHERE left_on < came OR cost < 0",
        "SELECT id FROM visit WHERE status NOT IN ('done', 'cancelled', 'planned')",
        "SELECT id FROM visit WHERE patient_id NOT IN (SELECT id FROM patient) OR patient_id IS NULL",
        "SELECT id FROM visit WHERE doctor_id NOT IN (SELECT id FROM doctor) OR doctor_id IS NULL",
        "SELECT visit_id FROM dose WHERE visit_id NOT IN (SELECT id FROM visit) OR packs < 1",
    ],
    "library": [
        "SELECT * FROM book WHERE author_id NOT IN (SELECT author_id FROM author) OR in_print NOT IN (0, 1)",
        "SELECT title FROM book GROUP BY title HAVING COUNT(*) > 1",
        "SELECT * FROM member WHERE referrer_id NOT IN (SELECT member_id FROM member)",
        "SELECT * FROM loan WHERE returned < taken OR fine < 0 OR member_id IS NULL",
    ],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_file_keeps_is_kept(name: str, files: dict[str, str]) -> None:
    for case in KEPT["cases"]:
        if case["schema"] != name:
            continue
        for engine in engines(files[name], case["gold"]):
            assert [sql for sql in BROKEN[name] if rows(engine, sql)] == [], case["gold"]


ORDERS = """
CREATE TABLE line (id INTEGER PRIMARY KEY, sku TEXT, colour TEXT, code INTEGER, packs INTEGER, price REAL, total REAL);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60)
INSERT INTO line SELECT x, 'A-' || (1000 + x * 7), substr('redtanblu', 1 + x % 3 * 3, 3), 10 * (1 + x % 3), 1 + x % 7,
    round(x * 1.37, 2), (1 + x % 7) * round(x * 1.37, 2) FROM n;
"""


def test_columns_that_belong_together_stay_together(tmp_path: Path) -> None:
    path = filled(tmp_path / "orders.sqlite", ORDERS)
    linked = {frozenset(group) for group in file_facts(path, (1,)).tables["line"].linked}
    assert linked == {frozenset({2, 3}), frozenset({4, 5, 6})}
    for engine in engines(path, "SELECT SUM(total) FROM line WHERE colour = 'red'"):
        assert rows(engine, "SELECT * FROM line WHERE abs(total - packs * price) > 0.01") == []
        assert rows(engine, "SELECT colour FROM line GROUP BY colour HAVING COUNT(DISTINCT code) > 1") == []
        assert rows(engine, "SELECT sku FROM line WHERE sku NOT GLOB 'A-[0-9][0-9][0-9][0-9]'") == []


def test_the_same_reference_has_the_same_databases(files: dict[str, str], tmp_path: Path) -> None:
    gold = "SELECT title FROM book WHERE pages > 300"
    first, second = ([rows(e, "SELECT * FROM book") for e in engines(files["library"], gold)] for _ in range(2))
    assert first == second
    elsewhere = filled(tmp_path / "elsewhere.sqlite", "\n".join(KEPT["schemas"]["library"]))
    assert [rows(e, "SELECT * FROM book") for e in engines(elsewhere, gold)] == first
    assert [rows(e, "SELECT * FROM book") for e in engines(elsewhere, gold.replace("300", "301"))] != first


def test_the_reference_has_a_clear_answer(files: dict[str, str]) -> None:
    gold = "SELECT doctor_id FROM visit GROUP BY doctor_id ORDER BY COUNT(*) DESC LIMIT 1"
    for engine in engines(files["clinic"], gold):
        counts = [n for (n,) in rows(engine, "SELECT COUNT(*) FROM visit GROUP BY doctor_id ORDER BY 1")]
        assert len(counts) == 1 or counts[-1] > counts[-2]


def test_a_large_file_is_sampled(tmp_path: Path) -> None:
    path = filled(
        tmp_path / "large.sqlite",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT);"
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 30000) "
        "INSERT INTO t SELECT x, x * 7919 % 1000, 'k' || (x % 9) FROM n;",
    )
    facts = file_facts(path, (1,)).tables["t"]
    assert len(facts.rows) <= MAX_ROWS
    assert not facts.whole
    gold = "SELECT COUNT(*) FROM t WHERE a >= 998 AND b = 'k3'"
    count = rows(engines(path, gold)[0], "SELECT COUNT(*) FROM t")[0][0]
    assert count <= 100
    assert verdict("SELECT COUNT(id) FROM t WHERE b LIKE 'k3' AND a > 997", gold, path).value == 1.0
    assert verdict("SELECT COUNT(*) FROM t WHERE a > 998 AND b = 'k3'", gold, path).value == 0.0


def test_where_none_can_be_made_the_evidence_says_so(tmp_path: Path, duckdb_shop: str) -> None:
    words = filled(tmp_path / "words.sqlite", "CREATE VIRTUAL TABLE t USING fts5(a); INSERT INTO t VALUES ('one');")
    score = verdict("SELECT a FROM t", "SELECT a FROM t", words)
    assert (score.value, score.evidence["made"]) == (1.0, 0)
    assert "virtual" in score.evidence["unvaried"]
    score = verdict("SELECT name FROM customer", "SELECT name FROM customer", duckdb_shop)
    assert (score.value, score.evidence["made"]) == (1.0, 0)
    assert "duckdb" in score.evidence["unvaried"]
    many = filled(
        tmp_path / "many.sqlite",
        "CREATE TABLE t (a INTEGER); WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000) "
        "INSERT INTO t SELECT x % 2 FROM n;",
    )
    often = "SELECT a FROM t GROUP BY a HAVING COUNT(*) > 1000"
    score = verdict(often, often, many)
    assert (score.value, score.evidence["made"]) == (1.0, 0)
    assert "clear answer" in score.evidence["unvaried"]


PLAIN = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT);"
    "INSERT INTO t VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cy'), (4, 'Di');"
)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("CREATE TABLE z (a INTEGER REFERENCES gone (id)); INSERT INTO z VALUES (1);", id="no-table"),
        pytest.param("CREATE VIEW v AS SELECT * FROM t; CREATE TABLE z (a INTEGER REFERENCES v (id));", id="view"),
        pytest.param("CREATE TABLE p (w TEXT); CREATE TABLE z (v TEXT REFERENCES p);", id="no-key"),
        pytest.param("CREATE TABLE p (w TEXT); CREATE TABLE z (v TEXT REFERENCES p (gone));", id="no-column"),
        pytest.param("INSERT INTO t VALUES (5, CAST(x'4ae9616e' AS TEXT));", id="not-utf-8"),
    ],
)
def test_an_oddity_of_a_file_costs_nobody_a_score(more: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "odd.sqlite", PLAIN + more)
    gold = "SELECT name FROM t WHERE id > 2"
    score = verdict("SELECT name FROM t WHERE NOT id <= 2", gold, path)
    assert (score.value, score.evidence["made"]) == (1.0, 6)
    assert verdict("SELECT name FROM t WHERE id >= 2", gold, path).value == 0.0


def test_wrong_on_the_file_is_wrong_without_making_any(ask: Callable[..., Sample]) -> None:
    assert "made" not in SqlVerifier().verify(ask("```sql\nSELECT name FROM customer\n```")).evidence
