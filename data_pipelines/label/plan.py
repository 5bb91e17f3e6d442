"""All that is decided before the first sample is scored, so that a user's mistake costs no work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.label.batches import Batcher
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.earlier import EarlierOutput
from adjudge.data_pipelines.label.outputs import converter
from adjudge.data_pipelines.label.samples import Sampler
from adjudge.data_pipelines.label.scoring import Load
from adjudge.data_pipelines.label.stages import Stages
from adjudge.io.columns import MISSING, USUAL, ColumnMap, Wanted, flag_of, map_columns, no_column
from adjudge.io.jobs.journal import RETRY
from adjudge.io.jobs.opening import check_paths, peek, unreadable
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source, open_source
from adjudge.io.values import kind_of
from adjudge.protocol import MissingReferenceError, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job ready to run.

    Attributes:
        config: what was asked for.
        source: the input.
        columns: which column is what.
        stages: who scores.
        batcher: cuts the input into batches.
        identity: what must be the same for a job to go on.
        convert: makes the output's format from the lines, or None.
        notes: how the input was understood.
        later: notices columns that first say something behind the rows by which columns were guessed.
        earlier: the output of which only what failed is judged again, or None.
    """

    config: LabelConfig
    source: Source
    columns: ColumnMap
    stages: Stages
    batcher: Batcher
    identity: Mapping[str, Any]
    convert: Callable[[Path, Path], None] | None
    notes: tuple[str, ...]
    later: LaterColumns
    references: tuple[str, ...] = ()
    earlier: EarlierOutput | None = None

    @property
    def at_once(self) -> int:
        """How many batches are under way at most."""
        return self.config.in_flight * max(stage.bench.width for stage in self.stages.each)

    @property
    def several_columns(self) -> bool:
        """Whether a score must say which response column it is of."""
        return len(self.columns.responses) > 1


def make_plan(config: LabelConfig, load: Load) -> Plan:
    """Open the input, decide about its columns, and load the scorers.

    Args:
        config: the options.
        load: makes the scorers.

    Raises:
        ValueError: whatever is wrong with the call, before any work.
    """
    check_paths(config.input, config.output)
    source = open_source(
        config.input,
        limit=config.max_row_mb << 20,
        split=config.split,
        subset=config.subset,
        revision=config.revision,
    )
    peeked = peek(source)
    columns, notes = _columns(config, source, peeked)
    samples = _first_samples(columns, peeked)
    stages = load()
    if columns.reference is None and samples:
        _check(stages, samples[0], peeked, notes)
    convert = converter(
        config.output,
        timings=config.timings,
        columns=len(columns.responses) > 1,
        keep=config.keep_columns,
        names=stages.names if stages.named else (),
    )
    later = LaterColumns(source, config.wanted_columns(), columns, [row.data for row in peeked if row.data is not None])
    _select(source, columns, config.keep_columns, later.left)
    earlier = _earlier(config, stages)
    shard, shards = config.shard_of()
    batcher = Batcher(
        read=later.rows,
        sampler=Sampler(columns=columns, keep=config.keep_columns),
        size=config.batch_size,
        whole_groups=stages.groupwise,
        shard=shard,
        shards=shards,
        limit=config.limit,
    )
    return Plan(
        config=config,
        source=source,
        columns=columns,
        stages=stages,
        batcher=batcher,
        identity=_identity(config, source, columns, stages) | ({RETRY: earlier.identity()} if earlier else {}),
        convert=convert,
        notes=tuple(notes),
        references=tuple(dict.fromkeys(kind_of(sample.reference) for sample in samples)),
        earlier=earlier,
        later=later,
    )


def _earlier(config: LabelConfig, stages: Stages) -> EarlierOutput | None:
    if not config.retry_failed or not Path(config.output).exists():
        return None
    if stages.groupwise:
        raise ValueError(
            "--retry-failed judges single samples again, and the scorer compares those of a group; label again with "
            "--overwrite"
        )
    return EarlierOutput(config.output, stages)


def _columns(config: LabelConfig, source: Source, peeked: list[Row]) -> tuple[ColumnMap, list[str]]:
    readable = [row.data for row in peeked if row.data is not None]
    schema = source.columns()
    if peeked and not readable and (schema is not None or not config.response_column):
        raise ValueError(unreadable(source, peeked))
    wanted, heads = config.wanted_columns(), source.heads()
    if schema is not None:
        _check_files(wanted, heads, None)
    elif not peeked:
        return ColumnMap(), [f"{source.name} holds no rows; the output will hold none"]
    readable += [data for _, rows in heads for row in rows if (data := row.data) is not None]
    names = schema if schema is not None else _names(readable)
    columns, notes = map_columns(wanted, names, readable, closed=schema is not None)
    _check_files(wanted, heads, columns)
    return columns, notes


def _check_files(wanted: Wanted, heads: Sequence[tuple[str, Sequence[Row]]], columns: ColumnMap | None) -> None:
    """Raise `ValueError` where a file has another column for what was guessed, of all files or else of the first."""
    given = {wanted.prompt, wanted.reference, *wanted.responses}
    for file, head in heads:
        rows = [row.data for row in head if row.data is not None]
        if not rows:
            continue
        own, _ = map_columns(Wanted(), _names(rows), rows, closed=False, needs_response=False)
        columns = columns or own
        of_all, of_this = ((each.prompt, each.reference, *each.responses[:1]) for each in (columns, own))
        for role, one, other in zip(("prompt", "reference", "response"), of_all, of_this, strict=False):
            names = [column.name for column in (one, other) if column is not None]
            unread = one is None or all(one.of(row) is MISSING for row in rows)
            if other is not None and unread and given.isdisjoint(names):
                others = f"not in {one.name!r}" if one is not None else "other files have none"
                raise ValueError(
                    f"the files have different columns: {file} has the {role} in {other.name!r}, and {others}; label "
                    f"them one by one, or {flag_of(role)} '{'|'.join(names)}' reads the first that a row has"
                )


def _first_samples(columns: ColumnMap, peeked: list[Row]) -> list[Sample]:
    sampler = Sampler(columns=columns)
    items = [item for row in peeked if row.data is not None for item in sampler.items(row, "")]
    samples = [item.sample for item in items if item.sample is not None]
    if items and not samples:
        raise ValueError(f"none of the first {len(items)} responses can be read: {items[0].error}; name other columns")
    return samples


class LaterColumns:
    """Passes rows through, and notices usual columns that first say something behind the rows that were looked at.

    Args:
        source: the rows.
        wanted: what the user named.
        columns: which column is what, by the rows that were looked at.
        seen: those.

    Attributes:
        left: the columns that it waits for.
    """

    def __init__(self, source: Source, wanted: Wanted, columns: ColumnMap, seen: Sequence[Mapping[str, Any]]) -> None:
        self._source, self._wanted, self._columns, self._seen = source, wanted, columns, seen
        self.left = USUAL - {name for row in seen for name, value in row.items() if value is not None}
        self._found: dict[int, dict[str, Any]] = {}

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the rows behind a place."""
        for row in self._source.rows(start):
            if row.data is not None and not self.left.isdisjoint(row.data):
                new = {name: row.data[name] for name in self.left & row.data.keys() if row.data[name] is not None}
                if new:
                    self.left -= new.keys()
                    self._found[row.index] = new
            yield row

    def notes(self) -> list[str]:
        """Return one sentence for each column that they would have been taken for."""
        if not self._found:
            return []
        rows = [*self._seen, *self._found.values()]
        again, _ = map_columns(self._wanted, _names(rows), rows, closed=False)
        first = min(self._found)
        return [
            f"{role}: from row {first} on the input has other columns, which were not read; "
            f"{flag_of(role)} '{names}' reads them"
            for role, names in again.to_dict().items()
            if role in ("prompt", "reference") and names != self._columns.to_dict()[role]
        ]


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _check(stages: Stages, sample: Sample, peeked: list[Row], notes: Sequence[str]) -> None:
    """Ask the scorers about rows without a reference: no row can have what no column holds."""
    try:
        stages.check(sample)
    except MissingReferenceError as error:
        names = _names([row.data for row in peeked if row.data is not None])
        taken = [note for note in notes if "(guessed;" in note]
        raise ValueError(". ".join([str(error), *taken, no_column("reference", names)])) from None


def _select(source: Source, columns: ColumnMap, keep: bool, watched: frozenset[str]) -> None:
    names = source.columns()
    if names is None or keep:
        return
    wanted = watched.union(top for column in columns.all() for top in column.tops(names))
    source.select([name for name in names if name in wanted])


def _identity(config: LabelConfig, source: Source, columns: ColumnMap, stages: Stages) -> dict[str, Any]:
    return {
        "input": source.identity(),
        "columns": columns.to_dict(),
        "options": {
            "shard": config.shard,
            "limit": config.limit,
            "keep_columns": config.keep_columns,
            "timings": config.timings,
            "max_row_mb": config.max_row_mb,
        },
        **stages.identity(),
    }
