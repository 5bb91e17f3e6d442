"""Speed of the SQL verifier beside the way the published BIRD script runs queries, in one run on one machine.

The peer opens the file anew for the candidate and for the reference, fetches everything and compares sets, in a thread
that it waits for, as `func_timeout` does; it has none of the guards (its candidates may write, and its timeout stops
nobody).  Both judge the same pairs: every question of defog's SQLite files with the answers to a group of questions of
the same database, as an RL step would.  A second table shows databases made from schemas, where the first response to
a question pays for making them, and a third the scaling from one pool worker to two.

Run it as `ADJUDGE_DATA=... python -m benchmarks.sql_verifier`; `--help` lists the flags.
Not covered: DuckDB and PostgreSQL, whose time is the engine's and the network's.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tyro
from benchmarks.corpora import place, rows
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample
from adjudge.runtime.pool import Pool
from adjudge.runtime.verifying import VerifierScorer
from adjudge.verifiers.sql.verifier import SqlVerifier

FILES = ("academic", "advising", "atis")  # the other two databases are nearly empty


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to time.

    Attributes:
        group: responses per question.
        rounds: timed rounds; the table gives the median.
        made: questions on databases made from schemas.
        scaling: samples for the worker scaling; 0 leaves it out.
        seed: of the draw of responses.
    """

    group: int = 16
    rounds: int = 3
    made: int = 40
    scaling: int = 8000
    seed: int = 7


def samples(options: Options, database: Callable[[str], Any]) -> list[Sample]:
    """Return a group of responses to each question: its own answers, and answers to others on the same database."""
    chooser = random.Random(options.seed)
    asked = [row for row in rows("sql", "defog", "questions.jsonl") if row["db"] in FILES]
    found = []
    for row in asked:
        others = [other["accepted_sql"][0] for other in asked if other["db"] == row["db"]]
        answers = (row["accepted_sql"] * options.group)[: options.group // 2]
        answers += [chooser.choice(others) for _ in range(options.group - len(answers))]
        reference = {"sql": row["accepted_sql"][0], "database": database(row["db"])}
        found += [Sample(prompt="", response=f"```sql\n{sql}\n```", reference=reference) for sql in answers]
    return found


def published(sample: Sample) -> bool:
    """Judge as the published script does; see the module."""
    gold, path = sample.reference["sql"], sample.reference["database"]
    sql = str(sample.response).removeprefix("```sql\n").removesuffix("\n```")
    verdict: list[bool] = []

    def work() -> None:
        tables = []
        for query in (sql, gold):
            connection = sqlite3.connect(path)
            tables.append(set(connection.execute(query).fetchall()))
            connection.close()
        verdict.append(tables[0] == tables[1])

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30.0)
    return bool(verdict and verdict[0])


def timed(judge: Callable[[Sample], Any], batch: list[Sample]) -> list[float]:
    times = []
    for sample in batch:
        started = time.perf_counter()
        judge(sample)
        times.append(time.perf_counter() - started)
    return times


def line(table: Table, name: str, rounds: list[list[float]], peer: float = 0.0) -> float:
    rates = [len(times) / sum(times) for times in rounds]
    every = sorted(value for times in rounds for value in times)
    rate = statistics.median(rates)
    cells = [f"{rate:,.0f}", *(f"{every[int(len(every) * share)] * 1e3:.2f}" for share in (0.5, 0.99))]
    table.add_row(name, *cells, f"{rate / peer:.2f}" if peer else "1.00")
    return rate


def on_files(options: Options, console: Console) -> None:
    batch = samples(options, lambda name: str(place("sql", "defog", "sqlite", f"{name}.sqlite")))
    table = Table(title=f"defog's files, {len(batch):,} samples, one core, in this process")
    for column in ("way", "samples/s", "p50 ms", "p99 ms", "ratio"):
        table.add_column(column)
    theirs, ours = [], []
    for _ in range(options.rounds):
        theirs.append(timed(published, batch))
        ours.append(timed(SqlVerifier(comparator="bird", empty="accept").verify, batch))
    verifier = SqlVerifier()
    default = [timed(verifier.verify, batch) for _ in range(options.rounds)]
    peer = line(table, "as BIRD's script runs it, unguarded", theirs)
    line(table, "SqlVerifier(comparator='bird', empty='accept')", ours, peer)
    line(table, "SqlVerifier()", default, peer)
    console.print(table)


def on_made_databases(options: Options, console: Console) -> None:
    schemas = {}
    for name in FILES:
        connection = sqlite3.connect(
            f"file:{place('sql', 'defog', 'sqlite', name)}.sqlite?mode=ro&immutable=1", uri=True
        )
        tables = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall()
        schemas[name] = ";\n".join(sql for (sql,) in tables)
        connection.close()
    batch = samples(options, lambda name: {"schema": schemas[name]})[: options.made * options.group]
    times = timed(SqlVerifier().verify, batch)
    first = [value for at, value in enumerate(times) if at % options.group == 0]
    rest = [value for at, value in enumerate(times) if at % options.group]
    table = Table(title=f"four databases made from a schema, {options.made} questions x {options.group}")
    for column in ("response", "samples/s", "p50 ms", "p99 ms", "ratio"):
        table.add_column(column)
    line(table, "first to a question", [first])
    line(table, "the others", [rest], len(first) / sum(first))
    console.print(table)


async def scaling(options: Options, console: Console) -> None:
    batch = samples(options, lambda name: str(place("sql", "defog", "sqlite", f"{name}.sqlite")))
    batch = (batch * (options.scaling // len(batch) + 1))[: options.scaling]
    table = Table(title="worker pool")
    for column in ("workers", f"samples/s of {len(batch):,}"):
        table.add_column(column)
    for workers in (1, 2):
        with Pool(workers=workers) as pool:
            scorer = VerifierScorer(SqlVerifier(), pool)
            await scorer.score(batch[:200])
            started = time.perf_counter()
            await scorer.score(batch)
            table.add_row(str(workers), f"{len(batch) / (time.perf_counter() - started):,.0f}")
    console.print(table)


def main() -> None:
    options = tyro.cli(Options, description=__doc__)
    console = Console(width=110)
    on_files(options, console)
    on_made_databases(options, console)
    if options.scaling:
        asyncio.run(scaling(options, console))


if __name__ == "__main__":
    main()
