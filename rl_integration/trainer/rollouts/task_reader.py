"""Reads the tasks of a run before any work; rows that became none are counted and named, never dropped silently.

The files are those that `adjudge label` reads: JSON Lines, JSON, CSV, TSV, Parquet, folders of them, folders of
`datasets.save_to_disk`, and names on the Hugging Face hub.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.data_pipelines.label.samples import Sampler
from adjudge.io.columns import MISSING, Choice, Column, ColumnMap, no_column
from adjudge.io.row import Cursor, Row
from adjudge.io.source import Source
from adjudge.protocol import Message, Sample
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.rollouts_config import PLACE, TaskFiles


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Rows that are not used, by reason.

    Attributes:
        counts: how many.
        firsts: the first of each, in words.
    """

    counts: Counter[str] = field(default_factory=Counter)
    firsts: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, first: str) -> None:
        """Count a row."""
        self.counts[reason] += 1
        self.firsts.setdefault(reason, first)

    def sentence(self) -> str:
        """Return the most frequent reasons, each with the first row it was met in."""
        often = self.counts.most_common(3)
        return "; ".join(f"{count} x {reason} ({self.firsts[reason]})" for reason, count in often)


@dataclass(frozen=True, kw_only=True)
class RunTasks:
    """The tasks of a run.

    Attributes:
        train: tasks that the policy is trained on.
        held_out: tasks that it is measured on; none has a prompt of `train`.
        rows: rows that were read.
        left_out: rows that are in neither.
    """

    train: tuple[Task, ...]
    held_out: tuple[Task, ...]
    rows: int
    left_out: LeftOut

    def fitting(self, encode: Callable[[Task], Sequence[int]], max_tokens: int, limit: str = "") -> RunTasks:
        """Return them without prompts of more than `max_tokens`, and without those that cannot be written as tokens.

        Args:
            encode: returns a task's prompt as tokens, or raises `ValueError`.
            max_tokens: tokens of a prompt.
            limit: which options give that number.

        Raises:
            ValueError: no task is left.
        """

        def fits(task: Task) -> bool:
            try:
                length = len(encode(task))
            except ValueError as error:
                self.left_out.add("the prompt cannot be written as tokens", str(error))
                return False
            if length > max_tokens:
                self.left_out.add(
                    f"longer than {max_tokens} tokens{limit and f' ({limit})'}", f"{task.id} has {length}"
                )
            return length <= max_tokens

        def fitting(tasks: Sequence[Task]) -> tuple[Task, ...]:  # the two sides may be of files with the same ids
            kept = [task for task in tasks if fits(task)]
            there = {task.id for task in kept}
            return tuple(whole(kept, {task.cohort for task in tasks if task.id not in there}, self.left_out))

        kept = replace(self, train=fitting(self.train), held_out=fitting(self.held_out))
        kept.require()
        return kept

    def counts(self) -> dict[str, Any]:
        """Return the numbers for a report, with a digest of what is trained and measured on."""
        return {
            "rows": self.rows,
            "trained_on": len(self.train),
            "held_out": len(self.held_out),
            "left_out": dict(self.left_out.counts),
            "digest": digest([[prompt_key(task), task.reference] for task in (*self.train, *self.held_out)]),
        }

    def sentence(self) -> str:
        """Return how many there are, for a person."""
        left_out = f"; rows left out: {self.left_out.sentence()}" if self.left_out.counts else ""
        return f"{len(self.train)} prompts to train on and {len(self.held_out)} held out{left_out}"

    def require(self) -> None:
        """Raise `ValueError` if there is nothing to train on."""
        if not self.train:
            why = self.left_out.sentence() or "there were no rows"
            raise ValueError(f"none of the {self.rows} prompts in data.path can be trained on: {why}")


def whole(tasks: Sequence[Task], parted: Collection[str], left_out: LeftOut) -> list[Task]:
    """Return the tasks whose cohorts are whole; those that are left alone are counted."""
    kept = []
    for task in tasks:
        if task.cohort and task.cohort in parted:
            left_out.add("another of its cohort is left out", task.id)
        else:
            kept.append(task)
    return kept


def prompt_key(task: Task) -> str:
    """Return what two tasks with the same prompt have in common; runs of white space count as one."""
    text = task.prompt if isinstance(task.prompt, str) else json.dumps(task.prompt, sort_keys=True, default=str)
    return " ".join(text.split())


def digest(value: Any) -> str:
    """Return a short hash of plain data."""
    text = json.dumps(value, sort_keys=True, default=lambda one: dict(one) if isinstance(one, Mapping) else repr(one))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


_ROW_BYTES = 16 << 20
_PEEKED_ROWS = 100


def read_tasks(files: TaskFiles, *, accept: Callable[[Sample], None]) -> RunTasks:
    """Read the tasks of a run.

    Args:
        files: which.
        accept: raises `ValueError` for a sample that the reward cannot judge, whatever its response.

    Raises:
        ValueError: a file or column is not there, two rows have one id, no column holds the reference that the reward
            needs, or nothing is left to train on.
    """
    left_out = LeftOut()
    tasks, rows = _read(files, files.path, "", accept, left_out)
    if files.held_out_path:
        held, more = _read(replace(files, limit=None), files.held_out_path, "held-out:", accept, left_out)
        if not held:
            raise ValueError(f"none of the {more} prompts in data.held_out_path can be used: {left_out.sentence()}")
        rows += more
        asked = {prompt_key(task) for task in held}
        train = [task for task in tasks if prompt_key(task) not in asked]
        parted = set()
        for task in tasks:
            if prompt_key(task) in asked:
                left_out.add("the prompt is held out", f"row {task.id}")
                parted.add(task.cohort)
        train = whole(train, parted, left_out)
    else:
        train, held = _divided(tasks, files)
    run_tasks = RunTasks(
        train=tuple(train), held_out=tuple(replace(task, begun="") for task in held), rows=rows, left_out=left_out
    )
    run_tasks.require()
    return run_tasks


def _divided(tasks: Sequence[Task], files: TaskFiles) -> tuple[list[Task], list[Task]]:
    """Tasks to train on and to measure on; those with the same prompt, or of one cohort, stay together."""
    keys = sorted({task.cohort or prompt_key(task) for task in tasks}, key=digest)
    count = min(max(1, round(files.held_out * len(keys))), files.max_held_out) if files.held_out else 0
    if count >= len(keys) > 0:
        raise ValueError(
            f"data.held_out is {files.held_out!r}, which leaves nothing to train on of {len(keys)} different prompts; "
            "give more prompts, or held_out: 0"
        )
    held = set(keys[:count])
    sides: tuple[list[Task], list[Task]] = ([], [])
    for task in tasks:
        sides[(task.cohort or prompt_key(task)) in held].append(task)
    return sides


def _read(
    files: TaskFiles, paths: Sequence[str], name: str, accept: Callable[[Sample], None], left_out: LeftOut
) -> tuple[list[Task], int]:
    """The tasks of some files, and how many rows these have."""
    tasks: list[Task] = []
    seen: dict[str, str] = {}  # with the cohort that it was seen in
    ids: set[str] = set()
    parted: set[str] = set()
    number, option = -1, _option("held_out_path" if name else "path")
    for number, (path, row, sampler) in enumerate(itertools.islice(_rows(files, paths, option), files.limit)):
        where = f"{path}, line {row.line}" if row.line else f"{path}, row {row.index}"
        try:
            made = _task(row, sampler, files, f"{name}{number}")
        except _Unusable as unusable:
            left_out.add(unusable.reason, f"{where}{unusable.detail}")
            parted.add(_cohort(row, files))
            continue
        if made.id in ids:
            raise ValueError(f"two rows have the id {made.id!r}, the second is {where}; name another column (data.id)")
        ids.add(made.id)
        try:
            accept(made.sample("", id=made.id, finish_reason="stop"))
        except ValueError as error:
            if sampler.columns.reference is None and made.reference is None and "reference" in str(error):
                missing = no_column("reference", list(row.data or {}), _option("reference"))
                raise ValueError(f"{path}: {error}. {missing}") from error
            left_out.add("the reward cannot judge it", f"{where}: {error}")
            parted.add(made.cohort)
            continue
        same = digest([prompt_key(made), made.reference, made.extra, made.begun])
        if same in seen:
            left_out.add("the prompt and reference of an earlier row", where)
            if seen[same] != made.cohort:  # else the cohort has it already
                parted.add(made.cohort)
            continue
        seen[same] = made.cohort
        tasks.append(made)
    return whole(tasks, parted, left_out), number + 1


def _rows(files: TaskFiles, paths: Sequence[str], option: str) -> Iterator[tuple[str, Row, Sampler]]:
    """Every row of the files, with what reads it."""
    for path in paths:
        try:
            source = files.opened(path, limit=_ROW_BYTES)
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from error
        # The reward is asked once the prompt is written.
        sampler = Sampler(columns=_columns(files, path, source, option), validate=lambda sample: None)
        for row in source.rows(Cursor()):
            yield path, row, sampler


def _columns(files: TaskFiles, path: str, source: Source, option: str) -> ColumnMap:
    rows = [row.data for row in itertools.islice(source.rows(Cursor()), _PEEKED_ROWS) if row.data is not None]
    if not rows:
        raise ValueError(f"{option} {path!r} holds no rows that can be read; is it the format that its name says?")
    names = source.columns() or list(dict.fromkeys(name for row in rows for name in row))
    choice = Choice(names, rows, taken=[name for name in (files.prompt, files.reference) if name], flag=_option)
    try:
        choice.check({"cohort": files.cohort, "begun": files.begun})
        prompt = choice.pick("prompt", files.prompt)
        if prompt is None:
            raise ValueError(no_column("prompt", choice.known, _option("prompt")))
        return ColumnMap(
            prompt=prompt,
            reference=choice.reference(files.reference),
            id=choice.given("id", files.id) if files.id else None,
            extra=tuple(choice.given("extra", name) for name in files.extra),
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _option(role: str) -> str:
    return f"data.{role}"


def _task(row: Row, sampler: Sampler, files: TaskFiles, number: str) -> Task:
    if row.data is None:
        raise _Unusable("the row cannot be read", row.error)
    item = sampler.items(row, "")[0]
    if item.sample is None:
        raise _Unusable("the row has no prompt", item.error)
    return Task(
        id=item.id if files.id else number,
        prompt=_written(item.sample.prompt, files),
        reference=item.sample.reference,
        extra=item.sample.extra,
        cohort=_cohort(row, files),
        begun=_begun(row, files),
    )


def _begun(row: Row, files: TaskFiles) -> str:
    """What a row's answer begins with."""
    begun = MISSING if row.data is None or not files.begun else Column(files.begun).of(row.data)
    if begun is MISSING or begun is None:
        return ""
    if not isinstance(begun, str):
        raise _Unusable("what was begun is not text", f"{files.begun!r} holds {type(begun).__name__}")
    return begun


def _cohort(row: Row, files: TaskFiles) -> str:
    """The name of a row's cohort; "" for a row without one."""
    name = MISSING if row.data is None or not files.cohort else Column(files.cohort).of(row.data)
    return "" if name is MISSING or name is None else str(name)


class _Unusable(Exception):
    """A row cannot become a task."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = f": {detail}" if detail else ""


def _written(prompt: str | Sequence[Message], files: TaskFiles) -> str | Sequence[Message]:
    """The prompt as the policy gets it."""
    texts = [prompt] if isinstance(prompt, str) else [turn.get("content") for turn in prompt]
    if not any(text.strip() if isinstance(text, str) else text for text in texts):
        raise _Unusable("the prompt is empty")
    try:
        json.dumps(texts, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _Unusable("the prompt is not a valid Unicode text") from error
    if isinstance(prompt, str):
        text = files.template.replace(PLACE, prompt)
        if not files.chat:
            if files.system:
                raise ValueError("data.system is given, and prompts are texts; give data.chat: true, or leave it out")
            return text
        prompt = [{"role": "user", "content": text}]
    elif prompt[-1].get("role") == "assistant":
        raise _Unusable("the prompt ends with a turn of the assistant, which is the policy's to write")
    if files.system and prompt[0].get("role") != "system":
        prompt = [{"role": "system", "content": files.system}, *prompt]
    return prompt
