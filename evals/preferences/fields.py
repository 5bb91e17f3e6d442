"""Reading the columns of a row: texts, turns, numbers and lists, with errors that name the column and the remedy.

Not covered: which columns a benchmark has; each one says so.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from adjudge.evals.benchmarks.benchmark import RowPlace
from adjudge.evals.benchmarks.case import Stored
from adjudge.io.columns import MISSING, Column
from adjudge.protocol import Message

Text: TypeAlias = str | Sequence[Message]
"""A text, or chat turns."""

Row: TypeAlias = Mapping[str, Any]

_SHOWN: Final = 60  # characters of a wrong value in an error
_STEM: Final = (".gz", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def has(row: Row, name: str) -> bool:
    """Return whether a row has a column with something in it; dotted names reach into nested objects."""
    value = Column(name).of(row)
    return value is not MISSING and value is not None


def first_of(row: Row, names: Sequence[str]) -> str | None:
    """Return the first of these columns that the row has, None if it has none."""
    return next((name for name in names if has(row, name)), None)


def field(row: Row, name: str) -> Any:
    """Return the value of a column.

    Raises:
        ValueError: the row has no such column, or nothing in it.
    """
    if not has(row, name):
        raise ValueError(f"the column {name!r} is missing; the row has {_names(row)}")
    return Column(name).of(row)


def text(row: Row, name: str) -> Text:
    """Return a text, or chat turns.

    Raises:
        ValueError: the column is missing or holds something else.
    """
    return as_text(field(row, name), name)


def as_text(value: Any, name: str) -> Text:
    """Return a value as a text or as chat turns.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and value and all(_is_turn(turn) for turn in value):
        return tuple({"role": turn["role"], "content": turn["content"]} for turn in value)
    raise ValueError(f"the column {name!r} holds {shown(value)}; it must be text, or turns with a role and a content")


def texts(row: Row, name: str) -> tuple[Text, ...]:
    """Return a list of texts or of turns.

    Raises:
        ValueError: the column is missing, or is no list of them.
    """
    return tuple(as_text(value, f"{name}.{at}") for at, value in enumerate(items(row, name)))


def items(row: Row, name: str) -> Sequence[Any]:
    """Return a list.

    Raises:
        ValueError: the column is missing, or is no list, or an empty one.
    """
    value = field(row, name)
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a list with something in it")
    return value


def word(row: Row, name: str) -> str:
    """Return a name: text, or a whole number as text.

    Raises:
        ValueError: the column is missing or holds something else.
    """
    value = field(row, name)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a name")


def whole(row: Row, name: str) -> int:
    """Return a whole number.

    Raises:
        ValueError: the column is missing or holds something else.
    """
    value = field(row, name)
    if isinstance(value, bool) or not (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        raise ValueError(f"the column {name!r} holds {shown(value)}; it must be a whole number")
    return int(value)


def score(value: Any, name: str) -> Stored:
    """Return a stored score: a number, a list with one number in it, or None where nobody gave one.

    Numbers that are not finite are no scores.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0]
    if value is None:
        return Stored(value=None, reason="no_verdict")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"the column {name!r} holds {shown(value)}; a score must be a number, or null for none")
    try:
        number = float(value)
    except OverflowError:  # a whole number with more than 308 digits
        number = math.inf
    return Stored(value=number) if math.isfinite(number) else Stored(value=None, reason="not_finite")


def scores(row: Row, name: str, count: int) -> tuple[Stored, ...]:
    """Return a list of stored scores.

    Raises:
        ValueError: the column is missing, or does not hold so many scores.
    """
    values = items(row, name)
    if len(values) != count:
        raise ValueError(f"the column {name!r} holds {len(values)} scores for {count} responses; give one for each")
    return tuple(score(value, f"{name}.{at}") for at, value in enumerate(values))


def stored_pair(row: Row, first: Sequence[str], second: Sequence[str]) -> tuple[Stored, ...]:
    """Return the two scores that a row stores under one of these names each; nothing where it has neither.

    Raises:
        ValueError: it has one of the two, or they are no scores.
    """
    names = [next((name for name in side if name in row), None) for side in (first, second)]
    if names == [None, None]:
        return ()
    if None in names:
        lacking = first if names[0] is None else second
        raise ValueError(f"the row stores one score of two; the other one is missing under any of {', '.join(lacking)}")
    return tuple(score(row[name], name) for name in names if name is not None)


def rows_of(row: Row, place: RowPlace, column: str) -> list[tuple[Row, RowPlace]]:
    """Return the rows of a table that was written as one object of columns, each with its number; or the row itself.

    Scores of RewardBench are published so: `{"subset": [..], "scores_chosen": [..], "model": ".."}`.  What is no list
    holds for all rows.

    Args:
        row: a row, or such an object.
        place: of the row.
        column: a column that a row holds one text in.

    Raises:
        ValueError: its columns differ in length.
    """
    if not isinstance(row.get(column), list):
        return [(row, place)]
    columns = {name: values for name, values in row.items() if isinstance(values, list)}
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the columns {shown(sizes)} differ in length; a table has as many values in each")
    return [
        ({**row, **{name: values[at] for name, values in columns.items()}}, replace(place, number=at))
        for at in range(sizes[column])
    ]


def case_id(place: RowPlace, *names: str) -> str:
    """Return an id that no other row has: the row's number, and what the file calls it."""
    return ":".join([str(place.number), *names])


def cluster_of(prompt: Text) -> str:
    """Return a short name of a prompt; rows that ask the same share it."""
    plain = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def stem_of(file: str) -> str:
    """Return the name of a file without what says its format: "chat_filtered" of "chat_filtered.json.gz"."""
    for suffix in _STEM:
        file = file.removesuffix(suffix)
    return file


def shown(value: Any) -> str:
    """Return a value for an error, cut short."""
    plain = repr(value)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def _is_turn(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and "content" in value


def _names(row: Row) -> str:
    names = ", ".join(repr(str(name)) for name in list(row)[:20])
    return names or "no columns"
