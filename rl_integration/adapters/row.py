"""What a framework's row says: the reference to score by, the group, and whatever else a scorer may ask for.

Cells are read as everywhere in adjudge (`adjudge.io.values`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

from adjudge import wire
from adjudge.io.columns import Column
from adjudge.io.positions import refuse_position
from adjudge.io.questions import ANSWER_KEYS, OPTIONS
from adjudge.io.values import (
    Text,
    is_empty,
    is_nan,
    kind_of,
    name_of,
    plain,
    reference_of,
    text_or_chat,
    without_absent,
)
from adjudge.protocol import Message

Place: TypeAlias = str | Callable[[Mapping[str, Any]], Any]
"""Where a row has something: a column ("answer"), a path through columns ("reward_model.ground_truth"), the first of
several that is not empty ("answer|tests"), an object of several ("test+entry_point"), "" for nowhere, or a function
that gets the row and returns it."""


def checked_place(option: str, place: object) -> Place:
    """Return a place if it is a text or a function, else raise `ValueError`."""
    if isinstance(place, str) or callable(place):
        return place
    raise ValueError(f"{option}={place!r}; name the column that holds it, or give a function of the row")


def reference_in(row: Mapping[str, Any], place: Place, framework: str) -> Any:
    """Return the reference of a row as a copy in plain data; None where its cell is empty.

    Raises:
        ValueError: the row has no such column, or that has a number which only points to one of the row's options.
    """
    cell = value_in(row, place, "reference", framework)
    reference = cell if callable(place) else read_reference(cell)
    if isinstance(reference, int) and isinstance(place, str) and place in ANSWER_KEYS:
        beside = {name: plain(row.get(name)) for name in (place, *OPTIONS)}
        refuse_position(Column(place), [beside], "reference=", f"give reference=lambda row: row[{place!r}]")
    return reference


def read_reference(cell: Any) -> Any:
    """Return the reference that a cell holds; None where it is empty.

    Rows come from Arrow, which fills objects with fields that hold None; those are left out.
    """
    return reference_of(without_absent(plain(cell)))


def row_name(*cells: Any) -> str:
    """Return a name that the answers to one row share, whatever process has them: of its prompt, images and label."""
    return blake2b(json.dumps(plain(cells), default=_shown).encode(), digest_size=16).hexdigest()


def _shown(thing: Any) -> str:
    """What tells an image from another, and any other object from those that do not look like it."""
    if hasattr(thing, "tobytes"):
        return blake2b(thing.tobytes()).hexdigest()
    return re.sub(" at 0x[0-9a-f]+", "", repr(thing), flags=re.IGNORECASE)  # another process has it elsewhere


def without_ends(response: str, ends: Sequence[str]) -> tuple[str, bool]:
    """Return a response without the marks that it ends in, and whether it ends in any."""
    ended = False
    while end := next((mark for mark in ends if mark and response.rstrip().endswith(mark)), ""):
        response, ended = response.rstrip().removesuffix(end), True
    return response, ended


def check_aligned(framework: str, **columns: Any) -> None:
    """Make sure that a framework gave a value of each column for every one of the first.

    Raises:
        ValueError: a column is shorter or longer, or is none; the message names it.
    """
    first, *_ = columns
    count = size_of(columns[first])
    for name, cells in columns.items():
        size = size_of(cells)
        if size is None:
            raise ValueError(f"{framework} gave {kind_of(cells)} as {name!r}; it must be a list")
        if size != count:
            raise ValueError(
                f"{framework} gave {size} of {name!r} and {count} of {first!r}; there must be as many of each"
            )


def size_of(cells: Any) -> int | None:
    """Return how many cells a column has, a list or a data set's own kind of column; None for anything else."""
    if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Collection):
        return None
    return None if getattr(cells, "shape", None) == () else len(cells)


def name_in(row: Mapping[str, Any], place: Place, option: str, framework: str) -> str:
    """Return the text at another place of a row, such as its group; "" if no place is given or its cell is empty.

    Raises:
        ValueError: the row has no such column.
    """
    return named(value_in(row, place, option, framework))


def named(cell: Any) -> str:
    """Return the text of a cell that names something, whatever it holds; "" where it is empty."""
    value = plain(cell)
    return name_of(value) or ("" if is_empty(value) else str(value))


def token_ids(option: str, given: Any) -> frozenset[int]:
    """Return the ids of tokens that were given: one, or several.

    Raises:
        ValueError: they are something else, such as texts, of which no token is one.
    """
    several = given if isinstance(given, Collection) and not isinstance(given, str | bytes | Mapping) else [given]
    ids = plain(list(several))
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
        raise ValueError(f"{option}={given!r}; give the ids of tokens, such as tokenizer.eos_token_id, not their texts")
    return frozenset(ids)


def value_in(row: Mapping[str, Any], place: Place, option: str, framework: str) -> Any:
    """Return what a row has at a place, as a copy in plain data; None if no place is given or its cell is empty.

    Raises:
        ValueError: the row has no such column.
    """
    return plain(place(row) if callable(place) else _found(row, place, option, framework) if place else None)


def extra_in(row: Mapping[str, Any], without: Place = "") -> dict[str, Any]:
    """Return the columns that are plain data, as copies, without the one that holds the reference.

    What no request can carry is left out: images, tensors, functions, objects.
    """
    extra = {}
    for name, value in row.items():
        if name == without or hasattr(value, "requires_grad"):
            continue
        copy = plain(value)
        if _can_be_sent(copy):
            extra[str(name)] = copy
    return extra


def answer_in(value: Any, what: str) -> Any:
    """Return a response as text or as messages; None and NaN as they are, so that its sample fails and gets no number.

    No policy can write these: a program lost the response.  Silence is "", or a chat in which nobody says anything.

    Raises:
        ValueError: it is something else.
    """
    return value if value is None or is_nan(value) else words(value, what)


def words(value: Any, what: str) -> Text:
    """Return a prompt as text or as messages; None and NaN, which stand for an empty one, as "".

    Images and sounds are left out of their parts, as no scorer reads them and no request can carry them.

    Raises:
        ValueError: it is something else.
    """
    data = plain(value)
    if data is None or is_nan(data):
        return ""
    read = [] if data == [] else text_or_chat(data, what)
    return read if isinstance(read, str) else [_without_media(turn) for turn in read]


def _without_media(turn: Message) -> Message:
    parts = turn.get("content")
    if not isinstance(parts, list):
        return turn
    kept = [
        {name: value for name, value in part.items() if _can_be_sent(value)} if isinstance(part, Mapping) else part
        for part in parts
    ]
    return {**turn, "content": kept}


def _can_be_sent(value: Any) -> bool:
    try:
        wire.encode(value)
    except TypeError:
        return False
    return True


def _found(row: Mapping[str, Any], place: str, option: str, framework: str) -> Any:
    if place in row:
        return row[place]
    column = Column(place)
    if ("|" in place or "+" in place) and any(top in row for top in column.tops(row)):
        return column.cell(row)
    nested: Any = row
    for name in place.split("."):
        if nested is None:  # an object that is null in this row
            return None
        if not isinstance(nested, Mapping) or name not in nested:
            known = ", ".join(sorted(map(str, row))) or "nothing"
            raise ValueError(
                f"a row of {framework} has no {place!r} with the {option}; it has {known}. Name the right one: "
                f'{option}=COLUMN, or {option}="" for a scorer that needs none'
            )
        nested = nested[name]
    return nested
