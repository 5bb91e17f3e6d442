r"""The last digit of a sum of three digits, line by line, and solutions with a label for every line.

    3+8+6=          3+8=1
                    1+6=7
                    \boxed{7}

A line is right if it takes the digit of the line before and the next term, and adds them right.  So it is judged by
itself: behind a wrong line, one that goes on from it rightly is right.  A solution is right if all its lines are.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.arithmetic import divided

CHARACTERS = "0123456789+=}\n"
"""What tasks and answers are written with, beside `WORDS`."""

WORDS = ("\\boxed{",)

HELD_OUT = 0.2
"""Share of the tasks that policies are measured on; a process model must not see them either."""

_TERMS = 3  # of a sum
_WRONG = 0.25  # share of the lines with a fault, so that two fifths of the solutions are right
_FAULTS = (*["sum"] * 2, *["near"] * 3, *["term"] * 2, "start")
"""How a line goes wrong: another sum, one that is one off, another term, another digit so far."""
_GUESSES = (0, 1, 2)
"""What a guessed line is off by.  Were the right digit in the middle, it would soon be the likeliest."""


def last_digits(*, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on and a share held out to measure on: every sum of three digits, once."""
    return divided([_task(terms) for terms in itertools.product(range(10), repeat=_TERMS)], held_out, seed=seed)


def solution(task: Task) -> list[str]:
    """Return the lines of the right solution."""
    return _lines(_terms(task), [0] * (_TERMS - 1))


def guesses(task: Task) -> list[str]:
    """Return every solution of the right form whose lines are right, or off by one or two; one in nine is right."""
    every = itertools.product(_GUESSES, repeat=_TERMS - 1)
    return ["\n".join(_lines(_terms(task), off)) for off in every]


def labelled_solutions(tasks: Sequence[Task], count: int, *, seed: int) -> list[dict[str, Any]]:
    """Return solutions, most of them with faults, as the rows that `adjudge train prm` reads."""
    chance = random.Random(seed)
    return [_labelled(chance.choice(tasks), chance) for _ in range(count)]


def _lines(terms: Sequence[int], off: Sequence[int]) -> list[str]:
    digit, *rest = terms
    lines: list[str] = []
    for term, error in zip(rest, off, strict=True):
        result = (digit + term + error) % 10
        lines.append(f"{digit}+{term}={result}")
        digit = result
    return [*lines, f"\\boxed{{{digit}}}"]


def _labelled(task: Task, chance: random.Random) -> dict[str, Any]:
    digit, *rest = _terms(task)
    lines: list[str] = []
    labels: list[bool] = []
    for term in rest:
        fault = chance.choice(_FAULTS) if chance.random() < _WRONG else ""
        start = chance.randrange(10) if fault == "start" else digit
        added = chance.randrange(10) if fault == "term" else term
        result = (start + added) % 10
        if fault == "sum":
            result = chance.randrange(10)
        elif fault == "near":
            result = (result + chance.choice((-1, 1))) % 10
        labels.append((start, added, result) == (digit, term, (digit + term) % 10))  # some faults change nothing
        lines.append(f"{start}+{added}={result}")
        digit = result
    boxed = chance.randrange(10) if chance.random() < _WRONG else digit
    labels.append(boxed == digit)
    steps = [*lines, f"\\boxed{{{boxed}}}"]
    return {"prompt": task.prompt, "steps": steps, "labels": labels, "outcome": all(labels)}


def _task(terms: Sequence[int]) -> Task:
    text = "+".join(map(str, terms))
    return Task(id=text, prompt=f"{text}=", reference=str(sum(terms) % 10))


def _terms(task: Task) -> list[int]:
    return [int(term) for term in task.id.split("+")]
