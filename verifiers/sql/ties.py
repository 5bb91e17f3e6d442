"""Which rows of a sorted result could stand in another order: those that its ORDER BY leaves equal.

The query is run once more with its sorting keys as further columns; rows with equal keys form one run.  When that
cannot be done (an expression that cannot be selected), each row has a place of its own.

Not covered: LIMIT.  When the last row within it ties with the first one outside, both are right answers and only the
reference's counts: sort by a further key.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from adjudge.verifiers.sql.databases.statement import Dialect, Statement
from adjudge.verifiers.sql.engine import NAN, Engine, QueryLimits, Row, Table

if TYPE_CHECKING:
    from sqlglot import expressions as exp

_KEY = "adjudge_key_"


def tie_runs(engine: Engine, sql: str, gold: Table, limits: QueryLimits) -> list[int] | None:
    """Return a number for each row of a result, equal for rows that tie, or None when it cannot be found out."""
    if len(gold.rows) < 2:
        return None
    asked = with_keys(sql, engine.dialect)
    if asked is None:
        return None
    keyed = engine.run(asked, limits)
    row_keys = _keys(gold, keyed) if isinstance(keyed, Table) else None
    if row_keys is None:
        return None
    runs, run, before = [], 0, row_keys[0]
    for keys in row_keys:
        if keys != before or NAN in keys:
            run, before = run + 1, keys
        runs.append(run)
    return runs


def _keys(gold: Table, keyed: Table) -> list[Row] | None:
    """Return the keys of each row; rows that tie may stand in another order beside them, if each has its own keys."""
    width = len(gold.columns)
    bare = [row[:width] for row in keyed.rows]
    if bare == gold.rows:
        return [row[width:] for row in keyed.rows]
    keys = {row[:width]: row[width:] for row in keyed.rows}
    if Counter(bare) != Counter(gold.rows) or any(keys[row[:width]] != row[width:] for row in keyed.rows):
        return None
    return [keys[row] for row in gold.rows]


def turned(engine: Engine, sql: str, table: Table, limits: QueryLimits) -> Table:
    """Return a result with the rows that its query leaves equal in reverse; all of them where it nowhere sorts.

    An engine may give such rows in any order, and mostly gives them in one: that in which it stores or groups them.
    """
    if not Statement(sql, engine.dialect).mentions_order:
        return replace(table, rows=table.rows[::-1])
    runs = tie_runs(engine, sql, table, limits)
    if runs is None:
        return table
    parts = [list(part) for _, part in groupby(zip(runs, table.rows, strict=True), key=lambda pair: pair[0])]
    return replace(table, rows=[row for part in parts for _, row in reversed(part)])


def with_keys(sql: str, dialect: Dialect) -> str | None:
    """Return the query with what it is sorted by as further columns, or None."""
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read=dialect)
        if isinstance(tree, exp.SetOperation) and tree.args.get("order"):
            tree = _wrapped(tree)
        order = tree.args.get("order")
        if not isinstance(tree, exp.Select) or order is None:
            return None
        outputs = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
        for number, item in enumerate(order.expressions):
            key = item.this
            if isinstance(key, exp.Literal) and key.is_int:
                at = int(key.name) - 1
                if any(isinstance(column, exp.Star) or column.is_star for column in tree.expressions[: at + 1]):
                    return None
                key = tree.expressions[at].unalias()
            tree = tree.select(exp.alias_(_resolved(key, outputs), f"{_KEY}{number}"), copy=False)
        return tree.sql(dialect=dialect)
    except (SqlglotError, RecursionError, IndexError):
        return None


def _wrapped(union: exp.SetOperation) -> exp.Select:
    """Return a sorted set operation as a SELECT from it, with its columns by name."""
    from sqlglot import expressions as exp

    inner = union.copy()
    moved = {part: inner.args.get(part) for part in ("with_", "with", "order", "limit", "offset")}
    for part in moved:
        inner.set(part, None)
    order = moved["order"]
    for item in order.expressions if order is not None else ():
        if isinstance(item.this, exp.Literal) and item.this.is_int:
            name = inner.named_selects[int(item.this.name) - 1]
            if name in ("", "*"):
                raise IndexError("the column has no name")
            item.set("this", exp.column(name, quoted=True))
    outer = exp.select(exp.Star()).from_(inner.subquery("adjudge_union"))
    for part, value in moved.items():
        outer.set(part, value)
    return outer


def _resolved(key: exp.Expr, outputs: dict[str, exp.Expr]) -> exp.Expr:
    """Return a sorting key without the names that the query gives its columns.

    Alone such a name is the query's; in an expression a table's column of that name comes first.
    """
    from sqlglot import expressions as exp

    whole = isinstance(key, exp.Column)

    def meant(node: exp.Expr) -> exp.Expr:
        given = outputs.get(node.name.lower()) if isinstance(node, exp.Column) and not node.table else None
        if given is None or not (whole or _unnamed(given, node.name.lower())):
            return node
        return given.copy() if whole else exp.paren(given.copy())

    resolved = key.copy().transform(meant)
    folded = isinstance(resolved, exp.Collate) and resolved.expression.name.lower() == "nocase"
    return exp.Lower(this=resolved.this) if folded else resolved


def _unnamed(given: exp.Expr, name: str) -> bool:
    from sqlglot import expressions as exp

    return all(column.name.lower() != name for column in given.find_all(exp.Column))
