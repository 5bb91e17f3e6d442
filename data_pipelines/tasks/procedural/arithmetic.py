r"""Families of exact arithmetic that need no package: expressions, fractions, equations, remainders, number bases.

Each has five levels.  Answers are whole numbers and fractions; they are asked for in \boxed{}, and `math` checks them,
`exact` those whose notation is the task.

Not covered: word problems, and everything else that `reasoning-gym` has (`gym`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from types import MappingProxyType
from typing import Final

from adjudge.data_pipelines.tasks.procedural.task import Task

LEVELS: Final = 5
_ASK = "Give the final answer in \\boxed{}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticFamily:
    """Tasks written by one of the functions of this module."""

    name: str
    version: str
    scorer: str
    write: Callable[[Random, int], tuple[str, str]]
    levels: int = LEVELS
    usual_level: int = 1

    def task(self, level: int, seed: int) -> Task:
        """Return the task of a seed."""
        prompt, answer = self.write(Random(seed), level)
        return Task(prompt=f"{prompt} {_ASK}", answer=answer, reference=answer)


def _number(random: Random, digits: int) -> int:
    return random.randint(10 ** (digits - 1), 10**digits - 1)


def _integers(random: Random, level: int) -> tuple[str, str]:
    """A sum of `level` + 1 terms, each a number or a product; from level 3 one of them is in parentheses."""
    text, total = "", 0
    for place in range(level + 1):
        sign = random.choice((1, -1)) if place else 1
        if level >= 3 and place == 1:
            left, right = _number(random, 2), _number(random, 2)
            term, value = f"({left} - {right})", left - right
        elif random.random() < 0.4:
            left, right = _number(random, 2), _number(random, 1 if level < 3 else 2)
            term, value = f"{left} * {right}", left * right
        else:
            value = _number(random, min(2 + level // 2, 4))
            term = str(value)
        text += f" {'+' if sign > 0 else '-'} {term}" if place else term
        total += sign * value
    return f"Compute {text}.", str(total)


def _fractions(random: Random, level: int) -> tuple[str, str]:
    """A sum of two fractions; three from level 3; numerators and denominators grow with the level."""
    most = 6 * level + 6
    text, total = "", Fraction(0)
    for place in range(2 if level < 3 else 3):
        sign = random.choice((1, -1)) if place else 1
        top, bottom = random.randint(1, most), random.randint(2, most)
        text += (f" {'+' if sign > 0 else '-'} " if place else "") + f"{top}/{bottom}"
        total += sign * Fraction(top, bottom)
    return f"Compute {text} as a whole number or a fraction in lowest terms.", str(total)


def _equation(random: Random, level: int) -> tuple[str, str]:
    """A linear equation with one whole solution; from level 3 the unknown stands on both sides."""
    solution = random.randint(-5 * level - 5, 5 * level + 5)
    left, constant = random.randint(2, 4 * level + 5), random.randint(-20 * level, 20 * level)
    right = random.choice([n for n in range(1, left + level) if n != left]) if level >= 3 else 0
    value = (left - right) * solution + constant
    other = f"{right}x {'+' if value >= 0 else '-'} {abs(value)}" if right else str(value)
    return f"Solve {left}x {'+' if constant >= 0 else '-'} {abs(constant)} = {other} for x.", str(solution)


def _remainder(random: Random, level: int) -> tuple[str, str]:
    """A remainder; from level 3 of a power."""
    divisor = random.randint(3, 10 * level + 10)
    if level < 3:
        number = _number(random, level + 2)
        return f"What is the remainder when {number} is divided by {divisor}?", str(number % divisor)
    base, power = random.randint(2, 99), random.randint(5, 10**level)
    return f"What is the remainder when {base}^{power} is divided by {divisor}?", str(pow(base, power, divisor))


def _bases(random: Random, level: int) -> tuple[str, str]:
    """A whole number written in another base, 2 to 9."""
    base, number = random.randint(2, 9), _number(random, level + 1)
    digits, rest = "", number
    while rest:
        rest, digit = divmod(rest, base)
        digits = f"{digit}{digits}"
    return f"Write the decimal number {number} in base {base}, as digits alone.", digits


def _divisors(random: Random, level: int) -> tuple[str, str]:
    """The greatest common divisor of two numbers; of three from level 3."""
    common = random.randint(1, 10 * level + 2)
    numbers = [common * random.randint(2, 10**level + 10) for _ in range(2 if level < 3 else 3)]
    named = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    return f"What is the greatest common divisor of {named}?", str(math.gcd(*numbers))


FAMILIES: Final[Mapping[str, ArithmeticFamily]] = MappingProxyType(
    {
        name: ArithmeticFamily(name=name, version="1", scorer=scorer, write=write)
        for name, scorer, write in (
            ("integers", "math", _integers),
            ("fractions", "math", _fractions),
            ("equation", "math", _equation),
            ("remainder", "math", _remainder),
            ("bases", "exact", _bases),
            ("divisors", "math", _divisors),
        )
    }
)
"""Families by name."""
