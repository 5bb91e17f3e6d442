"""Word problems made up for these tests, with solutions of which half go wrong at a step that is known."""

from __future__ import annotations

import random

from adjudge.training.step_data import StepExample

NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn")
THINGS = ("marbles", "stamps", "shells", "cards", "beads")


def solutions(count: int, *, seed: int) -> list[StepExample]:
    """Solutions of as many problems: right ones, and ones with a number from nowhere or a forgotten result."""
    chooser = random.Random(seed)
    return [_solution(chooser, right=number % 2 == 0) for number in range(count)]


def _solution(chooser: random.Random, *, right: bool) -> StepExample:
    name, things = chooser.choice(NAMES), chooser.choice(THINGS)
    red, blue, lost = chooser.randint(50, 90), chooser.randint(30, 45), chooser.randint(10, 25)
    total = red + blue
    prompt = (
        f"{name} has {red} red {things} and {blue} blue {things}. {name} loses {lost} {things}. "
        f"How many {things} are left?"
    )
    steps = [f"{name} has {red} + {blue} = {total} {things}.", f"Then {total} - {lost} = {total - lost} {things} stay."]
    error = -1
    if not right:
        error = chooser.randrange(2)
        odd = chooser.randint(5, 9)
        if error == 0:
            total = red + odd
            steps = [f"{name} has {red} + {odd} = {total} {things}.", f"Then {total} - {lost} = {total - lost} stay."]
        else:
            steps[1] = f"Then {blue} - {lost} = {blue - lost} {things} stay."
    labels = [1.0 if error < 0 or at < error else 0.0 if at == error else None for at in range(len(steps))]
    return StepExample(prompt=prompt, steps=tuple(steps), labels=tuple(labels), outcome=float(right))
