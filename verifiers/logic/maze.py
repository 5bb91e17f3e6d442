"""A way through a maze, as moves or as cells.

Not covered: diagonal steps, and mazes with costs; `graph_answer` takes those as graphs.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import pairwise
from typing import Any, Final

from adjudge.bad_reference import BadReferenceError
from adjudge.verifiers.logic.literal import LiteralError, read_literal

Cell = tuple[int, int]

MAXCELLS: Final = 250_000
MAX_MOVES: Final = 20_000
_STEPS: Final = {
    "u": (-1, 0),
    "up": (-1, 0),
    "↑": (-1, 0),
    "d": (1, 0),
    "down": (1, 0),
    "↓": (1, 0),
    "l": (0, -1),
    "left": (0, -1),
    "←": (0, -1),
    "r": (0, 1),
    "right": (0, 1),
    "→": (0, 1),
    **dict.fromkeys(("n", "north"), (-1, 0)),
    **dict.fromkeys(("s", "south"), (1, 0)),
    **dict.fromkeys(("w", "west"), (0, -1)),
    **dict.fromkeys(("e", "east"), (0, 1)),
}
_ITEM: Final = re.compile(r"^\s*(?:(?:step|move)\s{0,2})?\d{1,5}\s?[.):]\s*|^\s*[*•]\s+", re.IGNORECASE | re.MULTILINE)
_BETWEEN: Final = re.compile(r"[\s,;\[\]\"'>-]+")
CELL: Final = re.compile(r"[(\[]\s{0,3}(\d{1,4})\s{0,3},\s{0,3}(\d{1,4})\s{0,3}[)\]]")


class Maze:
    """A maze on squared paper.

    Args:
        rows: texts of one length: "S" for the start, "G" for the goal, "#" for walls; all else is free.
        shortest: whether only a shortest way is right.

    Raises:
        BadReferenceError: the rows are no maze, or there is no way through it.
    """

    def __init__(self, rows: Any, *, shortest: bool) -> None:
        if not isinstance(rows, list | tuple) or not rows or not all(isinstance(row, str) for row in rows):
            raise BadReferenceError('a maze needs "grid": its rows, as texts', mistake=True)
        if len(set(map(len, rows))) != 1 or len(rows) * len(rows[0]) > MAXCELLS:
            raise BadReferenceError("the maze's rows differ in length, or there are too many", mistake=False)
        text = "".join(rows)
        if (text.count("S"), text.count("G")) != (1, 1):
            raise BadReferenceError("the maze has not one start, S, and one goal, G", mistake=False)
        self._free = {(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark != "#"}
        self._start, self._goal = (divmod(text.index(mark), len(rows[0])) for mark in "SG")
        least = self._least()
        if least is None:
            raise BadReferenceError("there is no way through the maze", mistake=False)
        self._length = least if shortest else None

    def broken(self, answer: str) -> str:
        """Return why an answer is wrong; "" for a right one.

        Raises:
            LiteralError: it is neither moves nor cells.
        """
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
        found = {self._start: 0}
        waiting = deque([self._start])
        while waiting:
            row, column = waiting.popleft()
            for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                cell = (row + down, column + right)
                if cell in self._free and cell not in found:
                    found[cell] = found[row, column] + 1
                    waiting.append(cell)
        return found.get(self._goal)
