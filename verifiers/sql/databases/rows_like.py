"""Rows like those of a file, changed where a query looks, in ways that the file's own rules allow.

Rows are drawn from the file's, fewer or more of them; then cells get other values: the constants that the query
compares them with and their nearest neighbours, values of other rows, and fresh ones of the same form.  What
`adjudge.verifiers.sql.databases.file_facts` found the file to keep is kept.

Not covered: tables without rows, which `adjudge.verifiers.sql.databases.row_maker` fills.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.verifiers.sql.databases.column_draw import Aim, ColumnDraw
from adjudge.verifiers.sql.databases.file_facts import FileFacts, Row, TableFacts
from adjudge.verifiers.sql.databases.row_maker import RowMaker, insert, parents_first
from adjudge.verifiers.sql.databases.schema_shape import TableShape, quoted

_SIZES: Final = (3, 5, 8, 12, 20, 30)
_BESIDE: Final = (3, 5, 8)  # rows of a table that the query does not read
_RATES: Final = (0.25, 0.5, 0.8)
_TRIES: Final = 8  # for a value that no other row has
_NARROW: Final = 0.3  # share of columns that get two values alone
_NULLS: Final = 0.15  # least share of NULL where a new value is drawn and the file has any
_MISSES: Final = 12  # rows that differ from one of the file in one cell, which just misses what the query asks
_AIMED_MISSES: Final = (8, 20, 60)
_DEEP: Final = 3  # rows with the most above them, to one of which the next one points so that chains get long
_FEW_MISSES: Final = 4
_TURNED: Final = 0.25  # least share of rows that point to another row than in the file
_WITHOUT: Final = 0.25  # share of databases that need not hold what the file's result is made of


class RowsLike:
    """Fills databases like a file.

    `empty` fills the tables of which the file has no rows; the seed and the number of the database decide every row.
    """

    def __init__(self, facts: FileFacts, aim: Aim, empty: RowMaker, seed: str) -> None:
        self._facts, self._aim, self._empty, self._seed = facts, aim, empty, seed
        self._order = parents_first(facts.schema.tables)
        self._draws = {
            name: [ColumnDraw(column, aim, table.whole) for column in table.columns]
            for name, table in facts.tables.items()
        }

        self._witnesses = {name: tuple(dict.fromkeys(rows)) for name, rows in self._with_parents().items()}
        self._made: dict[tuple[str, str], list[Any]] = {}
        reads = aim.looked_at.reads
        self._missed = reads | {
            column.parent[0]
            for name in reads & facts.tables.keys()
            for column in facts.tables[name].columns
            if column.parent is not None and column.shape.name.lower() in aim.constants
        }
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

    def _with_parents(self) -> dict[str, list[Row]]:
        """Return the rows that together make up the query's result, and those that they point to."""
        needed = {name: list(rows) for name, rows in self._aim.looked_at.witnesses.items()}
        for shape in reversed(self._order):
            table = self._facts.tables[shape.name.lower()]
            for at, column in enumerate(table.columns):
                if column.parent is None or column.parent[0] == shape.name.lower():
                    continue
                above = self._facts.tables[column.parent[0]]
                key = [other.shape.name.lower() for other in above.columns].index(column.parent[1])
                wanted = {row[at] for row in needed.get(shape.name.lower(), ())}
                needed.setdefault(column.parent[0], []).extend(row for row in above.rows if row[key] in wanted)
        return needed

    def _touched(self) -> set[str]:
        """Return the tables that the query reads, those they point to, and those that point to any of these."""
        parents = {
            shape.name.lower(): {column.parent[0].lower() for column in shape.columns if column.parent is not None}
            for shape in self._order
        }
        touched = {name for name in parents if name in self._aim.looked_at.reads}
        while more := {parent for name in touched for parent in parents[name] & parents.keys()} - touched:
            touched |= more
        while more := {name for name in parents if parents[name] & touched} - touched:
            touched |= more
        return touched

    def fill(self, connection: sqlite3.Connection, number: int) -> None:
        """Make the tables and rows of database `number` (0, 1, ...)."""
        self._base.backup(connection)
        self._fill(connection, self._varied, random.Random(f"{self._seed}:{number}"), dict(self._made), number % 4 == 0)

    def _fill(
        self,
        connection: sqlite3.Connection,
        shapes: Sequence[TableShape],
        chooser: random.Random,
        made: dict[tuple[str, str], list[Any]],
        near: bool = True,
    ) -> None:
        """Fill tables; of those aimed at a candidate each fourth has mostly those of the file, the rest few."""
        connection.execute("BEGIN")
        for shape in shapes:
            name = shape.name.lower()
            facts = self._facts.tables[name]
            if facts.rows:
                rows = _TableDraw(
                    facts,
                    self._draws[name],
                    self._aim,
                    chooser,
                    made,
                    self._witnesses.get(name, ()),
                    near,
                    name in self._missed,
                ).rows()
            else:
                rows = self._empty.rows(shape, chooser, made)
            columns = ", ".join(quoted(column.name) for column in shape.columns)
            insert(connection, shape, rows)
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
        witnesses: Sequence[Row],
        near: bool,
        missed: bool,
    ) -> None:
        self._facts, self._draws, self._chooser = facts, draws, chooser
        name = facts.shape.name.lower()
        read = name in aim.looked_at.reads
        self._rate = chooser.choice(_RATES) if read else 0.1
        self._size = chooser.choice(_SIZES if read else _BESIDE)
        # A small table shrinks and grows by a few rows alone: 4 departments do not become 48.
        self._size = min(self._size, max(self._size // 2, len(facts.rows) * 2))
        self._misses = 0
        self._witnesses, self._aimed = witnesses, aim.aimed and near
        self._few = aim.aimed and not near
        self._limited = self._aimed and read and aim.limit > 0
        if aim.aimed and missed:
            self._misses = chooser.choice(_AIMED_MISSES) if self._aimed else _FEW_MISSES
            self._size = self._size if self._aimed else chooser.choice(_BESIDE)
        if self._aimed:
            self._rate = 0.1
            self._size = max(self._size, min(2 * len(witnesses), _AIMED_MISSES[-1]))
            if self._limited:  # more rows than the candidate takes, most of them such that the query finds them
                self._size = max(self._size, aim.limit + aim.limit // 4 + 8)
        elif read and not aim.aimed and aim.sizes and chooser.random() < 0.3:
            self._size = chooser.choice(aim.sizes)
        elif read and not aim.aimed and chooser.random() < 0.5:
            self._misses = min(_MISSES, len(facts.rows) // 2)
        self._parents = {
            at: list(dict.fromkeys(made[column.parent]))
            for at, column in enumerate(facts.columns)
            if column.parent is not None and column.parent in made
        }
        if read and not aim.aimed:  # so few that many rows point to each
            for at, keys in self._parents.items():
                if chooser.random() < _NARROW and not facts.columns[at].unique and not facts.columns[at].covers:
                    self._parents[at] = chooser.sample(keys, min(2, len(keys)))
        self._own_pick = chooser.choice((slice(None), slice(-_DEEP, None), slice(2)))
        self._own = {
            at: [other.shape.name.lower() for other in facts.columns].index(column.parent[1])
            for at, column in enumerate(facts.columns)
            if column.parent is not None and column.parent[0] == name
        }
        self._levels: dict[int, dict[Any, int]] = {at: {} for at in self._own}
        self._used: list[set[Any]] = [set() for _ in facts.columns]
        self._shared: list[set[Row]] = [set() for _ in facts.distinct]
        linked = {at for group in facts.linked for at in group}
        self._following = linked | {rule.target for rule in facts.derived}
        ordered = {at for pair in facts.ordered for at in pair}
        self._bound = ordered.union(*(group for group in facts.linked if ordered & {*group}))
        self._groups = [*facts.linked, *((at,) for at in range(len(facts.columns)) if at not in linked)]
        self._alone = [
            column.unique or (column.differs and column.shape.name.lower() in aim.ranked) for column in facts.columns
        ]
        self._ranked = {
            at
            for at, column in enumerate(facts.columns)
            if column.shape.name.lower() in aim.ranked and column.parent is None and not column.closed
        }
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
        drawn: list[Row] = []
        bases, misses = self._bases(), self._near_misses()
        # Where a row is nothing but a pair of keys, one that just misses must take the place of what it is like.
        firm = self._missed(misses, drawn) if self._few and self._paired() else 0
        for base in bases:
            row = self._changed(list(base))
            if self._limited:  # some of the file's rows again and again
                self._make_room(row, set())
            kept = self._kept(row, len(drawn) - firm)
            if kept is not None:
                drawn.append(tuple(kept))
        if not firm:
            self._missed(misses, drawn)
        return drawn

    def _paired(self) -> bool:
        """Return whether no two rows share some columns that all point elsewhere, or hold a closed set of values."""
        return any(len(places) > 1 and not self._free(places) for places in self._facts.distinct)

    def _free(self, places: Sequence[int]) -> list[int]:
        """Return those columns that may get values which they have not had."""
        return [at for at in places if self._facts.columns[at].parent is None and not self._facts.columns[at].closed]

    def _missed(self, misses: Sequence[tuple[Row, int, Any]], drawn: list[Row]) -> int:
        """Add rows that just miss what the query asks; return how many rows there are then."""
        for base, at, value in misses:
            row = [*base[:at], value, *base[at + 1 :]]
            self._make_room(row, {at})
            if at in self._ranked and value in self._used[at]:
                continue
            kept = self._kept(row, len(drawn), firm=True)
            if kept is not None:
                drawn.append(tuple(kept))
        return len(drawn)

    def _make_room(self, row: list[Any], meant: set[int]) -> None:
        """Give a row other values where it has what no two rows should share, but for columns that are meant."""
        for at in self._crowded(row) - meant - self._following:
            row[at] = self._draws[at].beside(row[at], self._chooser)

    def _crowded(self, row: Sequence[Any]) -> set[int]:
        """Return columns that another value helps where a row has what no two rows should share."""
        crowded = {at for at in self._ranked if row[at] in self._used[at]}
        for places, shared in zip(self._facts.distinct, self._shared, strict=True):
            free = self._free(places)
            if len(places) > 1 and free and tuple(row[at] for at in places) in shared:
                crowded.add(self._chooser.choice(free))
        return crowded

    def _near_misses(self) -> list[tuple[Row, int, Any]]:
        """Return rows, such that the query finds them where it can be, with the one cell in which each is to differ.

        Some differ in nothing but what no two rows share.
        """
        near = []
        for at, draw in enumerate(self._draws):
            if self._misses and (misses := self._missing(at, draw)):
                several = self._chooser.sample(misses, len(misses))
                if self._few:  # the edge itself before what is only near
                    several.sort(key=lambda value: value not in draw.edges)
                near += [(number, self._chooser.random(), at, value) for number, value in enumerate(several)]
        if not self._misses:
            return []
        near.sort(key=lambda item: item[:2])  # each column has its turn, however many values it has
        bases = self._witnesses or self._facts.rows
        misses = [(self._chooser.choice(bases), at, value) for _, _, at, value in near[: self._misses]]
        same = [self._chooser.choice(bases) for _ in range(self._misses // 6)]
        return misses + [(row, 0, row[0]) for row in same]

    def _missing(self, at: int, draw: ColumnDraw) -> list[Any]:
        """Return the values with which a column just misses what the query asks, and the rows keep their rules.

        Where others follow from it they are those that a candidate's pattern reaches for, and no row has had.
        """
        if at in self._following:
            return draw.reached
        if self._facts.columns[at].parent is None:
            return draw.misses
        there = {*self._parents.get(at, ())}
        return [value for value in draw.misses if value in there]

    def _bases(self) -> list[Row]:
        """Return rows of the file, each once as far as they go; about half of them such that the query finds them."""
        pool = list(self._facts.rows)
        self._chooser.shuffle(pool)
        wanted = list(self._witnesses)
        self._chooser.shuffle(wanted)
        pool = wanted if self._limited and wanted else pool
        most = self._size if self._aimed else self._size // 2 * (self._chooser.random() >= _WITHOUT)
        first = list(dict.fromkeys([*wanted[:most], *pool]))[: self._size]
        bases = [*first, *(self._chooser.choice(pool) for _ in range(self._size - len(first)))]
        self._chooser.shuffle(bases)
        return bases

    def _changed(self, row: list[Any]) -> list[Any]:
        """Return a row with some other values."""
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
        return row

    def _kept(self, row: list[Any], number: int, *, firm: bool = False) -> list[Any] | None:
        """Return a row that keeps the rules which all rows keep, or None; a firm one points to what it points to."""
        if not all(rule.settle(row) for rule in self._facts.derived):
            return None
        for one, other_at in self._facts.ordered:
            if row[one] is not None and row[other_at] is not None and not row[one] <= row[other_at]:
                return None
        for at in range(len(row)):
            if not (self._points(row, at, number, firm) and self._unused(row, at) and self._apart(row, at)):
                return None
        if not all(rule.settle(row) for rule in self._facts.derived):
            return None
        for places, shared in zip(self._facts.distinct, self._shared, strict=True):
            cells = tuple(row[at] for at in places)
            if None not in cells and cells in shared:
                return None
        for places, shared in zip(self._facts.distinct, self._shared, strict=True):
            shared.add(tuple(row[at] for at in places))
        for at, value in enumerate(row):
            self._used[at].add(value)
        for at, levels in self._levels.items():
            levels[row[self._own[at]]] = levels.get(row[at], -1) + 1
        return row

    def _points(self, row: list[Any], at: int, number: int, firm: bool) -> bool:
        """Have a column point to a row that is there; return whether it does."""
        column = self._facts.columns[at]
        if column.parent is None:
            return True
        if at in self._own:
            flat = column.depth == 1  # what has two levels may have more
            levels = sorted(self._levels[at].items(), key=lambda item: item[1])
            there = [key for key, level in levels if key is not None and not (flat and level)]
            own = row[self._own[at]]
            if row[at] is None or (column.depth is None and row[at] == own):
                return True
            if row[at] in there and (firm or self._own_pick == slice(None)):
                return True
            if not there and not column.nulls:  # the first row of all
                row[at] = own if column.depth is None else row[at]
                return column.depth is None or row[at] != own
            there = there[self._own_pick]
        elif at not in self._parents:  # of a ring, which was cut here
            return True
        else:
            there = self._parents[at]
            if column.covers and number < len(there) and not firm:
                row[at] = there[(number + at) % len(there)]  # two columns may never point to the same row
                return True
            kept = row[at] is None or row[at] in there
            if kept and (firm or self._chooser.random() >= max(self._rate, _TURNED)):
                return True
        share = max(column.nulls / 2 if at in self._own else column.nulls, _NULLS)
        if column.nulls and (not there or self._chooser.random() < share * (row[at] is not None)):
            row[at] = None
            return True
        if column.unique:
            there = [value for value in there if value not in self._used[at]]
        if not there:
            return False
        row[at] = self._chooser.choice(there)
        return True

    def _apart(self, row: list[Any], at: int) -> bool:
        """Have a column differ from those before it whose value it never has; return whether it does."""
        others = {row[one] for one, other in self._facts.unequal if other == at}
        if row[at] is None or row[at] not in others:
            return True
        if at in self._own or at in self._bound or at in self._following or self._facts.columns[at].covers:
            return False
        known = self._facts.columns[at].values if self._facts.columns[at].parent is None else self._parents.get(at, ())
        left = [value for value in known if value not in others and not (self._alone[at] and value in self._used[at])]
        row[at] = self._chooser.choice(left) if left else row[at]
        return bool(left)

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
            return self._draws[at].fits(row[at])
        return False
