"""All that a job over rows decides before its first unit, so that a user's mistake costs no work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.io.columns import MISSING, Column, nested_names, unknown_column
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.formats import Format, format_of, needs_schema
from adjudge.io.jobs.groups import RowSource, UnitReader
from adjudge.io.jobs.lines import LineWriter
from adjudge.io.jobs.maker import KeepsColumns, Maker
from adjudge.io.jobs.opening import Glance, check_paths, glance
from adjudge.io.source import open_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job ready to run.

    Attributes:
        config: what was asked for.
        maker: what makes the rows.
        fields: its columns.
        source: the input.
        reader: cuts the input into units.
        writer: checks what is made.
        written: the output's format.
        one_kind: whether a column of that format has one kind for all its values.
        identity: what must be the same for a job to go on.
        notes: how the input was understood.
    """

    config: JobConfig
    maker: Maker
    fields: Mapping[str, str]
    source: RowSource
    reader: UnitReader
    writer: LineWriter
    written: Format
    one_kind: bool
    identity: Mapping[str, Any]
    notes: tuple[str, ...]


def make_plan(config: JobConfig, maker: Maker, group_column: str, source: RowSource | None) -> Plan:
    """Open the input and have the maker look at it.

    Args:
        config: the options.
        maker: what makes the rows.
        group_column: see `run_job`.
        source: rows to read in place of `config.input`, or None.

    Raises:
        ValueError: whatever is wrong with the call, before any work.
    """
    check_paths(config.input if source is None else "", config.output)
    written = format_of(config.output)
    one_kind = needs_schema(written)
    source = source if source is not None else _opened(config)
    seen = glance(source)
    group = _group(maker, group_column, seen)
    notes = maker.check(seen.columns, seen.rows) if not seen.empty else (_nothing_in(source),)
    fields = dict(maker.fields)
    keeps_columns = isinstance(maker, KeepsColumns) and maker.keeps_columns
    return Plan(
        config=config,
        maker=maker,
        fields=fields,
        source=source,
        reader=UnitReader(source=source, group=group, limit=config.limit, whole=keeps_columns),
        writer=LineWriter(maker.name, fields, keeps_columns=keeps_columns, tells_kinds=one_kind),
        written=written,
        one_kind=one_kind,
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


def _opened(config: JobConfig) -> RowSource:
    return open_source(
        config.input,
        limit=config.max_row_mb << 20,
        split=config.split,
        subset=config.subset,
        revision=config.revision,
    )


def _nothing_in(source: RowSource) -> str:
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
