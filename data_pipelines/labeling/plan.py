"""All that is decided before the first sample is scored, so that a user's mistake costs no work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adjudge.data_pipelines.jobs.journal import RETRY
from adjudge.data_pipelines.jobs.opening import check_paths, peek, unreadable
from adjudge.data_pipelines.labeling.batches import Batcher
from adjudge.data_pipelines.labeling.config import LabelConfig
from adjudge.data_pipelines.labeling.earlier import EarlierOutput
from adjudge.data_pipelines.labeling.outputs import converter
from adjudge.data_pipelines.labeling.samples import Sampler
from adjudge.data_pipelines.labeling.scoring import Load
from adjudge.data_pipelines.labeling.stages import Stages
from adjudge.io.columns import ColumnMap, map_columns, no_column
from adjudge.io.row import Row
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
        _check(stages, samples[0], peeked)
    convert = converter(
        config.output,
        timings=config.timings,
        columns=len(columns.responses) > 1,
        keep=config.keep_columns,
        names=stages.names if stages.named else (),
    )
    _select(source, columns, config.keep_columns)
    earlier = _earlier(config, stages)
    shard, shards = config.shard_of()
    batcher = Batcher(
        read=source.rows,
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
    names = schema if schema is not None else list(dict.fromkeys(name for row in readable for name in row))
    if not peeked and schema is None:
        return ColumnMap(), [f"{source.name} holds no rows; the output will hold none"]
    return map_columns(config.wanted_columns(), names, readable, closed=schema is not None)


def _first_samples(columns: ColumnMap, peeked: list[Row]) -> list[Sample]:
    sampler = Sampler(columns=columns)
    items = [item for row in peeked if row.data is not None for item in sampler.items(row, "")]
    samples = [item.sample for item in items if item.sample is not None]
    if items and not samples:
        raise ValueError(f"none of the first {len(items)} responses can be read: {items[0].error}; name other columns")
    return samples


def _check(stages: Stages, sample: Sample, peeked: list[Row]) -> None:
    """Ask the scorers about rows without a reference: no row can have what no column holds."""
    try:
        stages.check(sample)
    except MissingReferenceError as error:
        names = list(dict.fromkeys(name for row in peeked for name in row.data or {}))
        raise ValueError(f"{error}. {no_column('reference', names)}") from None


def _select(source: Source, columns: ColumnMap, keep: bool) -> None:
    names = source.columns()
    if names is None or keep:
        return
    wanted = {top for column in columns.all() for top in column.tops(names)}
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
