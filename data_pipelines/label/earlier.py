"""The output of an earlier run, read beside the rows it is of, so that what failed can be judged again.

Its lines stand in the order of the samples, one for each.

Not covered: what an interrupted job left (`jobs.journal`); that job goes on first.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from adjudge.data_pipelines.label.batches import Batch
from adjudge.data_pipelines.label.samples import Item, hash_of
from adjudge.data_pipelines.label.stages import Column, Stages
from adjudge.io.errors import JobError
from adjudge.io.row import Cursor
from adjudge.io.source import Source, open_source
from adjudge.protocol import Score

_LINE_BYTES: Final = 1 << 30  # of a line that adjudge wrote itself
_FIELDS: Final = (
    "value", "status", "reason", "steps", "parts", "evidence", "uncertainty", "provenance", "cost",
)  # fmt: skip


class EarlierOutput:
    """The scores that an earlier run wrote.

    Args:
        path: its output.
        stages: who scores; it must hold the scores of these.

    Raises:
        ValueError: it is no output of such a job.
    """

    def __init__(self, path: str, stages: Stages) -> None:
        self._source: Source = open_source(path, limit=_LINE_BYTES)
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

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        return self._source.identity()

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
        for row in self._source.rows(Cursor()):
            if row.data is None or not isinstance(row.data.get("row"), int):
                raise JobError(f"line {row.index + 1} of {self._source.name} is no line of a label job; {row.error}")
            yield row.data

    def _fitting(self, item: Item, record: Mapping[str, Any] | None) -> Mapping[str, Any]:
        found = None if record is None else (record["row"], record["id"], record.get("sample_hash"))
        if record is None or found != (item.row, item.id, hash_of(item.sample)):
            there = "nothing" if record is None else f"row {record['row']}, id {record['id']!r}"
            raise JobError(
                f"{self._source.name} is not of these rows: where row {item.row}, id {item.id!r} should stand it has "
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
