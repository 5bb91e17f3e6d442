"""The scores of rows: of labelled ones, or of plain ones with a column of numbers.

A score that is not there is unknown and has no vote: a status other than "scored", no value, or no number.

Not covered: the steps and parts of a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.data_pipelines.hygiene.row_text import existing, holds_objects
from adjudge.io.columns import Column, nested_names, no_column
from adjudge.io.values import number_of
from adjudge.protocol import STATUSES

GUESSES: Final = ("value", "score", "reward", "scores", "rewards", "is_correct", "correct", "passed")


@dataclass(frozen=True, slots=True)
class RowScores:
    """Reads scores.

    Attributes:
        column: a number, or a list of them: the scores of several responses.
        status: the status in the output of a label job; None if there is none.
    """

    column: Column
    status: Column | None = None

    def of(self, row: Mapping[str, Any]) -> list[float | None]:
        """Return the scores of a row; None where one is unknown."""
        if self.status is not None and self.status.of(row) != "scored":
            return [None]
        value = self.column.of(row)
        return [number_of(item) for item in value] if isinstance(value, list) else [number_of(value)]

    def one(self, row: Mapping[str, Any]) -> float | None:
        """Return the score of a row that holds one response; None where it is unknown, or the row holds several."""
        found = self.of(row)
        return found[0] if len(found) == 1 else None


def row_scores(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str = "--score-column"
) -> tuple[RowScores, tuple[str, ...]]:
    """Decide where the scores are.

    Args:
        named: the column that the user named, or "".
        columns: top-level columns of the input.
        first: its first rows.
        flag: how an error names the option.

    Returns:
        The reader, and a sentence if the column was guessed.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    known = {*columns, *nested_names(first)}
    name = named or next((guess for guess in GUESSES if guess in known and not holds_objects(guess, first)), "")
    if not name:
        raise ValueError(no_column("score", columns, flag, GUESSES))
    column = existing(name, columns, first, flag)
    if holds_objects(name, first):
        raise ValueError(f"{flag} {name!r} holds objects; name the number in them, such as {name}.value")
    note = () if named else (f"score: column {name!r} (guessed; {flag} chooses another)",)
    return RowScores(column, _status_beside(name, first)), note


def _status_beside(name: str, first: Sequence[Mapping[str, Any]]) -> Column | None:
    """Return the column of the status of a label job's score; None where it is something else, such as "open"."""
    if not name.endswith("value"):
        return None
    status = Column(f"{name.removesuffix('value')}status")
    return status if any(status.of(row) in STATUSES for row in first) else None
