"""What a job decides before its first row, so that a user's mistake costs no work."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adjudge.io.columns import MISSING, Column, unknown_column
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.formats import Format, format_of, is_dataset, needs_schema
from adjudge.io.jobs.groups import RowSource, UnitReader
from adjudge.io.jobs.journal import partial_of
from adjudge.io.jobs.lines import LineWriter
from adjudge.io.jobs.maker import KeepsColumns, Maker
from adjudge.io.row import Cursor, Row
from adjudge.io.values import nested_names

_PEEKED_ROWS: Final = 100
_PEEKED_BYTES: Final = 64 << 20


def check_paths(given: str, output: str) -> None:
    """See that an output can be written beside its input.

    Raises:
        ValueError: it cannot; the message says why and where it could go.
    """
    for what, path in (("input", given), ("output", output)):
        if path == "-":
            raise ValueError(
                f"the {what} is -, and a job reads and writes files, so that it can go on where it was stopped; name a "
                "file, such as rows.jsonl (./- for one of that name)"
            )
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
    """What the first rows of an input show; `empty`: there are none, and no schema tells the columns."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    closed: bool
    empty: bool


def peek(source: RowSource) -> list[Row]:
    """Return the first rows, up to 100, or up to 64 MiB of them."""
    rows: list[Row] = []
    held = 0
    for row in itertools.islice(source.rows(Cursor()), _PEEKED_ROWS):
        rows.append(row)
        held += row.size
        if held >= _PEEKED_BYTES:
            break
    return rows


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job ready to run."""

    config: JobConfig
    maker: Maker
    fields: Mapping[str, str]
    source: RowSource
    reader: UnitReader
    writer: LineWriter
    written: Format
    identity: Mapping[str, Any]
    notes: tuple[str, ...]


def make_plan(config: JobConfig, maker: Maker, group_column: str, source: RowSource | None) -> Plan:
    """Open the input and have the maker look at it.

    Raises:
        ValueError: whatever is wrong with the call, before any work.
    """
    check_paths(config.input if source is None else "", config.output)
    written = format_of(config.output)
    tells_kinds = needs_schema(written)
    source = source if source is not None else config.open()
    seen = glance(source)
    group = _group(maker, group_column, seen)
    notes = maker.check(seen.columns, seen.rows) if not seen.empty else (nothing_in(source),)
    fields = dict(maker.fields)
    keeps_columns = isinstance(maker, KeepsColumns) and maker.keeps_columns
    return Plan(
        config=config,
        maker=maker,
        fields=fields,
        source=source,
        reader=UnitReader(source=source, group=group, limit=config.limit, whole=keeps_columns),
        writer=LineWriter(maker.name, fields, keeps_columns=keeps_columns, tells_kinds=tells_kinds),
        written=written,
        identity={
            "input": source.identity(),
            "maker": {"name": maker.name, "fingerprint": maker.fingerprint},
            "fields": [[name, kind] for name, kind in fields.items()],
            "options": {
                "group_column": group.name if group else "",
                "limit": config.limit,
                "max_row_mb": config.max_row_mb,
            },
        },
        notes=tuple(notes),
    )


def nothing_in(source: RowSource) -> str:
    """Return what is said where an input has no rows."""
    return f"{source.name} holds no rows; the output will hold none"


def _group(maker: Maker, name: str, seen: Glance) -> Column | None:
    if not name:
        return None
    if not maker.grouped:
        raise ValueError(f"{maker.name} works on single rows; drop the group column {name!r}")
    column = Column(name)
    known = [*seen.columns, *nested_names(seen.rows)]
    if not seen.empty and name not in known and all(column.of(row) is MISSING for row in seen.rows):
        raise ValueError(unknown_column(name, known, "the group column"))
    return column
