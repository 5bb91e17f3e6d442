"""From the values of steps to one number for the solution: pure functions on floats.

| name | value of r_1..r_n | one more step of the same worth |
|---|---|---|
| `min`, `max`, `mean`, `last`, `geometric_mean` | as they are called | no change |
| `product` | r_1 * .. * r_n | lowers it: fewer steps win |
| `sum_log` | log r_1 + .. + log r_n | lowers it: fewer steps win |
| `sum` | r_1 + .. + r_n | raises it while r > 0: never a reward as it is (docs/process_rewards.md) |
| `mean_logit` | mean of log(r / (1 - r)) | no change |
| `mean_odds` | mean of r / (1 - r): one sure step outweighs all others | no change |
| `soft_min` | sum of w_t r_t, w = softmax(-r / T) (PURE, arXiv 2504.15275) | no change |

"No change" holds for a copy of every step.  A copy of the *best* step still raises a mean, and lowers nothing else but
`product` and `sum_log`: put `step_audit` beside whichever is used.

Not covered: shaping before the sum (`adjudge.responses.refine`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from adjudge.responses.step_values import TEMPERATURE, check_values, min_weights

Aggregate: TypeAlias = Literal[
    "min",
    "product",
    "geometric_mean",
    "mean",
    "last",
    "max",
    "sum",
    "mean_logit",
    "mean_odds",
    "sum_log",
    "soft_min",
]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

EDGE = 1e-6
"""Where a logarithm or odds would be infinite, a probability below EDGE counts as EDGE, above 1 - EDGE as 1 - EDGE.

Half precision cannot tell 1 - 1e-6 from 1, so nothing that a model says is lost."""

_PROBABILITIES: frozenset[Aggregate] = frozenset(["product", "geometric_mean", "mean_logit", "mean_odds", "sum_log"])


def aggregate(values: Sequence[float], how: Aggregate, *, temperature: float = TEMPERATURE) -> float:
    """Return one number for the steps of a solution.

    Args:
        values: one finite number for each step, in order; probabilities in [0, 1] where the formula needs them
            (`product`, `geometric_mean`, `mean_logit`, `mean_odds`, `sum_log`).
        how: the formula; see the table above.
        temperature: T of `soft_min`, above 0.

    Raises:
        ValueError: there is no step, a value is not finite or outside [0, 1] where it must not be, or `how` is unknown.
    """
    if how not in AGGREGATES:
        raise ValueError(f"unknown aggregate {how!r}; it must be one of {', '.join(AGGREGATES)}")
    check_values(values, probabilities=how in _PROBABILITIES)
    if how == "soft_min":
        return math.fsum(weight * value for weight, value in zip(min_weights(values, temperature), values, strict=True))
    return _FORMULAS[how](values)


def needs_probabilities(how: Aggregate) -> bool:
    """Return whether a formula is defined for values in [0, 1] alone."""
    return how in _PROBABILITIES


def first_below(values: Sequence[float], threshold: float) -> int:
    """Return the place (from 0) of the first value below a threshold, -1 if there is none, as ProcessBench counts."""
    check_values(values)
    return next((place for place, value in enumerate(values) if value < threshold), -1)


def _inner(value: float) -> float:
    return min(max(value, EDGE), 1 - EDGE)


def _geometric_mean(values: Sequence[float]) -> float:
    if min(values) == 0:
        return 0.0
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _mean_logit(values: Sequence[float]) -> float:
    return math.fsum(math.log(value) - math.log1p(-value) for value in map(_inner, values)) / len(values)


def _mean_odds(values: Sequence[float]) -> float:
    return math.fsum(value / (1 - value) for value in map(_inner, values)) / len(values)


_FORMULAS: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "min": min,
    "product": math.prod,
    "geometric_mean": _geometric_mean,
    "mean": lambda values: math.fsum(values) / len(values),
    "last": lambda values: values[-1],
    "max": max,
    "sum": math.fsum,
    "mean_logit": _mean_logit,
    "mean_odds": _mean_odds,
    "sum_log": lambda values: math.fsum(math.log(max(value, EDGE)) for value in values),
}
