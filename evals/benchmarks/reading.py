"""The cases of an input, in batches, as a stream: rows that are no cases are counted and named, never lost.

Not covered: scoring them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, RowPlace
from adjudge.evals.benchmarks.case import Case
from adjudge.evals.benchmarks.config import BenchmarkConfig
from adjudge.evals.results.config import input_facts
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source, open_source
from adjudge.protocol import Sample

_ROW_BYTES: Final = 256 << 20
_BATCH_BYTES: Final = 4 << 20  # a batch of long cases closes early, so that memory does not follow their length
_NAMED: Final = 20  # unreadable rows that are named one by one
_SHOWN: Final = 200  # characters of what is wrong with one

# What a row of another shape than the columns say can make a benchmark raise; each is told, with the row's number.
_HOSTILE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(slots=True)
class Batch:
    """Cases that are scored in one call.

    Attributes:
        after: the place behind the last row read.
        cases: whole ones, at least one.
        samples: how many samples they hold.
        size: characters of these.
    """

    after: Cursor
    cases: list[Case] = field(default_factory=list)
    samples: int = 0
    size: int = 0


class CaseReader:
    """Reads the cases of a benchmark.

    Args:
        config: names the input.
        benchmark: makes cases of rows.

    Raises:
        ValueError: there is no such input.
    """

    def __init__(self, config: BenchmarkConfig, benchmark: Benchmark) -> None:
        self.source = _opened(config, benchmark)
        self.rows = 0
        self.skipped = 0
        self.unreadable = 0
        self._problems: list[str] = []
        self._benchmark = benchmark
        self._limit = config.limit
        self._batch_size = config.batch_size
        self._ids: set[str] = set()
        self._files: dict[int, str] = {}

    def batches(self) -> Iterator[list[Batch]]:
        """Yield the batches one by one, each in a list, as `adjudge.io.jobs.ordered` takes them.

        Raises:
            ValueError: two cases have one id.
        """
        batch = Batch(after=Cursor())
        for row in self._first_rows():
            cases = self._cases(row)
            batch.after = Cursor(row.index + 1, row.part, row.place)
            for case in cases:
                batch.cases.append(case)
                batch.samples += len(case.samples)
                batch.size += sum(_length(sample) for sample in case.samples)
            if batch.samples >= self._batch_size or batch.size >= _BATCH_BYTES:
                yield [batch]
                batch = Batch(after=batch.after)
        if batch.cases:
            yield [batch]

    def facts(self) -> dict[str, Any]:
        """Return what names the input again."""
        return input_facts(self.source, self.rows)

    def notes(self) -> list[str]:
        """Return what must be said about rows that are no cases."""
        notes = []
        if self.skipped:
            notes.append(f"{self.skipped} rows are no part of the benchmark")
        if self.unreadable:
            more = self.unreadable - len(self._problems)
            rest = f"; and {more} more" if more else ""
            notes.append(f"{self.unreadable} rows cannot be read: {'; '.join(self._problems)}{rest}")
        return notes

    def check_any(self, cases: int) -> None:
        """Raise `ValueError` if there are no cases."""
        if cases:
            return
        name, wanted = self.source.name, self._benchmark.columns
        if self.unreadable:
            raise ValueError(
                f"none of the {self.rows} rows of {name} is a case of {self._benchmark.name}: {self._problems[0]}; "
                f"its rows hold {wanted}"
            )
        raise ValueError(f"{name} holds no cases of {self._benchmark.name} in {self.rows} rows; its rows hold {wanted}")

    def _first_rows(self) -> Iterator[Row]:
        for row in self.source.rows(Cursor()):
            self.rows += 1
            yield row
            if self.rows == self._limit:
                return

    def _cases(self, row: Row) -> Sequence[Case]:
        data = row.cells()
        if data is None:
            self._refuse(row, row.error)
            return ()
        if row.part not in self._files:
            self._files[row.part] = self.source.file_of(row.part)
        place = RowPlace(number=row.index, file=self._files[row.part])
        try:
            cases = [_named(case) for case in self._benchmark.cases(data, place)]
        except _HOSTILE as error:
            said = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            self._refuse(row, said)
            return ()
        for case in cases:
            if case.id in self._ids:
                raise ValueError(
                    f"two cases have the id {case.id!r}, the second one in row {row.index} of {self.source.name}; "
                    "remove the copy, or give each its own id"
                )
            self._ids.add(case.id)
        self.skipped += not cases
        return cases

    def _refuse(self, row: Row, problem: str) -> None:
        self.unreadable += 1
        if len(self._problems) < _NAMED:
            where = f"row {row.index}" + (f" (line {row.line})" if row.line else "")
            self._problems.append(f"{where}: {' '.join(problem.split())[:_SHOWN]}")


def _opened(config: BenchmarkConfig, benchmark: Benchmark) -> Source:
    name = config.input or benchmark.hub
    if not name:
        raise ValueError(
            f"{benchmark.title} has no place on the hub that is known; give a file or a folder. "
            f"Its rows hold {benchmark.columns}"
        )
    of_the_hub = name == benchmark.hub and not Path(name).exists()
    split = config.split or (benchmark.split if of_the_hub else "")
    return open_source(name, limit=_ROW_BYTES, split=split, subset=config.subset, revision=config.revision)


def _named(case: Case) -> Case:
    """Return the case with the ids that users label by: the case's own, or with "/0", "/1", ... for several samples.

    Raises:
        ValueError: something in it is of another kind than the contract says.
    """
    _check(case)
    several = len(case.samples) > 1
    samples = tuple(
        replace(
            sample,
            id=f"{case.id}/{place}" if several else case.id,
            group=case.id if several else sample.group,
        )
        for place, sample in enumerate(case.samples)
    )
    return replace(case, samples=samples)


def _check(case: Case) -> None:
    for name in ("id", "cluster", "part"):
        if not isinstance(getattr(case, name), str):
            raise ValueError(f"its {name} is {getattr(case, name)!r:.80}; it must be text")
    for sample in case.samples:
        for name, given in (("prompt", sample.prompt), ("response", sample.response)):
            turns = isinstance(given, list | tuple) and all(isinstance(turn, Mapping) for turn in given)
            if not turns and not isinstance(given, str):
                raise ValueError(f"a {name} is {given!r:.80}; it must be text, or turns with a role and content")
        if not isinstance(sample.extra, Mapping) or not isinstance(sample.finish_reason, str | None):
            raise ValueError("its extra columns are no object, or its finish reason is no text")
    for stored in case.stored:
        for value in (stored.value, *stored.steps):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"a stored score is {value!r:.80}; it must be a number, or null where there is none")


def _length(sample: Sample) -> int:
    texts = (sample.prompt, sample.response)
    return sum(len(text) if isinstance(text, str) else len(str(text)) for text in texts)
