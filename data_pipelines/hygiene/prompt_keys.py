"""What rows that answer the same prompt share: a group, or else the prompt itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.data_pipelines.hygiene.row_text import PROMPTS, existing, holds_objects
from adjudge.data_pipelines.hygiene.shingles import normalised
from adjudge.io.columns import GUESSES, MISSING, Column, nested_names


@dataclass(frozen=True, slots=True)
class PromptKeys:
    """Names the prompts of rows.

    Attributes:
        columns: the first that holds something names the prompt.
    """

    columns: tuple[Column, ...] = ()

    def of(self, row: Mapping[str, Any]) -> int | None:
        """Return 64 bits that rows of the same prompt share; None for a row that names none.

        Prompts are compared without case, width and white space, groups as they are: "aB3" is another one than "Ab3".
        """
        for column in self.columns:
            value = column.of(row)
            if value is MISSING or value is None or value == [] or (isinstance(value, str) and not value.strip()):
                continue
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
            if isinstance(value, str) and column.name in PROMPTS:
                text = normalised(value)
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            return int.from_bytes(digest, "little")
        return None


def prompt_keys(
    named: str, columns: Sequence[str], first: Sequence[Mapping[str, Any]]
) -> tuple[PromptKeys, tuple[str, ...]]:
    """Decide what names the prompts.

    Args:
        named: the column that the user named, or "".
        columns: top-level columns of the input.
        first: its first rows.

    Returns:
        The reader, and a sentence if columns were guessed.

    Raises:
        ValueError: the column does not exist, or none can be guessed.
    """
    if named:
        return PromptKeys((existing(named, columns, first, "--group-column"),)), ()
    known = {*columns, *nested_names(first)}
    groups = [name for name in GUESSES["group"] if name in known][:1]
    prompts = [name for name in PROMPTS if name in known and not holds_objects(name, first)][:1]
    guessed = (*groups, *prompts)
    if not guessed and (columns or first):
        raise ValueError(
            "nothing says which rows answer the same prompt; name a column that they share with --group-column. "
            f"The columns are: {', '.join(list(columns)[:40])}"
        )
    said = " or else ".join(map(repr, guessed))
    note = (f"rows of one prompt share: column {said} (guessed; --group-column chooses another)",) if guessed else ()
    return PromptKeys(tuple(Column(name) for name in guessed)), note
