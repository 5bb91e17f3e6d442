"""The values of a solution's steps: what they must be, and how much each counts in a soft minimum."""

from __future__ import annotations

import math
from collections.abc import Sequence

TEMPERATURE = 0.1
"""T of PURE's soft minimum.  Its values are P(+) - P(-), in [-1, 1]; probabilities get the same weights at T = 0.05."""


def min_weights(values: Sequence[float], temperature: float = TEMPERATURE) -> tuple[float, ...]:
    """Return the weights softmax(-r / T) of PURE's min-form credit; they sum to 1, and the least step gets most.

    Raises:
        ValueError: there is no step, a value is not finite, or the temperature is not above 0.
    """
    check_values(values)
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError(f"the temperature of a soft minimum is {temperature!r}; it must be above 0")
    least = min(values)
    weights = [math.exp((least - value) / temperature) for value in values]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def check_values(values: Sequence[float], *, probabilities: bool = False) -> None:
    """Raise `ValueError` unless there is a value, and all are finite and, if asked for, in [0, 1]."""
    if not values:
        raise ValueError("there is no step to aggregate; what a solution without steps is worth is the scorer's rule")
    for place, value in enumerate(values):
        if not math.isfinite(value):
            raise ValueError(f"step {place} has the value {value!r}; it must be finite")
        if probabilities and not 0 <= value <= 1:
            raise ValueError(f"step {place} has the value {value!r}; this formula needs probabilities, in [0, 1]")
