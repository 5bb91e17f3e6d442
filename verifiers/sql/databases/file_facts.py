"""What a SQLite file holds and keeps: rows of its tables, and the rules that all of them obey.

A rule counts when the schema declares it, or when it holds in all rows read and those are enough for it to be no
accident: columns that are never NULL, values that differ in every row, closed sets of values, columns that follow from
another one or from how two others compare, that stand in an order, that never hold the same value, or that are sums or
products of others, and keys that point to rows of another table.  In doubt a rule is kept: a database that breaks one
would refuse right queries.

Not covered: rules between rows of different tables, other than keys.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from adjudge.verifiers.sql.databases.row_rules import Derived, derived_columns, unequal_columns
from adjudge.verifiers.sql.databases.schema_shape import (
    ColumnShape,
    Schema,
    SchemaError,
    TableShape,
    bound_work,
    quoted,
    read_schema,
    unchanging,
)

MAX_ROWS: Final = 400  # read of each table; of a larger one they are drawn by their numbers
_FEW: Final = 3  # rows from which on a name or a key that differs in all of them is meant to
_SOME: Final = 4  # rows, or pairs of rows, that an order, a sum or a product must hold in
_MANY: Final = 50  # rows from which on any column that differs in all of them is meant to
_CHANCE: Final = 0.01  # that one column seems to follow from another
_ACCIDENT: Final = 1e-4  # that rows which point anywhere leave out none: five orders for each customer do
_WIDE: Final = 24  # columns of a table up to which they are compared with each other
_IDENTIFIES: Final = re.compile(
    r"(?i:(^|_|\b)(id|no|nr|num|number|code|key|name|title|e?mail|phone|ssn|isbn|sku|slug|uuid|login|label)$)"
    r"|[a-z](Id|ID|No|Name|Code)$"
)
_STRANGE: Final = 3
_POINTS: Final = re.compile(r"(_|\b)(id|key|code|no)$|[a-z](Id|ID|Key)$|^id_", re.IGNORECASE)

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column.

    Attributes:
        shape: its name, kind, declared key and so on.
        values: the different values read, without NULL.
        closed: whether there are no others.
        unique: whether each row has another one.
        numbered: whether they are numbers, which the sums, orders and neighbours of `rows_like` need.
        nulls: the share of NULL.
        differs: whether all values read differ, by a rule or by accident.
        parent: the table and column, lower case, that it points to.
        covers: whether each row of the parent is pointed to, and that is no accident.
        depth: where it points to its own table, how many rows at most stand above one; None where some form a ring.
    """

    shape: ColumnShape
    values: tuple[Any, ...]
    closed: bool
    unique: bool
    differs: bool
    numbered: bool
    nulls: float
    parent: tuple[str, str] | None
    covers: bool
    depth: int | None

    def opened(self) -> ColumnFacts:
        """Return the same, of a column that may hold other values; a flag is 0 or 1."""
        flag = {*self.values} <= {0, 1}
        return replace(self, closed=self.closed and flag, values=(0, 1) if flag else self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One table.

    Attributes:
        whole: whether its rows are all.
        columns: what is known of each column.
        linked: groups of columns, by place, whose values in one row belong together.
        ordered: pairs of columns, by place, of which the first is never larger.
        distinct: groups of columns, by place, that no two rows share.
        unequal: pairs of columns, by place, that never hold the same value in a row.
        derived: columns that follow from a part of another one, or from how two others compare.
    """

    shape: TableShape
    rows: tuple[Row, ...]
    whole: bool
    columns: tuple[ColumnFacts, ...]
    linked: tuple[tuple[int, ...], ...]
    ordered: tuple[tuple[int, int], ...]
    distinct: tuple[tuple[int, ...], ...]
    unequal: tuple[tuple[int, int], ...]
    derived: tuple[Derived, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """A file's schema, and its tables by lower-case name."""

    schema: Schema
    tables: dict[str, TableFacts]

    def uncovered(self) -> FileFacts:
        """Return the same, of a file that may have rows to which nothing points."""
        return self._with(lambda column: replace(column, covers=False))

    def opened(self, names: Collection[str]) -> FileFacts:
        """Return the same, of a file in which the columns of these lower-case names may hold other values."""
        return self._with(lambda column: column.opened() if column.shape.name.lower() in names else column)

    def _with(self, changed: Callable[[ColumnFacts], ColumnFacts]) -> FileFacts:
        tables = {
            name: replace(table, columns=tuple(map(changed, table.columns))) for name, table in self.tables.items()
        }
        return replace(self, tables=tables)


@lru_cache(maxsize=16)
def file_facts(path: str, stamp: tuple[int, ...]) -> FileFacts:
    """Return what a file holds and keeps; `stamp` makes a changed file another one.

    Raises:
        SchemaError: SQLite cannot read it, or its schema is beyond what can be made again.
    """
    connection = sqlite3.connect(unchanging(path), uri=True, isolation_level=None)
    try:
        bound_work(connection)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        statements = connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "AND type IN ('table', 'view', 'index') ORDER BY type = 'view', type = 'index'"
        ).fetchall()
        if any(re.match(r"\s*CREATE\s+VIRTUAL", sql, re.IGNORECASE) for (sql,) in statements):
            raise SchemaError("the schema has virtual tables", mistake=False)
        given: dict[str, Any] = {"schema": ";\n".join(sql for (sql,) in statements)}
        bare = read_schema(given).tables
        read = {table.name.lower(): _read(connection, table) for table in bare}
        given["values"] = {
            table.name: {column.name: _some(read[table.name.lower()][0], at) for at, column in enumerate(table.columns)}
            for table in bare
        }
        schema = read_schema(given)
        shapes = {table.name.lower(): table for table in schema.tables}
        indexes = {name: _indexes(connection, shapes[name]) for name in shapes}
    except sqlite3.Error as error:
        raise SchemaError(f"SQLite cannot read the file: {error}", mistake=False) from error
    finally:
        connection.close()
    parents = _parents(shapes, read)
    for name, shape in shapes.items():
        columns = [replace(column, parent=parents.get((name, at))) for at, column in enumerate(shape.columns)]
        shapes[name] = replace(shape, columns=tuple(columns))
    tables = {name: _table(shape, indexes[name], read, shapes) for name, shape in shapes.items()}
    return FileFacts(schema=replace(schema, tables=tuple(shapes.values())), tables=tables)


def _read(connection: sqlite3.Connection, table: TableShape) -> tuple[tuple[Row, ...], bool]:
    """Return rows of a table, and whether they are all."""
    columns = ", ".join(quoted(column.name) for column in table.columns)
    asked = f"SELECT {columns} FROM {quoted(table.name)}"
    rows = connection.execute(f"{asked} LIMIT {MAX_ROWS + 1}").fetchall()
    if len(rows) <= MAX_ROWS:
        return tuple(rows), True
    try:
        low, high = connection.execute(f"SELECT min(rowid), max(rowid) FROM {quoted(table.name)}").fetchone()
    except sqlite3.OperationalError:  # WITHOUT ROWID
        return tuple(rows[:MAX_ROWS]), False
    chooser = random.Random(f"{table.name}:{low}:{high}")
    numbers = sorted(chooser.randint(low, high) for _ in range(MAX_ROWS // 2))
    drawn = [connection.execute(f"{asked} WHERE rowid >= ? LIMIT 1", (number,)).fetchone() for number in numbers]
    return tuple(dict.fromkeys([*drawn, *rows[: MAX_ROWS // 2]])), False


def _some(rows: Sequence[Row], at: int) -> list[Any]:
    """Return a few short values of a column, which tell dates from other texts."""
    values = dict.fromkeys(row[at] for row in rows if row[at] is not None and not isinstance(row[at], bytes))
    return [value for value in values if not isinstance(value, str) or len(value) <= 200][:12]


def _indexes(connection: sqlite3.Connection, table: TableShape) -> list[tuple[int, ...]]:
    """Return the groups of columns that are declared to differ in every row."""
    places = {column.name.lower(): at for at, column in enumerate(table.columns)}
    groups = [tuple(at for at, column in enumerate(table.columns) if column.key)]
    for row in connection.execute(f"PRAGMA index_list({quoted(table.name)})").fetchall():
        names = [name for _, _, name in connection.execute(f"PRAGMA index_info({quoted(row[1])})")]
        if row[2] and all(name is not None and name.lower() in places for name in names):
            groups.append(tuple(sorted(places[name.lower()] for name in names)))
    return list(dict.fromkeys(group for group in groups if group))


def _parents(
    shapes: dict[str, TableShape], read: dict[str, tuple[tuple[Row, ...], bool]]
) -> dict[tuple[str, int], tuple[str, str]]:
    """Return what columns point to: as declared, or by a name that says so and values that all are there."""
    keys: dict[tuple[str, str], frozenset[Any]] = {}
    for name, shape in shapes.items():
        own = [at for at, column in enumerate(shape.columns) if column.key]
        if len(own) == 1 and read[name][1]:
            keys[name, shape.columns[own[0]].name.lower()] = frozenset(row[own[0]] for row in read[name][0])
    parents = {}
    for name, shape in shapes.items():
        for at, column in enumerate(shape.columns):
            if column.parent is not None and column.parent[0].lower() in shapes:
                above = shapes[column.parent[0].lower()].columns
                named = [other.name.lower() for other in above if other.name.lower() == column.parent[1].lower()]
                named = named or [other.name.lower() for other in above if other.key]  # REFERENCES without a column
                if named:
                    parents[name, at] = (column.parent[0].lower(), named[0])
                    continue
            values = {row[at] for row in read[name][0]} - {None}
            lone = column.key and sum(other.key for other in shape.columns) == 1
            if not values or lone or not _POINTS.search(column.name):
                continue
            fitting = [to for to, known in keys.items() if values <= known]
            ranked = sorted([(_strangeness(column.name.lower(), to, name), to) for to in fitting])
            if ranked and ranked[0][0] < _STRANGE:
                parents[name, at] = ranked[0][1]
    return parents


def _strangeness(column: str, target: tuple[str, str], table: str) -> int:
    """Return 0 for a target that a column's name plainly means, up to `_STRANGE` for one that it does not."""
    parent, key = target
    if key == column and key != "id" and parent != table:
        return 0
    stem = re.sub(r"_?(id|key|code|no)$|^id_", "", column)
    if stem and (parent.startswith(stem) or stem.startswith(parent.rstrip("s"))) and parent != table:
        return 1
    return 2 if parent == table and stem and column.endswith("id") else _STRANGE


def _table(
    shape: TableShape,
    declared: list[tuple[int, ...]],
    read: dict[str, tuple[tuple[Row, ...], bool]],
    shapes: dict[str, TableShape],
) -> TableFacts:
    rows, whole = read[shape.name.lower()]
    texts = [at for at, column in enumerate(shape.columns) if column.kind == "text" and column.parent is None]
    columns = []
    for at, column in enumerate(shape.columns):
        parent = column.parent
        present = [row[at] for row in rows if row[at] is not None]
        values = tuple(dict.fromkeys(present))
        unique = (at,) in declared or (
            len(values) == len(present) and _identifies(column, at == min(texts, default=-1), len(values))
        )
        covers, depth = False, None
        if parent is not None and parent[0] == shape.name.lower():
            own = [other.name.lower() for other in shape.columns].index(parent[1])
            depth = _depth({row[own]: row[at] for row in rows})
        if parent is not None and read[parent[0]][1] and whole:
            place = [other.name.lower() for other in shapes[parent[0]].columns].index(parent[1])
            above = {row[place] for row in read[parent[0]][0]} - {None}
            covers = above <= set(values) and _covering(len(above), len(present)) < _ACCIDENT
        columns.append(
            ColumnFacts(
                shape=column,
                values=values,
                closed=not unique and _closed(column, values, len(present)),
                unique=unique,
                differs=len(values) == len(present),
                numbered=bool(values) and all(type(value) in (int, float) for value in values),
                nulls=1 - len(present) / len(rows) if rows else 0.0,
                parent=parent,
                covers=covers,
                depth=depth,
            )
        )
    narrow = len(columns) <= _WIDE
    linked = _linked(rows, columns) if narrow else ()
    return TableFacts(
        shape=shape,
        rows=rows,
        whole=whole,
        columns=tuple(columns),
        linked=linked,
        ordered=_ordered(rows, columns) if narrow else (),
        distinct=(*declared, *(_distinct(rows, columns) if narrow else ())),
        unequal=tuple(unequal_columns(rows, columns)) if narrow else (),
        derived=tuple(derived_columns(rows, columns, {at for group in linked for at in group})) if narrow else (),
    )


def _depth(above: dict[Any, Any]) -> int | None:
    """Return how many rows at most stand above one; None where some form a ring."""
    most = 0
    for key in above:
        seen = {key}
        while (key := above.get(key)) is not None and key in above:
            if key in seen:
                return None
            seen.add(key)
        most = max(most, len(seen) - 1)
    return most


def _covering(parents: int, pointing: int) -> float:
    """Return how likely it is that so many rows which point to any parents point to each of them."""
    return (1 - math.exp(-pointing / parents)) ** parents if parents else 1.0


def _identifies(column: ColumnShape, first_text: bool, count: int) -> bool:
    """Return whether a column whose values all differ is meant to be so."""
    named = column.kind in ("text", "integer") and (first_text or bool(_IDENTIFIES.search(column.name)))
    return count >= (_FEW if named else _MANY)


def _closed(column: ColumnShape, values: tuple[Any, ...], count: int) -> bool:
    """Return whether a column takes no values but those read."""
    if column.kind in ("boolean", "blob") or set(values) <= {0, 1}:
        return True
    if any(
        isinstance(value, bytes) or (isinstance(value, str) and (len(value) > 60 or value[:1] in "[{<"))
        for value in values
    ):
        return True
    return len(values) * 2 <= count and len(values) <= (40 if column.kind in ("text", "integer") else 6)


def _linked(rows: Sequence[Row], columns: Sequence[ColumnFacts]) -> tuple[tuple[int, ...], ...]:
    group = list(range(len(columns)))

    def join(*places: int) -> None:
        numbers = {group[at] for at in places}
        for at, number in enumerate(group):
            if number in numbers:
                group[at] = min(numbers)

    for one, other in itertools.permutations(range(len(columns)), 2):
        if group[one] != group[other] and _follows(rows, columns, one, other):
            join(one, other)
    numeric = [
        at
        for at, column in enumerate(columns)
        if column.numbered and not column.shape.key and not column.parent and len(column.values) > 1
    ]
    for one, other, third in itertools.permutations(numeric[:8], 3):
        if one < other and _computed(rows, one, other, third):
            join(one, other, third)
    groups = [tuple(at for at, number in enumerate(group) if number == wanted) for wanted in dict.fromkeys(group)]
    return tuple(places for places in groups if len(places) > 1)


def _follows(rows: Sequence[Row], columns: Sequence[ColumnFacts], one: int, other: int) -> bool:
    """Return whether a column, or where it is NULL, follows from another one in more rows than chance would have it."""
    if columns[one].unique or columns[other].unique or len(columns[one].values) * 2 > len(rows):
        return _null_together(rows, one, other)
    for blank in (False, True):
        known: dict[Any, Any] = {}
        seen: Counter[Any] = Counter()
        for row in rows:
            value = (row[other] is None) if blank else row[other]
            seen[value] += 1
            if known.setdefault(row[one], value) != value:
                break
        else:
            usual = seen.most_common(1)[0][1] / len(rows) if seen else 1.0
            if usual < 1 and usual ** (len(rows) - len(known)) < _CHANCE:
                return True
    return _null_together(rows, one, other)


def _null_together(rows: Sequence[Row], one: int, other: int) -> bool:
    """Return whether a column is NULL wherever another one is."""
    empty = [row for row in rows if row[one] is None]
    share = sum(row[other] is None for row in rows) / len(rows) if rows else 1.0
    return share < 1 and all(row[other] is None for row in empty) and len(empty) >= _FEW and share ** len(empty) < 0.05


def _computed(rows: Sequence[Row], one: int, other: int, third: int) -> bool:
    """Return whether a column is the sum or the product of two others."""
    full = [(row[one], row[other], row[third]) for row in rows if None not in (row[one], row[other], row[third])]
    if len(full) < _SOME:
        return False

    def near(value: float, wanted: float) -> bool:
        return abs(value - wanted) <= 0.006 + 1e-6 * abs(wanted)

    return all(near(a + b, c) for a, b, c in full) or all(near(a * b, c) for a, b, c in full)


def _ordered(rows: Sequence[Row], columns: Sequence[ColumnFacts]) -> tuple[tuple[int, int], ...]:
    pairs_in_order = []
    for one, other in itertools.permutations(range(len(columns)), 2):
        if not _comparable(columns[one], columns[other]):
            continue
        pairs = [(row[one], row[other]) for row in rows if row[one] is not None and row[other] is not None]
        if len(pairs) >= _SOME and all(a <= b for a, b in pairs):
            pairs_in_order.append((one, other))
    return tuple(pairs_in_order)


def _comparable(one: ColumnFacts, other: ColumnFacts) -> bool:
    if any(column.parent or column.unique or not column.values for column in (one, other)):
        return False
    dated = [
        column.shape.kind in ("date", "moment") and all(isinstance(value, str) for value in column.values)
        for column in (one, other)
    ]
    if all(dated):
        return True
    # Numbers of ranges that do not touch, such as ages and prices, are of different things.
    return one.numbered and other.numbered and min(other.values) < max(one.values)


def _distinct(rows: Sequence[Row], columns: Sequence[ColumnFacts]) -> Iterable[tuple[int, ...]]:
    """Return groups of columns that no two rows share, although nothing declares it."""
    if len(rows) >= _SOME and len(set(rows)) == len(rows) and not any(column.unique for column in columns):
        yield tuple(range(len(columns)))
    several = [at for at, column in enumerate(columns) if column.values and not column.unique]
    pointing = tuple(at for at in several if columns[at].parent)
    if (
        len(pointing) >= 2
        and len(rows) >= _SOME
        and len({tuple(row[at] for at in pointing) for row in rows}) == len(rows)
    ):
        yield pointing
    if len(rows) >= _MANY:
        for pair in itertools.combinations(several, 2):
            if len({(row[pair[0]], row[pair[1]]) for row in rows}) == len(rows):
                yield pair
