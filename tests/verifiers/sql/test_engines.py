"""Each engine runs queries, and nothing but queries, within limits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adjudge.verifiers.sql.duckdb_engine import DuckdbEngine
from adjudge.verifiers.sql.engine import Engine, EngineOptions, EngineUnavailableError, Fault, QueryLimits, Table
from adjudge.verifiers.sql.postgres_engine import PostgresEngine
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine

LIMITS = QueryLimits(seconds=5.0, rows=1000, output_bytes=1 << 20)
MOMENT = "2025-01-01 00:00:00"
OPTIONS = EngineOptions(moment=MOMENT, memory_mb=256)


@pytest.fixture(params=["sqlite", "duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "sqlite":
        made: Engine = SqliteEngine.of_file(request.getfixturevalue("shop"), OPTIONS)
    elif request.param == "duckdb":
        made = DuckdbEngine(request.getfixturevalue("duckdb_shop"), memory_mb=256)
    else:
        made = PostgresEngine(request.getfixturevalue("postgres")("reader"), memory_mb=256)
    yield made
    made.close()


def rows(engine: Engine, sql: str) -> list[tuple[object, ...]]:
    done = engine.run(sql, LIMITS)
    assert isinstance(done, Table), done
    return done.rows


def fault(engine: Engine, sql: str, limits: QueryLimits = LIMITS) -> Fault:
    done = engine.run(sql, limits)
    assert isinstance(done, Fault), done
    return done


def test_the_same_query_has_the_same_rows_everywhere(engine: Engine) -> None:
    found = rows(engine, "SELECT item, SUM(price), COUNT(*) FROM purchase GROUP BY item ORDER BY item")
    assert found == [("chair", 45, 1), ("desk", 99.25, 2), ("lamp", 45, 4)]


def test_names_nulls_and_dates(engine: Engine) -> None:
    done = engine.run("SELECT name AS who, country, joined FROM customer WHERE id = 4", LIMITS)
    assert isinstance(done, Table)
    assert (done.columns, done.rows) == (("who", "country", "joined"), [("Dan", None, "2022-07-09")])


def test_no_rows_are_a_result(engine: Engine) -> None:
    assert rows(engine, "SELECT name FROM customer WHERE id > 99") == []


WRITES = [
    "DELETE FROM customer",
    "WITH gone AS (DELETE FROM customer RETURNING id) SELECT id FROM gone",
    "UPDATE customer SET name = 'x'",
    "CREATE TABLE other (a INTEGER)",
    "DROP TABLE customer",
]


@pytest.mark.parametrize("sql", WRITES)
def test_nothing_is_written(engine: Engine, sql: str) -> None:
    fault(engine, sql)
    assert rows(engine, "SELECT COUNT(*), MIN(name) FROM customer") == [(5, "Ada")]


def test_one_statement_and_no_more(engine: Engine) -> None:
    fault(engine, "SELECT 1; SELECT 2")
    fault(engine, "SELECT 1; DELETE FROM customer")


def test_mistakes_are_errors_and_the_next_query_runs(engine: Engine) -> None:
    for sql in ("SELECT nothing FROM customer", "SELEC 1", "SELECT 1 FROM nowhere", ""):
        assert fault(engine, sql).kind == "error", sql
    assert rows(engine, "SELECT COUNT(*) FROM purchase") == [(7,)]


def test_floods_are_cut_off(engine: Engine) -> None:
    small = QueryLimits(seconds=5.0, rows=100, output_bytes=10_000)
    many = " UNION ALL ".join(["SELECT a.id FROM purchase a, purchase b, purchase c"] * 2)
    assert fault(engine, many, small).kind == "output"
    wide = "SELECT replace(replace(item, 'l', 'xxxxxxxxxxxxxxxx'), 'x', 'yyyyyyyyyyyyyyyy') FROM purchase"
    assert fault(engine, wide, QueryLimits(rows=100, output_bytes=500)).kind == "output"
    assert rows(engine, "SELECT COUNT(*) FROM purchase") == [(7,)]


@pytest.mark.parametrize("sql", ["SELECT random()", 'SELECT "random" ( ) FROM customer'])
def test_changing_functions_are_refused(engine: Engine, sql: str) -> None:
    found = fault(engine, sql)
    assert (found.kind, "random" in found.text) == ("error", True)


SQLITE_FORBIDDEN = [
    "PRAGMA user_version",
    "SELECT * FROM pragma_table_info('customer')",
    "ATTACH ':memory:' AS x",
    "SELECT load_extension('x')",
    "SELECT * FROM sqlite_stmt",
    "CREATE TEMP TABLE t AS SELECT 1",
    "VACUUM INTO 'x'",
]


@pytest.mark.parametrize("sql", SQLITE_FORBIDDEN)
def test_sqlite_refuses(shop: str, sql: str) -> None:
    assert fault(SqliteEngine.of_file(shop, OPTIONS), sql).kind == "forbidden"


CLOCK: dict[str, object] = {
    "SELECT date('now')": "2025-01-01",
    "SELECT DATE('Now', '+1 day')": "2025-01-02",
    "SELECT datetime()": "2025-01-01 00:00:00",
    "SELECT strftime('%Y')": "2025",
    "SELECT CURRENT_DATE": "2025-01-01",
    "SELECT current_timestamp": "2025-01-01 00:00:00",
    "SELECT date('n' || 'ow')": "2025-01-01",
    "SELECT date(char(110, 111, 119))": "2025-01-01",
    "SELECT date(x'6e6f77')": "2025-01-01",
    "SELECT date(replace('nXw', 'X', 'o'))": "2025-01-01",
    "SELECT \"date\"(lower('NOW'))": "2025-01-01",
    "SELECT date('2020-02-28', '+1 day')": "2020-02-29",
    "SELECT julianday('2020-01-02') - julianday('2020-01-01')": 1.0,
    "SELECT date(joined, '+1 year') FROM customer WHERE id = 1": "2021-01-05",
}


@pytest.mark.parametrize(("sql", "expected"), CLOCK.items(), ids=CLOCK.keys())
def test_sqlites_clock_stands_still(shop: str, sql: str, expected: object) -> None:
    assert rows(SqliteEngine.of_file(shop, OPTIONS), sql) == [(expected,)]


def test_sqlite_stops_at_the_deadline_and_at_a_number_of_steps(shop: str) -> None:
    engine = SqliteEngine.of_file(shop, OPTIONS)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT MAX(x) FROM c"
    assert fault(engine, endless, QueryLimits(seconds=0.1)).kind == "timeout"
    assert fault(engine, endless, QueryLimits(seconds=60.0, steps=100)).kind == "timeout"


def test_sqlite_counts_steps_the_same_each_time(shop: str) -> None:
    engine = SqliteEngine.of_file(shop, OPTIONS)
    cheap = [engine.steps("SELECT COUNT(*) FROM customer", LIMITS) for _ in range(3)]
    dear = engine.steps("SELECT COUNT(*) FROM purchase a, purchase b, purchase c", LIMITS)
    assert len(set(cheap)) == 1
    assert isinstance(dear, int)
    assert isinstance(cheap[0], int)
    assert dear > 10 * cheap[0]


def test_sqlite_reads_texts_that_are_no_text(shop: str) -> None:
    engine = SqliteEngine.of_file(shop, OPTIONS)
    assert rows(engine, "SELECT CAST(x'ff41' AS TEXT)") == [("\udcffA",)]


def test_sqlite_tells_which_tables_are_read(shop: str) -> None:
    engine = SqliteEngine.of_file(shop, OPTIONS)
    for sql, tables in {
        "SELECT 1": set(),
        "SELECT COUNT(*) FROM Customer": {"customer"},
        "WITH customer AS (SELECT 1 AS a) SELECT a FROM customer": set(),
        "SELECT value FROM json_each('[1]')": set(),
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM purchase)": {"purchase"},
    }.items():
        done = engine.run(sql, LIMITS)
        assert isinstance(done, Table)
        assert set(done.reads or ()) == tables, sql


def test_sqlite_refuses_a_file_with_an_open_log(tmp_path: Path) -> None:
    path = tmp_path / "wal.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (a)")
    connection.commit()
    with pytest.raises(EngineUnavailableError, match="wal_checkpoint"):
        SqliteEngine.of_file(str(path), OPTIONS)
    connection.close()


def test_sqlite_refuses_what_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(EngineUnavailableError):
        SqliteEngine.of_file(str(path), OPTIONS)


DUCKDB_FORBIDDEN = [
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "SELECT * FROM pandas_scan(1, 2, 3)",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM enable_logging()",
    "SELECT E'\\'', sleep_ms(1), ''",
    "SELECT current_setting('threads')",
]


@pytest.mark.parametrize("sql", DUCKDB_FORBIDDEN)
def test_duckdb_refuses(duckdb_shop: str, sql: str) -> None:
    assert fault(DuckdbEngine(duckdb_shop, memory_mb=256), sql).kind == "forbidden"


def test_duckdb_reads_no_files_and_no_variables_of_ours(duckdb_shop: str) -> None:
    secret = [("secret",)]  # a replacement scan would find it by its name
    engine = DuckdbEngine(duckdb_shop, memory_mb=256)
    for sql in ("SELECT * FROM '/etc/hostname'", "SELECT * FROM secret", "SELECT * FROM LIMITS"):
        assert "does not exist" in fault(engine, sql).text
    assert secret
    for sql in ("COPY customer TO 'x.csv'", "SET threads = 4", "INSTALL httpfs", "CALL pragma_version()"):
        fault(engine, sql)


def test_duckdb_takes_its_short_form(duckdb_shop: str) -> None:
    assert len(rows(DuckdbEngine(duckdb_shop, memory_mb=256), "FROM customer")) == 5


POSTGRES_FORBIDDEN = [
    "SELECT pg_sleep(10)",
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT pg_read_file('/etc/hostname')",
    "SELECT pg_ls_dir('.')",
    "SELECT lo_import('/etc/hostname')",
    "SELECT query_to_xml('SELECT 1', true, true, '')",
    "SELECT dblink('x', 'SELECT 1')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_terminate_backend(1)",
    "SELECT nextval('x')",
    'SELECT pg_catalog . "pg_sleep" /* */ (10)',
    "SELECT E'\\'', pg_sleep(10), ''",
    "SELECT $$ ' $$, pg_sleep(10), $$ ' $$",
]


@pytest.mark.parametrize("sql", POSTGRES_FORBIDDEN)
def test_postgres_refuses(postgres: Callable[[str], str], sql: str) -> None:
    engine = PostgresEngine(postgres("reader"), memory_mb=256)
    assert fault(engine, sql).kind == "forbidden"
    engine.close()


def test_postgres_keeps_what_merely_looks_like_it(postgres: Callable[[str], str]) -> None:
    engine = PostgresEngine(postgres("reader"), memory_mb=256)
    assert rows(engine, "SELECT 'pg_sleep(10)', $$set_config('a')$$ -- pg_sleep(1)") == [
        ("pg_sleep(10)", "set_config('a')")
    ]
    assert fault(engine, 'SELECT U&"pg\\005fsleep"(10)').kind == "error"
    for sql in ("COPY customer TO STDOUT", "SET ROLE owner", "DO $$ BEGIN END $$", "LISTEN x"):
        fault(engine, sql)
    assert rows(engine, "SELECT COUNT(*) FROM customer") == [(5,)]
    engine.close()


def test_postgres_keeps_the_deadline(postgres: Callable[[str], str]) -> None:
    engine = PostgresEngine(postgres("reader"), memory_mb=256)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1::bigint UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
    assert fault(engine, endless, QueryLimits(seconds=0.2)).kind == "timeout"
    assert rows(engine, "SELECT 1") == [(1,)]
    engine.close()


def test_postgres_hangs_up_where_it_may_not_limit_the_server(
    postgres: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("resource.prlimit", refused)
    engine = PostgresEngine(postgres("reader"), memory_mb=32)
    endless = "SELECT array_agg(g) FROM (SELECT generate_series(1, 1000000000000) AS g) AS t"
    assert fault(engine, endless, QueryLimits(seconds=30.0)).kind == "memory"
    assert not engine.alive


def test_postgres_hangs_up_when_the_answer_of_a_server_elsewhere_fills_this_process(
    postgres: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adjudge.verifiers.sql.postgres_memory.WatchedConnection._is_local", lambda _: False)
    engine = PostgresEngine(postgres("reader"), memory_mb=32)
    found = fault(engine, "SELECT repeat('x', 150000000)", QueryLimits(seconds=30.0, output_bytes=1 << 30))
    assert found.kind == "memory"
    assert not engine.alive


def test_postgres_reads_no_row_that_is_larger_than_the_result_may_be(postgres: Callable[[str], str]) -> None:
    engine = PostgresEngine(postgres("reader"), memory_mb=256)
    found = fault(engine, "SELECT repeat(name, 10000), 1 FROM customer", QueryLimits(output_bytes=20_000))
    assert (found.kind, found.text) == ("output", "a row of 30,001 bytes")
    assert not engine.alive


def test_postgres_refuses_a_role_that_may_do_too_much(postgres: Callable[[str], str]) -> None:
    with pytest.raises(EngineUnavailableError, match="CREATE ROLE"):
        PostgresEngine(postgres("owner"), memory_mb=256)


def test_postgres_says_that_no_server_answers(tmp_path: Path, postgres: Callable[[str], str]) -> None:
    with pytest.raises(EngineUnavailableError, match="PostgreSQL cannot be used") as caught:
        PostgresEngine(f"postgresql://me:hunter2@/postgres?host={tmp_path}", memory_mb=256)
    assert "hunter2" not in str(caught.value)
