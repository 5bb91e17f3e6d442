"""Rules within one row: columns that never hold the same value, and columns that follow from a part or a comparison.

Not covered: sums, products and columns that follow from one other, which `file_facts` finds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adjudge.verifiers.sql.databases.file_facts import ColumnFacts, Row

_CHANCE: Final = 0.001  # that a rule only seems to hold
_OUTCOMES: Final = 3  # values that a comparison decides between


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A column that follows from others of its row.

    Attributes:
        target: its place.
        sources: the place of the text that it is a part of, or the places of the two values that are compared for it.
        part: from where to where in the text.
        whole: whether the part is taken for a number.
        outcomes: its value where the first is less (-1), the same (0), more (1), or one of them is NULL.
    """

    target: int
    sources: tuple[int, ...]
    part: tuple[int, int] = (0, 0)
    whole: bool = False
    outcomes: Mapping[int | None, Any] = field(default_factory=dict)

    def settle(self, row: list[Any]) -> bool:
        """Give the column its value; return whether it is known."""
        if self.outcomes:
            sign = _compared(row, self.sources)
            row[self.target] = self.outcomes.get(sign)
            return sign in self.outcomes
        source = row[self.sources[0]]
        text = source[slice(*self.part)] if isinstance(source, str) else ""
        row[self.target] = None if source is None else int(text) if self.whole and text.isdecimal() else text
        return source is None or (text.isdecimal() if self.whole else bool(text))


def derived_columns(rows: Sequence[Row], columns: Sequence[ColumnFacts], taken: set[int]) -> Iterator[Derived]:
    """Yield the columns that follow from others in more rows than chance would have it, each once; none of `taken`."""
    for at, column in enumerate(columns):
        values = Counter(row[at] for row in rows)
        if column.unique or column.parent or column.shape.key or at in taken or len(values) < 2:
            continue
        if (values.most_common(1)[0][1] / len(rows)) ** (len(rows) - len(values)) >= _CHANCE:
            continue
        if (found := next(_derivations(rows, columns, at, values), None)) is not None:
            yield found


def _derivations(
    rows: Sequence[Row], columns: Sequence[ColumnFacts], at: int, values: Mapping[Any, int]
) -> Iterator[Derived]:
    texts = [other for other, column in enumerate(columns) if other != at and _all(column, str)]
    for source in texts:
        first = next(row for row in rows if row[at] is not None)
        text, part, whole = str(first[source]), str(first[at]), _all(columns[at], int)
        for width in dict.fromkeys((len(part), 2) if whole else (len(part),)):
            for start in range(len(text) - width + 1):
                rule = Derived(target=at, sources=(source,), part=(start, start + width), whole=whole)
                if width < len(text) and _holds(rule, rows):
                    yield rule
    if len(values) > _OUTCOMES:
        return
    for pair in itertools.combinations([other for other in range(len(columns)) if other != at], 2):
        one, other = (columns[place] for place in pair)
        if not (one.numbered and other.numbered) and not (_dated(one) and _dated(other)):
            continue
        outcomes: dict[int | None, Any] = {}
        for row in rows:
            if outcomes.setdefault(_compared(row, pair), row[at]) != row[at]:
                break
        else:
            if len(outcomes) > 1:
                yield Derived(target=at, sources=pair, outcomes=outcomes)


def _holds(rule: Derived, rows: Sequence[Row]) -> bool:
    for row in rows:
        cells = list(row)
        if not rule.settle(cells) or cells[rule.target] != row[rule.target]:
            return False
    return True


def _compared(row: Sequence[Any], pair: Sequence[int]) -> int | None:
    one, other = (row[at] for at in pair)
    return None if one is None or other is None else (one > other) - (one < other)


def _all(column: ColumnFacts, kind: type) -> bool:
    return bool(column.values) and all(isinstance(value, kind) for value in column.values)


def _dated(column: ColumnFacts) -> bool:
    return column.shape.kind in ("date", "moment") and _all(column, str)


def unequal_columns(rows: Sequence[Row], columns: Sequence[ColumnFacts]) -> Iterator[tuple[int, int]]:
    """Yield pairs of columns that never hold the same value in a row, although they have values in common."""
    usable = [at for at, column in enumerate(columns) if column.values and not column.unique]
    for one, other in itertools.combinations(usable, 2):
        pairs = [(row[one], row[other]) for row in rows if row[one] is not None and row[other] is not None]
        if columns[one].parent != columns[other].parent or any(first == second for first, second in pairs):
            continue
        firsts, seconds = (Counter(values) for values in zip(*pairs, strict=True)) if pairs else (Counter(), Counter())
        alike = sum(count * seconds[value] for value, count in firsts.items()) / max(1, len(pairs)) ** 2
        if (1 - alike) ** len(pairs) < _CHANCE:
            yield one, other
