"""Does the answer solve the puzzle?  Any solution is right, whichever the gold one was.

Nothing is searched for: an answer is checked against the rules.  docs/logic.md has the kinds and their references.

A clue of a zebra puzzle is a list: its kind, two things (or a thing and a position), and a number where the kind needs
one.  A thing is `[attribute, value]`.

| clue | says |
|---|---|
| `["at", thing, 2]`, `["not_at", thing, 2]` | it is at the position, counted from 1, or is not |
| `["same", a, b]`, `["different", a, b]` | both are at one position, or are not |
| `["left_of", a, b]`, `["directly_left", a, b]` | a is before b, or right before it |
| `["next_to", a, b]`, `["apart", a, b, 2]` | they are neighbours, or so many positions apart |

Not covered: puzzles given as prose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.entries import shown, wrong_form
from adjudge.verifiers.logic.expression import exact_value
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.ordering import normal_item
from adjudge.verifiers.logic.puzzle_table import Table, read_table, table_of
from adjudge.verifiers.logic.squares import Maze, Queens, Sudoku

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
    """A puzzle with its clues; each attribute has one value for each position."""

    def __init__(self, attributes: Any, clues: Any) -> None:
        if not isinstance(attributes, Mapping) or not attributes or not isinstance(clues, list | tuple):
            raise ReferenceFormError('a zebra puzzle needs "attributes", a mapping of lists, and "clues"')
        self._values: dict[str, frozenset[str]] = {}
        for name, values in attributes.items():
            if not isinstance(values, list | tuple):
                raise ReferenceFormError(f"the values of {shown(name)} are no list")
            self._values[normal_item(str(name))] = frozenset(normal_item(str(value)) for value in values)
        sizes = {len(values) for values in self._values.values()}
        if len(self._values) < len(attributes):
            raise BadReferenceError("two attributes have the same name")
        if len(sizes) != 1 or any(len(values) not in sizes for values in attributes.values()) or 0 in sizes:
            raise BadReferenceError("the attributes do not have the same number of different values")
        self._size = sizes.pop()
        self._clues = [self._clue(clue) for clue in clues]

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one."""
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
            raise ReferenceFormError(f"the clue {shown} is of no kind of {', '.join(_BETWEEN)}")
        if len(clue) != (4 if clue[0] == "apart" else 3) or any(type(part) is not int for part in clue[3:]):
            raise ReferenceFormError(f"the clue {shown} has other parts than its kind needs")
        kind, one, other, *gap = clue
        if (type(other) is int) != (kind in _PLACED):
            raise ReferenceFormError(f"the clue {shown} has other parts than its kind needs")
        if (kind in _PLACED and not 1 <= other <= self._size) or any(not 0 < part < self._size for part in gap):
            raise BadReferenceError(f"the clue {shown} is about a position that is not there")
        return kind, self._thing(one, shown), other if kind in _PLACED else self._thing(other, shown), sum(gap)

    def _thing(self, thing: Any, shown: str) -> Thing:
        if isinstance(thing, list | tuple) and len(thing) == 2:
            name, value = normal_item(str(thing[0])), normal_item(str(thing[1]))
            if value in self._values.get(name, ()):
                return name, value
        raise BadReferenceError(f"the clue {shown} names something that is not there")


_NAMED: Final = re.compile(
    r"\A(?:(?:the|a|my|one|final|correct|possible)\s)*(?:expression|equation|answer|solution)\s?(?:is|:)\s",
    re.IGNORECASE,
)

Broken = Callable[[str], str]
"""Returns why an answer is wrong, "" for a right one; raises `LiteralError` for one that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class PuzzleVerifier(MarkedAnswerVerifier[tuple[str, Broken]]):
    """1 when an answer solves the puzzle, else 0.

    The reference is the puzzle: `{"kind": "sudoku", "grid": [[5, 3, 0, ..], ..]}`, or one of the kinds "countdown",
    "maze", "queens" and "zebra" with what they need.
    """

    name: ClassVar[str] = "puzzle"
    version: ClassVar[str] = "3"

    def read_reference(self, reference: Any) -> tuple[str, Broken]:
        """Return the puzzle's kind, and what tells whether an answer solves it."""
        kind = reference.get("kind") if isinstance(reference, Mapping) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            raise wrong_form(reference, f"""{{"kind": ..}}, one of {", ".join(_KINDS)}""")
        needed, optional, make = _KINDS[kind]
        given = {key: value for key, value in reference.items() if key != "kind"}
        if not needed <= set(given) <= needed | optional:
            raise ReferenceFormError(
                f"a puzzle of the kind {kind} has {', '.join(map(str, sorted(given, key=str))) or 'nothing'}; "
                f"it needs {', '.join(sorted(needed))}, and takes {', '.join(sorted(optional)) or 'nothing else'}"
            )
        return kind, make(given)

    def judge_text(self, answer: str, gold: tuple[str, Broken]) -> Score:
        """Return 1 for a solution."""
        kind, broken = gold
        if fault := broken(answer):
            return Score.scored(0.0, "wrong", kind=kind, answer=shorten(answer), error=fault)
        return Score.scored(1.0, kind=kind, answer=shorten(answer))


def _countdown(puzzle: Mapping[str, Any]) -> Broken:
    numbers, target, every = puzzle["numbers"], puzzle["target"], puzzle.get("all", True)
    if not isinstance(numbers, list | tuple) or not numbers or any(type(number) is not int for number in numbers):
        raise ReferenceFormError("numbers must be a list of whole numbers")
    if type(target) is not int or type(every) is not bool:
        raise ReferenceFormError("target must be a whole number, and all true or false")
    wanted, available = Fraction(target), Counter(numbers)

    def broken(answer: str) -> str:
        answer = _NAMED.sub("", answer.strip())
        value, used = _in_steps(answer) if answer.count("=") > 1 and "\n" in answer else exact_value(answer)
        if value != wanted:
            return f"it gives {shorten(str(value), 60)}"
        if Counter(used) - available or (every and Counter(used) != available):
            return "it uses other numbers"
        return ""

    return broken


def _in_steps(answer: str) -> tuple[Fraction, list[int]]:
    """What steps on lines of their own come to ("25 * 5 = 125", "125 - 7 = 118"), and the numbers that they begin with.

    Each result is used in one later step.
    """
    made: Counter[int] = Counter()
    begun: list[int] = []
    value = Fraction(0)
    for line in filter(str.strip, answer.splitlines()):
        value, used = exact_value(line)
        if "=" not in line or value.denominator > 1:
            raise LiteralError("unparsable_answer", "a line is no step")
        again = Counter(used) & made
        begun += (Counter(used) - again).elements()
        made = made - again + Counter([int(value)])
    if made.total() != 1:
        raise LiteralError("unparsable_answer", "a step's result is not used")
    return value, sorted(begun)


def _maze(puzzle: Mapping[str, Any]) -> Broken:
    shortest = puzzle.get("shortest", False)
    if type(shortest) is not bool:
        raise ReferenceFormError("shortest must be true or false")
    return Maze(puzzle["grid"], shortest=shortest).broken


_KINDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str], Callable[[Mapping[str, Any]], Broken]]]] = {
    "sudoku": (frozenset({"grid"}), frozenset({"box"}), lambda p: Sudoku(p["grid"], p.get("box")).broken),
    "countdown": (frozenset({"numbers", "target"}), frozenset({"all"}), _countdown),
    "maze": (frozenset({"grid"}), frozenset({"shortest"}), _maze),
    "queens": (frozenset({"size"}), frozenset({"given"}), lambda p: Queens(p["size"], p.get("given", ())).broken),
    "zebra": (frozenset({"attributes", "clues"}), frozenset(), lambda p: Zebra(p["attributes"], p["clues"]).broken),
}
"""What each kind needs, what else it takes, and what makes it."""
