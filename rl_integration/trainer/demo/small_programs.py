"""Functions of a number, told by what they are at 0 and 1, as programs to write.

    0:37 1:38=      f=lambda x:x+37
    0:-37 1:-36=    f=lambda x:x-37
    0:0 1:37=       f=lambda x:x*37

The tests that an answer must pass are at other numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.arithmetic import divided

CHARACTERS = "0123456789: =x+-*"
"""What tasks and answers are written with, beside `WORDS`."""

WORDS = ("f=lambda x:",)

_FORMS: Mapping[str, Callable[[int, int], int]] = {
    "x+{c}": lambda x, c: x + c,
    "x-{c}": lambda x, c: x - c,
    "x*{c}": lambda x, c: x * c,
}
"""What is asked for, as it may be written; another way to write it is as good."""

_GUESSES = (*_FORMS, "{c}-x")
"""How a program may look; no task asks for the last one, so a guess is right in one of four."""

_CONSTANTS = range(2, 200)
_SHOWN = (0, 1)
_TESTED = (2, 3, 7, 11)


def small_programs(*, held_out: float, seed: int) -> tuple[list[Task], list[Task]]:
    """Return tasks to train on and a share held out to measure on: every function once."""
    return divided([_task(form, constant) for form in _FORMS for constant in _CONSTANTS], held_out, seed=seed)


def program(task: Task) -> str:
    """Return a right program."""
    return _written(task.extra["function"])


def guesses(tasks: Sequence[Task], *, seed: int) -> list[str]:
    """Return a program for each task that has the right number and is of any form, whatever the task says of it."""
    draw = random.Random(seed)
    return [_written(draw.choice(_GUESSES).format(c=task.extra["constant"])) for task in tasks]


def _written(function: str) -> str:
    return f"f=lambda x:{function}"


def _task(form: str, constant: int) -> Task:
    function = _FORMS[form]
    examples = " ".join(f"{x}:{function(x, constant)}" for x in _SHOWN)
    tests = [{"args": [x], "expected": function(x, constant)} for x in _TESTED]
    return Task(
        id=examples,
        prompt=f"{examples}=",
        reference={"tests": tests, "entry_point": "f"},
        extra={"function": form.format(c=constant), "constant": constant},
    )
