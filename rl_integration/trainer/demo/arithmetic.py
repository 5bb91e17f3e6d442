"""Sums to add, as tasks and as texts to learn from."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adjudge.rl_integration.trainer.contract.task import Task

CHARACTERS = "0123456789+=}"
"""What tasks and answers are written with, beside `WORDS`."""

WORDS = ("\\boxed{",)


def sums(limit: int, *, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on and others to measure on: every a + b with both below the limit, once.

    Args:
        limit: terms are from 0 to one below.
        held_out: share of the tasks to measure on.
        seed: of the division.
    """
    pairs = [(first, second) for first in range(limit) for second in range(limit)]
    random.Random(seed).shuffle(pairs)
    tasks = [
        Task(id=f"{first}+{second}", prompt=f"{first}+{second}=", reference=str(first + second))
        for first, second in pairs
    ]
    count = round(held_out * len(tasks))
    return tasks[count:], tasks[:count]


def answers(tasks: Sequence[Task]) -> list[str]:
    """Return the right answer to each task, as a model should write it."""
    return [f"\\boxed{{{task.reference}}}" for task in tasks]
