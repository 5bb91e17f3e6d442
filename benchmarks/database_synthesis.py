"""Databases made for queries, beside the database that people filled: which wrong queries does each tell apart?

For every question of defog's SQLite files, databases are made from the file's schema and values and the accepted
queries.  Three counts: mutants of the accepted query (some mean the same, and no database tells those apart); answers
to other questions of the same database, drawn at random; and, the other way round, accepted alternatives that agree
with the first on the filled file and are told apart on made ones, which a scorer would refuse.  The edge cases are
measured one by one, because each may help with the first two and harm the third.

Run it as `ADJUDGE_DATA=... python benchmarks/database_synthesis.py`; `--help` lists the flags.
For BIRD's questions the corpora hold no databases, so theirs are made from its schemas and value samples alone.
Not covered: what a model that learns from such rewards becomes.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.data_pipelines.tasks.config import EDGES, DatabasesConfig
from adjudge.data_pipelines.tasks.databases import make_databases
from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.scoring.api import score_batch


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure.

    Attributes:
        count: databases for each question.
        each: measure each kind of edge case alone, too.
        bird: also make databases for BIRD's questions.
        limit: only every so-many-th question; 1 for all.
        seed: of the draw of other answers.
    """

    count: int = 4
    each: bool = True
    bird: bool = True
    limit: int = 1
    seed: int = 7


def corpus() -> Path:
    data = os.environ.get("ADJUDGE_DATA")
    if not data:
        sys.exit("ADJUDGE_DATA is not set: point it to the folder of corpora that holds sql/defog")
    return Path(data, "sql", "defog")


def questions(options: Options) -> list[dict[str, Any]]:
    chooser = random.Random(options.seed)
    rows = [json.loads(line) for line in (corpus() / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    found = []
    for number, row in enumerate(rows):
        others = [other["accepted_sql"][0] for other in rows if other["db"] == row["db"] and other is not row]
        found.append(
            {
                "id": str(number),
                "sql": row["accepted_sql"][:1],
                "database": row["db"],
                "alternatives": row["accepted_sql"][1:],
                "others": chooser.sample(others, min(10, len(others))),
            }
        )
    return found[:: options.limit]


def agreeing(rows: list[dict[str, Any]], references: dict[str, dict[str, Any]], column: str) -> dict[str, list[str]]:
    """Return, for each row, the queries of a column that a reference accepts."""
    scorer = registry.load({"sql": {"empty": "refuse"}})
    asked = [(row["id"], sql) for row in rows if row["id"] in references for sql in row[column]]
    samples = [Sample(prompt="", response=f"<sql>{sql}</sql>", reference=references[key]) for key, sql in asked]
    found: dict[str, list[str]] = {}
    for (key, sql), score in zip(asked, score_batch(samples, scorer), strict=True):
        if score.value == 1.0:
            found.setdefault(key, []).append(sql)
    return found


def main(options: Options) -> None:
    console = Console(width=150)
    rows = questions(options)
    files = corpus() / "sqlite"
    given = {row["id"]: {"sql": row["sql"], "database": str(files / f"{row['database']}.sqlite")} for row in rows}
    same = agreeing(rows, given, "alternatives")
    accidents = agreeing(rows, given, "others")
    table = Table(title=f"{len(rows)} questions of defog, {options.count} databases each")
    for name in ("databases", "rows made", "mutants told apart", "other answers accepted", "alternatives refused", "s"):
        table.add_column(name)
    settings = [(), EDGES, *((edge,) for edge in EDGES if options.each)]
    for edges in settings:
        with tempfile.TemporaryDirectory() as folder:
            measured(options, rows, edges, Path(folder), table, same, accidents)
            console.print(table.title, edges)
    console.print(table)
    if options.bird:
        bird(options, console)


def bird(options: Options, console: Console) -> None:
    """Make databases for BIRD's questions, and print how many and what they tell apart."""
    folder = corpus().parent / "bird_mini_dev"
    rows = json.loads((folder / "bird_mini_dev_sqlite.json").read_text(encoding="utf-8"))[:: options.limit]
    with tempfile.TemporaryDirectory() as made:
        source, output = Path(made, "bird.jsonl"), Path(made, "made.jsonl")
        asked = [{"sql": row["sql"], "db_id": row["db_id"]} for row in rows]
        source.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
        config = DatabasesConfig(
            input=str(source),
            output=str(output),
            schemas=str(folder / "schema.json"),
            count=options.count,
            in_flight=2,
        )
        report = make_databases(config)
    told, mutants = report.counts["told_apart"], report.counts["mutants"]
    console.print(
        f"BIRD: databases for {report.made} of {report.rows} questions in {report.seconds:.0f} s, which tell "
        f"{told:.0f} of {mutants:.0f} mutants apart; dropped: {dict(report.dropped)}"
    )


def measured(
    options: Options,
    rows: list[dict[str, Any]],
    edges: tuple[str, ...],
    folder: Path,
    table: Table,
    same: dict[str, list[str]],
    accidents: dict[str, list[str]],
) -> None:
    """Make databases with some edge cases, and add what they do to the table; the first time, what the files do."""
    source, output = folder / "questions.jsonl", folder / "made.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    began = time.monotonic()
    report = make_databases(
        DatabasesConfig(
            input=str(source),
            output=str(output),
            database_folder=str(corpus() / "sqlite"),
            count=options.count,
            edges=edges or ("none",),
            in_flight=2,
        )
    )
    seconds = time.monotonic() - began
    made = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    references = {row["id"]: row["reference"] for row in made}
    totals = Counter[str]()
    for row in made:
        totals.update({key: row[key] or 0 for key in ("mutants", "told_apart", "given_told_apart")})
    if not edges:
        seen = [row for row in rows if row["id"] in references]
        tried = sum(len(row["others"]) for row in seen)
        wrongly = sum(len(found) for found in accidents.values())
        told = f"{totals['given_told_apart']} of {totals['mutants']}"
        table.add_row("filled by people", "", told, f"{wrongly} of {tried}", f"0 of {sum(map(len, same.values()))}", "")
    agreed = agreeing(rows, references, "alternatives")
    refused = [
        sql for key, several in same.items() if key in references for sql in several if sql not in agreed.get(key, ())
    ]
    wrongly = sum(len(found) for found in agreeing(rows, references, "others").values())
    tried = sum(len(row["others"]) for row in rows if row["id"] in references)
    table.add_row(
        f"made, {', '.join(edges) or 'no edge cases'}",
        f"{report.made} of {report.rows}",
        f"{totals['told_apart']} of {totals['mutants']}",
        f"{wrongly} of {tried}",
        f"{len(refused)} of {sum(len(several) for key, several in same.items() if key in references)}",
        f"{seconds:.0f}",
    )


if __name__ == "__main__":
    main(tyro.cli(Options))
