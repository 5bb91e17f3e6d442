"""The tasks of a run, and the rows of its data that became none: these are counted and named, never dropped silently.

Not covered: reading them (`task_reader`), and the order in which they are drawn (`tasks`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.rl_integration.trainer.contract.task import Task


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

    def fitting(self, encode: Callable[[Task], Sequence[int]], max_tokens: int) -> RunTasks:
        """Return them without prompts of more than `max_tokens`, and without those that cannot be written as tokens.

        Args:
            encode: returns a task's prompt as tokens, or raises `ValueError`.
            max_tokens: tokens of a prompt.

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
                self.left_out.add(f"longer than {max_tokens} tokens", f"{task.id} has {length}")
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
    """Return the tasks whose cohorts are whole; those that are left alone are counted.

    Args:
        tasks: that can be used.
        parted: cohorts of tasks that cannot.
        left_out: counts.
    """
    found = []
    for task in tasks:
        if task.cohort and task.cohort in parted:
            left_out.add("another of its cohort is left out", task.id)
        else:
            found.append(task)
    return found


def prompt_key(task: Task) -> str:
    """Return what two tasks with the same prompt have in common; runs of white space count as one."""
    text = task.prompt if isinstance(task.prompt, str) else json.dumps(task.prompt, sort_keys=True, default=str)
    return " ".join(text.split())


def digest(value: Any) -> str:
    """Return a short hash of plain data."""
    text = json.dumps(value, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)
