"""What rows say: their text, as people read it, and their scores; and the rows of a second file.

A score that is not there is unknown and has no vote: a status other than "scored", no value, or no number.  The steps
and parts of a score are not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adjudge import wire
from adjudge.io.columns import GUESSES, MISSING, Choice, Column, nested_names, no_column
from adjudge.io.jobs.opening import glance
from adjudge.io.preferences import is_preference, read_preference
from adjudge.io.row import Cursor
from adjudge.io.source import open_source
from adjudge.io.values import Text, number_of, plain, prompt_of
from adjudge.protocol import STATUSES

# The usual names, and the same of a row that another one holds.
PROMPTS: Final = (
    *GUESSES["prompt"],
    *("+".join(f"input.{part}" for part in name.split("+")) for name in GUESSES["prompt"]),
)
_SYSTEM: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class RowText:
    """Reads text columns; chat turns give the text of each turn, and other data their JSON text.

    Attributes:
        columns: at least one, unless the text is the prompt of a pair.
        pairs: whether rows are pairs of chats or transcripts, which hold their prompt (`adjudge.io.preferences`).
    """

    columns: tuple[Column, ...]
    pairs: bool = False

    def texts(self, row: Mapping[str, Any], *, system: bool = True) -> list[str]:
        """Return every text of a row on its own, those of the turns of a chat too; empty ones are left out.

        `system` says whether turns of the system and the developer are read.
        """
        values = [_prompt_of_pair(row)] if self.pairs else [said_in(row, column) for column in self.columns]
        return [text for value in values for text in _texts(value, system=system) if text and not text.isspace()]

    def parts(self, row: Mapping[str, Any]) -> list[str]:
        """Return the text of each column that a text is made of several of: an instruction, and its input."""
        values = [column.of(row) for column in self.columns if "+" in column.name]
        return [text for each in values if isinstance(each, Mapping) for part in each.values() for text in _texts(part)]

    def text(self, row: Mapping[str, Any]) -> str:
        """Return all texts of a row as one; "" where there is none."""
        return "\n".join(self.texts(row))


def text_columns(
    named: Sequence[str], columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str
) -> tuple[RowText, tuple[str, ...]]:
    """Decide which columns hold the text; return the reader, and a sentence if a column was guessed.

    `named` are those of the user, () for the usual names of a prompt; `flag` is how an error names the option.

    Raises:
        ValueError: a column does not exist, or none looks like a prompt.
    """
    if named:
        return RowText(tuple(existing(name, columns, first, flag) for name in named)), ()
    prompt, guess = guessed_prompt(columns, first)
    if prompt is not None:
        note = f"text: column {guess!r}, or in a row without it the prompt by another usual name"
        return RowText((prompt,)), (f"{note} (guessed; {flag} chooses others)",)
    if first and all(is_preference(row) and _prompt_of_pair(row) is not None for row in first[:1]):
        return RowText((), pairs=True), (f"text: the prompts of the pairs (guessed; {flag} chooses columns)",)
    if not first and not columns:
        return RowText((Column("prompt"),)), ()
    raise ValueError(no_column("prompt", columns, flag))


def guessed_prompt(
    columns: Sequence[str], first: Sequence[Mapping[str, Any]], *, more: Sequence[str] = ()
) -> tuple[Column | None, str]:
    """Return what reads the prompt of each row by the first usual name that it has, and the name that the first have.

    `more` are further names.  None where the first rows have no prompt.  Later ones may have another name for it.
    """
    usual = [name for name in (*PROMPTS, *more) if "+" in name or not holds_objects(name, first)]
    guess = Choice(columns, first).pick("prompt", usual=usual)
    return (None, "") if guess is None else (Column("|".join(usual)), guess.name)


def said_in(row: Mapping[str, Any], column: Column) -> Any:
    """Return the prompt in a column, read as by whoever scores it; what is no prompt as it is."""
    value = column.of(row)
    try:
        return prompt_of(value, column.name)
    except ValueError:
        return value


def existing(name: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str) -> Column:
    """Return a column that the input has, or raise `ValueError`."""
    return Choice(columns, first, closed=bool(columns or first), flag=lambda _: flag).given("", name)


def holds_objects(name: str, first: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a column holds objects, as `input` does in the output of a label job."""
    return any(isinstance(_read_back(Column(name).of(row)), Mapping) for row in first)


def _read_back(value: Any) -> Any:
    """Return a value of a kept column as it was before a job wrote what JSON has no word for: NaN, decimals."""
    try:
        return plain(wire.decode(value))
    except ValueError:
        return value


def _prompt_of_pair(row: Mapping[str, Any]) -> Text | None:
    try:
        return read_preference(row).prompt
    except ValueError:
        return None  # a row without a text


def _texts(value: Any, *, system: bool = True) -> list[str]:
    if value is MISSING or value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item, system=system)]
    if isinstance(value, Mapping) and "role" in value:
        return _texts(value.get("content")) if system or value["role"] not in _SYSTEM else []
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        return [value["text"]]  # a part of a turn
    if isinstance(value, bytes):
        return [value.decode(errors="replace")]
    return [json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)]


_SCORES: Final = ("value", "score", "reward", "scores", "rewards", "is_correct", "correct", "passed")


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
        value = _read_back(self.column.of(row))
        return [number_of(item) for item in value] if isinstance(value, list) else [number_of(value)]

    def one(self, row: Mapping[str, Any]) -> float | None:
        """Return the score of a row that holds one response; None where it is unknown, or the row holds several."""
        scores = self.of(row)
        return scores[0] if len(scores) == 1 else None


def row_scores(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str = "--score-column"
) -> tuple[RowScores, tuple[str, ...]]:
    """Decide where the scores are; return the reader, and a sentence if the column was guessed.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    known = {*columns, *nested_names(first)}
    name = named or next((guess for guess in _SCORES if guess in known and not holds_objects(guess, first)), "")
    if not name:
        raise ValueError(no_column("score", columns, flag, _SCORES))
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


class SideFile:
    """The rows of a file that is small beside the input, of anything `open_source` opens.

    Raises:
        ValueError: it cannot be read.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        self.name = name
        self._source = open_source(name, limit=limit)
        seen = glance(self._source)
        self.columns, self.first = seen.columns, seen.rows

    def identity(self) -> dict[str, Any]:
        """Return what tells it from another file: what is in it, wherever it lies; of the hub's, name and revision."""
        path = Path(self.name)
        if not path.exists():
            return {"name": self.name, **self._source.identity()}
        digest = hashlib.sha256()
        for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return {"digest": digest.hexdigest()}

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield its rows with their numbers, from 0.

        Raises:
            ValueError: a row cannot be read: what is looked up must be whole.
        """
        for row in self._source.rows(Cursor()):
            if row.data is None:
                where = f"line {row.line}" if row.line else f"row {row.index}"
                raise ValueError(f"{self.name}, {where}: {row.error}; repair it, or leave that row out")
            yield row.index, row.data
