"""Strict reading of the JSON objects that models are asked for: exactly these keys, these types, and the prompt's key.

The object repeats the key of the prompt's last block, which no text in the prompt can hold.  So an object that a
passage holds, and that a model copies, is not taken for its answer.

Not covered: whether what was read is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.prompts.reading import json_object

KEY = "key"
"""Under which an answer repeats the prompt's key."""

LONGEST = 1_000
"""Characters of one item; rubrics, nuggets and principles are sentences."""


def keyed_object(text: str, nonce: str, keys: Mapping[str, type]) -> dict[str, Any] | None:
    """Return the last JSON object of a text if it has the key and exactly the declared others, or None."""
    found = json_object(text, {KEY: str, **keys})
    if found is None or not nonce or found.pop(KEY) != nonce:
        return None
    return found


def is_text(value: Any, longest: int = LONGEST) -> bool:
    """Return whether a value is a text that is neither blank nor longer than allowed."""
    return isinstance(value, str) and bool(value.strip()) and len(value) <= longest


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsReader:
    """Reads `{"key": .., NAME: ["..", ..]}`.

    Attributes:
        name: the key of the list.
        most: most texts there may be.
        labels: the texts there may be; () for any.
        count: how many there must be; None for any number.
    """

    name: str
    most: int
    labels: tuple[str, ...] = ()
    count: int | None = None

    def __call__(self, text: str, nonce: str = "", /) -> tuple[str, ...] | None:
        """Return the texts, without white space around them, or None."""
        found = keyed_object(text, nonce, {self.name: list})
        if found is None or len(found[self.name]) > self.most:
            return None
        if not all(is_text(one) for one in found[self.name]):
            return None
        texts = tuple(one.strip() for one in found[self.name])
        if self.labels and not all(one in self.labels for one in texts):
            return None
        return texts if self.count in (None, len(texts)) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsReader:
    """Reads `{"key": .., NAME: [{FIELD: "..", ..}, ..]}`.

    Attributes:
        name: the key of the list.
        fields: what each record has: exactly these, each a text.
        most: most records there may be.
        labels: for a field, the texts it may hold.
    """

    name: str
    fields: tuple[str, ...]
    most: int
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __call__(self, text: str, nonce: str = "", /) -> tuple[dict[str, str], ...] | None:
        """Return the records, or None."""
        found = keyed_object(text, nonce, {self.name: list})
        if found is None or len(found[self.name]) > self.most:
            return None
        records = []
        for record in found[self.name]:
            if not isinstance(record, dict) or set(record) != set(self.fields):
                return None
            if not all(is_text(value) for value in record.values()):
                return None
            made = {field: record[field].strip() for field in self.fields}
            if any(made[field] not in allowed for field, allowed in self.labels):
                return None
            records.append(made)
        return tuple(records)
