"""What every job decides before its first row: whether the paths can be used, and what the input looks like."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adjudge.io.jobs.formats import format_of, is_dataset
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.journal import partial_of
from adjudge.io.row import Cursor, Row

_PEEKED_ROWS: Final = 100
_PEEKED_BYTES: Final = 64 << 20


def check_paths(given: str, output: str) -> None:
    """See that an output can be written beside its input.

    Args:
        given: the input, "" if there is none.
        output: the output.

    Raises:
        ValueError: it cannot; the message says why and where it could go.
    """
    target = Path(output)
    written = format_of(output)
    if target.is_dir() and written != "folder":
        raise ValueError(f"the output {output} is a folder; name a file in it")
    if target.is_dir() and not is_dataset(target):
        raise ValueError(f"the output {output} is a folder that holds other things; name a new folder")
    if any(sign in given for sign in "*?[") and target.match(given):
        raise ValueError(f"the output {output} fits the pattern of the input, {given}; write it somewhere else")
    if given and Path(given).exists():
        inside, whole = target.absolute().resolve(), Path(given).resolve()
        if inside == whole or whole in inside.parents:
            raise ValueError(f"the output {output} is the input or lies inside it; write it somewhere else")
        if inside in whole.parents:
            raise ValueError(f"the output {output} holds the input; write it somewhere else")
    near = partial_of(target)
    if near.exists() and not near.is_dir():
        raise ValueError(f"{near} is a file; the job keeps its work in a folder of that name, so move it away")


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """What the first rows of an input show.

    Attributes:
        columns: its top-level columns.
        rows: its first readable rows, up to 100.
        closed: whether there can be no other columns.
        empty: whether it has no rows at all, and no columns.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    closed: bool
    empty: bool


def peek(source: RowSource) -> list[Row]:
    """Return the first rows, up to 100, or up to 64 MiB of them."""
    found: list[Row] = []
    held = 0
    for row in itertools.islice(source.rows(Cursor()), _PEEKED_ROWS):
        found.append(row)
        held += row.size
        if held >= _PEEKED_BYTES:
            break
    return found


def unreadable(source: RowSource, peeked: Sequence[Row]) -> str:
    """Return the error text where none of the first rows can be read."""
    first = peeked[0]
    where = f"line {first.line}" if first.line else f"row {first.index}"
    return (
        f"none of the first {len(peeked)} rows of {source.name} can be read ({where}: {first.error}); "
        "is it the format that its name says?"
    )


def glance(source: RowSource) -> Glance:
    """Look at the first rows.

    Raises:
        ValueError: none of them can be read.
    """
    peeked = peek(source)
    readable = tuple(row.data for row in peeked if row.data is not None)
    if peeked and not readable:
        raise ValueError(unreadable(source, peeked))
    schema = source.columns()
    names = schema if schema is not None else list(dict.fromkeys(name for row in readable for name in row))
    return Glance(columns=tuple(names), rows=readable, closed=schema is not None, empty=schema is None and not peeked)
