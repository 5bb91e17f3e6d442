"""Does the answer solve the puzzle?  Any solution is right, whichever the gold one was.

An answer is checked against the rules; nothing is searched for, but whether a small puzzle has a solution at all.
docs/logic.md has the kinds and their references.

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
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, ClassVar, Final

from adjudge.protocol import Score
from adjudge.responses.answer_span import shorten
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown, wrong_form
from adjudge.verifiers.logic.expression import exact_value
from adjudge.verifiers.logic.grid import Grid, grid_of, read_grid
from adjudge.verifiers.logic.literal import LiteralError, read_literal
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.ordering import normal_item
from adjudge.verifiers.logic.puzzle_table import Table, read_table, table_of
from adjudge.verifiers.logic.small_search import gives

Cell = tuple[int, int]

MAXCELLS: Final = 250_000
MAX_MOVES: Final = 20_000
_STEPS: Final = {
    **dict.fromkeys("u up ↑ n north".split(), (-1, 0)),
    **dict.fromkeys("d down ↓ s south".split(), (1, 0)),
    **dict.fromkeys("l left ← w west".split(), (0, -1)),
    **dict.fromkeys("r right → e east".split(), (0, 1)),
}
_ITEM: Final = re.compile(r"^\s*(?:(?:step|move)\s{0,2})?\d{1,5}\s?[.):]\s*|^\s*[*•]\s+", re.IGNORECASE | re.MULTILINE)
_APART: Final = re.compile(r"[\s,;.\[\]\"'>-]+")
CELL: Final = re.compile(r"[(\[]\s{0,3}(\d{1,4})\s{0,3},\s{0,3}(\d{1,4})\s{0,3}[)\]]")


class Maze:
    """A maze: rows of one length with "S" for the start, "G" for the goal and "#" for walls."""

    def __init__(self, rows: Any, *, shortest: bool) -> None:
        if not isinstance(rows, list | tuple) or not rows or not all(isinstance(row, str) for row in rows):
            raise ReferenceFormError('a maze needs "grid": its rows, as texts')
        if len(set(map(len, rows))) != 1 or len(rows) * len(rows[0]) > MAXCELLS:
            raise BadReferenceError("the maze's rows differ in length, or there are too many")
        text = "".join(rows)
        if (text.count("S"), text.count("G")) != (1, 1):
            raise BadReferenceError("the maze has not one start, S, and one goal, G")
        self._free = {(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"}
        self._start, self._goal = (divmod(text.index(mark), len(rows[0])) for mark in "SG")
        least = self._least()
        if least is None:
            raise BadReferenceError("there is no way through the maze")
        self._length = least if shortest else None

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one."""
        way = self._way(answer)
        if len(way) > MAX_MOVES:
            raise LiteralError("too_complex", f"more than {MAX_MOVES} moves")
        for number, cell in enumerate(way):
            if cell not in self._free:
                return f"move {number} leads into a wall"
        if way[-1] != self._goal:
            return "it does not end at the goal"
        if self._length is not None and len(way) - 1 != self._length:
            return f"it takes {len(way) - 1} moves, and a shortest way takes {self._length}"
        return ""

    def _way(self, answer: str) -> list[Cell]:
        if re.match(r"\s{0,9}[\[(]\s{0,9}[\[(]", answer):
            return self._cells(read_literal(answer))
        if (cells := CELL.findall(answer)) and not _APART.sub("", CELL.sub("", answer).replace("→", "")):
            return self._cells([(int(row), int(column)) for row, column in cells])
        if re.search(r"[^\W\d_]", answer):
            answer = _ITEM.sub(" ", answer)
            answer = answer.replace("→", " ")  # between words it is what "->" is
        words = [word for word in _APART.split(answer.casefold()) if word not in ("", "move", "go")]
        if len(words) == 1 and words[0] not in _STEPS:
            words = list(words[0])
        if not words or any(word not in _STEPS for word in words):
            raise LiteralError("unparsable_answer", "it is neither moves nor cells")
        way = [self._start]
        for word in words:
            down, right = _STEPS[word]
            way.append((way[-1][0] + down, way[-1][1] + right))
        return way

    def _cells(self, value: Any) -> list[Cell]:
        if not isinstance(value, list | tuple) or not all(
            isinstance(cell, list | tuple) and len(cell) == 2 and all(type(at) is int for at in cell) for cell in value
        ):
            raise LiteralError("unparsable_answer", "it is not a list of cells")
        way = [(row, column) for row, column in value]
        apart = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise(way)]
        if not way or way[0] != self._start or any(step != 1 for step in apart):
            raise LiteralError("wrong", "it does not begin at the start, or a step is none to a neighbour")
        return way

    def _least(self) -> int | None:
        steps = {self._start: 0}
        waiting = deque([self._start])
        while waiting:
            row, column = waiting.popleft()
            for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                cell = (row + down, column + right)
                if cell in self._free and cell not in steps:
                    steps[cell] = steps[row, column] + 1
                    waiting.append(cell)
        return steps.get(self._goal)


MAX_SIZE: Final = 64
_EMPTY: Final = frozenset({"0", ".", "_", "", "?", "*"})
_BOXES: Final = {4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3), 10: (2, 5), 12: (3, 4), 16: (4, 4), 25: (5, 5)}
_BOARD_ROW: Final = re.compile(r"(?=..)[._*-]*[Qq][._*-]*")
_QUEEN: Final = frozenset({"q", "1"})
_BLANK: Final = frozenset({".", "_", "0", "*", "-"})


class Sudoku:
    """A sudoku: nested lists or a text with its rows, 0, "." or "_" where nothing is given; and the shape of a box."""

    def __init__(self, rows: Any, box: Any = None) -> None:
        try:
            board = _sudoku_text(rows) if isinstance(rows, str) else grid_of(rows)
        except LiteralError as error:
            raise BadReferenceError(f"the sudoku is not a board: {error}") from error
        size = len(board)
        shape = box if box is not None else _BOXES.get(size)
        if not isinstance(shape, list | tuple) or len(shape) != 2 or any(type(side) is not int for side in shape):
            said = f"box is {shown(box)}" if box is not None else f"a board of {size} rows has no usual box"
            raise ReferenceFormError(f"{said}; give the rows and columns of a box")
        if len(board[0]) != size or size > MAX_SIZE or shape[0] < 1 or shape[0] * shape[1] != size:
            raise BadReferenceError(f"a board of {size} rows is not made of boxes of {shape[0]} by {shape[1]}")
        self._given, self._rows, self._columns = board, shape[0], shape[1]
        self._values = {str(value) for value in range(1, size + 1)}
        if any(cell not in self._values | _EMPTY for row in board for cell in row) or not self._apart(board):
            raise BadReferenceError("the givens are not numbers of the board, or contradict each other")

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one."""
        offered = read_grid(answer)
        size = len(self._given)
        if size > 1 and len(offered) == 1 and len(offered[0]) == size * size:  # the rows one after the other
            offered = tuple(offered[0][at : at + size] for at in range(0, size * size, size))
        if (len(offered), len(offered[0])) != (size, size):
            return f"it has not {size} rows of {size}"
        for mine, given in zip(offered, self._given, strict=True):
            if any(cell not in self._values for cell in mine):
                return "a cell is empty, or holds no number of the board"
            if any(want not in _EMPTY and cell != want for cell, want in zip(mine, given, strict=True)):
                return "a given is another one"
        return "" if self._apart(offered) else "a number comes twice in a row, a column or a box"

    def _apart(self, board: Grid) -> bool:
        units: dict[tuple[str, int, int], list[str]] = {}
        for r, row in enumerate(board):
            for c, cell in enumerate(row):
                if cell not in _EMPTY:
                    box = ("box", r // self._rows, c // self._columns)
                    for unit in (("row", r, 0), ("column", c, 0), box):
                        units.setdefault(unit, []).append(cell)
        return all(len(set(cells)) == len(cells) for cells in units.values())


class Queens:
    """A board on which as many queens as it has rows do not attack each other.

    `given` are the columns of queens that stand already, by row, counted from 1; 0 for rows without.
    """

    def __init__(self, size: Any, given: Any = ()) -> None:
        if type(size) is not int or not 1 <= size <= MAX_SIZE:
            raise ReferenceFormError(f"size is {shown(size)}; give 1 to {MAX_SIZE}")
        if not isinstance(given, list | tuple) or any(type(at) is not int or not 0 <= at <= size for at in given):
            raise ReferenceFormError("given must be a list of columns, 0 for none")
        if size in (2, 3):
            raise BadReferenceError(f"{size} queens have no place on a board of {size} rows")
        if len(given) > size:
            raise BadReferenceError(f"{len(given)} rows are given, and the board has {size}")
        placed = [(row, column) for row, column in enumerate(given) if column]
        if any(b == d or abs(a - c) == abs(b - d) for (a, b), (c, d) in combinations(placed, 2)):
            raise BadReferenceError("two of the given queens attack each other")
        self._size, self._given = size, tuple(given)

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one.

        The answer is the board, with Q or 1 for queens, the queens' columns by row, or the row and column of each
        queen; all of them counted from 1, or all from 0.
        """
        columns = self._columns_of(answer)
        if 0 in columns:
            columns = [column + 1 for column in columns]
        if len(columns) != self._size or sorted(columns) != list(range(1, self._size + 1)):
            return "there is not one queen in each row and column"
        for turn in (1, -1):
            if len({row + turn * column for row, column in enumerate(columns)}) < self._size:
                return "two queens stand on one diagonal"
        if any(want and column != want for column, want in zip(columns, self._given, strict=False)):
            return "a given queen stands elsewhere"
        return ""

    def _columns_of(self, answer: str) -> list[int]:
        places = sorted((int(row), int(column)) for row, column in CELL.findall(answer))
        if places and not re.search(r"[^\s,;\[\]{}]", CELL.sub("", answer)):
            first = min(column for _, column in places)
            in_rows = [row for row, _ in places] == list(range(first, first + self._size))
            return [column for _, column in places] if in_rows else []
        try:
            value = read_literal(answer)
        except LiteralError:
            value = None
        if isinstance(value, list | tuple):
            whole = not any(isinstance(row, list | tuple) or _BOARD_ROW.fullmatch(str(row)) for row in value)
            board = grid_of([value] if whole else [[row] if isinstance(row, str) else row for row in value])
        else:
            board = read_grid(answer)
        if len(board) == 1 and self._size > 1 and all(cell.isdecimal() and len(cell) < 4 for cell in board[0]):
            return [int(cell) for cell in board[0]]
        columns = []
        for row in board:
            cells = [cell.casefold() for cell in (list(row[0]) if len(row) == 1 else row)]
            queens = [column for column, cell in enumerate(cells, 1) if cell in _QUEEN]
            if len(cells) != self._size or len(queens) != 1 or any(cell not in _QUEEN | _BLANK for cell in cells):
                return []
            columns += queens
        return columns


def _sudoku_text(text: str) -> Grid:
    """A text with the rows, each a run of characters, or its cells apart by spaces or commas."""
    rows = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return grid_of([list(row) if not set(row) & set(" ,[|") else list(read_grid(row)[0]) for row in rows])


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
                raise ReferenceFormError(f"the values of {shown(name)} are not a list")
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
        """The table of an answer; rows without a header are told by their values ("House 1: Ann, cat")."""
        listed = _HOUSE.sub(r"\1, ", answer)
        rows = [[cell.strip() for cell in line.split(",")] for line in listed.splitlines() if line.strip()]
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


_HOUSE: Final = re.compile(
    r"^[^\w\n]*(?:house|position)?[ ]?(\d{1,2})[*_]{0,2}:[*_]{0,2}\s", re.IGNORECASE | re.MULTILINE
)
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
    version: ClassVar[str] = "8"

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
    if gives(tuple(numbers), target, every=every) is False:
        raise BadReferenceError(f"nothing made of {shown(numbers)} gives {target}")
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
            raise LiteralError("unparsable_answer", "a line is not a step")
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
