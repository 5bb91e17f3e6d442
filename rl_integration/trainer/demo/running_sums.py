r"""Sums of three small numbers, added line by line, and solutions with a label for every line.

    3+1+6=          3+1=4
                    4+6=10
                    \boxed{10}

A line is right if it takes the sum of the line before and the next term, and adds them right.  So it is judged by
itself: behind a wrong line, one that goes on from it rightly is right.  A solution is right if all its lines are.

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
_WRONG = 0.25  # share of the lines with a fault, so that two fifths of the solutions are right
_FAULTS = (*["sum"] * 3, *["near"] * 2, *["term"] * 2, "start")
"""How a line goes wrong: another sum, one that is a little off, another term, another sum so far."""
_MISPLACED = 0.1  # share of the solutions with a line that is missing or there twice


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
    """Return solutions, most of them with faults, as the rows that `adjudge train prm` reads.

    Args:
        tasks: what they solve.
        count: of solutions.
        seed: of the choice of tasks and faults.
    """
    chance = random.Random(seed)
    return [_labelled(chance.choice(tasks), chance) for _ in range(count)]


def _labelled(task: Task, chance: random.Random) -> dict[str, Any]:
    first, *rest = _terms(task)
    sums = _written(first, rest, chance)
    total = sums[-1][2] if sums else first
    boxed = chance.choice(_TOTALS) if chance.random() < _WRONG else total
    before = [first, *(line[2] for line in sums)]
    labels = [at < len(rest) and line == (before[at], rest[at], before[at] + rest[at]) for at, line in enumerate(sums)]
    labels.append(len(sums) == len(rest) and boxed == total)
    lines = [f"{start}+{term}={total}" for start, term, total in sums]
    return {
        "prompt": task.prompt,
        "steps": [*lines, f"\\boxed{{{boxed}}}"],
        "labels": labels,
        "outcome": all(labels),
    }


def _written(total: int, rest: Sequence[int], chance: random.Random) -> list[tuple[int, int, int]]:
    """Lines as (sum so far, term, new sum), some with a fault; now and then a fault changes nothing."""
    lines: list[tuple[int, int, int]] = []
    for term in rest:
        fault = chance.choice(_FAULTS) if chance.random() < _WRONG else ""
        start = chance.choice(_TOTALS) if fault == "start" else total
        added = chance.choice(_SIZES) if fault == "term" else term
        total = start + added
        if fault == "sum":
            total = chance.choice(_TOTALS)
        elif fault == "near":
            total = max(0, total + chance.choice((-2, -1, 1, 2)))
        lines.append((start, added, total))
    if chance.random() < _MISPLACED:
        at = chance.randrange(len(lines))
        lines[at : at + 1] = [lines[at]] * chance.choice((0, 2))
    return lines


def _task(terms: Sequence[int]) -> Task:
    text = "+".join(map(str, terms))
    return Task(id=text, prompt=f"{text}=", reference=str(sum(terms)))


def _terms(task: Task) -> list[int]:
    return [int(term) for term in task.id.split("+")]
