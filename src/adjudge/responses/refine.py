"""Shaping the values of steps before they are summed, so that more steps do not pay: pure functions on floats.

The plain sum of process rewards is hacked within a few hundred updates: a policy repeats trivially right sentences
(arXiv 2410.15115; PURE, arXiv 2504.15275).  What each of these makes of a filler step that is repeated:

| name | refined r_1..r_K | sum |
|---|---|---|
| `none` | r_k | grows with every step that is worth more than 0 |
| `clip` | min(r_k - eta, 0) | never above 0, so no step can pay |
| `delta` | r_k - r_{k+1}; r_{K-1} for the last but one; 0 for the last, which holds the answer | r_1, whatever K is |
| `clip_delta` | `delta` of `clip` | the first clipped value: at most 0 |
| `running_min` | min(r_1..r_k) | grows; use its last value |
| `gain` | r_k - r_{k-1}, r_0 = `start` | r_K - `start`, whatever K is |
| `min_form` | w_k r_k, w = softmax(-r / T): PURE's credit | about the minimum |

Not covered: rewards per token, and how a trainer discounts them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from adjudge.responses.aggregate import TEMPERATURE, check_values, min_weights

Refinement: TypeAlias = Literal["none", "clip", "delta", "clip_delta", "running_min", "gain", "min_form"]
REFINEMENTS: tuple[Refinement, ...] = get_args(Refinement)


def refine(
    values: Sequence[float],
    how: Refinement,
    *,
    eta: float = 0.5,
    start: float = 0.0,
    temperature: float = TEMPERATURE,
) -> tuple[float, ...]:
    """Return the refined values, one for each step, by a formula of the table above.

    `eta` is the threshold of `clip` and `clip_delta`: the paper takes the mean step reward on training questions, so
    measure it on yours.  `start` is the value before the first step, for `gain`, and `temperature` T of `min_form`.
    Raises `ValueError` if there is no step, or a number is not finite.
    """
    if how not in REFINEMENTS:
        raise ValueError(f"unknown refinement {how!r}; it must be one of {', '.join(REFINEMENTS)}")
    check_values(values)
    formulas: Mapping[Refinement, Callable[[], tuple[float, ...]]] = {
        "none": lambda: tuple(map(float, values)),
        "clip": lambda: clip(values, eta),
        "delta": lambda: delta(values),
        "clip_delta": lambda: delta(clip(values, eta)),
        "running_min": lambda: running_min(values),
        "gain": lambda: gain(values, start),
        "min_form": lambda: min_form(values, temperature),
    }
    return formulas[how]()


def clip(values: Sequence[float], eta: float) -> tuple[float, ...]:
    """Return min(r_k - eta, 0) (arXiv 2410.15115): steps can cost, and never pay."""
    check_values(values)
    _check_finite("eta", eta)
    return tuple(min(value - eta, 0.0) for value in values)


def delta(values: Sequence[float]) -> tuple[float, ...]:
    """Return r_k - r_{k+1}, then r_{K-1}, then 0 for the last step, which the outcome's reward covers.

    The sum from step k on is r_k, so repeating steps gains nothing (arXiv 2410.15115).  A solution of one step is its
    answer, and gets 0.
    """
    check_values(values)
    inner = values[:-1]
    return (*(one - after for one, after in itertools.pairwise(inner)), *inner[-1:], 0.0)


def running_min(values: Sequence[float]) -> tuple[float, ...]:
    """Return the least value so far, for each step: a solution is no better than its worst step."""
    check_values(values)
    return tuple(itertools.accumulate(values, min))


def gain(values: Sequence[float], start: float = 0.0) -> tuple[float, ...]:
    """Return what each step added to the value before it, r_k - r_{k-1}, with `start` before the first."""
    check_values(values)
    _check_finite("start", start)
    return tuple(after - before for before, after in itertools.pairwise([start, *values]))


def min_form(values: Sequence[float], temperature: float = TEMPERATURE) -> tuple[float, ...]:
    """Return w_k r_k with w = softmax(-r / T), PURE's credit; the sum is the soft minimum."""
    weights = min_weights(values, temperature)
    return tuple(weight * value for weight, value in zip(weights, values, strict=True))


def quality_values(signs: Sequence[float], remaining: Sequence[int]) -> tuple[float, ...]:
    """Return the quality values of ReST-MCTS* (arXiv 2406.03816) of the steps of a partial solution.

    v_0 = 0 and v_k = max(0, v_{k-1} + (1 - v_{k-1}) / m_k * s_k); a path that is right all the way ends at 1.

    Args:
        signs: s_k: 1 if a right answer was found below step k, else -1; numbers between are allowed.
        remaining: m_k: the fewest steps to a right answer, step k included; 1 for the last step.
    """
    if len(signs) != len(remaining):
        raise ValueError(f"there are {len(signs)} signs and {len(remaining)} step counts; give one of each per step")
    check_values(signs)
    values, value = [], 0.0
    for place, (sign, left) in enumerate(zip(signs, remaining, strict=True)):
        if not -1 <= sign <= 1:
            raise ValueError(f"step {place} has the sign {sign!r}; it must be in [-1, 1]")
        if left < 1:
            raise ValueError(f"step {place} has {left!r} steps remaining; it counts itself, so at least 1")
        value = max(0.0, value + (1 - value) / left * sign)
        values.append(value)
    return tuple(values)


def _check_finite(what: str, value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{what} is {value!r}; it must be a finite number")
