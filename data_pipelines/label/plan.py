"""All that is decided before the first sample is scored, so that a user's mistake costs no work.

A batch holds whole rows, and for a groupwise scorer whole groups.  A unit is a run of rows that name the same group, or
a single row that names none; a row that cannot be read belongs to the unit it stands in.  Sharding deals out units in
turn: shard i of n takes those whose number leaves the rest i, so all rows of a group reach the same shard.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adjudge.data_pipelines.label.bench import Column, Stages
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.data_pipelines.label.outputs import converter
from adjudge.data_pipelines.label.samples import Item, Sampler, hash_of, prompt_hash_of
from adjudge.io.columns import MISSING, USUAL, ColumnMap, Wanted, flag_of, map_columns, no_column
from adjudge.io.columns import Column as InputColumn
from adjudge.io.errors import JobError
from adjudge.io.guesses import MOST
from adjudge.io.jobs.journal import RETRY
from adjudge.io.jobs.opening import check_paths, nothing_in, peek, unreadable
from adjudge.io.positions import refuse_position
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source, open_source
from adjudge.io.values import is_empty, kind_of
from adjudge.protocol import MissingReferenceError, Sample, Score

_BATCH_BYTES = 4 << 20  # a batch of long rows closes early, so that memory does not follow the row length


@dataclass(slots=True)
class Batch:
    """Items scored in one call.

    Attributes:
        after: the place behind the last row read, other shards' rows included.
        items: in input order; may be empty at the end of a shard.
        rows: how many rows they come from.
        earlier: of a job that judges again what failed: what an earlier run came to, for the items with a sample.
    """

    after: Cursor
    items: list[Item] = field(default_factory=list)
    rows: int = 0
    earlier: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batcher:
    """Cuts a stream of rows into batches.

    Attributes:
        read: yields the rows behind a place.
        sampler: makes items of rows.
        size: items after which a batch closes.
        whole_groups: whether a group must not be cut.
        shard: this job's, of so many `shards`.
        limit: rows to read, all shards together; None reads all.
        guessed: the group column if nobody named it, else "".
    """

    read: Callable[[Cursor], Iterator[Row]]
    sampler: Sampler
    size: int
    whole_groups: bool = False
    shard: int = 0
    shards: int = 1
    limit: int | None = None
    guessed: str = ""

    def batches(self, start: Cursor) -> Iterator[Batch]:
        """Yield the batches behind a place; the last one, maybe empty, ends where the input ends."""
        batch, taken = Batch(after=start), 0
        size = self.size if self.limit is None else 1  # a first batch alone shows what starting takes
        for row, before, after in self._placed(start):
            begins = after.unit != before.unit
            full = len(batch.items) >= size or taken >= _BATCH_BYTES
            if full and (begins or not self.whole_groups):
                yield batch
                batch, taken, size = Batch(after=before), 0, self.size
            if (after.unit - 1) % self.shards == self.shard:
                batch.items += self.sampler.items(row, after.group)
                batch.rows += 1
                taken += row.size
            batch.after = after
        yield batch

    def check_groups(self) -> str:
        """Read the input once and see that the rows of each group stand together; 100 bytes of memory for each.

        Returns:
            What is to be said about groups that hold several prompts, or "".

        Raises:
            ValueError: a group goes on after another one began, or a guessed column puts several prompts in a group.
        """
        seen: dict[int, str] = {}
        note = ""
        for row, before, after in self._placed(Cursor()):
            if not after.group:
                continue
            key = hash(after.group)
            prompt = "" if note else self._prompt(row, after.group)
            if prompt and (seen.get(key) or prompt) != prompt:
                note = (
                    f"the scorer compares the samples of a group, and the group {after.group!r:.80} holds several "
                    f"prompts (row {row.index} has another one)"
                )
                if self.guessed:
                    raise ValueError(
                        f"{note}. The column {self.guessed!r} was guessed; name the one that the responses to a prompt "
                        f"share, often the prompt's own, with --group-column, or this one if that is meant"
                    )
            if after.unit != before.unit and key in seen:
                raise ValueError(
                    f"the scorer compares the samples of a group, and the group {after.group!r} goes on at row "
                    f"{row.index} after other rows; sort the input by its group column"
                )
            seen[key] = seen.get(key) or prompt
        return note

    def _prompt(self, row: Row, group: str) -> str:
        """Return a short word for a row's prompt; "" where it has none."""
        samples = [item.sample for item in self.sampler.items(row, group) if item.sample is not None]
        return prompt_hash_of(samples[0]) or "" if samples else ""

    def _placed(self, start: Cursor) -> Iterator[tuple[Row, Cursor, Cursor]]:
        """Yield each row with the places before and behind it."""
        before = start
        if self.limit is not None and before.row >= self.limit:
            return
        for row in self.read(start):
            group = self.sampler.group_of(row)
            joins = before.unit > 0 and (row.data is None or (group != "" and group == before.group))
            unit = before.unit if joins else before.unit + 1
            kept = before.group if row.data is None else group
            after = Cursor(row.index + 1, row.part, row.place, unit, kept)
            yield row, before, after
            if after.row == self.limit:
                return
            before = after


_LINE_BYTES: Final = 1 << 30  # of a line that adjudge wrote itself
_FIELDS: Final = (
    "value", "status", "reason", "steps", "parts", "evidence", "uncertainty", "provenance", "cost",
)  # fmt: skip


class _EarlierOutput:
    """The scores that an earlier run wrote.

    Raises:
        ValueError: it is not an output of such a job.
    """

    def __init__(self, path: str, stages: Stages) -> None:
        self.source: Source = open_source(path, limit=_LINE_BYTES)
        self._stages = stages
        first = next(self._records(), None)
        if first is None:
            return
        named = "scores" in first
        there = [*first["scores"]] if named else [first.get("provenance", {}).get("scorer", "")]
        wanted = [*stages.names] if stages.named else [stages.each[0].bench.name]
        if named != stages.named or there != wanted != ["auto"]:  # scores by "auto" say whom it chose
            raise ValueError(
                f"--retry-failed: {path} holds the scores of {', '.join(map(str, there))}, and the call is for "
                f"{', '.join(wanted)}; make the call that wrote it, with --retry-failed"
            )

    def beside(self, batches: Iterator[Batch], start: Cursor) -> Iterator[Batch]:
        """Yield the batches, each with the scores of its samples.

        Raises:
            JobError: the output is not that of these rows.
        """
        records = itertools.dropwhile(lambda record: record["row"] < start.row, self._records())
        for batch in batches:
            columns: dict[str, Column] = {name: [] for name in self._stages.names}
            for item in batch.items:
                record = self._fitting(item, next(records, None))
                if item.sample is not None:
                    for name, column in columns.items():
                        column.append(_score_in(record["scores"][name] if self._stages.named else record))
            batch.earlier = columns
            yield batch

    def _records(self) -> Iterator[Mapping[str, Any]]:
        for row in self.source.rows(Cursor()):
            if row.data is None or not isinstance(row.data.get("row"), int):
                raise JobError(f"line {row.index + 1} of {self.source.name} is no line of a label job; {row.error}")
            yield row.data

    def _fitting(self, item: Item, record: Mapping[str, Any] | None) -> Mapping[str, Any]:
        place = None if record is None else (record["row"], record["id"], record.get("sample_hash"))
        if record is None or place != (item.row, item.id, hash_of(item.sample)):
            there = "nothing" if record is None else f"row {record['row']}, id {record['id']!r}"
            raise JobError(
                f"{self.source.name} is not of these rows: where row {item.row}, id {item.id!r} should stand it has "
                f"{there}, or its prompt or response has changed; make the call that wrote it, with --retry-failed, on "
                "the rows as they were then"
            )
        return record


def _score_in(record: Mapping[str, Any] | None) -> Score | None:
    if record is None:
        return None
    fields = {name: record[name] for name in _FIELDS}
    for name in ("evidence", "parts"):
        if isinstance(fields[name], str):  # Parquet and datasets folders have one shape for a column
            fields[name] = json.loads(fields[name])
    return Score.from_dict(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A job ready to run."""

    config: LabelConfig
    source: Source
    columns: ColumnMap
    stages: Stages
    batcher: Batcher
    identity: Mapping[str, Any]
    convert: Callable[[Path, Path], None] | None
    notes: tuple[str, ...]
    late_notes: Callable[[], list[str]]
    references: tuple[str, ...] = ()
    earlier: _EarlierOutput | None = None

    @property
    def at_once(self) -> int:
        """How many batches are under way at most."""
        return self.config.in_flight * max(stage.bench.width for stage in self.stages.each)


def make_plan(config: LabelConfig, load: Callable[[], Stages]) -> Plan:
    """Open the input, decide about its columns, and load the scorers.

    Raises:
        ValueError: whatever is wrong with the call, before any work.
    """
    check_paths(config.input, config.output)
    source = config.open()
    peeked = peek(source)
    seen = [row.data for row in peeked if row.data is not None]
    columns, notes = _columns(config, source, peeked)
    samples = _first_samples(columns, peeked)
    stages = load()
    if config.cache and all(stage.bench.groupwise for stage in stages.each):
        raise ValueError(f"scores that compare the members of a group are not cached; leave out --cache {config.cache}")
    if any(stage.bench.name == "auto" for stage in stages.each):
        refuse_position(columns.reference, seen)
    if columns.reference is None and samples:
        _check(stages, samples[0], seen, notes)
    convert = converter(
        config.output,
        timings=config.timings,
        columns=len(columns.responses) > 1,
        keep=config.keep_columns,
        names=stages.names if stages.named else (),
    )
    awaited = set(USUAL) - {name for row in seen for name, value in row.items() if value is not None}
    late: dict[int, dict[str, Any]] = {}
    _select(source, columns, config.keep_columns, awaited)
    earlier = _earlier(config, stages)
    shard, shards = config.shard_of()
    batcher = Batcher(
        read=functools.partial(_watched, source, awaited, late),
        sampler=Sampler(columns=columns, keep=config.keep_columns),
        size=config.batch_size,
        whole_groups=stages.groupwise,
        shard=shard,
        shards=shards,
        limit=config.limit,
        guessed=columns.group.name if columns.group is not None and not config.group_column else "",
    )
    return Plan(
        config=config,
        source=source,
        columns=columns,
        stages=stages,
        batcher=batcher,
        identity=_identity(config, source, columns, stages) | ({RETRY: earlier.source.identity()} if earlier else {}),
        convert=convert,
        notes=tuple(notes),
        references=tuple(dict.fromkeys(kind_of(sample.reference) for sample in samples)),
        earlier=earlier,
        late_notes=functools.partial(_late_notes, config.wanted_columns(), columns, seen, late),
    )


def _earlier(config: LabelConfig, stages: Stages) -> _EarlierOutput | None:
    if not config.retry_failed or not Path(config.output).exists():
        return None
    if stages.groupwise:
        raise ValueError(
            "--retry-failed judges single samples again, and the scorer compares those of a group; label again with "
            "--overwrite"
        )
    return _EarlierOutput(config.output, stages)


def _columns(config: LabelConfig, source: Source, peeked: list[Row]) -> tuple[ColumnMap, list[str]]:
    readable = [row.data for row in peeked if row.data is not None]
    schema = source.columns()
    if peeked and not readable and (schema is not None or not config.response_column):
        raise ValueError(unreadable(source, peeked))
    wanted, heads = config.wanted_columns(), source.heads()
    if schema is not None:
        _check_files(wanted, heads, None)
    elif not peeked:
        return ColumnMap(), [nothing_in(source)]
    readable += [data for _, rows in heads for row in rows if (data := row.data) is not None]
    names = schema if schema is not None else _names(readable)
    columns, notes = map_columns(wanted, names, readable, closed=schema is not None)
    _check_files(wanted, heads, columns)
    notes += check_rows(wanted, source.name, readable, columns)
    return columns, notes if peeked else [*notes, nothing_in(source)]


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


def check_rows(wanted: Wanted, source: str, rows: Sequence[Mapping[str, Any]], columns: ColumnMap) -> list[str]:
    """Return a sentence where a few rows that lack a guessed column have another one for it, in the place of it.

    Columns that stand side by side in a row are not one for the other: an answer may be no reference.

    Raises:
        ValueError: it is more than a few rows.
    """
    notes = []
    named = {wanted.prompt, wanted.reference, *wanted.responses}
    used = named.union(column.name for column in columns.all())
    for role, one in _guessable(columns).items():
        lacking = [row for row in rows if one is not None and is_empty(one.of(row))]
        if one is None or one.name in named or not lacking:
            continue
        lacking = [{name: cell for name, cell in row.items() if not is_empty(cell)} for row in lacking]
        guesses, _ = map_columns(Wanted(), _names(lacking), lacking, closed=False, needs_response=False)
        other = _guessable(guesses)[role]
        if other is None or other.name in used:
            continue
        if not any(not is_empty(one.of(row)) and not is_empty(other.of(row)) for row in rows):
            there = sum(not is_empty(other.of(row)) for row in lacking)
            said = (
                f"{there} of the first {len(rows)} of {source} have the {role} in {other.name!r}, and not in "
                f"{one.name!r}; {flag_of(role)} '{one.name}|{other.name}' reads the first that a row has"
            )
            if there > (1 - MOST) * len(rows):
                raise ValueError(f"the rows have different columns: {said}")
            notes.append(f"{role}: {said}; without it, these rows have none")
    return notes


def _guessable(columns: ColumnMap) -> dict[str, InputColumn | None]:
    return {"prompt": columns.prompt, "reference": columns.reference, "response": next(iter(columns.responses), None)}


def _first_samples(columns: ColumnMap, peeked: list[Row]) -> list[Sample]:
    sampler = Sampler(columns=columns)
    items = [item for row in peeked if row.data is not None for item in sampler.items(row, sampler.group_of(row))]
    samples = [item.sample for item in items if item.sample is not None]
    if items and not samples:
        raise ValueError(f"none of the first {len(items)} responses can be read: {items[0].error}; name other columns")
    return samples


def _watched(source: Source, awaited: set[str], late: dict[int, dict[str, Any]], start: Cursor) -> Iterator[Row]:
    """Yield the rows behind a place; note in `late` what awaited columns say first, by the number of the row."""
    for row in source.rows(start):
        if row.data is not None and not awaited.isdisjoint(row.data):
            new = {name: row.data[name] for name in awaited & row.data.keys() if row.data[name] is not None}
            if new:
                awaited.difference_update(new)
                late[row.index] = new
        yield row


def _late_notes(
    wanted: Wanted, columns: ColumnMap, seen: Sequence[Mapping[str, Any]], late: Mapping[int, Mapping[str, Any]]
) -> list[str]:
    """Return a sentence for each role that late columns would have been taken for, had they been there at first."""
    rows = [*seen, *late.values()]
    again = map_columns(wanted, _names(rows), rows, closed=False)[0] if late else columns
    return [
        f"{role}: from row {min(late)} on the input has other columns, which were not read; "
        f"{flag_of(role)} '{names}' reads them"
        for role, names in again.to_dict().items()
        if role in ("prompt", "reference") and names != columns.to_dict()[role]
    ]


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _check(stages: Stages, sample: Sample, seen: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> None:
    """Ask the scorers about rows without a reference: no row can have what no column holds."""
    try:
        stages.check(sample)
    except MissingReferenceError as error:
        taken = [note for note in notes if "(guessed;" in note]
        raise ValueError(". ".join([str(error), *taken, no_column("reference", _names(seen))])) from None


def _select(source: Source, columns: ColumnMap, keep: bool, awaited: set[str]) -> None:
    names = source.columns()
    if names is None or keep:
        return
    wanted = awaited.union(top for column in columns.all() for top in column.tops(names))
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
