"""Databases made for a reference, on which wrong queries give other results than it does.

From a schema alone, several fillings are tried; kept are those on which the reference finds something and on which the
most mutants of it, that no kept one tells apart yet, give another result.  Everything follows from the schema and the
queries, so the same reference always has the same databases.

Like a SQLite file, they hold rows like the file's, changed where the reference looks, and keep the rules that the file
keeps (`databases.file_facts`), so that a query which is right for this data stays right, and one that merely coincides
with the reference gives itself away.  Dropped are those on which the reference has no clear answer: it fails, finds
nothing, finds NULL where it has none on the file, cuts through a tie, or picks more than one row where it picks one on
the file.

Not covered: engines other than SQLite, virtual tables, views that the reference's queries would change, and references
of which no tried database has a clear answer (those that need thousands of rows, or values that only the whole file
has).  The score's evidence says so.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from adjudge.verifiers.sql.comparator import Comparator
from adjudge.verifiers.sql.databases.aim import CandidateAim, aimed_rows, candidate_aim, rows_like
from adjudge.verifiers.sql.databases.column_draw import LookedAt
from adjudge.verifiers.sql.databases.file_facts import FileFacts, Row, file_facts
from adjudge.verifiers.sql.databases.mutants import all_parsed, mutants, parsed
from adjudge.verifiers.sql.databases.row_maker import RowMaker
from adjudge.verifiers.sql.databases.rows_like import RowsLike
from adjudge.verifiers.sql.databases.schema_shape import quoted, read_schema
from adjudge.verifiers.sql.databases.statement import Statement
from adjudge.verifiers.sql.engine import Engine, EngineOptions, Fault, QueryLimits, Table
from adjudge.verifiers.sql.sqlite_engine import SqliteEngine
from adjudge.verifiers.sql.ties import with_keys

if TYPE_CHECKING:
    from sqlglot import expressions as exp


_AGAIN: Final = 0.2
_FILLINGS: Final = 3  # fillings tried for each database wanted
# A clock would make the choice depend on the machine; two million instructions are some 20 ms.
STEPS: Final = QueryLimits(seconds=60.0, rows=20_000, output_bytes=4 << 20, steps=2_000)


_FOR_MUTANTS: Final = replace(STEPS, steps=200)  # there are many, and one that never ends tells nothing


def synthesise(given: dict[str, Any], queries: tuple[str, ...], options: EngineOptions) -> tuple[SqliteEngine, ...]:
    """Return databases, `options.synthetic` of them, that tell a reference from its mutants as well as those tried can.

    Where some of those tried have no LIMIT that goes through a tie, it is of them.

    Args:
        given: `{"schema": .., "values": ..}`, see `adjudge.verifiers.sql.databases.schema_shape`.
        queries: the accepted queries; the mutants are those of the first that sqlglot can read.
        options: how many databases, and how they are opened.

    Raises:
        SchemaError: the schema cannot be read.
    """
    schema = read_schema(given)
    seed = hashlib.sha256(json.dumps([given, queries], sort_keys=True, default=str).encode()).hexdigest()
    maker, judge = aimed_rows(schema, queries, seed, options.moment), _Clear(queries)
    tried: list[SqliteEngine] = []
    while len(tried) < _MAX_TRIES * options.synthetic:
        if len(tried) >= _FILLINGS * options.synthetic and sum(map(judge.suits, tried)) >= options.synthetic:
            break
        tried += [made(maker, number, options) for number in range(len(tried), len(tried) + options.synthetic)]
    clear = [engine for engine in tried if judge.cuts(engine)] or tried
    for engine in tried:
        if engine not in clear:
            engine.close()
    return best(clear, queries, options.synthetic)


def made(filler: RowMaker | RowsLike, number: int, options: EngineOptions) -> SqliteEngine:
    """Return an engine on database `number`."""
    return SqliteEngine.of_script(lambda connection: filler.fill(connection, number), options)


def best(
    tried: Sequence[SqliteEngine],
    queries: tuple[str, ...],
    count: int,
    known: Sequence[Table | Fault] = (),
    coincidences: Sequence[str] = (),
) -> tuple[SqliteEngine, ...]:
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
    return tuple([tried[at] for at in kept])


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


MAKING_SECONDS: Final = 5.0
"""Seconds of the processor after which no more databases are tried; 0.2 s is usual."""

_AIMING_SECONDS: Final = 1.0  # the same for one candidate; 0.03 s is usual
_AIMED: Final = 8  # databases aimed at one candidate
_TRIES: Final = 4  # databases tried for each one wanted
_MAX_TRIES: Final = 12  # where few suit
_SUITING: Final = 2  # of those, how many suitable ones the choice is made from
_COINCIDENCES: Final = 24
_WITNESSES: Final = 30  # rows of each table that make up the reference's result
# Twenty million instructions are some 0.2 s: on a large file a query for witnesses may need a whole scan.
_ON_FILE: Final = QueryLimits(seconds=60.0, rows=100_000, output_bytes=32 << 20, steps=20_000)


@dataclass(frozen=True, slots=True)
class _Studied:
    """What databases for a reference are made from."""

    facts: FileFacts
    known: list[Table | Fault]
    looked_at: LookedAt
    judge: _Clear
    coincidences: list[str]
    seed: str


@dataclass(frozen=True, slots=True)
class LikeFile:
    """What databases are made like, and for which reference.

    `stamp` changes when the file does; `options.variations` databases are made.
    """

    path: str
    stamp: tuple[int, ...]
    queries: tuple[str, ...]
    options: EngineOptions

    def aim_at(self, candidate: str) -> CandidateAim | None:
        """Return what a candidate looks at beyond the accepted queries, or None where that is nothing.

        Raises:
            SchemaError: the file's schema cannot be made again.
        """
        return candidate_aim(file_facts(self.path, self.stamp).schema, self.queries, candidate, self.options.moment)


@lru_cache(maxsize=8)
def _studied(like: LikeFile) -> _Studied:
    queries = like.queries
    until = time.thread_time() + MAKING_SECONDS
    facts = file_facts(like.path, like.stamp)
    file = SqliteEngine.of_file(like.path, like.options)
    try:
        known = [file.run(query, _ON_FILE) for query in queries]
        looked_at = _looked_at(file, facts, queries, known, until)
        judge = _Clear(queries, known, file)
        coincidences = _coincidences(file, facts, queries[0], known[0])
    finally:
        file.close()
    results = [table.rows if isinstance(table, Table) else table.kind for table in known]
    seed = hashlib.sha256(repr((queries, facts.schema.statements, results)).encode("utf-8", "replace")).hexdigest()
    return _Studied(facts, known, looked_at, judge, coincidences, seed)


def varied_engines(like: LikeFile) -> tuple[Engine, ...]:
    """Return databases like a file, as many as are wanted at most; none when no tried one has a clear answer.

    Raises:
        SchemaError: the file's schema cannot be made again.
    """
    until = time.thread_time() + MAKING_SECONDS
    studied, count = _studied(like), like.options.variations
    filler = rows_like(studied.facts, like.queries, studied.seed, like.options.moment, studied.looked_at)
    suiting: list[SqliteEngine] = []
    varied = False
    try:
        for number in range(_MAX_TRIES * count):
            if time.thread_time() > until or (number >= _TRIES * count and len(suiting) >= count):
                break
            engine = made(filler, number, like.options)
            if not studied.judge.suits(engine):
                engine.close()
                continue
            suiting.append(engine)
            varied = varied or studied.judge.differs(engine)
            if len(suiting) >= _SUITING * count and varied:
                break
    finally:
        filler.close()
    return best(suiting, like.queries, count, studied.known, studied.coincidences)


def aimed_engines(like: LikeFile, candidate: CandidateAim) -> tuple[Engine, ...]:
    """Return databases like a file, with rows that just meet or miss what a candidate's conditions are about.

    Raises:
        SchemaError: the file's schema cannot be made again.
    """
    studied = _studied(like)
    until = time.thread_time() + _AIMING_SECONDS
    seed = f"{studied.seed}:{candidate.seed}"
    filler = rows_like(studied.facts, like.queries, seed, like.options.moment, studied.looked_at, candidate)
    suiting: list[SqliteEngine] = []
    try:
        for number in range(_TRIES * _AIMED):
            if len(suiting) == _AIMED or time.thread_time() > until:
                break
            engine = made(filler, number, like.options)
            if studied.judge.suits(engine, new_nulls=candidate.sifts):
                suiting.append(engine)
            else:
                engine.close()
    finally:
        filler.close()
    return tuple(suiting)


def _looked_at(
    file: Engine, facts: FileFacts, queries: Sequence[str], known: Sequence[Table | Fault], until: float
) -> LookedAt:
    """Return the tables that the queries read, and rows of them that together make up results, as found until then."""
    reads = frozenset(name for table in known if isinstance(table, Table) for name in table.reads or ())
    witnesses: dict[str, dict[Row, None]] = {}
    for tree in all_parsed(queries):
        for name, asked in _witness_queries(tree, facts):
            if time.thread_time() > until:
                break
            table = file.run(asked, _ON_FILE)
            if isinstance(table, Table):
                found = [_readable(row) for row in table.rows if any(cell is not None for cell in row)]  # outer joins
                witnesses.setdefault(name, {}).update(dict.fromkeys(found))
    missed = [pair for tree in all_parsed(queries) for pair in _missed_queries(tree, facts)]
    answers = [(name, file.run(asked, _ON_FILE)) for name, asked in missed if time.thread_time() <= until]
    spared = frozenset(name for name, table in answers if isinstance(table, Table) and not table.rows)
    return LookedAt(reads=reads, spared=spared, witnesses={name: tuple(rows) for name, rows in witnesses.items()})


def _readable(row: Row) -> Row:
    """Return a row whose texts are UTF-8, as `file_facts` reads them: a SQLite file may hold any bytes."""
    return tuple(
        cell.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(cell, str) else cell
        for cell in row
    )


def _witness_queries(tree: exp.Expr, facts: FileFacts) -> list[tuple[str, str]]:
    """Return, for each table that a SELECT joins, the query for its rows that get through joins and conditions."""
    from sqlglot import expressions as exp

    asked = []
    for select in list(tree.find_all(exp.Select))[:8]:
        for table in _tables(select, facts):
            name = table.name.lower()
            alias = quoted(table.alias_or_name)
            columns = ", ".join(f"{alias}.{quoted(column.name)}" for column in facts.tables[name].shape.columns)
            bare = select.copy()
            for part in ("group", "having", "order", "limit", "offset", "distinct", "windows"):
                bare.set(part, None)
            order = select.args.get("order")
            if order is not None and not order.find(exp.AggFunc) and not select.args.get("group"):
                bare.set("order", order.copy())
            bare.set("expressions", [exp.Star()])
            text = bare.sql(dialect="sqlite").replace("*", columns, 1)
            asked.append((name, f"{text} LIMIT {_WITNESSES}"))
    return asked


def _missed_queries(tree: exp.Expr, facts: FileFacts) -> Iterator[tuple[str, str]]:
    """Yield columns that a query compares with constants alone, and the query for a row that a condition leaves out."""
    from sqlglot import exp

    for where in list(tree.find_all(exp.Where))[:8]:
        for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            bare = condition.transform(lambda one: exp.column(one.this.copy()) if isinstance(one, exp.Column) else one)
            names = {column.name.lower() for column in bare.find_all(exp.Column)}
            if len(names) != 1 or bare.find(exp.Select) or not bare.find(exp.Literal):
                continue
            for table in _tables(where.parent, facts) if isinstance(where.parent, exp.Select) else ():
                if names & {column.shape.name.lower() for column in facts.tables[table.name.lower()].columns}:
                    missed = f"SELECT 1 FROM {quoted(table.name)} WHERE NOT ({bare.sql(dialect='sqlite')}) LIMIT 1"
                    yield min(names), missed


def _coincidences(file: Engine, facts: FileFacts, query: str, known: Table | Fault) -> list[str]:
    """Return queries that ask for something else than a reference does and that the file does not tell from it."""
    tree = parsed(query)
    if tree is None or not isinstance(known, Table):
        return []
    same: list[str] = []
    for other in (*_other_aggregates(tree, facts), *_further_conditions(tree, facts)):
        table = file.run(other, _FOR_MUTANTS)
        if isinstance(table, Table) and table.rows == known.rows:
            same.append(other)
        if len(same) >= _COINCIDENCES:
            break
    return same


def _other_aggregates(tree: exp.Expr, facts: FileFacts) -> Iterator[str]:
    """Yield queries whose sums and counts take each value once, or take NULL for a value."""
    from sqlglot import exp

    columns = {column.shape.name.lower(): column for table in facts.tables.values() for column in table.columns}
    asked = [node for node in tree.find_all(exp.Sum, exp.Avg, exp.Count) if node.find(exp.Column) is not None]
    for number, node in enumerate(asked[:4]):
        column = node.find(exp.Column)
        values = columns[column.name.lower()].values if column is not None and column.name.lower() in columns else ()
        others = [value for value in (0, *values[:2]) if isinstance(value, int | float | str)]
        for value in (None, *others):
            copied = tree.copy()
            again = [other for other in copied.find_all(exp.Sum, exp.Avg, exp.Count) if other.find(exp.Column)][number]
            if value is not None and (inner := again.find(exp.Column)) is not None:
                inner.replace(exp.Coalesce(this=inner.copy(), expressions=[exp.convert(value)]))
            elif not isinstance(again.this, exp.Distinct):
                again.set("this", exp.Distinct(expressions=[again.this]))
            yield copied.sql(dialect="sqlite")


def _further_conditions(tree: exp.Expr, facts: FileFacts) -> Iterator[str]:
    """Yield queries with one more condition, on each column of the tables that they join."""
    from sqlglot import exp, parse_one

    if not isinstance(tree, exp.Select):
        return
    for table in _tables(tree, facts):
        for column in facts.tables[table.name.lower()].columns:
            values = sorted(column.values, key=lambda value: (isinstance(value, str), value))
            if len(values) < 2 or any(isinstance(value, bytes) for value in values):
                continue
            name = f"{quoted(table.alias_or_name)}.{quoted(column.shape.name)}"
            some = len(values) // 4
            edges = {">": values[0], ">=": values[some], "<=": values[-1 - some], "<": values[-1]}
            asked = [f"{name} {sign} {exp.convert(edge).sql(dialect='sqlite')}" for sign, edge in edges.items()]
            for condition in (*asked, f"{name} IS NOT NULL"):
                yield tree.where(parse_one(condition, read="sqlite")).sql(dialect="sqlite")


def _tables(select: exp.Select, facts: FileFacts) -> list[exp.Table]:
    """Return the tables of the file that a SELECT joins."""
    from sqlglot import exp

    sources = [select.args.get("from_") or select.args.get("from"), *(select.args.get("joins") or ())]
    tables = [source.this for source in sources if source is not None and isinstance(source.this, exp.Table)]
    return [table for table in tables if table.name.lower() in facts.tables]


class _Clear:
    """Whether the accepted queries have a clear answer on a database."""

    def __init__(self, queries: Sequence[str], known: Sequence[Table | Fault] = (), file: Engine | None = None) -> None:
        self._queries, self._known = queries, known
        self._cuts = [cut for query in queries for cut in _cuts(query) if file is None or _cut_is_clear(file, cut)]
        self._picks = [_picks(query) for query in queries]

    def suits(self, engine: Engine, *, new_nulls: bool = False) -> bool:
        """Return whether it is so; NULL where the file gives none is not clear unless a candidate looks for it."""
        for query, known, picks in itertools.zip_longest(self._queries, self._known, self._picks):
            table = engine.run(query, STEPS)
            if not isinstance(table, Table) or not table.tells:
                return False
            if not isinstance(known, Table):
                continue
            if picks and len(known.rows) == 1 and len(table.rows) != 1:
                return False
            whole = [None not in column for column in zip(*known.rows, strict=True)]
            new = [None in column for column in zip(*table.rows, strict=True)]
            if not new_nulls and any(before and now for before, now in zip(whole, new, strict=False)):
                return False
        return self.cuts(engine)

    def cuts(self, engine: Engine) -> bool:
        """Return whether no LIMIT goes through a tie, but for those that do so on the file."""
        return all(_cut_is_clear(engine, cut) for cut in self._cuts)

    def differs(self, engine: Engine) -> bool:
        """Return whether the first query has another answer than on the file."""
        known, table = self._known[0], engine.run(self._queries[0], STEPS)
        return not isinstance(known, Table) or (isinstance(table, Table) and table.rows != known.rows)


Cut = tuple[str, int, int, int]
"""A sorted query with its keys, how many columns it has without them, and where it is cut: the rows from and to."""


def _cuts(query: str) -> list[Cut]:
    """Return the sorted queries in a query that LIMIT cuts."""
    from sqlglot import expressions as exp

    tree = parsed(query)
    cuts = []
    for select in tree.find_all(exp.Select) if tree is not None else ():
        limit, offset = select.args.get("limit"), select.args.get("offset")
        if limit is None or not select.args.get("order"):
            continue
        numbers = [part.expression.name if part is not None else "0" for part in (offset, limit)]
        if not all(number.isdigit() and len(number) < 5 for number in numbers):
            continue
        start, end = int(numbers[0]), int(numbers[0]) + int(numbers[1])
        bare = select.copy()
        bare.set("offset", None)
        bare.set("limit", exp.Limit(expression=exp.Literal.number(end + 1)))
        ordered = len(select.args["order"].expressions)
        if (asked := with_keys(bare.sql(dialect="sqlite"), "sqlite")) is not None:
            cuts.append((asked, ordered, start, end))
    return cuts


def _cut_is_clear(engine: Engine, cut: Cut) -> bool:
    """Return whether the rows that a LIMIT leaves out differ in their keys from those that it takes, none NULL."""
    asked, keys, start, end = cut
    table = engine.run(asked, STEPS)
    if not isinstance(table, Table):
        return True  # it needs what stands around it
    sorted_by = [row[-keys:] for row in table.rows]
    edges = [(sorted_by[at - 1], sorted_by[at]) for at in (start, end) if 0 < at < len(sorted_by)]
    return all(one != other for one, other in edges) and not any(None in key for key in sorted_by[start:end])


def _picks(query: str) -> bool:
    """Return whether a query asks for what is largest or smallest."""
    from sqlglot import expressions as exp

    tree = parsed(query)
    return tree is not None and any(
        node.find_ancestor(exp.Subquery, exp.CTE) is not None or isinstance(node, exp.Window)
        for node in tree.find_all(exp.Min, exp.Max, exp.Window)
    )
