"""Queries that differ from a reference in one place, as wrong answers do; and the constants it compares columns with.

Not covered: mutants that mean the same as the reference.  No database tells those apart, so a share below 1 proves
nothing.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlglot import expressions as exp

MAX_MUTANTS: Final = 40
OTHER: Final = "ab"
"""What stands beyond a part of a text that is looked at."""

# Formats and modifiers of date functions: '%Y', '-7 days', 'start of month'.
_MODIFIER: Final = re.compile(r"%[A-Za-z]|[+-]\d|\d+ \w+s?$|start of|weekday|localtime$|utc$", re.IGNORECASE)


def parsed(sql: str) -> exp.Expr | None:
    """Return the tree of a SQLite query, or None when sqlglot cannot read it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError):
        return None


def all_parsed(queries: Sequence[str]) -> list[exp.Expr]:
    """Return the trees of those queries that sqlglot can read."""
    return [tree for tree in map(parsed, queries) if tree is not None]


def mutants(tree: exp.Expr) -> list[str]:
    """Return up to `MAX_MUTANTS` texts, each the query with one change; none of one nested too deeply to be written."""
    base = _written(tree)
    texts: dict[str, None] = {}
    for at, original in enumerate(tree.walk()):
        for change in range(3 if base and _changeable(original) else 0):  # a copy of a long query takes 0.1 s
            copied = tree.copy()
            node = next(node for number, node in enumerate(copied.walk()) if number == at)
            other = _changed(node, change)
            if other is None:
                break
            if node is copied:
                copied = other
            elif other is not node:
                node.replace(other)
            text = _written(copied)
            if text not in ("", base):
                texts[text] = None
            if len(texts) >= MAX_MUTANTS:
                return list(texts)
    return list(texts)


def _written(tree: exp.Expr) -> str:
    """Return the text of a query; "" for one that is nested too deeply to be written."""
    try:
        return tree.sql(dialect="sqlite")
    except RecursionError:
        return ""


def _changeable(node: exp.Expr) -> bool:
    """Return whether there may be a change of a node."""
    from sqlglot import expressions as exp

    if isinstance(node, exp.Count):
        return not isinstance(node.this, exp.Star)
    if isinstance(node, exp.Literal):
        return not node.is_string and node.is_int
    others = exp.And | exp.Or | exp.Select | exp.Union | exp.Join | exp.Ordered
    return type(node) in _swaps() or isinstance(node, others)


@cache
def _comparisons() -> tuple[type[exp.Expr], ...]:
    from sqlglot import expressions as exp

    return (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.Glob, exp.In, exp.Between)


@cache
def _swaps() -> dict[type[exp.Expr], tuple[type[exp.Expr], ...]]:
    """Return the operators and functions that take each other's place; sums and means also get DISTINCT."""
    from sqlglot import expressions as exp

    return {
        exp.EQ: (exp.NEQ,),
        exp.NEQ: (exp.EQ,),
        exp.GT: (exp.GTE, exp.LT),
        exp.GTE: (exp.GT, exp.LTE),
        exp.LT: (exp.LTE, exp.GT),
        exp.LTE: (exp.LT, exp.GTE),
        exp.Min: (exp.Max,),
        exp.Max: (exp.Min,),
        exp.Sum: (exp.Avg, exp.Count),
        exp.Avg: (exp.Sum, exp.Max),
        exp.Add: (exp.Sub,),
        exp.Sub: (exp.Add,),
        exp.Mul: (exp.Div,),
        exp.Div: (exp.Mul,),
        exp.Intersect: (exp.Union,),
        exp.Except: (exp.Union,),
    }


def _changed(node: exp.Expr, change: int) -> exp.Expr | None:
    """Return change number `change` of a node: another node, itself when changed in place, or None for no change."""
    from sqlglot import expressions as exp

    others = _swaps().get(type(node))
    if others is not None and change < len(others):
        return others[change](**dict(node.args))
    if isinstance(node, exp.Sum | exp.Avg) and not isinstance(node.this, exp.Distinct):
        node.set("this", exp.Distinct(expressions=[node.this]))
        return node
    if others is not None:
        return None
    if isinstance(node, exp.And | exp.Or):
        opposite = exp.Or if isinstance(node, exp.And) else exp.And
        options = (opposite(this=node.this, expression=node.expression), node.this, node.expression)
        return options[change]
    if isinstance(node, exp.Count) and change == 0:
        once = isinstance(node.this, exp.Distinct)
        node.set("this", node.this.expressions[0] if once else exp.Distinct(expressions=[node.this]))
        return node
    if isinstance(node, exp.Select):
        return _changed_select(node, change)
    if isinstance(node, exp.Union) and change == 0:
        node.set("distinct", not node.args.get("distinct"))
        return node
    if isinstance(node, exp.Join) and change == 0 and node.args.get("on") is not None:
        left = str(node.args.get("side") or "").upper() == "LEFT"
        node.set("side", None if left else "LEFT")
        node.set("kind", None)
        return node
    if isinstance(node, exp.Ordered) and change == 0:
        node.set("desc", not node.args.get("desc"))
        node.set("nulls_first", None)
        return node
    if isinstance(node, exp.Literal) and not node.is_string and node.is_int and change < 2:
        return exp.Literal.number(int(node.name) + (1, -1)[change])
    return None


def _changed_select(node: exp.Select, change: int) -> exp.Expr | None:
    from sqlglot import expressions as exp

    if change == 0:
        node.set("distinct", None if node.args.get("distinct") else exp.Distinct())
        return node
    for key in ("where", "having", "limit")[change - 1 :]:
        if node.args.get(key) is not None:
            node.set(key, None)
            return node
    return None


def constants(tree: exp.Expr, columns: frozenset[str], moment: str) -> Iterator[tuple[str, Any]]:
    """Yield each column that is compared with a constant, in lower case, and the constant.

    Args:
        tree: the query.
        columns: lower-case names of the schema's columns; a double-quoted text that is none of them is a constant to
            SQLite.
        moment: what SQLite's clock shows; a column compared with it gets days around it.
    """
    from sqlglot import expressions as exp

    patterns: dict[str, list[str]] = {}
    for node in tree.find_all(*_comparisons()):
        names = sorted({column.name.lower() for column in node.find_all(exp.Column)} & columns)
        for leaf in node.find_all(exp.Literal, exp.Column):
            value = _value(leaf, columns)
            if isinstance(node, exp.Like | exp.ILike | exp.Glob) and isinstance(value, str):
                for name in names:
                    patterns.setdefault(name, []).append(value)
                value = _filled(value)
            if value is None or (isinstance(value, str) and _MODIFIER.match(value)):
                continue
            values = _days_before(moment) if str(value).lower() == "now" else [value]
            yield from ((name, value) for name in names for value in values)
    for name, several in patterns.items():
        if len(several) > 1:  # a text that fits all of them, for conditions joined by AND
            yield name, "".join(map(_filled, several))


def reached_texts(tree: exp.Expr, columns: frozenset[str]) -> Iterator[tuple[str, str | int]]:
    """Yield columns of which a query looks at a part or a range, and texts at its edge, or how long a beginning.

    Whoever names no whole value has no closed set of values in mind.
    """
    from sqlglot import expressions as exp

    ranges = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
    whole = (exp.Column, exp.Lower, exp.Upper, exp.Trim, exp.Paren, exp.Cast, exp.Coalesce, exp.Collate)
    lengths = {node.expression.name for node in tree.find_all(exp.EQ) if isinstance(node.this, exp.Length)}
    for node in tree.find_all(exp.Like, exp.ILike, exp.Glob, exp.EQ, *ranges):
        names = sorted({column.name.lower() for column in node.find_all(exp.Column)} & columns)
        for leaf in node.find_all(exp.Literal):
            if not leaf.is_string or not names:
                continue
            if isinstance(node, exp.Like | exp.ILike | exp.Glob):
                texts = [_filled(leaf.name)]
            elif _MODIFIER.match(leaf.name):
                continue
            elif isinstance(node, ranges):
                texts = list(_beside_bound(leaf.name))
                texts += [text.ljust(int(length), "b") for length in lengths if length.isdigit() for text in texts]
            else:
                part = any(not isinstance(side, (*whole, exp.Literal)) for side in (node.this, node.expression))
                texts = [leaf.name + OTHER, OTHER + leaf.name] if part else []
            yield from ((name, text[:200]) for name in names for text in texts)
    for node in tree.find_all(exp.Substring, exp.Left):
        length = node.args.get("length") or node.args.get("expression")
        first = getattr(node.args.get("start"), "name", "1") == "1"
        if first and isinstance(length, exp.Literal) and length.is_int and len(length.name) < 4:
            yield from ((column.name.lower(), int(length.name)) for column in node.find_all(exp.Column))


def row_limit(tree: exp.Expr) -> int:
    """Return how many rows a query takes at most, as its outermost LIMIT says; 0 where none does."""
    limit = tree.args.get("limit")
    count = getattr(limit.expression, "name", "") if limit is not None else ""
    return int(count) if count.isdigit() and len(count) < 10 else 0


def lacking(tree: exp.Expr) -> bool:
    """Return whether a query tells rows to which others point from those to which none does."""
    from sqlglot import expressions as exp

    return tree.find(exp.Exists, exp.Except, exp.Intersect) is not None or any(
        node.args.get("query") if isinstance(node, exp.In) else node.args.get("side")
        for node in tree.find_all(exp.In, exp.Join)
    )


def conditions(tree: exp.Expr, columns: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the columns that a query compares with constants or with NULL, in lower case, and each such condition."""
    from sqlglot import expressions as exp

    for node in tree.find_all(*_comparisons(), exp.Is):
        copied = node.copy()
        for column in copied.find_all(exp.Column):
            column.set("table", None)
        if node.find(exp.Literal, exp.Null) is not None:
            names = {column.name.lower() for column in copied.find_all(exp.Column)} & columns
            yield from ((name, _written(copied).lower()) for name in sorted(names))


def looks(tree: exp.Expr) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the columns of a query, its functions, and what it sorts by or takes once, each with its columns' names."""
    from sqlglot import expressions as exp

    named = {item.alias.lower(): item for item in tree.find_all(exp.Alias)}
    for node in tree.find_all(exp.Column, exp.Func, exp.Ordered, exp.Distinct):
        copied = node.copy()
        for column in copied.find_all(exp.Column):
            column.set("table", None)
        given = [named[column.name.lower()] for column in node.find_all(exp.Column) if column.name.lower() in named]
        names = frozenset(column.name.lower() for part in (node, *given) for column in part.find_all(exp.Column))
        if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select):
            names = frozenset(
                column.name.lower() for item in node.parent.expressions for column in item.find_all(exp.Column)
            )
        if names and not isinstance(node, exp.Connector):
            yield _written(copied).lower(), names


def sorted_columns(tree: exp.Expr) -> Iterator[str]:
    """Yield the lower-case names of columns that a query sorts by, itself or by what it calls them."""
    from sqlglot import expressions as exp

    named = {item.alias.lower(): item for item in tree.find_all(exp.Alias)}
    for item in tree.find_all(exp.Ordered):
        for column in item.find_all(exp.Column):
            yield column.name.lower()
            given = named.get(column.name.lower())
            yield from (inner.name.lower() for inner in (given.find_all(exp.Column) if given is not None else ()))


def joined_columns(tree: exp.Expr, columns: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the lower-case names of columns that a query sets equal."""
    from sqlglot import expressions as exp

    for node in tree.find_all(exp.EQ):
        sides = [[column.name.lower() for column in side.find_all(exp.Column)] for side in (node.left, node.right)]
        if len(sides[0]) == len(sides[1]) == 1 and {sides[0][0], sides[1][0]} <= columns:
            yield sides[0][0], sides[1][0]
    for join in tree.find_all(exp.Join):
        for name in join.args.get("using") or ():
            yield name.name.lower(), name.name.lower()


def ranked_columns(tree: exp.Expr) -> Iterator[str]:
    """Yield the lower-case names of columns whose largest or smallest values a query asks for."""
    from sqlglot import expressions as exp

    for node in tree.find_all(exp.Select, exp.Min, exp.Max, exp.Window):
        # "the largest value" has one answer however many rows have it, "who has it" may not
        asked: list[exp.Expr] = [node] if node.find_ancestor(exp.Subquery, exp.CTE) is not None else []
        if isinstance(node, exp.Select):
            asked = [node.args["order"]] if node.args.get("order") and node.args.get("limit") else []
        elif isinstance(node, exp.Window):
            asked = [node.args["order"]] if node.args.get("order") else []
        yield from (column.name.lower() for part in asked for column in part.find_all(exp.Column))


def _days_before(moment: str) -> list[str]:
    now = datetime.datetime.fromisoformat(moment)
    return [(now - datetime.timedelta(days=days)).date().isoformat() for days in (0, 2, 5, 9, 20, 45, 100, 200, 400)]


def _value(leaf: exp.Expr, columns: frozenset[str]) -> Any:
    from sqlglot import expressions as exp

    if isinstance(leaf, exp.Column):
        quoted = isinstance(leaf.this, exp.Identifier) and leaf.this.quoted and not leaf.table
        return leaf.name if quoted and leaf.name.lower() not in columns else None
    if not isinstance(leaf, exp.Literal):
        return None
    if leaf.is_string:
        return leaf.name
    try:
        return int(leaf.name) if leaf.is_int else float(leaf.name)
    except ValueError:
        return None


def _filled(pattern: str) -> str:
    """Return a text that fits a pattern of LIKE or GLOB."""
    return pattern.replace("%", OTHER).replace("_", "c").replace("*", OTHER)


def _beside_bound(bound: str) -> Iterator[str]:
    """Yield texts just below and just above a bound."""
    yield from (bound, bound + "b")
    if bound and ord(bound[-1]) > 32:
        yield bound[:-1] + chr(ord(bound[-1]) - 1) + "b"
