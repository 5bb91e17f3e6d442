"""Puzzles on a square board: sudoku, and queens that do not attack each other.

Not covered: variants of sudoku with further rules.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import combinations, pairwise
from typing import Any, Final

from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.entries import shown
from adjudge.verifiers.logic.grid import Grid, grid_of, read_grid
from adjudge.verifiers.logic.literal import LiteralError, read_literal

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
_BETWEEN: Final = re.compile(r"[\s,;\[\]\"'>-]+")
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
        if (cells := CELL.findall(answer)) and not _BETWEEN.sub("", CELL.sub("", answer).replace("→", "")):
            return self._cells([(int(row), int(column)) for row, column in cells])
        if re.search(r"[^\W\d_]", answer):
            answer = _ITEM.sub(" ", answer)
            answer = answer.replace("→", " ")  # between words it is what "->" is
        words = [word for word in _BETWEEN.split(answer.casefold()) if word]
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
            raise LiteralError("unparsable_answer", "it is no list of cells")
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
_QUEEN: Final = frozenset({"q", "1"})
_BLANK: Final = frozenset({".", "_", "0", "*", "-"})


class Sudoku:
    """A sudoku: nested lists or a text with its rows, 0, "." or "_" where nothing is given; and the shape of a box."""

    def __init__(self, rows: Any, box: Any = None) -> None:
        try:
            board = _sudoku_text(rows) if isinstance(rows, str) else grid_of(rows)
        except LiteralError as error:
            raise BadReferenceError(f"the sudoku is no board: {error}") from error
        size = len(board)
        shape = box if box is not None else _BOXES.get(size)
        if not isinstance(shape, list | tuple) or len(shape) != 2 or any(type(side) is not int for side in shape):
            raise ReferenceFormError(f"box is {shown(shape)}; give its rows and columns")
        if len(board[0]) != size or size > MAX_SIZE or shape[0] < 1 or shape[0] * shape[1] != size:
            raise BadReferenceError(f"a board of {size} rows is not made of boxes of {shape[0]} by {shape[1]}")
        self._given, self._rows, self._columns = board, shape[0], shape[1]
        self._values = {str(value) for value in range(1, size + 1)}
        if any(cell not in self._values | _EMPTY for row in board for cell in row) or not self._apart(board):
            raise BadReferenceError("the givens are no numbers of the board, or contradict each other")

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
            board = grid_of(value if any(isinstance(row, list | tuple) for row in value) else [value])
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
