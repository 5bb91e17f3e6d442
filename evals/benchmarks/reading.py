"""The cases of an input, in batches, as a stream: rows that are not cases are counted and named, never lost.

Beside them, along with the same stream, scores that others gave: those in another input of the same benchmark, or a
file of scores by sample id (the output of `adjudge label`, or any rows with `id` and `value`).  Where a file has the
order of the cases, little is in memory; where it has another one, what was read and not yet asked for is.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from adjudge.evals.benchmarks.benchmark import Benchmark, BenchmarkConfig, RowPlace
from adjudge.evals.benchmarks.case import Case, Given, Outcome, answer_in, finite, is_cut, stored_of
from adjudge.evals.reports.config import input_facts
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source, open_source
from adjudge.protocol import STATUSES, Cost

_ROW_BYTES: Final = 256 << 20
_BATCH_BYTES: Final = 4 << 20  # a batch of long cases closes early, so that memory does not follow their length
_NAMED: Final = 20  # unreadable rows that are named one by one
_SHOWN: Final = 200  # characters of what is wrong with one

# What a row of another shape than the columns say can make a benchmark raise; each is told, with the row's number.
_HOSTILE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


@dataclass(slots=True)
class Batch:
    """Whole cases that are scored in one call, how many samples and characters they hold, and the place behind them."""

    after: Cursor
    cases: list[Case] = field(default_factory=list)
    samples: int = 0
    size: int = 0


class CaseReader:
    """Reads the cases of a benchmark."""

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
        """Yield the batches one by one, each in a list, as `adjudge.io.jobs.ordered` takes them."""
        batch = Batch(after=Cursor())
        for row in self._first_rows():
            cases = self._cases(row)
            batch.after = Cursor(row.index + 1, row.part, row.place)
            for case in cases:
                batch.cases.append(case)
                batch.samples += len(case.samples)
                texts = (text for sample in case.samples for text in (sample.prompt, sample.response))
                batch.size += sum(len(text if isinstance(text, str) else str(text)) for text in texts)
            if batch.samples >= self._batch_size or batch.size >= _BATCH_BYTES:
                yield [batch]
                batch = Batch(after=batch.after)
        if batch.cases:
            yield [batch]

    def facts(self) -> dict[str, Any]:
        """Return what names the input again."""
        return input_facts(self.source, self.rows)

    def notes(self) -> list[str]:
        """Return what must be said about rows that are not cases."""
        notes = []
        if self.skipped:
            notes.append(f"{self.skipped} rows are not part of the benchmark")
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
    """Return the case with the ids that users label by: the case's own, or with "/0", "/1", ... for several samples."""
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
            raise ValueError("its extra columns are not an object, or its finish reason is not text")
    for stored in case.stored:
        for value in (stored.value, *stored.steps):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"a stored score is {value!r:.80}; it must be a number, or null where there is none")


class Voice(ABC):
    """Whoever has a number for each sample of a case."""

    def sees_orders(self, case: Case) -> bool:
        """Return whether the numbers of this pair are shares of its responses, one from each order."""
        return False

    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Return what a report says of it: at least "name" and "fingerprint"."""

    @abstractmethod
    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what is given to each sample of each case.

        Raises:
            ValueError: there is nothing for a sample, and the message says how to get it.
            BrokenScorer: the scorer raised, or its answer breaks the protocol.
        """


class OtherInput(Voice):
    """The stored scores of another input."""

    def __init__(self, config: BenchmarkConfig, benchmark: Benchmark) -> None:
        self._path = config.against_input
        reader = CaseReader(replace(config, input=config.against_input, limit=0), benchmark)
        self._cases = (case for (batch,) in reader.batches() for case in batch.cases)
        self._ahead: dict[str, tuple[list[Given], bool, str]] = {}  # scores, whether shares, cluster if there are texts
        self._in_two_orders: set[str] = set()

    def sees_orders(self, case: Case) -> bool:
        """Return what the other input says of the case."""
        return case.id in self._in_two_orders

    def facts(self) -> Mapping[str, Any]:
        """Return its name."""
        return {"name": self._path, "fingerprint": ""}

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return what the other input stores of the same cases."""
        return [self._of(case) for case in cases]

    def _of(self, case: Case) -> list[Given]:
        while case.id not in self._ahead:
            other = next(self._cases, None)
            if other is None:
                raise ValueError(
                    f"{self._path} does not have the case {case.id!r}; give outputs for the same cases, with their ids"
                )
            self._ahead[other.id] = (stored_of(other), other.compared, other.cluster if other.texts else "")
        given, compared, cluster = self._ahead.pop(case.id)
        if len(given) != len(case.samples):
            raise ValueError(
                f"the case {case.id!r} has {len(given)} responses in {self._path} and {len(case.samples)} in the "
                "input; give outputs for the same cases"
            )
        if case.texts and cluster not in ("", case.cluster):
            raise ValueError(
                f"the case {case.id!r} has another prompt in {self._path} than in the input; give outputs for the same "
                "cases, in the same order where their ids are numbers of rows"
            )
        if compared:
            self._in_two_orders.add(case.id)
        return given


class ScoreFile(Voice):
    """The scores of a file, by sample id; of lines that hold several by name, those of one name."""

    def __init__(self, path: str, name: str = "", *, compared: bool = False) -> None:
        self.path = path
        self._name = name
        self._compared = compared
        self._rows = self._read(open_source(path, limit=_ROW_BYTES).rows(Cursor()))
        self._ahead: dict[str, Given] = {}
        self._who: Mapping[str, Any] = {}

    def sees_orders(self, case: Case) -> bool:
        """Return what was said of the file."""
        return self._compared

    async def given(self, cases: Sequence[Case]) -> list[list[Given]]:
        """Return the scores of the samples' ids."""
        return [[self.take(sample.id) for sample in case.samples] for case in cases]

    def facts(self) -> Mapping[str, Any]:
        """Return who gave the scores, as far as the file says, and its name."""
        name, fingerprint = self._who.get("scorer"), self._who.get("fingerprint")
        return {"name": name or self.path, "fingerprint": fingerprint or "", "scores": self.path}

    def take(self, sample: str) -> Given:
        """Return the score of a sample, once."""
        while sample not in self._ahead:
            entry = next(self._rows, None)
            if entry is None:
                raise ValueError(
                    f"{self.path} holds no score for the sample {sample!r} (or was asked for it twice), and it "
                    f"holds {', '.join(map(repr, [*self._ahead][:2])) or 'no other'}; label the samples that --samples "
                    "writes, all of them, and keep their ids, or name the input's own ids with --id-column"
                )
            name, given = entry
            if name in self._ahead:
                raise ValueError(f"{self.path} holds two scores for the sample {name!r}; remove one")
            self._ahead[name] = given
        return self._ahead.pop(sample)

    def check_left(self, outcomes: Sequence[Outcome], *, partly: bool) -> list[str]:
        """Return a sentence about scores that nobody asked for; they are a mistake unless rows were read `partly`."""
        left = [*self._ahead, *(name for name, _ in self._rows)]
        if not left:
            return []
        known = {name for outcome in outcomes for name in outcome.sample_ids}
        twice = next((name for name in left if name in known), None)
        if twice is not None:
            raise ValueError(f"{self.path} holds two scores for the sample {twice!r}; remove one")
        if not partly:
            raise ValueError(
                f"{self.path} holds {len(left)} scores of samples that the benchmark does not have, the first one of "
                f"{left[0]!r}; give the scores of this input, under the ids that --samples writes"
            )
        return [f"{len(left)} scores of {self.path} belong to no case that was read, the first one to {left[0]!r}"]

    def _read(self, rows: Iterator[Any]) -> Iterator[tuple[str, Given]]:
        for row in rows:
            if row.data is None:
                raise ValueError(f"row {row.index} of {self.path} cannot be read: {row.error}")
            try:
                name, score = self._entry(row.data)
                given = given_in(score)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise ValueError(f"row {row.index} of {self.path} is not a score: {error}") from error
            if not self._who and isinstance(score.get("provenance"), Mapping):
                self._who = score["provenance"]
            yield name, given

    def _entry(self, data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        if "id" not in data:
            raise ValueError(f"it has no `id`; its fields are {', '.join(map(str, list(data)[:12]))}")
        name = str(data["id"])
        named = data.get("scores")
        if not isinstance(named, Mapping):
            if self._name:
                raise ValueError(f"it holds one score, and not several by name; drop --scores-of {self._name}")
            return name, data
        if self._name not in named:
            raise ValueError(f"it holds the scores of {', '.join(named)}; say which with --scores-of")
        score = named[self._name]
        if score is None:
            raise ValueError(f"the scorer {self._name!r} was not asked about the sample {name!r}")
        return name, score


def given_in(score: Mapping[str, Any]) -> Given:
    """Return a score that was written as JSON."""
    if "value" not in score:
        raise ValueError(f"it has no `value`; its fields are {', '.join(map(str, list(score)[:12]))}")
    value = score["value"]
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"`value` is {value!r}; it must be a number, or null where there is none")
    number = None if value is None else finite(value)
    if number is None and value is not None:
        raise ValueError(f"`value` is {value!r:.40}; it must be finite, or null where there is no number")
    status = score.get("status") or ("scored" if value is not None else "failed")
    if status not in STATUSES or (status == "scored") != (value is not None):
        raise ValueError(f"`status` is {status!r} with the value {value!r}; a score is a number exactly when scored")
    reason = str(score.get("reason") or "")
    evidence = _evidence_in(score)
    cost = score.get("cost")
    spent = cost if isinstance(cost, Mapping) else {}
    return Given(
        value=number,
        status=status,
        reason=reason,
        steps=tuple(step["value"] for step in score.get("steps") or ()),
        cut_off=is_cut(reason, evidence),
        cost=Cost(
            seconds=float(spent.get("seconds") or 0.0),
            prompt_tokens=int(spent.get("prompt_tokens") or 0),
            completion_tokens=int(spent.get("completion_tokens") or 0),
        ),
        error=str(evidence.get("error") or ""),
        places=tuple((step.get("start") or 0, step.get("end") or 0) for step in score.get("steps") or ()),
        answer=answer_in(evidence),
    )


def _evidence_in(score: Mapping[str, Any]) -> Mapping[str, Any]:
    evidence = score.get("evidence") or {}
    if isinstance(evidence, str):  # text in Parquet, whose columns have one shape
        evidence = json.loads(evidence)
    return evidence if isinstance(evidence, Mapping) else {}
