"""Is the answer the same grid as the reference, cell by cell?  ARC's tasks are of this kind.

    value = 1                                   if every cell is equal
            0                                   else, with credit="all"
            equal cells / cells of the gold     else, with credit="fraction"; 0 where the shapes differ

A grid is written as nested lists, as a matrix in TeX, or as rows on lines of their own: cells apart by spaces, commas
or "|", or single digits side by side.  Rules between the rows ("---+---") are not rows.

Not covered: several test grids in one answer, and grids in running text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge.protocol import Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import wrong_form
from adjudge.verifiers.logic.literal import LiteralError, read_literal
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier

Grid: TypeAlias = tuple[tuple[str, ...], ...]
"""Cells as text, row by row; all rows have as many."""

MAX_CELLS: Final = 10_000
_BETWEEN: Final = re.compile(r"[\s,|]+")
_NUMBERED: Final = re.compile(r"\A\s*row\s?\d{1,3}:", re.IGNORECASE)
_RULE: Final = re.compile(r"[\s|+]*[-=:+─━┼]{2,}[-=:+|─━┼\s]*")
_MATRIX: Final = re.compile(
    r"\\begin\{(?P<kind>[a-zA-Z]{0,8}matrix|array)\}(?:\{[clr|]{0,200}\})?(?P<rows>.*)\\end\{(?P=kind)\}",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class GridVerifier(MarkedAnswerVerifier[Grid]):
    """1 when a grid equals the reference in every cell, else 0 or the share of equal cells.

    The reference is a grid: nested lists of numbers or texts, a text with its rows, or `{"grid": ...}`.

    Attributes:
        credit: "all" or "fraction".  A share pays for copying the question's grid, which often is nine tenths right.
    """

    name: ClassVar[str] = "grid"
    version: ClassVar[str] = "7"

    credit: Literal["all", "fraction"] = "all"

    def read_reference(self, reference: Any) -> Grid:
        """Return the gold grid."""
        given = reference.get("grid") if isinstance(reference, dict) and set(reference) == {"grid"} else reference
        if not isinstance(given, str | list | tuple):
            raise wrong_form(reference, "a grid: nested lists, or a text with its rows")
        try:
            return read_grid(given) if isinstance(given, str) else grid_of(given)
        except LiteralError as error:
            raise BadReferenceError(f"the reference is not a grid: {error}") from error

    def judge_text(self, answer: str, gold: Grid) -> Score:
        """Return what the answer is worth."""
        offered = read_grid(answer)
        rows, columns = len(gold), len(gold[0])
        if (len(offered), len(offered[0])) != (rows, columns):
            return Score.scored(0.0, "wrong", shape=[len(offered), len(offered[0])], gold_shape=[rows, columns])
        pairs = zip(chain.from_iterable(offered), chain.from_iterable(gold), strict=True)
        equal = sum(mine == theirs for mine, theirs in pairs)
        cells = rows * columns
        if equal == cells:
            return Score.scored(1.0, equal=equal, cells=cells)
        return Score.scored(equal / cells if self.credit == "fraction" else 0.0, "wrong", equal=equal, cells=cells)


def read_grid(text: str) -> Grid:
    """Return the grid that a text shows; `LiteralError` if it shows none, or one of more than 10,000 cells."""
    text = text.strip()
    if text[:1] in ("[", "("):
        return grid_of(_nested(text.removesuffix(".")))
    if matrix := _MATRIX.fullmatch(text.strip("$ ")):
        text = matrix["rows"].replace("\\hline", "").replace("\\\\", "\n").replace("&", " ")
    rows = []
    for line in text.splitlines():
        if _RULE.fullmatch(line):
            continue
        cells = [cell for cell in _BETWEEN.split(_NUMBERED.sub("", line).strip()) if cell]
        if len(cells) == 1 and cells[0].isdecimal():
            cells = list(cells[0])
        if cells:
            rows.append(cells)
    return grid_of(rows)


def _nested(text: str) -> Any:
    """Rows that are lists, on lines of their own, with or without a list around them."""
    try:
        return read_literal(text)
    except LiteralError:
        return [read_literal(line.strip().rstrip(",")) for line in text.splitlines() if line.strip()]


def grid_of(rows: Any) -> Grid:
    """Return nested lists as a grid; `LiteralError` if they are none, or hold more than 10,000 cells."""
    if not isinstance(rows, list | tuple) or not rows or not all(isinstance(row, list | tuple) for row in rows):
        raise LiteralError("unparsable_answer", "it is not a list of rows")
    if len({len(row) for row in rows}) != 1 or not rows[0]:
        raise LiteralError("unparsable_answer", "its rows are not of one length")
    if len(rows) * len(rows[0]) > MAX_CELLS:
        raise LiteralError("too_complex", f"more than {MAX_CELLS} cells")
    return tuple(tuple(map(_cell, row)) for row in rows)


def _cell(value: Any) -> str:
    if isinstance(value, str):
        text = value.strip()
        return str(int(text)) if text.isdecimal() and text.isascii() and len(text) < 20 else text
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    raise LiteralError("unparsable_answer", f"a cell holds a {type(value).__name__}")
