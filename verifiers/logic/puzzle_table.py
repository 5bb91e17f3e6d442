"""How many cells of a table of things and their attributes are right?  Zebra puzzles are answered by such tables.

    value = right cells / cells of the gold          with credit="fraction"
            1 if all of them are right, else 0       with credit="all"

The first column names the row, and is not a cell that counts.  A row is found by its name, and an answer that names a
row or a column twice, or has one that is not in the gold, is worth 0: nobody knows which of them it means.

Not covered: tables in running text, and empty cells as "unknown" (they are wrong).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias

from adjudge.protocol import Score
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.reference_fields import shown, wrong_form
from adjudge.verifiers.logic.literal import LiteralError, read_unambiguous
from adjudge.verifiers.logic.marked import MarkedAnswerVerifier
from adjudge.verifiers.logic.ordering import is_item, normal_item

Table: TypeAlias = dict[tuple[str, str], str]
"""Cells by the row's and the column's name, all normalised."""

MAX_CELLS: Final = 5_000
_RULE: Final = re.compile(r"[\s|:-]+")


@dataclass(frozen=True, kw_only=True)
class PuzzleTableVerifier(MarkedAnswerVerifier[Table]):
    """The share of a table's cells that are right.

    The reference is `{"header": ["House", "Name", ...], "rows": [["1", "Eric", ...], ...]}`, the first column being the
    rows' names, or `{"House 1": {"Name": "Eric", ...}, ...}`.  Answers are either, as JSON or as a Python literal, or a
    Markdown table.

    Attributes:
        credit: "fraction" or "all".
    """

    name: ClassVar[str] = "puzzle_table"
    version: ClassVar[str] = "5"

    credit: Literal["all", "fraction"] = "fraction"

    def read_reference(self, reference: Any) -> Table:
        """Return the gold table."""
        if not isinstance(reference, Mapping):
            raise wrong_form(reference, '{"header": [..], "rows": [[..], ..]}')
        try:
            return table_of(reference)
        except LiteralError as error:
            raise BadReferenceError(f"the reference is not a table: {error}") from error

    def judge_text(self, answer: str, gold: Table) -> Score:
        """Return what the answer is worth."""
        offered = read_table(answer)
        if unknown := sorted(set(offered) - set(gold)):
            raise LiteralError("unparsable_answer", f"there is no cell {' / '.join(unknown[0])}")
        right = sum(offered.get(place) == value for place, value in gold.items())
        share = right / len(gold)
        value = share if self.credit == "fraction" else float(right == len(gold))
        return Score.scored(value, "" if right == len(gold) else "wrong", right=right, cells=len(gold))


def read_table(text: str) -> Table:
    """Return the table that a text shows; `LiteralError` if it shows none, or says something twice."""
    text = text.strip()
    if text.startswith("{"):
        mapping = _value(text)
        if not isinstance(mapping, Mapping):
            raise LiteralError("unparsable_answer", "it is not a mapping")
        return table_of(mapping)
    if text.startswith("["):
        return _from_records(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 3 or "|" not in lines[0] or not _RULE.fullmatch(lines[1]):
        raise LiteralError("unparsable_answer", "it is neither JSON, nor a literal, nor a Markdown table")
    header, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]
    return table_of({"header": header, "rows": rows})


def _from_records(text: str) -> Table:
    """A list of mappings, in each of which the first key is of the row's name."""
    records = _value(text)
    if not isinstance(records, list) or not all(isinstance(record, Mapping) and record for record in records):
        raise LiteralError("unparsable_answer", "it is not a list of mappings")
    if len({_text(next(iter(record))) for record in records}) != 1:
        raise LiteralError("unparsable_answer", "the rows do not begin with the same column")
    cells = [(next(iter(record.values())), dict([*record.items()][1:])) for record in records]
    if len({_row_name(_text(name)) for name, _ in cells}) < len(cells):
        raise LiteralError("several_answers", "a row or a column is there twice")
    return table_of(dict(cells))


def _value(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except LiteralError:
        raise
    except json.JSONDecodeError:
        return read_unambiguous(text)
    except RecursionError as error:
        raise LiteralError("too_complex", "it is nested too deeply") from error
    except ValueError as error:  # a number of more than 4,300 digits
        raise LiteralError("too_complex", str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise LiteralError("several_answers", "a row or a column is there twice")
    return fields


def table_of(value: Mapping[Any, Any]) -> Table:
    """Return a table given by its header and rows, or by mappings, of at most 5,000 cells."""
    whole = set(value) == {"header", "rows"}
    cells = _from_rows(value["header"], value["rows"]) if whole else _from_mappings(value)
    if not cells:
        raise LiteralError("unparsable_answer", "it has no cells")
    if len(cells) > MAX_CELLS:
        raise LiteralError("too_complex", f"more than {MAX_CELLS} cells")
    table = dict(cells)
    if len(table) < len(cells):
        raise LiteralError("several_answers", "a row or a column is there twice")
    return table


def _from_rows(header: Any, rows: Any) -> list[tuple[tuple[str, str], str]]:
    if not isinstance(header, list | tuple) or not isinstance(rows, list | tuple) or len(header) < 2:
        raise LiteralError("unparsable_answer", "header and rows are not lists")
    names = [_text(name) for name in header]
    cells = []
    for row in rows:
        if not isinstance(row, list | tuple) or len(row) != len(names):
            raise LiteralError("unparsable_answer", "a row does not have as many cells as the header")
        place, *values = map(_text, row)
        cells += [((_row_name(place), column), cell) for column, cell in zip(names[1:], values, strict=True)]
    return cells


def _from_mappings(value: Mapping[Any, Any]) -> list[tuple[tuple[str, str], str]]:
    cells = []
    for row, columns in value.items():
        if not isinstance(columns, Mapping):
            raise LiteralError("unparsable_answer", "a row is not a mapping")
        name = _row_name(_text(row))
        cells += [((name, _text(column)), _text(cell)) for column, cell in columns.items()]
    return cells


def _row_name(name: str) -> str:
    """Return "1" for "House 1": tables with a header have the word there, mappings in the name or nowhere."""
    _, _, number = name.partition(" ")
    return number if number.isdecimal() else name


def _text(value: Any) -> str:
    if not is_item(value):
        raise LiteralError("unparsable_answer", f"a cell holds {shown(value)}")
    return normal_item(str(value))
