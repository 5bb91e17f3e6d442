"""The text of a row: one or several columns, as they are read by people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adjudge.io.columns import GUESSES, MISSING, Choice, Column, nested_names, no_column
from adjudge.io.preferences import is_preference, read_preference
from adjudge.io.values import Text

# The usual names, and the same in the output of `adjudge label --keep-columns`.
PROMPTS: Final = (*GUESSES["prompt"], *(f"input.{name}" for name in GUESSES["prompt"]))
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

        Args:
            row: the row.
            system: whether turns of the system and the developer are read.
        """
        values = [_prompt_of_pair(row)] if self.pairs else [column.of(row) for column in self.columns]
        found = [text for value in values for text in _texts(value, system=system)]
        return [text for text in found if text and not text.isspace()]

    def text(self, row: Mapping[str, Any]) -> str:
        """Return all texts of a row as one; "" where there is none."""
        return "\n".join(self.texts(row))


def text_columns(
    named: Sequence[str], columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str
) -> tuple[RowText, tuple[str, ...]]:
    """Decide which columns hold the text.

    Args:
        named: those that the user named; none leaves the choice to the usual names of a prompt.
        columns: top-level columns of the input.
        first: its first rows.
        flag: how an error names the option.

    Returns:
        The reader, and a sentence if a column was guessed.

    Raises:
        ValueError: a column does not exist, or none looks like a prompt.
    """
    if named:
        return RowText(tuple(existing(name, columns, first, flag) for name in named)), ()
    known = {*columns, *nested_names(first)}
    for guess in PROMPTS:
        if guess in known and not holds_objects(guess, first):
            return RowText((Column(guess),)), (f"text: column {guess!r} (guessed; {flag} chooses others)",)
    if first and all(is_preference(row) and _prompt_of_pair(row) is not None for row in first[:1]):
        return RowText((), pairs=True), (f"text: the prompts of the pairs (guessed; {flag} chooses columns)",)
    if not first and not columns:
        return RowText((Column("prompt"),)), ()
    raise ValueError(no_column("prompt", columns, flag))


def existing(name: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]], flag: str) -> Column:
    """Return a column that the input has.

    Raises:
        ValueError: it has not.
    """
    return Choice(columns, first, closed=bool(columns or first), flag=lambda _: flag).given("", name)


def holds_objects(name: str, first: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a column holds objects, as `input` does in the output of a label job."""
    return any(isinstance(Column(name).of(row), Mapping) for row in first)


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
