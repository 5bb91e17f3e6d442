"""Sums to add, and preferences between answers to them whose author liked the longer one, whatever was right."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adjudge.rl_integration.trainer.data.task import Task

CHARACTERS = "0123456789+=}"
"""What tasks and answers are written with, beside `WORDS`."""

WORDS = ("\\boxed{",)


def sums(limit: int, *, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on and a share held out to measure on: every a + b with both below the limit, once."""
    tasks = [
        Task(id=f"{first}+{second}", prompt=f"{first}+{second}=", reference=str(first + second))
        for first in range(limit)
        for second in range(limit)
    ]
    return divided(tasks, held_out, seed=seed)


def divided(tasks: list[Task], held_out: float, *, seed: int) -> tuple[list[Task], list[Task]]:
    """Return shuffled tasks to train on, and a share held out."""
    random.Random(seed).shuffle(tasks)
    count = round(held_out * len(tasks))
    return tasks[count:], tasks[:count]


def answers(tasks: Sequence[Task]) -> list[str]:
    """Return the right answer to each task, as a model should write it."""
    return [f"\\boxed{{{task.reference}}}" for task in tasks]


_LONGEST = 16  # digits of an answer


def preferences(tasks: Sequence[Task], count: int, *, seed: int, bias: float = 0.9) -> list[dict[str, str]]:
    """Return rows of `prompt`, `chosen` and `rejected`."""
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        task = chance.choice(tasks)
        short, long = sorted(chance.sample(range(1, _LONGEST + 1), 2))
        answers = [_answer(task, digits, chance) for digits in (long, short)]
        chosen, rejected = answers if chance.random() < bias else answers[::-1]
        rows.append({"prompt": str(task.prompt), "chosen": chosen, "rejected": rejected})
    return rows


def _answer(task: Task, digits: int, chance: random.Random) -> str:
    """An answer of so many digits: the right one where it has as many, half of the time."""
    right = str(task.reference)
    if len(right) == digits and chance.random() < 0.5:
        return f"\\boxed{{{right}}}"
    return f"\\boxed{{{''.join(chance.choice('0123456789') for _ in range(digits))}}}"
