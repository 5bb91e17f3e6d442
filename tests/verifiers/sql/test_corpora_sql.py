"""Public corpora: accepted queries pass, labels of published comparators come out the same."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot.errors import SqlglotError
from tests.corpus_parts import in_parts, part

from adjudge.protocol import Sample
from adjudge.verifiers.sql.comparator import POLICIES
from adjudge.verifiers.sql.engine import QueryLimits, Table, plain
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.verifier import SqlVerifier

DATA = os.environ.get("ADJUDGE_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
SQL = Path(DATA or "", "sql")


def lines(path: str) -> Iterator[dict[str, Any]]:
    with (SQL / path).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def verdict(verifier: SqlVerifier, sql: str, reference: dict[str, Any]) -> tuple[float | None, str]:
    score = verifier.verify(Sample(prompt="", response=f"```sql\n{sql}\n```", reference=reference))
    return score.value, score.reason


@pytest.mark.parametrize("name", ["default", "strict", "bird", "test_suite", "defog"])
def test_defogs_accepted_queries_pass_on_its_databases(name: str) -> None:
    verifier = SqlVerifier(folder=str(SQL / "defog" / "sqlite"), comparator=name, variations=0)
    found: Counter[tuple[float | None, str]] = Counter()
    for row in lines("defog/questions.jsonl"):
        reference = {"sql": row["accepted_sql"], "database": row["db"] + ".sqlite"}
        found.update(verdict(verifier, sql, reference) for sql in row["accepted_sql"])
    assert found == {(1.0, ""): 196, (None, "gold_unparsable"): 62}


@in_parts(18)
def test_defogs_accepted_queries_pass_on_databases_made_like_its_own(every: int) -> None:
    verifier = SqlVerifier(folder=str(SQL / "defog" / "sqlite"))
    found: Counter[tuple[float | None, str]] = Counter()
    for row in part(lines("defog/questions.jsonl"), every, lambda row: row["db"]):
        reference = {"sql": row["accepted_sql"], "database": row["db"] + ".sqlite"}
        found.update(verdict(verifier, sql, reference) for sql in row["accepted_sql"])
    assert set(found) == {(1.0, ""), (None, "gold_unparsable")}


EMPTY = {  # defog's files have no row in these; in broker only the tickers are filled, in the other the customers
    "broker": {"sbcustomer", "sbdailyprice", "sbtransaction"},
    "car_dealership": {
        "cars", "salespersons", "sales", "inventory_snapshots", "payments_received", "payments_made",
    },
}  # fmt: skip


@in_parts(12)
def test_the_references_that_find_nothing_read_empty_tables_and_made_databases_judge_them(every: int) -> None:
    refuses = SqlVerifier(folder=str(SQL / "defog" / "sqlite"))
    accepts = dataclasses.replace(refuses, empty="accept", variations=0)
    alone = dataclasses.replace(refuses, variations=0)
    refused = [
        (row["db"], row["accepted_sql"], sql)
        for row in lines("defog/questions.jsonl")
        for sql in row["accepted_sql"]
        if verdict(alone, sql, {"sql": row["accepted_sql"], "database": row["db"] + ".sqlite"})[0] is None
    ]
    assert Counter(database for database, _, _ in refused) == {"broker": 33, "car_dealership": 29}
    others: Counter[tuple[float | None, str]] = Counter()
    looked_at = part(enumerate(refused), every, lambda one: one[1][0])
    for number, (database, accepted, sql) in looked_at:
        file = f"{SQL / 'defog' / 'sqlite' / database}.sqlite"
        table = SqliteEngine.of_file(file, refuses.engine_options).run(sql, QueryLimits())
        assert isinstance(table, Table)
        assert not table.tells, sql
        assert set(table.reads or ()) & EMPTY[database], sql
        assert verdict(accepts, sql, {"sql": accepted, "database": file}) == (1.0, ""), sql
        made = {"sql": accepted, "database": {"like": file}}
        assert verdict(refuses, sql, made) == (1.0, ""), sql
        strange = next(other for at, known, other in refused[number:] + refused if at == database and known != accepted)
        others[verdict(refuses, strange, made)] += 1
    assert others == {(0.0, "wrong"): len(looked_at)}


@in_parts(6)
def test_defogs_questions_are_told_apart_on_made_databases(every: int) -> None:
    """The same questions on databases made from the schemas, each against the answers to ten others."""
    schemas: dict[str, str] = {}
    for path in (SQL / "defog" / "sqlite").glob("*.sqlite"):
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        tables = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
        schemas[path.stem] = ";\n".join(sql for (sql,) in tables)
        connection.close()
    rows = part(lines("defog/questions.jsonl"), every, lambda row: row["db"])
    own: Counter[tuple[float | None, str]] = Counter()
    others: Counter[tuple[float | None, str]] = Counter()
    verifier = SqlVerifier()
    for row in rows:
        reference = {"sql": row["accepted_sql"], "database": {"schema": schemas[row["db"]]}}
        own.update(verdict(verifier, sql, reference) for sql in row["accepted_sql"])
        same_database = [other for other in rows if other is not row and other["db"] == row["db"]]
        others.update(verdict(verifier, other["accepted_sql"][0], reference) for other in same_database)
    assert set(own) <= {(1.0, ""), (None, "gold_unparsable")}
    assert own[None, "gold_unparsable"] <= 0.02 * own.total()
    assert others[1.0, ""] == 0
    assert others[0.0, "wrong"] >= 0.95 * others.total() > 100


IBM = {
    "execution_accuracy": "ibm",
    "non_empty_execution_accuracy": "ibm",
    "subset_non_empty_execution_accuracy": "ibm_subset",
    "bird_execution_accuracy": "bird",
}


def frame(text: str | None) -> Table | None:
    if text is None:
        return None
    data = json.loads(text)
    return Table(
        columns=tuple(map(str, data["columns"])), rows=[tuple(plain(cell) for cell in row) for row in data["data"]]
    )


@pytest.mark.parametrize("label", IBM)
def test_ibms_labels_come_out_the_same(label: str) -> None:
    compared = 0
    for row in lines("ibm_eval/predictions_eval_full.jsonl"):
        gold, found = frame(row["gold_df"]), frame(row["pred_df"])
        if row["eval"][label] is None:  # the prediction did not run
            continue
        assert gold is not None
        right = False
        if found is not None:
            ordered = "order by" in row["gold_sql"][0].lower()
            right = POLICIES[IBM[label]].difference(gold, found, ordered=ordered) is None
            if "non_empty" in label:
                right = right and bool(gold.rows) and bool(found.rows)
        assert right == bool(row["eval"][label]), (row["bench"], row["qid"])
        compared += 1
    assert compared == 121


def test_birds_references_pass_on_databases_made_from_its_schemas() -> None:
    schemas = json.loads((SQL / "bird_mini_dev" / "schema.json").read_text(encoding="utf-8"))
    rows = json.loads((SQL / "bird_mini_dev" / "bird_mini_dev_sqlite.json").read_text(encoding="utf-8"))
    verifier = SqlVerifier(synthetic=3)
    found: Counter[tuple[float | None, str]] = Counter()
    rewritten: Counter[float | None] = Counter()
    for row in rows[::10]:
        reference = {"sql": row["SQL"], "database": {"schema": schemas[row["db_id"]]}}
        own = verdict(verifier, row["SQL"], reference)
        found[own] += 1
        try:
            other = sqlglot.parse_one(row["SQL"], read="sqlite").sql(dialect="sqlite", pretty=True)
        except SqlglotError:
            continue
        if own[0] is not None:
            rewritten[verdict(verifier, other, reference)[0]] += 1
    assert set(found) <= {(1.0, ""), (None, "gold_unparsable")}
    assert found[1.0, ""] >= 46
    assert set(rewritten) == {1.0}
