"""Rows like those of a file, changed where a query looks, in ways that the file's own rules allow.

Rows are drawn from the file's, fewer or more of them; then cells get other values: the constants that the query
compares them with and their nearest neighbours, values of other rows, and fresh ones of the same form.  What
`adjudge.databases.file_facts` found the file to keep is kept.

Not covered: tables without rows, which `adjudge.databases.row_maker` fills.
"""

from __future__ import annotations

import datetime
import random
import sqlite3
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adjudge.databases.file_facts import ColumnFacts, FileFacts, Row, TableFacts
from adjudge.databases.row_maker import RowMaker, fitting, parents_first
from adjudge.databases.schema_shape import TableShape, quoted

_SIZES: Final = (3, 5, 8, 12, 20, 30)
_BESIDE: Final = (3, 5, 8)  # rows of a table that the query does not read
_RATES: Final = (0.25, 0.5, 0.8)
_TELLING: Final = 3  # texts whose common beginning is meant
_TRIES: Final = 8  # for a value that no other row has
_NARROW: Final = 0.3  # share of columns that get two values alone
_NULLS: Final = 0.15  # least share of NULL where a new value is drawn and the file has any
_CLASSES: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """What a query looks at in a file.

    Attributes:
        reads: lower-case names of the tables it reads.
        witnesses: rows of tables, lower-case name -> rows, that together make up its result.
    """

    reads: frozenset[str] = frozenset()
    witnesses: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a query asks.

    Attributes:
        constants: lower-case column name -> what it is compared with.
        ranked: lower-case names of columns whose largest or smallest values it asks for: they get no new ties.
        sizes: numbers of rows that it may ask for.
        looked_at: where it looks.
    """

    constants: Mapping[str, tuple[Any, ...]]
    ranked: frozenset[str]
    sizes: tuple[int, ...]
    looked_at: LookedAt


class RowsLike:
    """Fills databases like a file.

    Args:
        facts: what the file holds and keeps.
        aim: what the query looks at.
        empty: fills the tables of which the file has no rows.
        seed: with the number of the database it decides every row.
    """

    def __init__(self, facts: FileFacts, aim: Aim, empty: RowMaker, seed: str) -> None:
        self._facts, self._aim, self._empty, self._seed = facts, aim, empty, seed
        self._order = parents_first(facts.schema.tables)
        self._draws = {
            name: [ColumnDraw(column, aim, table.whole) for column in table.columns]
            for name, table in facts.tables.items()
        }

        self._made: dict[tuple[str, str], list[Any]] = {}
        beside = {shape.name.lower() for shape in self._order} - self._touched()
        self._base = sqlite3.connect(":memory:", isolation_level=None)
        for statement in facts.schema.statements:
            self._base.execute(statement)
        chooser = random.Random(seed)
        self._varied = [shape for shape in self._order if shape.name.lower() not in beside]
        self._fill(self._base, [shape for shape in self._order if shape.name.lower() in beside], chooser, self._made)

    def close(self) -> None:
        """Let go of the tables that all databases share."""
        self._base.close()

    def _touched(self) -> set[str]:
        """Return the tables that the query reads, those they point to, and those that point to any of these."""
        parents = {
            shape.name.lower(): {column.parent[0].lower() for column in shape.columns if column.parent is not None}
            for shape in self._order
        }
        found = {name for name in parents if name in self._aim.looked_at.reads}
        while more := {parent for name in found for parent in parents[name] & parents.keys()} - found:
            found |= more
        while more := {name for name in parents if parents[name] & found} - found:
            found |= more
        return found

    def fill(self, connection: sqlite3.Connection, number: int) -> None:
        """Make the tables and rows of database `number` (0, 1, ...)."""
        self._base.backup(connection)
        self._fill(connection, self._varied, random.Random(f"{self._seed}:{number}"), dict(self._made))

    def _fill(
        self,
        connection: sqlite3.Connection,
        shapes: Sequence[TableShape],
        chooser: random.Random,
        made: dict[tuple[str, str], list[Any]],
    ) -> None:
        connection.execute("BEGIN")
        for shape in shapes:
            name = shape.name.lower()
            facts = self._facts.tables[name]
            if facts.rows:
                rows = _TableDraw(facts, self._draws[name], self._aim, chooser, made).rows()
            else:
                rows = self._empty.rows(shape, chooser, made)
            columns = ", ".join(quoted(column.name) for column in shape.columns)
            marks = ", ".join("?" * len(shape.columns))
            connection.executemany(f"INSERT OR IGNORE INTO {quoted(shape.name)} ({columns}) VALUES ({marks})", rows)
            kept = connection.execute(f"SELECT {columns} FROM {quoted(shape.name)}").fetchall()  # CHECK drops some
            for at, column in enumerate(shape.columns):
                made[name, column.name.lower()] = [row[at] for row in kept if row[at] is not None]
        connection.execute("COMMIT")


class _TableDraw:
    """One table's rows for one database."""

    def __init__(
        self,
        facts: TableFacts,
        draws: Sequence[ColumnDraw],
        aim: Aim,
        chooser: random.Random,
        made: Mapping[tuple[str, str], list[Any]],
    ) -> None:
        self._facts, self._draws, self._chooser = facts, draws, chooser
        name = facts.shape.name.lower()
        read = name in aim.looked_at.reads
        self._rate = chooser.choice(_RATES) if read else 0.1
        self._size = chooser.choice(_SIZES if read else _BESIDE)
        # A small table shrinks and grows by a few rows alone: 4 departments do not become 48.
        self._size = min(self._size, max(self._size // 2, len(facts.rows) * 2))
        if read and aim.sizes and chooser.random() < 0.3:
            self._size = chooser.choice(aim.sizes)
        self._witnesses = aim.looked_at.witnesses.get(name, ())
        self._parents = {
            at: list(dict.fromkeys(made[column.parent]))
            for at, column in enumerate(facts.columns)
            if column.parent is not None and column.parent in made
        }
        self._own = {
            at: [other.shape.name.lower() for other in facts.columns].index(column.parent[1])
            for at, column in enumerate(facts.columns)
            if column.parent is not None and column.parent[0] == name
        }
        self._used: list[set[Any]] = [set() for _ in facts.columns]
        self._shared: list[set[Row]] = [set() for _ in facts.distinct]
        linked = {at for group in facts.linked for at in group}
        ordered = {at for pair in facts.ordered for at in pair}
        self._bound = ordered.union(*(group for group in facts.linked if ordered & {*group}))
        self._groups = [*facts.linked, *((at,) for at in range(len(facts.columns)) if at not in linked)]
        self._alone = [
            column.unique or (column.differs and column.shape.name.lower() in aim.ranked) for column in facts.columns
        ]
        # Where a column has two values alone, ties are frequent, and others that it usually has are missing.
        self._narrow = {
            at: chooser.sample(column.values, 2)
            for at, column in enumerate(facts.columns)
            if read and len(column.values) > 2 and not self._alone[at] and chooser.random() < _NARROW
        }

    def rows(self) -> list[Row]:
        for at, column in enumerate(self._facts.columns):
            if column.covers and at in self._parents:
                self._size = max(self._size, len(self._parents[at]))
        found: list[Row] = []
        for base in self._bases():
            row = self._changed(list(base), len(found))
            if row is not None:
                found.append(tuple(row))
        return found

    def _bases(self) -> list[Row]:
        """Return rows of the file, each once as far as they go; about half of them such that the query finds them."""
        pool = list(self._facts.rows)
        self._chooser.shuffle(pool)
        wanted = list(self._witnesses)
        self._chooser.shuffle(wanted)
        first = list(dict.fromkeys([*wanted[: self._size // 2], *pool]))[: self._size]
        found = [*first, *(self._chooser.choice(pool) for _ in range(self._size - len(first)))]
        self._chooser.shuffle(found)
        return found

    def _changed(self, row: list[Any], number: int) -> list[Any] | None:
        """Return a row with some other values, or None when it breaks a rule that all rows keep."""
        base = list(row)
        for group in self._groups:
            if len(group) > 1:
                if self._chooser.random() < self._rate and not any(self._alone[at] for at in group):
                    other = self._chooser.choice(self._facts.rows)
                    for at in group:
                        row[at] = other[at]
            elif self._facts.columns[group[0]].parent is None and self._chooser.random() < self._rate:
                at = group[0]
                row[at] = self._draws[at].value(row[at], self._chooser, self._narrow.get(at, ()))
        for one, other_at in self._facts.ordered:
            if row[one] is not None and row[other_at] is not None and not row[one] <= row[other_at]:
                for at in self._bound:
                    row[at] = base[at]
                break
        for at in range(len(row)):
            if not self._points(row, at, number) or not self._unused(row, at):
                return None
        for places, shared in zip(self._facts.distinct, self._shared, strict=True):
            cells = tuple(row[at] for at in places)
            if None not in cells and cells in shared:
                return None
        for places, shared in zip(self._facts.distinct, self._shared, strict=True):
            shared.add(tuple(row[at] for at in places))
        for at, value in enumerate(row):
            self._used[at].add(value)
        return row

    def _points(self, row: list[Any], at: int, number: int) -> bool:
        """Have a column point to a row that is there; return whether it does."""
        column = self._facts.columns[at]
        if column.parent is None:
            return True
        if at in self._own:
            there = list(self._used[self._own[at]] - {None})
            if row[at] is None or row[at] in there or row[at] == row[self._own[at]]:
                return True
            there.sort(key=repr)
            there = there or [row[self._own[at]]]
        elif at not in self._parents:  # of a ring, which was cut here
            return True
        else:
            there = self._parents[at]
            if column.covers and number < len(there):
                row[at] = there[number]
                return True
            kept = row[at] is None or row[at] in there
            if kept and self._chooser.random() >= self._rate:
                return True
        if column.nulls and (not there or self._chooser.random() < max(column.nulls, _NULLS) * (row[at] is not None)):
            row[at] = None
            return True
        if column.unique:
            there = [value for value in there if value not in self._used[at]]
        if not there:
            return False
        row[at] = self._chooser.choice(there)
        return True

    def _unused(self, row: list[Any], at: int) -> bool:
        """Give a column that differs in every row a value that no other row has; return whether that is so."""
        column = self._facts.columns[at]
        if not self._alone[at] or row[at] is None or row[at] not in self._used[at]:
            return True
        if column.parent is not None or any(at in group for group in self._facts.linked):
            return False
        for _ in range(_TRIES):
            row[at] = self._draws[at].fresh(row[at], self._chooser)
            if row[at] not in self._used[at]:
                return True
        if column.numbered and all(isinstance(value, int) for value in column.values):
            row[at] = max(value for value in (*column.values, *self._used[at]) if isinstance(value, int)) + 1
            return True
        return False


class ColumnDraw:
    """New values for a column, of the form and within the bounds of those it has.

    Args:
        column: what is known of it.
        aim: what the query asks.
        whole: whether all of the file's rows were read.
    """

    def __init__(self, column: ColumnFacts, aim: Aim, whole: bool) -> None:
        self._column = column
        self._dated = column.shape.kind in ("date", "moment")
        self._whole = column.numbered and all(isinstance(value, int) for value in column.values)
        self._places = _places(column.values) if column.numbered else 0
        self._bounds = self._widened() if column.numbered else (0.0, 0.0)
        texts = [value for value in column.values if isinstance(value, str)]
        self._tail = texts[0][10:] if texts else ""
        self._common = _common(texts)
        letters = sorted(set().union(*texts))
        self._classes = ["".join(letter for letter in letters if letter in known) for known in _CLASSES]
        days = [day for day in map(_date, (min(texts), max(texts))) if day is not None] if texts and self._dated else []
        self._days = days if len(days) == 2 else []
        constants = aim.constants.get(column.shape.name.lower(), ())
        near = [value for constant in constants for value in self._neighbours(fitting(column.shape, constant))]
        self._near = [value for value in near if self._allowed(value)]
        if column.closed and whole:
            self._near = [value for value in self._near if value in column.values]
        self._parts = [part for constant in constants if (part := str(constant).strip("%_*"))]

    def value(self, old: Any, chooser: random.Random, narrow: Sequence[Any]) -> Any:
        """Return a value for a row, which may be the old one; `narrow` are the few to take instead of all others."""
        column = self._column
        if column.nulls and chooser.random() < max(column.nulls, _NULLS):
            return None
        if not column.values:
            return old
        if self._near and chooser.random() < 0.5:
            return chooser.choice(self._near)
        if narrow:
            return chooser.choice(narrow)
        known = column.closed or chooser.random() < 0.5
        return chooser.choice(column.values) if known else self.fresh(old, chooser)

    def fresh(self, old: Any, chooser: random.Random) -> Any:
        """Return a value that the column need not have had, of the form of the old one."""
        column = self._column
        if column.closed or not column.values:
            return old
        if column.numbered:
            low, high = self._bounds
            if self._whole:
                return chooser.randint(int(low), max(int(low), int(high)))
            return round(chooser.uniform(low, high), self._places)
        if not isinstance(old, str):
            old = chooser.choice(column.values)
        if not isinstance(old, str):
            return old
        if not self._dated:
            return self._text(old, chooser)
        if not self._days:
            return old
        step = chooser.randint(0, (self._days[1] - self._days[0]).days)
        return (self._days[0] + datetime.timedelta(days=step)).isoformat() + old[10:]

    def _neighbours(self, value: Any) -> list[Any]:
        """Return a constant, and what just misses it."""
        column = self._column
        if isinstance(value, str) and self._dated:
            day = _date(value)
            if day is None or not 2 < day.year < 9990:
                return []
            days = [day + datetime.timedelta(days=step) for step in (0, 0, -1, 1, -31, 31, -366, 366)]
            return [near.isoformat() + (value[10:] or self._tail) for near in days]
        if not column.numbered:
            return [value] if type(value) in {type(known) for known in column.values} else []
        if isinstance(value, str) or value is None:
            return []
        step = 10.0**-self._places
        near = [value, value, value - step, value + step]
        return [round(one) for one in near] if self._whole else [round(float(one), self._places) for one in near]

    def _allowed(self, value: Any) -> bool:
        """Return whether a neighbour of a constant keeps the column's sign, and a share below 1."""
        if not self._column.numbered:
            return True
        low, high = min(self._column.values), max(self._column.values)
        if (low >= 0 and value < 0) or (low > 0 and value <= 0):
            return False
        return self._whole or not (low >= 0 and high <= 1 < value)

    def _widened(self) -> tuple[float, float]:
        """Return the least and the largest number that the column may hold."""
        column = self._column
        low, high = min(column.values), max(column.values)
        if column.unique and self._whole:
            return low, high + len(column.values)
        if self._whole and high - low <= 31:  # months, marks and stars end where they end
            return low, high
        half = (high - low) / 2
        least = low - half if low < 0 else max(low - half, 10.0**-self._places if low > 0 else 0.0)
        most = high + half
        if low >= 0 and high <= 100:  # shares and percentages
            most = min(most, 1 if high <= 1 else 100)
        return min(least, low), most

    def _text(self, old: str, chooser: random.Random) -> str:
        """Return a text of the column's letters, class by class; what all values begin with stays."""
        for _ in range(_TRIES):
            text = old[: self._common] + "".join([self._letter(letter, chooser) for letter in old[self._common :]])
            # The same letters in another case: real columns rarely mix cases, and `LIKE` is a fair answer.
            if not any(part.lower() in text.lower() and part not in text for part in self._parts):
                return text
        return old

    def _letter(self, old: str, chooser: random.Random) -> str:
        """Return another letter or digit of the same class that the column has; other signs stay."""
        letters = next((letters for letters in self._classes if old in letters), old)
        return letters[int(chooser.random() * len(letters))]


def _places(values: Sequence[Any]) -> int:
    """Return how many decimals numbers have at most, up to 4."""
    texts = [repr(value) for value in values[:100]]
    return min(4, max(0 if "e" in text or text.endswith(".0") else len(text.partition(".")[2]) for text in texts))


def _common(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, where they are enough to tell."""
    if len(texts) < _TELLING:
        return 0
    first, last = min(texts), max(texts)
    return next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _date(text: Any) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(str(text)[:10])
    except ValueError:
        return None
