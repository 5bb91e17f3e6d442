"""The SQL verifier: does a response's query give the results that an accepted query gives?

The reference runs first, then the candidate, each on the same read-only databases; results are compared by an explicit
policy (`adjudge.verifiers.sql.comparator`), on all databases of the reference, and then on databases made like its
SQLite file (`adjudge.verifiers.sql.variation`).  The response's text decides nothing but which query is run.

The parts "schema" and "ngrams" are those of the reward of Reasoning-SQL: the Jaccard indices of the tables and columns
that two queries name, and of their runs of tokens.

Not covered: whether a query would be right on other data than databases of DuckDB and PostgreSQL hold.  Give several of
them.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.extras import install_hint
from adjudge.options import Range, named
from adjudge.protocol import Limits, Sample, Score, response_text
from adjudge.responses.answer_span import shorten
from adjudge.scoring.verifier_base import TextVerifier
from adjudge.verifiers.sql.comparator import Comparator
from adjudge.verifiers.sql.comparator import comparator as named_comparator
from adjudge.verifiers.sql.database import (
    SqlReference,
    aimed_databases,
    open_databases,
    read_reference,
    varied_databases,
)
from adjudge.verifiers.sql.databases.statement import Dialect, Statement, tokens
from adjudge.verifiers.sql.engine import Engine, EngineOptions, EngineUnavailableError, Fault, QueryLimits, Table
from adjudge.verifiers.sql.extraction import find_query
from adjudge.verifiers.sql.gold import GoldError, Target, gold_results, prepared
from adjudge.verifiers.sql.rewards import NEEDS_ALL_RESULTS, REWARDS, Judgement, cost_ratio
from adjudge.verifiers.sql.ties import turned
from adjudge.verifiers.sql.variation import MAKING_SECONDS

_OWN: Final = ("pg_", "sqlite_", "duckdb_", "pragma_")
MAX_PARSED: Final = 8_000  # characters; sqlglot's time on nested brackets grows faster than the text


@dataclass(frozen=True, slots=True)
class SchemaItems:
    """The tables and columns that a query names, in lower case; names of its own WITH parts are left out."""

    tables: frozenset[str]
    columns: frozenset[str]


def schema_items(sql: str, dialect: Dialect) -> SchemaItems | None:
    """Return what a query names, or None when it cannot be parsed."""
    if len(sql) > MAX_PARSED:
        return None
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    own = {part.alias_or_name.lower() for part in tree.find_all(exp.CTE)}
    named = [
        table for table in tree.find_all(exp.Table) if table.db.lower() not in ("information_schema", "pg_catalog")
    ]
    tables = {table.name.lower() for table in named if table.name}
    columns = {column.name.lower() for column in tree.find_all(exp.Column) if column.name}
    return SchemaItems(frozenset(tables - own), frozenset(columns))


def names_a_table(sql: str, dialect: Dialect) -> bool:
    """Return whether a query names a table that is not the engine's own; in doubt, whether it has a FROM at all."""
    items = schema_items(sql, dialect)
    if items is None:
        return any(token.upper in ("FROM", "JOIN", "TABLE") for token in tokens(sql, dialect))
    return any(not name.startswith(_OWN) for name in items.tables)


def jaccard(one: Set[object], two: Set[object]) -> float:
    """Return the size of the intersection as a share of the union, in [0, 1]; 1 when both are empty."""
    union = one | two
    return len(one & two) / len(union) if union else 1.0


def schema_similarity(gold: str, candidate: str, dialect: Dialect) -> float:
    """Return the Jaccard index of the tables and columns that two queries name; 0 when one cannot be parsed."""
    one, two = schema_items(gold, dialect), schema_items(candidate, dialect)
    if one is None or two is None:
        return 0.0
    return jaccard(_marked(one), _marked(two))


def ngram_similarity(gold: str, candidate: str, dialect: Dialect, n: int = 2) -> float:
    """Return the Jaccard index of the runs of `n` tokens of two queries; words count without case."""
    return jaccard(_ngrams(gold, dialect, n), _ngrams(candidate, dialect, n))


def _marked(items: SchemaItems) -> frozenset[object]:
    return frozenset([("table", name) for name in items.tables] + [("column", name) for name in items.columns])


def _ngrams(sql: str, dialect: Dialect, n: int) -> frozenset[object]:
    words = [token.name or token.text for token in tokens(sql, dialect) if token.text != ";"]
    if len(words) < n:
        return frozenset([tuple(words)]) if words else frozenset()
    return frozenset(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


_SHOWN = 500
_REASONS = {
    "error": "candidate_error",
    "forbidden": "tampering",
    "timeout": "candidate_timeout",
    "memory": "candidate_memory",
    "output": "candidate_output",
    "lost": "candidate_crash",
}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True, kw_only=True)
class SqlVerifier(TextVerifier[Target, tuple[str, str]]):
    """1 when the response's query gives the reference's results on every database, else 0.

    The reference is `{"sql": accepted query or list, "database": file, list of files, DSN, or {"schema": .., "values":
    ..}}`; optional `ordered` (whether the order of rows counts) and `comparator` (a name, or a mapping of options).

    Attributes:
        comparator: how results are compared where the reference does not say: a name of
            `adjudge.verifiers.sql.comparator.POLICIES` or a mapping of options.
        reward: what the score is made of; see `adjudge.verifiers.sql.rewards.REWARDS`.
        blocks: of several different SQL blocks the last counts ("last"), or they commit to none ("same").
        empty: a reference that finds nothing (no rows, or only NULL) on every database is refused ("refuse"), or
            judged like any other ("accept").
        constants: a query that reads no table, where the reference reads one, is worth 0 ("refuse") or judged by its
            result ("accept").
        seconds: seconds for the reference, and as many for the candidate, over all databases.
        rows: most rows of one result.
        output_mb: most MiB of one result.
        memory_mb: MiB for the engine, where it can be told.
        moment: what SQLite's clock shows, in UTC.
        folder: where relative paths of databases start.
        synthetic: how many databases are made from a schema.
        variations: how many databases are made like the reference's SQLite file, to judge the queries that are right
            there; 0 judges on the file alone, as published metrics do.
        cost: what "r_ves" compares: "steps" of SQLite's machine, the same everywhere, or "seconds", as published.
        iterations: how often each query is timed for `cost="seconds"`; the published number is 100.
        parts: also give the parts "schema" and "ngrams", the Jaccard indices of what the queries name and say.
    """

    name: ClassVar[str] = "sql"
    version: ClassVar[str] = "9"

    comparator: str | Mapping[str, Any] = "default"
    reward: str = "execution"
    blocks: Literal["last", "same"] = "last"
    empty: Literal["refuse", "accept"] = "refuse"
    constants: Literal["refuse", "accept"] = "refuse"
    seconds: Annotated[float, Range(ge=0.05, le=600)] = 5.0
    rows: Annotated[int, Range(ge=1, le=10_000_000)] = 100_000
    output_mb: Annotated[int, Range(ge=1, le=4096)] = 32
    memory_mb: Annotated[int, Range(ge=1, le=65_536)] = 512
    moment: str = "2025-01-01 00:00:00"
    folder: str = ""
    synthetic: Annotated[int, Range(ge=1, le=32)] = 4
    variations: Annotated[int, Range(ge=0, le=32)] = 6
    cost: Literal["steps", "seconds"] = "steps"
    iterations: Annotated[int, Range(ge=1, le=1000)] = 10
    parts: bool = False

    unavailable: ClassVar[tuple[type[Exception], ...]] = (EngineUnavailableError, GoldError)

    def __post_init__(self) -> None:
        super().__post_init__()
        named(REWARDS, self.reward, "reward of sql")
        if not _MOMENT.fullmatch(self.moment):
            raise ValueError(f"sql option moment={self.moment!r}; write it like 2025-01-01 00:00:00")
        if isinstance(self.comparator, Mapping):
            object.__setattr__(self, "comparator", dict(self.comparator))
        named_comparator(self.comparator)  # type: ignore[arg-type]
        if importlib.util.find_spec("sqlglot") is None:
            raise ValueError(f"the sql scorer parses references with sqlglot, and it is missing; {install_hint('sql')}")

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # of the class elsewhere; here the options decide
        """What one call may use: the reference, the candidate, making databases, and what stands around them."""
        return Limits(seconds=2 * self.seconds + MAKING_SECONDS + 5.0, memory_mb=self.memory_mb + 1024)

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference; no database is opened."""
        reference = read_reference(sample.reference, self.folder)
        if self.reward == "r_ves" and self.cost == "steps":
            other = [item.kind for item in reference.databases if item.kind in ("duckdb", "postgres")]
            if other:
                raise ValueError(
                    f"sql: only SQLite counts its steps, and the database is {other[0]}; set cost='seconds'"
                )

    def warm_up(self) -> None:
        """Load what references need, before workers are forked and outside any sample's time."""
        from sqlglot import expressions, optimizer, parse_one  # noqa: F401 their import takes a quarter of a second

        parse_one("SELECT 1", read="sqlite").sql(dialect="sqlite")

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return what a response is worth whose query had to be killed: as much as any that fails to run."""
        judgement = Judgement(stage="run", reason=reason, response=response_text(sample))
        return Score.scored(REWARDS[self.reward](judgement), reason, stage="run")

    @cached_property
    def engine_options(self) -> EngineOptions:
        """How databases are opened."""
        return EngineOptions(
            moment=self.moment, memory_mb=self.memory_mb, synthetic=self.synthetic, variations=self.variations
        )

    @cached_property
    def query_limits(self) -> QueryLimits:
        """What the reference, and what the candidate, may use."""
        return QueryLimits(seconds=self.seconds, rows=self.rows, output_bytes=self.output_mb << 20)

    @cached_property
    def own_comparator(self) -> Comparator:
        """How results are compared where the reference does not say."""
        return named_comparator(self.comparator)  # type: ignore[arg-type]

    def read_reference(self, reference: Any) -> Target:
        """Return what candidates are compared with: the results of the accepted queries."""
        return self.target(read_reference(reference, self.folder))

    def nothing(self, reason: str, sample: Sample, gold: Target) -> Score:
        """Return the score of a response without a query."""
        return self._worth(Judgement(stage="extract", reason=reason, response=response_text(sample)), gold)

    def find_in(self, text: str, sample: Sample, gold: Target) -> tuple[str, str] | Score:
        """Return the query, and the whole response."""
        query = find_query(text, gold.engine.dialect, self.blocks)
        return self.nothing(query.problem, sample, gold) if query.problem else (query.sql, response_text(sample))

    def judge(self, answer: tuple[str, str], gold: Target) -> Score:
        """Return the score of a query; see the class for what it is made of."""
        judgement = self._judged(*answer, gold)
        return judgement if isinstance(judgement, Score) else self._worth(judgement, gold)

    def _worth(self, judgement: Judgement, target: Target) -> Score:
        value = REWARDS[self.reward](judgement)
        evidence = {"stage": judgement.stage, **judgement.evidence}
        if judgement.query:
            evidence["query"] = shorten(judgement.query, _SHOWN)
        parts = self._parts(target, judgement) if self.parts else {}
        return Score(value=value, reason="" if judgement.right else judgement.reason, evidence=evidence, parts=parts)

    def target(self, read: SqlReference) -> Target:
        """Return what candidates are compared with.

        Raises:
            EngineUnavailableError: a database cannot be opened or reached.
            GoldError: an accepted query cannot be used.
        """
        comparator = read.comparator or self.own_comparator
        for attempt in (1, 2):
            databases = open_databases(read, self.engine_options)
            try:
                golds = gold_results(read, databases, comparator, self.query_limits, self.empty)
            except GoldError as error:
                if error.reason == "engine_unavailable" and attempt == 1:
                    continue  # a connection that was cut since the last sample is opened anew
                raise
            break
        return Target(reference=read, comparator=comparator, databases=databases, golds=golds)

    def _judged(self, query: str, response: str, target: Target) -> Judgement | Score:
        """Return how far a query came, or a failed score when the engine was lost."""
        dialect = target.engine.dialect
        statement = Statement(query, dialect)
        blank = Judgement(stage="refused", query=query, response=response)
        if statement.intruder:
            return replace(blank, reason="tampering", evidence={"error": f"{statement.intruder} is not a query"})
        if not statement.is_query:
            several = len(statement.parts) > 1
            return replace(
                blank,
                reason="several_answers" if several else "candidate_error",
                evidence={"error": "several statements" if several else "the text is not a query"},
            )
        sql = prepared(query, dialect, target.comparator)
        tables = self._results(sql, target.databases, self.seconds)
        if isinstance(tables, Fault) and tables.kind == "lost":
            # Once more on a new connection; whether the query or somebody else cut the old one is seen by that.
            try:
                target = self.target(target.reference)
            except (EngineUnavailableError, GoldError) as error:
                return Score.failed("engine_unavailable", error=str(error))
            tables = self._results(sql, target.databases, self.seconds)
        if isinstance(tables, Fault):
            return _faulty(blank, tables)
        return self._compared(replace(blank, query=sql), target, tables)

    def _results(self, sql: str, databases: Sequence[Engine], seconds: float) -> list[Table] | Fault:
        """Return the candidate's result on each database."""
        tables = []
        for engine in databases:
            if seconds <= 0:
                return Fault("timeout", "out of time")
            table = engine.run(sql, replace(self.query_limits, seconds=seconds))
            if isinstance(table, Fault):
                return table
            seconds -= table.seconds
            tables.append(table)
        return tables

    def _more(self, sql: str, target: Target, evidence: dict[str, Any]) -> Iterator[Target]:
        """Yield the target on databases made like the file, then on those aimed at the candidate."""
        for aimed in (False, True):
            if aimed:
                databases = aimed_databases(target.reference, self.engine_options, sql)
            else:
                databases, unmade = varied_databases(target.reference, self.engine_options)
                if unmade:
                    evidence["unvaried"] = unmade
            if databases or not aimed:
                evidence["aimed" if aimed else "made"] = len(databases)
            golds = gold_results(target.reference, databases, target.comparator, self.query_limits, "accept")
            yield replace(target, databases=databases, golds=golds)

    def _turned(self, sql: str, made: Target, tables: list[Table]) -> tuple[Target, list[Table]]:
        """Return made databases, and results on them with rows in reverse whose order the query leaves open.

        These are the databases where the order counts, the reference's ties are known, and something changes.
        """
        over: dict[int, Table] = {}
        for at, (engine, table) in enumerate(zip(made.databases, tables, strict=True)):
            if all(accepted[at].runs is not None for accepted in made.golds):
                other = turned(engine, sql, table, self.query_limits)
                if other.rows != table.rows:
                    over[at] = other
        golds = [[accepted[at] for at in over] for accepted in made.golds]
        return replace(made, databases=[made.databases[at] for at in over], golds=golds), list(over.values())

    def _compared(self, blank: Judgement, target: Target, tables: list[Table]) -> Judgement:
        evidence: dict[str, Any] = {"databases": len(tables), "rows": [len(table.rows) for table in tables]}
        if self.constants == "refuse" and _reads_nothing(blank.query, target, tables):
            evidence["error"] = "the query reads no table, and the reference reads one"
            return replace(blank, reason="tampering", evidence=evidence)
        shaped = self.reward in NEEDS_ALL_RESULTS
        right, first = _agreeing(target, tables)
        if right or shaped:
            left = self.seconds - sum(table.seconds for table in tables)
            for made in self._more(blank.query, target, evidence):
                more = self._results(blank.query, made.databases, left)
                if isinstance(more, Fault):
                    return _faulty(blank, more)
                left -= sum(table.seconds for table in more)
                other, turned_over = self._turned(blank.query, made, more)
                golds = zip(target.golds, made.golds, other.golds, strict=True)
                target = replace(target, golds=[[*a, *b, *c] for a, b, c in golds])
                tables = [*tables, *more, *turned_over]
                right, first = _agreeing(target, tables)
                if not right:
                    break
        kept = tuple(
            tuple((gold.table, table) for gold, table in zip(accepted, tables, strict=True))
            for accepted in (target.golds if shaped else ())
        )
        if right:
            ratio = 0.0
            if self.reward == "r_ves":
                ratio = evidence["ratio"] = self._ratio(target.reference.queries[right[0]], blank.query, target)
            return replace(blank, stage="match", pairs=kept, ratio=ratio, evidence=evidence | {"accepted": right[0]})
        reason = "too_complex" if first.get("difference") == "too_complex" else "wrong"
        return replace(blank, stage="compare", reason=reason, pairs=kept, evidence=evidence | first)

    def _ratio(self, gold: str, candidate: str, target: Target) -> float:
        sql = prepared(gold, target.engine.dialect, target.comparator)
        return cost_ratio(sql, candidate, target.databases, self.query_limits, self.cost, self.iterations)

    def _parts(self, target: Target, judgement: Judgement) -> dict[str, Score]:
        """Return the similarities to the accepted query that is nearest."""
        if not judgement.query:
            return {"schema": Score.scored(0.0, "no_answer"), "ngrams": Score.scored(0.0, "no_answer")}
        golds, dialect = target.reference.queries, target.engine.dialect
        return {
            "schema": Score.scored(max(schema_similarity(gold, judgement.query, dialect) for gold in golds)),
            "ngrams": Score.scored(max(ngram_similarity(gold, judgement.query, dialect) for gold in golds)),
        }


def _faulty(blank: Judgement, fault: Fault) -> Judgement:
    """Return what is known of a query that has no result."""
    stage: Literal["refused", "run"] = "refused" if fault.kind == "forbidden" else "run"
    return replace(blank, stage=stage, reason=_REASONS[fault.kind], evidence={"error": shorten(fault.text, _SHOWN)})


def _agreeing(target: Target, tables: list[Table]) -> tuple[list[int], dict[str, Any]]:
    """Return which accepted queries give the same results on all databases, and the first difference."""
    right: list[int] = []
    first: dict[str, Any] = {}
    for number, accepted in enumerate(target.golds):
        for at, (gold, table) in enumerate(zip(accepted, tables, strict=True)):
            difference = target.comparator.difference(gold.table, table, ordered=gold.ordered, runs=gold.runs)
            if difference is not None:
                first = first or {"difference": difference.kind, "detail": difference.text, "database": at}
                break
        else:
            right.append(number)
    return right, first


def _reads_nothing(sql: str, target: Target, tables: list[Table]) -> bool:
    """Whether a query reads no table although the reference does."""
    gold = target.golds[0][0].table
    if gold.reads is not None and tables[0].reads is not None:
        return bool(gold.reads) and not tables[0].reads
    dialect = target.engine.dialect
    return names_a_table(target.reference.queries[0], dialect) and not names_a_table(sql, dialect)
