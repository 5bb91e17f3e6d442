"""From an input to candidates: rows are read once, and whoever is asked is asked in batches.

Not covered: inputs whose candidates do not fit into memory; one takes about 1 KB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from adjudge import wire
from adjudge.data_pipelines.label.bench import LocalBench
from adjudge.data_pipelines.label.samples import Item, Sampler, prompt_hash_of, row_id
from adjudge.evals.benchmarks.case import Given
from adjudge.evals.best_of_n.candidates import (
    NOTHING,
    UNFIT,
    Candidate,
    Candidates,
    Group,
    asked_there,
    is_file_of_scores,
    read_scores,
    said_by,
    said_by_steps,
    said_in,
)
from adjudge.evals.best_of_n.config import CandidatesConfig
from adjudge.evals.reports.config import input_facts, tell_rows
from adjudge.io.columns import MISSING, Choice, Column, ColumnMap, map_columns
from adjudge.io.jobs.groups import group_key
from adjudge.io.jobs.opening import Glance, glance
from adjudge.io.jobs.report import JobProgress, Pace
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source
from adjudge.io.values import is_chat
from adjudge.protocol import NO_COST, Cost, Sample, Scorer, turn_texts
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a response stands in its row.

    Attributes:
        column: which of the response columns, from 0.
        at: its place in the column's list; None where the column holds no list.
        place: among all responses of the row, from 0.
        count: responses of the row.
    """

    column: int = 0
    at: int | None = None
    place: int = 0
    count: int = 1


def spots(columns: Sequence[Column], row: Mapping[str, Any]) -> Iterator[Spot]:
    """Yield where the responses of a row stand, in the order in which samples are made of them."""
    cells = [column.of(row) for column in columns]
    lists = [cell if isinstance(cell, list) and cell and not is_chat(cell) else None for cell in cells]
    count = sum(1 if each is None else len(each) for each in lists)
    place = 0
    for column, each in enumerate(lists):
        for at in [None] if each is None else range(len(each)):
            yield Spot(column=column, at=at, place=place, count=count)
            place += 1


def columns_named(names: str, seen: Glance, flag: str, *, responses: int) -> tuple[Column, ...]:
    """Return columns that say something of responses, named with commas: one for a whole row, or one for each."""
    columns = tuple(Column(name.strip()) for name in names.split(",") if name.strip())
    if len(columns) not in (1, max(responses, 1)):
        raise ValueError(
            f"{flag} names {len(columns)} columns for {responses} response columns; give one, or one for each"
        )
    choice = Choice(seen.columns, seen.rows, flag=lambda role: flag)
    for column in columns:
        choice.given("", column.name)
    return columns


def cell_of(columns: Sequence[Column], row: Mapping[str, Any], spot: Spot) -> Any:
    """Return what a row says of a response: its own item where the cell holds one for each; MISSING if nothing."""
    if len(columns) > 1:
        value = columns[spot.column].of(row)
        return value if spot.at is None else _item(value, spot.at)
    value = columns[0].of(row)
    if spot.at is None and spot.count == 1:
        return value
    return _item(value, spot.place) if isinstance(value, list) and len(value) == spot.count else MISSING


def _item(value: Any, at: int) -> Any:
    return value[at] if isinstance(value, list) and at < len(value) else MISSING


COLUMN = "column:"
_BATCH = 256  # samples in one call
_ROLES = ("gold", "proxy", "scorer", "answers")  # options that may name columns
_TOLD = 64  # rows from one word on progress to the next


@dataclass(frozen=True, kw_only=True)
class ScoreSource:
    """Who says something of every response: one of the three is there.

    Attributes:
        stored: scores by id and response column.
    """

    cells: tuple[Column, ...] | None = None
    stored: Mapping[tuple[str, str], Given] | None = None
    scorer: Scorer | None = None

    def facts(self, spec: str) -> dict[str, Any]:
        """Return who it is, as plain data."""
        if self.scorer is not None:
            return {"name": self.scorer.name, "fingerprint": self.scorer.fingerprint}
        return {"name": spec, "fingerprint": "stored"}


def load_candidates(
    config: CandidatesConfig, specs: Mapping[str, str], *, answers: str = "", progress: JobProgress | None = None
) -> Candidates:
    """Read the responses of an input, and ask everybody named about them.

    `specs` says whom, by the name under which a candidate holds what they said: "column:NAME", a file of scores, or a
    scorer's spec; `answers` names the column of final answers, "" for none.
    """
    source = config.opened()
    seen = glance(source)
    if not seen.rows:
        raise ValueError(f"{config.input} holds no rows")
    texts = any(not spec.startswith(COLUMN) and not is_file_of_scores(spec) for spec in specs.values())
    columns, notes = _columns(config, seen, texts=texts)
    count = len(columns.responses)
    reader = _Reader(
        config=config,
        source=source,
        sampler=Sampler(columns=columns),
        who={name: _asked(spec, seen, f"--{name}", count) for name, spec in specs.items()},
        answers=columns_named(answers, seen, "--answers", responses=count) if answers else None,
        progress=progress,
    )
    groups = reader.groups()
    if not groups:
        raise ValueError(f"no row of {config.input} holds a response; {reader.first_error}")
    if reader.by_prompt:
        notes.append("group: responses to the same prompt are put together (--group-column names a column)")
    notes += [reader.mixed] * bool(reader.mixed)
    return Candidates(
        groups=groups,
        unreadable=reader.unreadable,
        source=input_facts(source, reader.rows),
        scorers={name: one.facts(specs[name]) for name, one in reader.who.items()},
        notes=notes,
        cost=reader.cost,
    )


def _columns(config: CandidatesConfig, seen: Glance, *, texts: bool) -> tuple[ColumnMap, list[str]]:
    """Which column is what; where nobody needs texts, there may be no responses.

    Columns of numbers and answers are not guessed to be something else: a column `gold` may say what is true of a
    response, and then it is not a reference.
    """
    given = [getattr(config, role, "") for role in _ROLES]
    taken = {name.strip() for spec in given for name in spec.removeprefix(COLUMN).split(",")}
    free = [name for name in seen.columns if name not in taken]
    try:
        return map_columns(config.wanted_columns(), free, seen.rows, closed=seen.closed)
    except ValueError:
        if texts or config.response_column or not config.group_column:
            raise
    first = seen.columns[0]  # stands for the response that is not there
    wanted = config.wanted_columns()
    named = type(wanted)(responses=(first,), group=wanted.group, id=wanted.id, prompt=wanted.prompt)
    mapped, _ = map_columns(named, seen.columns, seen.rows, closed=seen.closed)
    return ColumnMap(id=mapped.id, group=mapped.group, prompt=mapped.prompt), ["response: no such column"]


def _asked(spec: str, seen: Glance, flag: str, responses: int) -> ScoreSource:
    if spec.startswith(COLUMN):
        return ScoreSource(cells=columns_named(spec.removeprefix(COLUMN), seen, flag, responses=responses))
    if is_file_of_scores(spec):
        return ScoreSource(stored=read_scores(spec))
    try:
        return ScoreSource(scorer=registry.load(spec))
    except ValueError as error:
        raise ValueError(f"{flag}: {error}; a column of the input is named {COLUMN}NAME") from error


@dataclass(kw_only=True)
class _Reader:
    config: CandidatesConfig
    source: Source
    sampler: Sampler
    who: Mapping[str, ScoreSource]
    answers: tuple[Column, ...] | None
    progress: JobProgress | None
    rows: int = 0
    unreadable: int = 0
    first_error: str = ""
    by_prompt: bool = False
    mixed: str = ""
    cost: Cost = NO_COST

    def __post_init__(self) -> None:
        self._pace = Pace(self.source, self.config.limit or None, Cursor())
        self._benches = {name: LocalBench(one.scorer) for name, one in self.who.items() if one.scorer is not None}
        self._stored = any(one.stored is not None for one in self.who.values())
        self._ids: set[tuple[str, str]] = set()
        self._prompts: dict[str, str] = {}  # of each group the first one

    def groups(self) -> list[Group]:
        """Return the groups of all rows, each scored."""
        groups: dict[str, Group] = {}
        waiting: list[tuple[Candidate, Sample]] = []
        whole = any(bench.groupwise for bench in self._benches.values())
        for row in self.source.rows(Cursor()):
            if self.config.limit and row.index >= self.config.limit:
                break
            self.rows += 1
            for key, candidate, sample in self._of_row(row):
                groups.setdefault(key, Group(name=key, members=[])).members.append(candidate)
                if sample is not None and self._benches:
                    waiting.append((candidate, sample))
            if len(waiting) >= _BATCH and not whole:
                self._score(waiting)
                waiting = []
            if self.rows % _TOLD == 0:
                after, made = Cursor(row.index + 1, row.part, row.place), self.rows - self.unreadable
                tell_rows(self.progress, self._pace, after, made=made, dropped={"unreadable": self.unreadable})
        self._score(waiting)
        return list(groups.values())

    def _of_row(self, row: Row) -> list[tuple[str, Candidate, Sample | None]]:
        data = row.cells()
        if data is None:
            return self._nothing(row, row.error)
        group = self.sampler.group_of(row)
        if not self.sampler.columns.responses:
            return self._without_text(row, data, group)
        items = self.sampler.items(row, group)
        if all(item.sample is None for item in items):
            return self._nothing(row, items[0].error)
        group = self._of_one_prompt(group, row, items)
        candidates = []
        for item, spot in zip(items, spots(self.sampler.columns.responses, data), strict=True):
            candidate = Candidate(id=item.id, row=row.index, place=spot.place, size=_size(item.sample))
            self._fill(candidate, data, item.column, spot)
            if item.sample is None:
                candidate.said |= dict.fromkeys(self._benches, UNFIT)
            candidates.append((group or self._prompt_of(item), candidate, item.sample))
        return candidates

    def _of_one_prompt(self, group: str, row: Row, items: Sequence[Item]) -> str:
        """Return the name of a row's group; rows that share an id, and not the prompt, are not one group."""
        prompt = next((prompt_hash_of(item.sample) for item in items if item.sample is not None), None) or ""
        if not group or self._prompts.setdefault(group, prompt) == prompt:
            return group
        column = self.sampler.columns.group
        if column is None or not group_key(column.of(row.data or {})):
            return f"{group} of prompt {prompt}"
        self.mixed = self.mixed or f"the group {group!r:.80} holds several prompts (row {row.index} has another one)"
        if not self.config.group_column:
            raise ValueError(
                f"{self.mixed}. The column {column.name!r} was guessed; name the one that the responses to a prompt "
                "share, often the prompt's own, with --group-column, or this one if that is meant"
            )
        return group

    def _without_text(
        self, row: Row, data: Mapping[str, Any], group: str
    ) -> list[tuple[str, Candidate, Sample | None]]:
        if not group:
            return self._nothing(row, f"it names no group in {self.config.group_column!r}")
        candidate = Candidate(id=row_id(row, self.sampler.columns.id), row=row.index, place=0)
        self._fill(candidate, data, "", Spot())
        return [(group, candidate, None)]

    def _nothing(self, row: Row, why: str) -> list[tuple[str, Candidate, Sample | None]]:
        self.unreadable += 1
        self.first_error = self.first_error or f"{f'line {row.line}' if row.line else f'row {row.index}'}: {why}"
        return []

    def _prompt_of(self, item: Item) -> str:
        if item.sample is None or not item.sample.prompt:
            raise ValueError(
                f"the response {item.id!r} of {self.config.input} has no group and no prompt, so nobody can say what "
                "it is to be compared with; name a column with --group-column or --prompt-column"
            )
        self.by_prompt = True
        return "prompt " + hashlib.sha256(wire.dumps(item.sample.prompt).encode("utf-8", "replace")).hexdigest()[:16]

    def _fill(self, candidate: Candidate, data: Mapping[str, Any], column: str, spot: Spot) -> None:
        if self.answers is not None:
            cell = cell_of(self.answers, data, spot)
            candidate.answer = str(cell).strip() if isinstance(cell, str | int | float) else ""
        if self._stored:
            key = (candidate.id, column)
            if key in self._ids:
                raise ValueError(
                    f"two responses of {self.config.input} have the id {candidate.id!r}, so that a file of scores "
                    "cannot tell them apart; name a column of unique ids with --id-column"
                )
            self._ids.add(key)
        for name, one in self.who.items():
            if one.cells is not None:
                said = said_in(cell_of(one.cells, data, spot))
                candidate.said[name] = said_by_steps(said, "") if name == "gold" else said
            elif one.stored is not None:
                stored = one.stored.get((candidate.id, column)) or one.stored.get((candidate.id, ""))
                candidate.said[name] = stored or NOTHING

    def _score(self, waiting: Sequence[tuple[Candidate, Sample]]) -> None:
        for name, bench in self._benches.items():
            samples = [sample for _, sample in waiting]
            if samples and waiting[0][0].row == 0:  # what the first sample lacks, a column lacks
                try:
                    bench.check(samples[0])
                except ValueError as error:
                    raise ValueError(f"--{name}: {error}") from error
            for (candidate, _), score in zip(waiting, run_blocking(asked_there(bench, samples)), strict=True):
                candidate.said[name] = said_by(score)
                self.cost += score.cost


def _size(sample: Sample | None) -> int | None:
    return None if sample is None else sum(map(len, turn_texts(sample.response)))


def samples_again(config: CandidatesConfig, wanted: Set[tuple[int, int]]) -> dict[tuple[int, int], Sample]:
    """Return the samples of some responses by row and place among its responses, read once more, for their texts."""
    source = config.opened()
    sampler = Sampler(columns=_columns(config, glance(source), texts=False)[0])
    samples: dict[tuple[int, int], Sample] = {}
    if not wanted or not sampler.columns.responses:
        return samples
    rows, last = {row for row, _ in wanted}, max(row for row, _ in wanted)
    for row in source.rows(Cursor()):
        if row.index in rows and row.data is not None:
            for place, item in enumerate(sampler.items(row, sampler.group_of(row))):
                if (row.index, place) in wanted and item.sample is not None:
                    samples[row.index, place] = item.sample
        if row.index >= last:
            break
    return samples
