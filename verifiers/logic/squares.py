"""Puzzles on a square board: sudoku, and queens that do not attack each other.

Not covered: variants of sudoku with further rules.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.logic.grid import Grid, grid_of, read_grid
from adjudge.verifiers.logic.literal import LiteralError, read_literal
from adjudge.verifiers.logic.maze import CELL
from adjudge.verifiers.text.answer_span import shorten

MAX_SIZE: Final = 64
_EMPTY: Final = frozenset({"0", ".", "_", "", "?", "*"})
_BOXES: Final = {4: (2, 2), 6: (2, 3), 8: (2, 4), 9: (3, 3), 10: (2, 5), 12: (3, 4), 16: (4, 4), 25: (5, 5)}
_QUEEN: Final = frozenset({"q", "1"})
_BLANK: Final = frozenset({".", "_", "0", "*", "-"})


class Sudoku:
    """A sudoku with its givens.

    Args:
        rows: the board: nested lists, or a text with its rows; 0, "." or "_" where nothing is given.
        box: rows and columns of a box; None for the usual one of the size.

    Raises:
        BadReferenceError: it is no board, or its givens contradict each other.
    """

    def __init__(self, rows: Any, box: Any = None) -> None:
        try:
            board = _sudoku_text(rows) if isinstance(rows, str) else grid_of(rows)
        except LiteralError as error:
            raise BadReferenceError(f"the sudoku is no board: {error}", mistake=False) from error
        size = len(board)
        shape = box if box is not None else _BOXES.get(size)
        if not isinstance(shape, list | tuple) or len(shape) != 2 or any(type(side) is not int for side in shape):
            raise BadReferenceError(f"box is {shorten(repr(shape), 40)}; give its rows and columns", mistake=True)
        if len(board[0]) != size or size > MAX_SIZE or shape[0] < 1 or shape[0] * shape[1] != size:
            raise BadReferenceError(
                f"a board of {size} rows is not made of boxes of {shape[0]} by {shape[1]}", mistake=False
            )
        self._given, self._rows, self._columns = board, shape[0], shape[1]
        self._values = {str(value) for value in range(1, size + 1)}
        if any(cell not in self._values | _EMPTY for row in board for cell in row) or not self._apart(board):
            raise BadReferenceError("the givens are no numbers of the board, or contradict each other", mistake=False)

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one.

        Raises:
            LiteralError: it is no grid.
        """
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

    Args:
        size: rows and columns.
        given: columns of queens that stand already, by row, counted from 1; 0 for rows without.

    Raises:
        BadReferenceError: the size is out of range or has no solution, or the given queens attack each other.
    """

    def __init__(self, size: Any, given: Any = ()) -> None:
        if type(size) is not int or not 1 <= size <= MAX_SIZE:
            raise BadReferenceError(f"size is {shorten(repr(size), 40)}; give 1 to {MAX_SIZE}", mistake=True)
        if not isinstance(given, list | tuple) or any(type(at) is not int or not 0 <= at <= size for at in given):
            raise BadReferenceError("given must be a list of columns, 0 for none", mistake=True)
        if size in (2, 3):
            raise BadReferenceError(f"{size} queens have no place on a board of {size} rows", mistake=False)
        if len(given) > size:
            raise BadReferenceError(f"{len(given)} rows are given, and the board has {size}", mistake=False)
        placed = [(row, column) for row, column in enumerate(given) if column]
        if any(b == d or abs(a - c) == abs(b - d) for (a, b), (c, d) in combinations(placed, 2)):
            raise BadReferenceError("two of the given queens attack each other", mistake=False)
        self._size, self._given = size, tuple(given)

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one.

        The answer is the board, with Q or 1 for queens, the queens' columns by row, or the row and column of each
        queen; all of them counted from 1, or all from 0.

        Raises:
            LiteralError: it is neither.
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
        found = []
        for row in board:
            cells = [cell.casefold() for cell in (list(row[0]) if len(row) == 1 else row)]
            queens = [column for column, cell in enumerate(cells, 1) if cell in _QUEEN]
            if len(cells) != self._size or len(queens) != 1 or any(cell not in _QUEEN | _BLANK for cell in cells):
                return []
            found += queens
        return found


def _sudoku_text(text: str) -> Grid:
    """A text with the rows, each a run of characters, or its cells apart by spaces or commas."""
    rows = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return grid_of([list(row) if not set(row) & set(" ,[|") else list(read_grid(row)[0]) for row in rows])
