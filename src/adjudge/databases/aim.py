"""Rows aimed at queries: their constants among the values, and shared values in the columns that they join.

Not covered: conditions that no constant shows, such as a comparison with a subquery.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from adjudge.databases.file_facts import FileFacts
from adjudge.databases.mutants import constants, joined_columns, parsed, ranked_columns
from adjudge.databases.row_maker import RowMaker
from adjudge.databases.rows_like import Aim, LookedAt, RowsLike
from adjudge.databases.schema_shape import Schema


def aimed_rows(
    schema: Schema, queries: Sequence[str], seed: str, moment: str, *, through_keys: bool = False
) -> RowMaker:
    """Return what fills databases of a schema so that queries find something and their neighbours something else.

    Args:
        schema: the tables.
        queries: SQLite queries; those that sqlglot cannot read aim at nothing.
        seed: decides every row.
        moment: what SQLite's clock shows when the queries run.
        through_keys: whether what a foreign key is compared with is also put among the values that it points to.
    """
    names = _column_names(schema)
    groups: dict[str, int] = {}
    for tree in [tree for tree in map(parsed, queries) if tree is not None]:
        for one, other in joined_columns(tree, names):
            _join(groups, one, other)
    compared = _compared(names, queries, moment)
    if through_keys:
        _pass_on(compared, schema)
    return RowMaker(schema, {name: tuple(values) for name, values in compared.items()}, groups, seed)


def rows_like(facts: FileFacts, queries: Sequence[str], seed: str, moment: str, looked_at: LookedAt) -> RowsLike:
    """Return what fills databases like a file so that queries find something and their neighbours something else.

    Args:
        facts: what the file holds and keeps.
        queries: SQLite queries; those that sqlglot cannot read aim at nothing.
        seed: decides every row.
        moment: what SQLite's clock shows when the queries run.
        looked_at: the tables that the queries read, and rows of them that make up the result.
    """
    compared = _compared(_column_names(facts.schema), queries, moment)
    ranked = frozenset(name for tree in map(parsed, queries) if tree is not None for name in ranked_columns(tree))
    numbers = [int(word) for query in queries for word in re.findall(r"\b\d{1,2}\b", query)]
    aim = Aim(
        constants={name: tuple(values) for name, values in compared.items()},
        ranked=ranked,
        sizes=tuple(sorted({size for number in numbers for size in (number, number + 1) if size > 1})),
        looked_at=looked_at,
    )
    return RowsLike(facts, aim, aimed_rows(facts.schema, queries, seed, moment), seed)


def _column_names(schema: Schema) -> frozenset[str]:
    return frozenset(column.name.lower() for table in schema.tables for column in table.columns)


def _compared(names: frozenset[str], queries: Sequence[str], moment: str) -> dict[str, dict[Any, None]]:
    """Return the constants that each column is compared with."""
    found: dict[str, dict[Any, None]] = {}
    for tree in [tree for tree in map(parsed, queries) if tree is not None]:
        for name, value in constants(tree, names, moment):
            found.setdefault(name, {})[value] = None
    return found


def _pass_on(compared: dict[str, dict[Any, None]], schema: Schema) -> None:
    """Give the columns that foreign keys point to the constants of those that point to them, along whole chains."""
    pairs = [
        (column.name.lower(), column.parent[1].lower())
        for table in schema.tables
        for column in table.columns
        if column.parent is not None
    ]
    grown = True
    while grown:
        grown = False
        for child, parent in pairs:
            fresh = compared.get(child, {}).keys() - compared.get(parent, {}).keys()
            grown = grown or bool(fresh)
            for value in [value for value in compared.get(child, {}) if value in fresh]:
                compared.setdefault(parent, {})[value] = None


def _join(groups: dict[str, int], one: str, other: str) -> None:
    """Put two columns, and all that were joined with them, into one group."""
    number = groups.get(one, groups.get(other, len(groups)))
    for name in [name for name, group in groups.items() if name == other or group == groups.get(other)]:
        groups[name] = number
    groups[one] = groups[other] = number
