"""Zebra puzzles by their clues: every arrangement that fits is right, and none is searched for.

A clue is a list: its kind, two things (or a thing and a position), and a number where the kind needs one.  A thing is
`[attribute, value]`.

| clue | says |
|---|---|
| `["at", thing, 2]`, `["not_at", thing, 2]` | it is at the position, counted from 1, or is not |
| `["same", a, b]`, `["different", a, b]` | both are at one position, or are not |
| `["left_of", a, b]`, `["directly_left", a, b]` | a is before b, or right before it |
| `["next_to", a, b]`, `["apart", a, b, 2]` | they are neighbours, or so many positions apart |

Not covered: clues in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.ordering import normal_item
from adjudge.verifiers.logic.puzzle_table import Table, read_table, table_of
from adjudge.verifiers.text.answer_span import shorten

Thing = tuple[str, str]
Clue = tuple[str, Thing, "Thing | int", int]

_BETWEEN: Final[Mapping[str, Callable[[int, int, int], bool]]] = {
    "same": lambda one, other, _: one == other,
    "different": lambda one, other, _: one != other,
    "left_of": lambda one, other, _: one < other,
    "directly_left": lambda one, other, _: one + 1 == other,
    "next_to": lambda one, other, _: abs(one - other) == 1,
    "apart": lambda one, other, gap: abs(one - other) == gap,
    "at": lambda one, other, _: one == other,
    "not_at": lambda one, other, _: one != other,
}
_PLACED: Final = frozenset({"at", "not_at"})


class Zebra:
    """A puzzle with its clues.

    Args:
        attributes: the values of each attribute, one for each position.
        clues: see the module.

    Raises:
        BadReferenceError: the attributes differ in size, or a clue is malformed.
    """

    def __init__(self, attributes: Any, clues: Any) -> None:
        if not isinstance(attributes, Mapping) or not attributes or not isinstance(clues, list | tuple):
            raise BadReferenceError('a zebra puzzle needs "attributes", a mapping of lists, and "clues"', mistake=True)
        self._values: dict[str, frozenset[str]] = {}
        for name, values in attributes.items():
            if not isinstance(values, list | tuple):
                raise BadReferenceError(f"the values of {shorten(repr(name), 40)} are no list", mistake=True)
            self._values[normal_item(str(name))] = frozenset(normal_item(str(value)) for value in values)
        sizes = {len(values) for values in self._values.values()}
        if len(self._values) < len(attributes):
            raise BadReferenceError("two attributes have the same name", mistake=False)
        if len(sizes) != 1 or any(len(values) not in sizes for values in attributes.values()) or 0 in sizes:
            raise BadReferenceError("the attributes do not have the same number of different values", mistake=False)
        self._size = sizes.pop()
        self._clues = [self._clue(clue) for clue in clues]

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one.

        Raises:
            LiteralError: it is no table.
        """
        cells = self._cells(answer)
        wanted = {(str(place), name) for place in range(1, self._size + 1) for name in self._values}
        if set(cells) != wanted:
            return "not every position and attribute is there, or others are"
        place: dict[Thing, int] = {}
        for name, values in self._values.items():
            column = {cells[str(at), name]: at for at in range(1, self._size + 1)}
            if set(column) != values:
                return f"the column {name!r} does not hold each value once"
            place |= {(name, value): at for value, at in column.items()}
        for number, (kind, one, other, gap) in enumerate(self._clues, 1):
            if not _BETWEEN[kind](place[one], other if isinstance(other, int) else place[other], gap):
                return f"clue {number} ({kind}) does not hold"
        return ""

    def _cells(self, answer: str) -> Table:
        """The table of an answer; rows without a header are told by their values ("1, Ann, cat")."""
        rows = [[cell.strip() for cell in line.split(",")] for line in answer.splitlines() if line.strip()]
        if len(rows) != self._size or any(len(row) != len(self._values) + 1 for row in rows):
            return read_table(answer)
        names = []
        for column in range(1, len(rows[0])):
            said = {normal_item(row[column]) for row in rows}
            names.append([name for name, values in self._values.items() if said == values])
        if any(len(fitting) != 1 for fitting in names):
            raise LiteralError("unparsable_answer", "a column holds the values of no attribute, or of several")
        return table_of({"header": ["position", *(fitting[0] for fitting in names)], "rows": rows})

    def _clue(self, clue: Any) -> Clue:
        shown = shorten(repr(clue), 80)
        if not isinstance(clue, list | tuple) or not clue or clue[0] not in list(_BETWEEN):
            raise BadReferenceError(f"the clue {shown} is of no kind of {', '.join(_BETWEEN)}", mistake=True)
        if len(clue) != (4 if clue[0] == "apart" else 3) or any(type(part) is not int for part in clue[3:]):
            raise BadReferenceError(f"the clue {shown} has other parts than its kind needs", mistake=True)
        kind, one, other, *gap = clue
        if (type(other) is int) != (kind in _PLACED):
            raise BadReferenceError(f"the clue {shown} has other parts than its kind needs", mistake=True)
        if (kind in _PLACED and not 1 <= other <= self._size) or any(not 0 < part < self._size for part in gap):
            raise BadReferenceError(f"the clue {shown} is about a position that is not there", mistake=False)
        return kind, self._thing(one, shown), other if kind in _PLACED else self._thing(other, shown), sum(gap)

    def _thing(self, thing: Any, shown: str) -> Thing:
        if isinstance(thing, list | tuple) and len(thing) == 2:
            name, value = normal_item(str(thing[0])), normal_item(str(thing[1]))
            if value in self._values.get(name, ()):
                return name, value
        raise BadReferenceError(f"the clue {shown} names something that is not there", mistake=False)
