"""Databases made from schemas, end to end."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.tasks.config import DatabasesConfig
from adjudge.data_pipelines.tasks.database_filling import foreign_keys
from adjudge.data_pipelines.tasks.databases import Judges, make_databases
from adjudge.io.errors import JobError
from adjudge.io.jobs.report import JobReport
from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.scoring.api import score_batch
from adjudge.verifiers.sql.databases.row_maker import RowMaker
from adjudge.verifiers.sql.databases.schema_shape import read_schema, schema_of_file

SCHEMA = """
CREATE TABLE singer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, age INT);
CREATE TABLE song (id INTEGER PRIMARY KEY, singer INT NOT NULL REFERENCES singer (id), title TEXT, sold REAL);
"""
VALUES = {"singer": {"country": ["France", "Chile"]}}
GOLD = "SELECT name FROM singer JOIN song ON singer.id = song.singer WHERE age > 40 AND country = 'France'"
BIRD = {
    "name": "shop",
    "tables": {
        "Town Hall": {
            "columns": [
                {"name": "Id", "type": "INTEGER", "primary_key": True, "value_samples": [11, 12]},
                {"name": "In Town", "type": "TEXT", "value_samples": ["Ulm", "Ely"],
                 "foreign_keys": [{"target_table": "town", "target_column": "name"}]},
            ]
        },
        "town": {"columns": [{"name": "name", "type": "TEXT", "primary_key": True, "value_samples": ["Ulm"]}]},
    },
}  # fmt: skip


def job(folder: Path, rows: list[Any], **options: Any) -> tuple[JobReport, list[dict[str, Any]]]:
    source, output = folder / "in.jsonl", folder / "out.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if not source.exists() or source.read_text(encoding="utf-8") != text:  # a job goes on only with the same file
        source.write_text(text, encoding="utf-8")
    config = DatabasesConfig(**{"input": str(source), "output": str(output), "overwrite": True, **options})
    report = make_databases(config)
    return report, [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def every(path: str, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def orphans(path: str) -> list[Any]:
    """Rows of a file that point nowhere, by a query of this test's own for each foreign key."""
    with closing(sqlite3.connect(path)) as connection:
        schema = read_schema(schema_of_file(path))
        found = []
        for key in foreign_keys(connection, schema):
            if len(key.columns) == 1:
                here, there = key.columns[0], key.parent_columns[0]
                found += connection.execute(
                    f'SELECT "{here}" FROM "{key.table}" WHERE "{here}" NOT IN '
                    f'(SELECT "{there}" FROM "{key.parent}" WHERE "{there}" IS NOT NULL)'
                ).fetchall()
        return found


def test_made_databases_are_a_reference_of_the_sql_scorer(tmp_path: Path) -> None:
    row = {"id": "q1", "prompt": "Which?", "schema": SCHEMA, "values": VALUES, "sql": GOLD}
    report, (made,) = job(tmp_path, [row])
    assert (report.made, report.dropped) == (1, {})
    assert (made["id"], made["prompt"]) == ("q1", "Which?")
    assert made["told_apart"] / made["mutants"] > 0.7
    assert len(made["databases"]) == 4
    answers = {
        GOLD: 1.0,
        GOLD.replace("age > 40", "NOT age <= 40"): 1.0,
        GOLD.replace("> 40", ">= 40"): 0.0,
        GOLD.replace(" AND country = 'France'", ""): 0.0,
        GOLD.replace("SELECT name", "SELECT DISTINCT name"): 0.0,
        GOLD.replace("JOIN", "LEFT JOIN").replace("WHERE", "WHERE song.id IS NULL OR "): 0.0,
    }
    samples = [Sample(prompt="", response=f"<sql>{sql}</sql>", reference=made["reference"]) for sql in answers]
    assert [score.value for score in score_batch(samples, registry.load("sql"))] == list(answers.values())
    for path in made["databases"]:
        assert orphans(path) == []
        assert every(path, "PRAGMA foreign_key_check") == []
    countries = {country for path in made["databases"] for (country,) in every(path, "SELECT country FROM singer")}
    assert {"France", "Chile", None, ""} <= countries


def test_a_schema_may_come_in_several_forms(tmp_path: Path) -> None:
    (tmp_path / "schemas.json").write_text(json.dumps({"shop": BIRD}), encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "shop.sqlite", isolation_level=None)) as connection:
        connection.executescript(SCHEMA + "INSERT INTO singer VALUES (1, 'Ada', 'Ghana', 50)")
    rows = [
        {"schema": {"town": {"name": "TEXT", "size": "INT"}}, "sql": "SELECT name FROM town WHERE size > 3"},
        {"schema": BIRD, "sql": 'SELECT "In Town" FROM "Town Hall" WHERE "In Town" = \'Ely\''},
        {
            "db_id": "shop",
            "sql": [
                "SELECT name FROM town WHERE name LIKE 'U%'",
                "SELECT name FROM town WHERE substr(name, 1, 1) = 'U'",
            ],
        },
        {"database": "shop", "sql": "SELECT name FROM singer WHERE country = 'Ghana'"},
    ]
    _, made = job(tmp_path, rows, schemas=str(tmp_path / "schemas.json"), database_folder=str(tmp_path))
    assert [row["id"] for row in made] == ["0", "1", "2", "3"]
    assert [row["given_told_apart"] is None for row in made] == [True, True, True, False]
    for row in made:
        assert row["told_apart"] > 0
        assert all(orphans(path) == [] for path in row["databases"])


def test_keys_hold_in_tables_that_point_to_each_other(tmp_path: Path) -> None:
    ring = (
        "CREATE TABLE team (id INTEGER PRIMARY KEY, captain INT REFERENCES player (id)); "
        "CREATE TABLE player (id INTEGER PRIMARY KEY, team INT NOT NULL REFERENCES team, mentor INT REFERENCES player)"
    )
    _, (made,) = job(tmp_path, [{"schema": ring}], count=6)
    for path in made["databases"]:
        assert every(path, "PRAGMA foreign_key_check") == []
        assert every(path, "SELECT COUNT(captain) > 0 FROM team") == [(1,)]


def test_without_a_query_every_database_is_kept(tmp_path: Path) -> None:
    _, (made,) = job(tmp_path, [{"schema": SCHEMA, "values": VALUES}], count=3)
    assert len(set(made["databases"])) == 3
    assert (made["reference"], made["mutants"], made["alike"]) == (None, None, None)
    assert all(count > 0 for count in made["rows"])


def test_files_are_named_by_their_bytes_and_made_again_alike(tmp_path: Path) -> None:
    rows = [{"schema": SCHEMA, "sql": GOLD.replace("40", str(age))} for age in (30, 40, 50)]
    found = []
    for in_flight in (1, 3):
        folder = tmp_path / str(in_flight)
        folder.mkdir()
        _, made = job(folder, rows, in_flight=in_flight)
        names = [[Path(path).name for path in row["databases"]] for row in made]
        held = {path.name: path.read_bytes() for path in (folder / "out_databases").iterdir()}
        assert set(held) == {name for row in names for name in row}
        found.append((names, held, [{**row, "databases": 0, "reference": 0} for row in made]))
    assert found[0] == found[1]


def test_candidates_are_told_apart_too_and_those_that_are_not_are_listed(tmp_path: Path) -> None:
    same, other = GOLD.replace("age > 40", "40 < age"), "SELECT title FROM song"
    row = {"schema": SCHEMA, "sql": GOLD, "tried": [same, other, "SELECT nothing FROM nowhere"]}
    _, (made,) = job(tmp_path, [row], candidates_column="tried", distill=True)
    assert (made["candidates"], made["candidates_told_apart"]) == (2, 1)
    assert same in made["alike"]
    assert other not in made["alike"]
    assert len(made["databases"]) < 4


def test_a_job_that_was_stopped_goes_on_to_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"schema": SCHEMA, "sql": GOLD.replace("40", str(age))} for age in (30, 40, 50, 60)]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    _, wanted = job(whole, rows, count=1)
    ask, left = Judges.aims, [2]

    async def stops(judges: Judges, *given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise JobError("the engine is gone")
        return await ask(judges, *given)

    monkeypatch.setattr(Judges, "aims", stops)
    with pytest.raises(JobError, match="the engine is gone"):
        job(broken, rows, count=1, in_flight=1)
    monkeypatch.undo()
    report, made = job(broken, rows, count=1)
    assert report.resumed_rows == 2
    assert [row["told_apart"] for row in made] == [row["told_apart"] for row in wanted]
    folders = (whole / "out_databases", broken / "out_databases")
    names = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert names[0] == names[1]


ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
HUGE = ";".join(f"CREATE TABLE a{number} (b INT, c BLOB AS (zeroblob(8000000)) STORED)" for number in range(3))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"sql": GOLD}, "no_schema"),
        ({"schema": None, "database": "nowhere", "sql": GOLD}, "no_schema"),
        ({"schema": None, "database": "broken", "sql": GOLD}, "bad_database"),
        ({"schema": 3, "sql": GOLD}, "bad_schema"),
        ({"schema": "DROP TABLE singer", "sql": GOLD}, "bad_schema"),
        ({"schema": "CREATE TABLE a (", "sql": GOLD}, "bad_schema"),
        ({"schema": "CREATE TABLE a (b TEXT\0)", "sql": GOLD}, "bad_schema"),
        ({"schema": "CREATE TABLE \ud800 (b TEXT)", "sql": GOLD}, "bad_schema"),
        ({"schema": f"CREATE TABLE a AS {ENDLESS}", "sql": GOLD}, "bad_schema"),
        ({"schema": "CREATE TABLE IF NOT EXISTS view AS SELECT 1", "sql": GOLD}, "bad_schema"),
        ({"schema": f"{SCHEMA}; CREATE TEMP TABLE a (b INT)", "sql": GOLD}, "bad_schema"),
        ({"schema": HUGE}, "schema_takes_no_rows"),
        ({"schema": {"t": {"columns": [{"name": "a", "foreign_keys": [{}]}]}}, "sql": GOLD}, "bad_schema"),
        ({"schema": {"t": {"columns": [{"name": "a", "value_samples": 7}]}}, "sql": GOLD}, "bad_schema"),
        ({"schema": SCHEMA, "values": 3, "sql": GOLD}, "bad_schema"),
        ({"schema": f"CREATE TABLE a (b INT CHECK (b IN ({ENDLESS})))", "sql": "SELECT b FROM a"}, "bad_schema"),
        ({"schema": SCHEMA, "sql": GOLD, "prompt": 7}, "bad_prompt"),
        ({"schema": SCHEMA, "sql": {"a": 1}}, "bad_query"),
        ({"schema": SCHEMA, "sql": ["  "]}, "bad_query"),
        ({"schema": SCHEMA, "sql": f"{GOLD} AND name <> '{'x' * 10_000}'"}, "query_too_long"),
        ({"schema": SCHEMA, "sql": "SELECT nothing FROM nowhere"}, "query_fails"),
        ({"schema": SCHEMA, "sql": "DELETE FROM singer"}, "query_fails"),
        ({"schema": SCHEMA, "sql": ENDLESS}, "query_fails"),
        ({"schema": SCHEMA, "sql": "SELECT name FROM singer WHERE age > 5 AND age < 3"}, "query_finds_nothing"),
    ],
)
def test_rows_that_come_to_nothing_are_dropped_by_reason(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    (tmp_path / "broken.sqlite").write_bytes(b"no database at all" * 100)
    rows = [row, {"schema": SCHEMA, "sql": GOLD}]
    report, made = job(tmp_path, rows, database_folder=str(tmp_path), seconds=0.3, count=1, tries=2)
    assert report.dropped == {reason: 1}
    assert len(made) == 1


def test_a_full_disk_stops_the_job_and_drops_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = RowMaker.fill

    def fill(maker: RowMaker, connection: sqlite3.Connection, number: int) -> None:
        connection.execute("PRAGMA max_page_count = 2")  # SQLite says the same of a disk
        make(maker, connection, number)

    monkeypatch.setattr(RowMaker, "fill", fill)
    with pytest.raises(JobError, match="the disk refuses"):
        job(tmp_path, [{"schema": SCHEMA, "sql": GOLD}])


def test_samples_that_are_no_plain_values_are_taken_as_texts(tmp_path: Path) -> None:
    row = {
        "schema": "CREATE TABLE a (k TEXT PRIMARY KEY); CREATE TABLE b (k TEXT, n INT)",
        "values": {"a": {"k": [["x"], {"y": 1}]}, "b": {"n": [[1], 10**30]}},
        "sql": "SELECT n FROM a JOIN b ON a.k = b.k",
    }
    report, _ = job(tmp_path, [row], count=1, tries=2)
    assert report.made == 1


def test_a_text_in_the_column_of_files_that_names_none_is_no_file(tmp_path: Path) -> None:
    rows = [{"schema": SCHEMA, "sql": GOLD, "database": name} for name in (SCHEMA * 9, "\0", "\ud800", 7)]
    report, _ = job(tmp_path, rows, count=1, tries=2)
    assert (report.made, report.dropped) == (4, {})


def test_a_generated_column_and_a_check_leave_rows_that_keep_them(tmp_path: Path) -> None:
    schema = "CREATE TABLE a (b INT CHECK (b > 1), c INT AS (b * 2), d TEXT UNIQUE) "
    _, (made,) = job(tmp_path, [{"schema": schema}], count=2)
    for path in made["databases"]:
        assert every(path, "SELECT COUNT(*) FROM a WHERE b <= 1 OR c <> b * 2") == [(0,)]
        assert every(path, "SELECT COUNT(*) > 0 FROM a") == [(1,)]


def test_mistakes_in_the_call_are_named_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"tried schema\); name it with --schema-column.*--database-column"):
        job(tmp_path, [{"question": "?"}])
    for name in ("candidates", "sql", "values", "prompt", "id"):
        with pytest.raises(ValueError, match=f"--{name}-column 'tried'"):
            job(tmp_path, [{"schema": SCHEMA}], **{f"{name}_column": "tried"})
    with pytest.raises(ValueError, match="cannot be read as JSON"):
        job(tmp_path, [{"schema": SCHEMA}], schemas=str(tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"count": 0}, "--count is 0"),
        ({"tries": 21}, "--tries is 21"),
        ({"edges": ("null",)}, "--edges is 'null'"),
        ({"min_told": 2.0}, "--min-told is 2.0"),
        ({"seconds": 0.0}, "--seconds is 0.0"),
        ({"moment": "now"}, "--moment is 'now'"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DatabasesConfig(input="a.jsonl", output="b.jsonl", **options)


def test_where_the_databases_lie() -> None:
    def folder(output: str, **options: Any) -> str:
        return str(DatabasesConfig(input="a.jsonl", output=output, **options).made_folder)

    assert folder("x/out.jsonl.gz") == str(Path("x/out_databases"))
    assert folder("x/saved") == str(Path("x/saved_databases"))
    assert folder("x/out.parquet", folder="y") == "y"


DATA = os.environ.get("ADJUDGE_DATA", "")


@pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
def test_birds_schemas_and_defogs_files_give_databases_whose_keys_hold(tmp_path: Path) -> None:
    sql = Path(DATA, "sql")
    schemas = sql / "bird_mini_dev" / "schema.json"
    names = sorted(json.loads(schemas.read_text(encoding="utf-8")))
    rows = [{"db_id": name} for name in names] + [{"database": name} for name in ("academic", "atis", "broker")]
    options = {"schemas": str(schemas), "database_folder": str(sql / "defog" / "sqlite"), "count": 2}
    report, made = job(tmp_path, rows, **options)
    assert report.dropped == {}
    assert len(made) == len(names) + 3 >= 14
    assert all(orphans(path) == [] for row in made for path in row["databases"])


@pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
def test_made_databases_tell_more_of_defogs_mutants_apart_than_the_filled_ones(tmp_path: Path) -> None:
    lines = (Path(DATA) / "sql" / "defog" / "questions.jsonl").read_text(encoding="utf-8").splitlines()[::12]
    rows = [{"sql": row["accepted_sql"][:1], "database": row["db"]} for row in map(json.loads, lines)]
    _, made = job(tmp_path, rows, database_folder=str(Path(DATA) / "sql" / "defog" / "sqlite"), count=2)
    assert len(made) >= len(rows) - 1
    mutants, told, given = (
        sum(row[name] or 0 for row in made) for name in ("mutants", "told_apart", "given_told_apart")
    )
    assert told > 0.5 * mutants  # most of the others mean the same: DISTINCT over groups, LEFT before an inner JOIN
    assert told > 1.5 * given
