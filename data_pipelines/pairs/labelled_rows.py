"""Scores joined with the rows they are of: what was scored, as `adjudge label` read it, and what else its row holds.

Scores and rows are read side by side, since scores stand in the order of their rows; outputs of several shards one
behind the other begin the rows anew each time.

Not covered: rows that the scores hold already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from adjudge.data_pipelines.label.samples import Item, Sampler, hash_of
from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.io.columns import Wanted, map_columns
from adjudge.io.errors import JobError
from adjudge.io.jobs.opening import glance
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source

_MOST_BEGINNINGS: Final = 1000


class LabelledRows:
    """A source of scores, each with its row in `input`.

    Args:
        scores: what `adjudge label` wrote.
        rows: what it labelled.
        config: names the columns as the labelling did.

    Attributes:
        notes: how the columns of the rows were understood.

    Raises:
        ValueError: a column is not there.
    """

    def __init__(self, scores: Source, rows: Source, config: PairsConfig) -> None:
        self.name = scores.name
        self._scores, self._rows = scores, rows
        seen = glance(rows)
        named = dict.fromkeys(row.get("column") for row in glance(scores).rows)
        given = tuple(name for name in named if isinstance(name, str)) or (config.response_column,)
        wanted = Wanted(
            prompt=config.prompt_column,
            responses=tuple(name for name in given if name),
            id=config.id_column,
        )
        columns, notes = map_columns(wanted, seen.columns, seen.rows, closed=seen.closed)
        self.notes = tuple(note for note in notes if note.startswith(("response", "prompt", "id")))
        self._read = ", ".join(column.name for column in columns.responses)
        self._sampler = Sampler(columns=columns, keep=True)

    def identity(self) -> dict[str, Any]:
        """Return what must be the same for a job to go on."""
        return {"scores": self._scores.identity(), "rows": self._rows.identity()}

    def columns(self) -> list[str] | None:
        """Return None: the rows tell."""
        return None

    def count(self) -> int | None:
        """Return the number of scores, or None if unknown."""
        return self._scores.count()

    def fraction(self, cursor: Cursor) -> float | None:
        """Return the share of the scores before a place, from 0 to 1, or None if unknown."""
        return self._scores.fraction(cursor)

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the scores behind a place, each with its row in `input`, and in `sample` what was scored of it.

        Raises:
            JobError: the rows are not those that were labelled.
        """
        rows: Iterator[Row] = iter(())
        items: dict[str, Item] = {}
        number, beginnings = -1, 0
        for score in self._scores.rows(start):
            wanted = None if score.data is None else score.data.get("row")
            if score.data is None or not isinstance(wanted, int):
                yield score
                continue
            if wanted < number or beginnings == 0:
                rows, number, beginnings = self._rows.rows(Cursor()), -1, beginnings + 1
                if beginnings > _MOST_BEGINNINGS:
                    raise JobError(f"the scores in {self.name} are in no order; sort them by `row`")
            while number < wanted:
                row = next(rows, None)
                if row is None:
                    raise self._mismatch(score.data, f"it has {number + 1} rows")
                number = row.index
                if number == wanted:
                    items = {item.id: item for item in self._sampler.items(row, "")}
            yield replace(score, data=self._joined(score.data, items))

    def _joined(self, score: Mapping[str, Any], items: Mapping[str, Item]) -> Mapping[str, Any]:
        item = items.get(str(score.get("id")))
        if item is None:
            raise self._mismatch(score, f"the id there is {next(iter(items), '')!r}")
        if hash_of(item.sample) != score.get("sample_hash"):
            raise self._mismatch(score, "another prompt or response is there")
        sample = None if item.sample is None else {"prompt": item.sample.prompt, "response": item.sample.response}
        return {**score, "input": item.input, "sample": sample}

    def _mismatch(self, score: Mapping[str, Any], what: str) -> JobError:
        return JobError(
            f"{self._rows.name} does not hold what was scored in {self.name}: at row {score['row']}, id "
            f"{score.get('id')!r}, {what} (response: column {self._read!r}). Name the file that was labelled, "
            "unchanged, and its columns as `adjudge label` was told them (--prompt-column, --response-column, "
            "--id-column)"
        )
