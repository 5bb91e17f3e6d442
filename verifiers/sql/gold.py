"""The results of a reference's queries, found before any candidate runs, and kept for the next response.

Not covered: whether a reference is right.  What can be seen is refused: a query that fails, takes too long, or finds
nothing on any database, so that every query that finds nothing would match it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adjudge.verifiers.sql.comparator import Comparator
from adjudge.verifiers.sql.database import SqlReference, session, short
from adjudge.verifiers.sql.databases.statement import Dialect, Statement
from adjudge.verifiers.sql.engine import Engine, Fault, QueryLimits, Table
from adjudge.verifiers.sql.ties import tie_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """One accepted query's result on one database.

    Attributes:
        ordered: whether the order of its rows counts, where the comparator leaves that open.
        runs: a number for each row, equal for rows that may change places; None when each has its own place.
    """

    table: Table
    ordered: bool
    runs: list[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What candidates are compared with: the results of each accepted query on each open database."""

    reference: SqlReference
    comparator: Comparator
    databases: Sequence[Engine]
    golds: list[list[Gold]]

    @property
    def engine(self) -> Engine:
        """The first database's engine; all have one dialect."""
        return self.databases[0]


class GoldError(Exception):
    """A reference that gives nothing to compare with, and the reason code of that."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_REASONS = {
    "error": "gold_unparsable",
    "forbidden": "gold_unparsable",
    "timeout": "gold_timeout",
    "memory": "gold_timeout",
    "output": "gold_timeout",
    "lost": "engine_unavailable",
}


def gold_results(
    reference: SqlReference, databases: Sequence[Engine], comparator: Comparator, limits: QueryLimits, empty: str
) -> list[list[Gold]]:
    """Return the results of each accepted query on each database.

    The seconds of `limits` are for one query on all databases; `empty` says whether to "refuse" or "accept" one that
    finds nothing on any.

    Raises:
        GoldError: a query cannot be used.
    """
    results = []
    for query in reference.queries:
        left = limits.seconds
        golds = []
        for engine in databases:
            gold = _kept(query, engine, reference, comparator, replace(limits, seconds=max(left, 0.05)))
            if isinstance(gold, Fault):
                raise GoldError(_REASONS[gold.kind], f"the reference's query fails: {gold.text}")
            left -= gold.table.seconds
            golds.append(gold)
        if empty == "refuse" and not any(gold.table.tells for gold in golds):
            raise GoldError(
                "gold_unparsable",
                "the reference's query has no rows, or only NULL, on every database, so whatever finds nothing would "
                "match it; give a database on which it finds something, or set empty='accept'",
            )
        results.append(golds)
    return results


def _kept(
    query: str, engine: Engine, reference: SqlReference, comparator: Comparator, limits: QueryLimits
) -> Gold | Fault:
    # Seconds that are left differ from call to call; whoever needs more than was allowed before has failed by then.
    key = (engine.key, short(query), reference.ordered, comparator, limits.rows, limits.output_bytes)
    kept = session().results.get(key)
    if isinstance(kept, Gold):
        return kept
    gold = _fresh(query, engine, reference, comparator, limits)
    if isinstance(gold, Gold):
        session().results.put(key, gold, gold.table.size)
    return gold


def _fresh(
    query: str, engine: Engine, reference: SqlReference, comparator: Comparator, limits: QueryLimits
) -> Gold | Fault:
    sql = prepared(query, engine.dialect, comparator)
    statement = Statement(sql, engine.dialect)
    if not statement.is_query:
        return Fault("error", "it is not one query")
    table = engine.run(sql, limits)
    if isinstance(table, Fault):
        return table
    ordered = reference.ordered
    if ordered is None:
        ordered = "order by" in sql.lower() if comparator.sorted_by == "anywhere" else statement.sorts
    in_order = comparator.rows == "ordered" or (comparator.rows == "auto" and ordered)
    runs = tie_runs(engine, sql, table, limits) if in_order and comparator.ties == "free" else None
    return Gold(table=table, ordered=ordered, runs=runs)


def prepared(query: str, dialect: Dialect, comparator: Comparator) -> str:
    """Return a query as it is run: one semicolon at its end taken off, and DISTINCT where the comparator says so."""
    statement = Statement(Statement(query.strip(), dialect).trimmed, dialect)
    return statement.without_distinct() if comparator.distinct == "remove" else statement.text
