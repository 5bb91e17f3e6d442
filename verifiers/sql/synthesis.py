"""Databases made from a schema, chosen so that wrong queries give other results than the reference.

Several fillings are tried; kept are those on which the reference finds something and on which the most mutants of it,
that no kept one tells apart yet, give another result.  Everything follows from the schema and the queries, so the same
reference always has the same databases.

Not covered: engines other than SQLite, and views that the reference's queries would change.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, Final

from adjudge.verifiers.sql.cells import Table
from adjudge.verifiers.sql.comparator import Comparator
from adjudge.verifiers.sql.databases.aim import aimed_rows
from adjudge.verifiers.sql.databases.mutants import all_parsed, mutants
from adjudge.verifiers.sql.databases.row_maker import RowMaker
from adjudge.verifiers.sql.databases.rows_like import RowsLike
from adjudge.verifiers.sql.databases.schema_shape import read_schema
from adjudge.verifiers.sql.databases.statement import Statement
from adjudge.verifiers.sql.engine import EngineOptions, Fault, QueryLimits
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine

_AGAIN: Final = 0.2
_TRIES: Final = 3  # fillings tried for each database wanted
# A clock would make the choice depend on the machine; two million instructions are some 20 ms.
STEPS: Final = QueryLimits(seconds=60.0, rows=20_000, output_bytes=4 << 20, steps=2_000)


_FOR_MUTANTS: Final = replace(STEPS, steps=200)  # there are many, and one that never ends tells nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Databases made for a reference.

    Attributes:
        engines: one for each database.
        mutants: how many changed queries were tried against them.
        told_apart: how many of those give another result on at least one database.
    """

    engines: tuple[SqliteEngine, ...]
    mutants: int
    told_apart: int


def synthesise(given: dict[str, Any], queries: tuple[str, ...], options: EngineOptions) -> Synthesis:
    """Return databases, `options.synthetic` of them, that tell a reference from its mutants as well as those tried can.

    Args:
        given: `{"schema": .., "values": ..}`, see `adjudge.verifiers.sql.databases.schema_shape`.
        queries: the accepted queries; the mutants are those of the first that sqlglot can read.
        options: how many databases, and how they are opened.

    Raises:
        SchemaError: the schema cannot be read.
    """
    schema = read_schema(given)
    seed = hashlib.sha256(json.dumps([given, queries], sort_keys=True, default=str).encode()).hexdigest()
    maker = aimed_rows(schema, queries, seed, options.moment)
    tried = [made(maker, number, options) for number in range(_TRIES * options.synthetic)]
    return best(tried, queries, options.synthetic)


def made(filler: RowMaker | RowsLike, number: int, options: EngineOptions) -> SqliteEngine:
    """Return an engine on database `number`."""
    return SqliteEngine.of_script(lambda connection: filler.fill(connection, number), options)


def best(
    tried: Sequence[SqliteEngine],
    queries: tuple[str, ...],
    count: int,
    known: Sequence[Table | Fault] = (),
    coincidences: Sequence[str] = (),
) -> Synthesis:
    """Return the `count` databases that together tell the first query from most of its mutants; close the others.

    Databases should differ from `known`, results of the queries, and from each other: who writes one of those down is
    then wrong elsewhere.  `coincidences` are further queries to tell the first one from.
    """
    wrong = [*(mutant for tree in all_parsed(queries)[:1] for mutant in mutants(tree)), *coincidences]
    aims = [_reached(engine, queries, wrong, known) for engine in tried]
    kept: list[int] = []
    reached: Counter[Hashable] = Counter()
    for _ in range(min(count, len(tried))):
        left = [at for at in range(len(tried)) if at not in kept]
        # What is told apart already may be so again, for wrong answers that are near it, but counts for less.
        chosen = max(left, key=lambda at: (fsum(_worth(aim) * _AGAIN ** reached[aim] for aim in aims[at]), -at))
        kept.append(chosen)
        reached.update(aims[chosen])
    for at, engine in enumerate(tried):
        if at not in kept:
            engine.close()
    told = sum(isinstance(aim, int) and aim >= 0 for aim in reached)
    return Synthesis(engines=tuple([tried[at] for at in kept]), mutants=len(wrong), told_apart=told)


def _worth(aim: Hashable) -> float:
    """Return what one more thing that a database is good for counts: another result more than any mutant."""
    return 10.0 if isinstance(aim, str) else 1.0


def _reached(
    engine: SqliteEngine, queries: tuple[str, ...], wrong: list[str], known: Sequence[Table | Fault]
) -> frozenset[Hashable]:
    """Return what a database is good for.

    The mutants that it tells apart; as -1, -2, ... the queries with rows; and results that no known one equals.
    """
    golds = [engine.run(query, STEPS) for query in queries]
    reached: set[Hashable] = {-1 - at for at, gold in enumerate(golds) if isinstance(gold, Table) and gold.tells}
    gold = golds[0]
    if not isinstance(gold, Table) or not gold.rows:
        return frozenset(reached)
    if known and isinstance(known[0], Table) and gold.rows != known[0].rows:
        reached.add(repr(gold.rows[:20]))
    comparator, ordered = Comparator(), Statement(queries[0], "sqlite").sorts
    for at, other in enumerate(wrong):
        table = engine.run(other, _FOR_MUTANTS)
        # A mutant that does not run is not a wrong answer that anybody would be paid for.
        if isinstance(table, Table) and comparator.difference(gold, table, ordered=ordered) is not None:
            reached.add(at)
    return frozenset(reached)
