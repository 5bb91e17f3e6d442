"""What decides row by row what stays, and the maker that writes either side of it.

A sieve may see the whole input first (`learn`), then judges each row.  The rows that stay keep their columns and take
those that the sieve adds.  The rows that do not are a second dataset, made by a second job, with `dropped_reason` and
what the sieve says about it in columns that begin with `dropped_`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from adjudge.data_pipelines.hygiene.config import (
    DecontaminateConfig,
    DedupConfig,
    DifficultyConfig,
    FilterConfig,
    HygieneConfig,
)
from adjudge.data_pipelines.hygiene.minhash import UNICODE
from adjudge.data_pipelines.hygiene.rows import (
    PromptKeys,
    PromptScores,
    RowScores,
    RowText,
    prompt_keys,
    row_scores,
    text_columns,
)
from adjudge.io.columns import Column
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.journal import partial_of
from adjudge.io.jobs.maker import Kind, Made, Unit
from adjudge.io.jobs.report import JobProgress, JobReport

VERSION = 2  # of what the sieves decide; in every fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes of a row: `reason` says why it is left out, in snake_case, "" if it stays.

    Attributes:
        columns: what is added to it: the sieve's `added` if it stays, else its `why`.
        counts: numbers for the report.
    """

    reason: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)


KEPT = Verdict()


C = TypeVar("C", bound=HygieneConfig)


class Sieve(ABC, Generic[C]):
    """Decides which rows stay; the same row of the same input is always judged the same.

    Attributes:
        name: what the report and the card call it.
        learns: whether it must see the whole input first.
        uses: the options that its verdicts depend on.
        added: the columns it adds to rows that stay.
        why: what it says of rows that do not, without the `dropped_` before the names.
    """

    name: str
    learns: bool = False
    uses: tuple[str, ...] = ()
    added: Mapping[str, Kind] = MappingProxyType({})
    why: Mapping[str, Kind] = MappingProxyType({})

    def __init__(self, config: C) -> None:
        self.config = config

    @property
    def options(self) -> Mapping[str, Any]:
        """All that its verdicts depend on beside the input, as plain JSON data."""
        values = {name: getattr(self.config, name) for name in self.uses}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @abstractmethod
    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look at the input before any work; see `Maker.check`."""

    def learn(self, rows: Iterator[tuple[int, Mapping[str, Any]]]) -> None:
        """Take the rows with their numbers, in order; again when an interrupted job goes on.  If `learns`."""
        return

    @abstractmethod
    def judge(self, number: int, row: Mapping[str, Any]) -> Verdict:
        """Return what becomes of a row."""

    def summary(self) -> Mapping[str, float]:
        """Return numbers about the whole input, for the report.  If `learns`."""
        return {}

    def close(self) -> None:
        """Let go of what `learn` holds outside of memory."""
        return


T = TypeVar("T", bound=DecontaminateConfig | DedupConfig | FilterConfig)


class TextSieve(Sieve[T]):
    """A sieve that looks at the texts of rows, in the columns that `text_column` names."""

    def __init__(self, config: T) -> None:
        super().__init__(config)
        self.text = RowText(())

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns."""
        self.text, notes = text_columns(self.config.text_column, columns, first, "--text-column")
        return notes


P = TypeVar("P", bound=DifficultyConfig | FilterConfig)


class PromptSieve(Sieve[P]):
    """A sieve that looks at the scores of all answers to a prompt."""

    learns = True

    def __init__(self, config: P) -> None:
        super().__init__(config)
        self.keys = PromptKeys()
        self.scores = RowScores(Column(config.score_column))

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Find the columns of scores and prompts."""
        self.scores, about_scores = row_scores(self.config.score_column, columns, first)
        self.keys, about_keys = prompt_keys(self.config.group_column, columns, first)
        return about_scores + about_keys

    def scores_in(self, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> PromptScores:
        """Return the scores of numbered rows."""
        return PromptScores.of((number, self.keys.of(row), self.scores.of(row)) for number, row in rows)


@dataclass
class SieveMaker:
    """Makes the rows of one side of a sieve; see `Maker` and `Prepares`."""

    sieve: Sieve[Any]
    inverse: bool = False
    grouped: bool = False
    keeps_columns: bool = True
    _first: int | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """What the report and the card call it."""
        return f"{self.sieve.name} (what was left out)" if self.inverse else self.sieve.name

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change with every option, and with what the sieve's rules are."""
        said = {"name": self.name, "options": self.sieve.options, "version": VERSION, "unicode": UNICODE}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def fields(self) -> Mapping[str, Kind]:
        """The columns it adds."""
        if not self.inverse:
            return self.sieve.added
        return {"dropped_reason": "text", **{f"dropped_{name}": kind for name, kind in self.sieve.why.items()}}

    def check(self, columns: Sequence[str], first: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
        """Look at the input before any work; see `Maker.check`."""
        notes = self.sieve.check(columns, first)
        there = [name for name in self.fields if name in columns]
        if there:
            notes += (f"the column {', '.join(there)} of the input is replaced",)
        return notes

    def prepare(self, units: Iterable[Unit]) -> None:
        """Let a sieve that learns see the whole input."""
        if self.sieve.learns:
            self._first = None
            self.sieve.learn(self._numbered(units))

    def _numbered(self, units: Iterable[Unit]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for unit in units:
            if self._first is None:
                self._first = unit.first
            yield unit.first, unit.rows[0]

    def close(self) -> None:
        """Close the sieve."""
        self.sieve.close()

    async def make(self, unit: Unit) -> Made:
        """Return the row, if it is on this side."""
        (row,) = unit.rows
        verdict = self.sieve.judge(unit.first, row)
        counts = dict(verdict.counts)
        if unit.first == self._first:  # exactly once in a job, however often it is interrupted
            counts |= self.sieve.summary()
        if self.inverse:
            if not verdict.reason:
                return Made(dropped={"stays": 1}, counts=counts)
            said = {f"dropped_{name}": verdict.columns.get(name) for name in self.sieve.why}
            return Made(rows=({**row, "dropped_reason": verdict.reason, **said},), counts=counts)
        if verdict.reason:
            return Made(dropped={verdict.reason: 1}, counts=counts)
        return Made(rows=({**row, **{name: verdict.columns.get(name) for name in self.sieve.added}},), counts=counts)


def run_sieve(config: HygieneConfig, sieve: Sieve[Any], *, progress: JobProgress | None = None) -> JobReport:
    """Write the rows that stay, and where it is asked for those that do not."""
    if config.dropped:
        # First, because a call that was interrupted must be able to make both files, and only `output` tells that it
        # was not: an `output` that exists is refused.
        output = Path(config.output)
        if output.exists() and not config.overwrite and not partial_of(output).exists():
            raise ValueError(f"{output} exists already; choose another output, or replace it with --overwrite")
        left_out = dataclasses.replace(config, output=config.dropped_output, overwrite=True)
        run_job(left_out, SieveMaker(sieve, inverse=True), progress=progress)
    return run_job(config, SieveMaker(sieve), progress=progress)
