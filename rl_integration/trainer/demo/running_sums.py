r"""Sums of three small numbers, added line by line, and solutions with a label for every line.

    3+1+6=          3+1=4
                    4+6=10
                    \boxed{10}

A line is right if it takes the sum so far and the next term, adds them right, and no earlier line is wrong.

Not covered: other ways to the same sum; a solution adds from left to right.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

from adjudge.rl_integration.trainer.tasks.task import Task

CHARACTERS = "0123456789+=}\n"
"""What tasks and answers are written with, beside `WORDS`."""

WORDS = ("\\boxed{",)

HELD_OUT = 0.2
"""Share of the tasks that policies are measured on; a process model must not see them either."""

_TERMS = 3  # of a sum
_SIZES = range(7)  # of a term
_TOTALS = range(_TERMS * max(_SIZES) + 1)
_FAULTS = (*["sum"] * 4, *["term"] * 3, *["answer"] * 2, "start", "missing", "again")
"""How a solution goes wrong, the commoner ways more often."""

_RIGHT = 0.35  # share of the solutions without a fault


def running_sums(*, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on and others to measure on: every sum of three numbers from 0 to 6, once.

    Args:
        held_out: share of the tasks to measure on.
        seed: of the division.
    """
    numbers = list(itertools.product(_SIZES, repeat=_TERMS))
    random.Random(seed).shuffle(numbers)
    tasks = [_task(terms) for terms in numbers]
    count = round(held_out * len(tasks))
    return tasks[count:], tasks[:count]


def solution(task: Task) -> list[str]:
    """Return the lines of the right solution."""
    lines: list[str] = []
    total, *rest = _terms(task)
    for term in rest:
        lines.append(f"{total}+{term}={total + term}")
        total += term
    return [*lines, f"\\boxed{{{total}}}"]


def labelled_solutions(tasks: Sequence[Task], count: int, *, seed: int) -> list[dict[str, Any]]:
    """Return solutions, two thirds of them wrong in one place, as the rows that `adjudge train prm` reads.

    Args:
        tasks: what they solve.
        count: of solutions.
        seed: of the choice of tasks and faults.
    """
    chance = random.Random(seed)
    return [_labelled(chance.choice(tasks), chance) for _ in range(count)]


def _labelled(task: Task, chance: random.Random) -> dict[str, Any]:
    right = solution(task)
    lines = right if chance.random() < _RIGHT else _spoilt(task, chance)
    wrong = next((at for at, line in enumerate(lines) if at >= len(right) or line != right[at]), len(lines))
    labels = [at < wrong for at in range(len(lines))]
    return {"prompt": task.prompt, "steps": lines, "labels": labels, "outcome": all(labels)}


def _spoilt(task: Task, chance: random.Random) -> list[str]:
    """A solution with a fault, gone on with as if there were none; now and then the fault changes nothing."""
    fault, place = chance.choice(_FAULTS), chance.randrange(_TERMS - 1)
    lines: list[str] = []
    total, *rest = _terms(task)
    for at, term in enumerate(rest):
        here = at == place
        if here and fault == "missing":
            continue
        added = chance.choice(_SIZES) if here and fault == "term" else term
        start = chance.choice(_TOTALS) if here and fault == "start" else total
        total = chance.choice(_TOTALS) if here and fault == "sum" else start + added
        lines += [f"{start}+{added}={total}"] * (2 if here and fault == "again" else 1)
    return [*lines, f"\\boxed{{{chance.choice(_TOTALS) if fault == 'answer' else total}}}"]


def _task(terms: Sequence[int]) -> Task:
    text = "+".join(map(str, terms))
    return Task(id=text, prompt=f"{text}=", reference=str(sum(terms)))


def _terms(task: Task) -> list[int]:
    return [int(term) for term in task.id.split("+")]
