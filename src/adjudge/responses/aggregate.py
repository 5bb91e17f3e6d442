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

From the log-probabilities of a text's tokens to one number in [0, 1]:

| name | formula | one unlikely token |
|---|---|---|
| `mean_p` | mean of p (RLPR) | costs its share |
| `exp_mean_logp` | exp(mean log p) (IGPO), the geometric mean | pulls all down |
| `min` | the least p | decides |
| `prod` | the probability of the whole text | decides, and long texts are unlikely |

Not covered: shaping before the sum (`adjudge.responses.refine`), and weights of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

Aggregate: TypeAlias = Literal[
    "min", "product", "geometric_mean", "mean", "last", "max", "sum", "mean_logit", "mean_odds", "sum_log", "soft_min"
]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

EDGE = 1e-6
"""Where a logarithm or odds would be infinite, a probability below EDGE counts as EDGE, above 1 - EDGE as 1 - EDGE.

Half precision cannot tell 1 - 1e-6 from 1, so nothing that a model says is lost."""

TEMPERATURE = 0.1
"""T of PURE's soft minimum.  Its values are P(+) - P(-), in [-1, 1]; probabilities get the same weights at T = 0.05."""

_PROBABILITIES: frozenset[Aggregate] = frozenset(["product", "geometric_mean", "mean_logit", "mean_odds", "sum_log"])


def aggregate(values: Sequence[float], how: Aggregate, *, temperature: float = TEMPERATURE) -> float:
    """Return one number for the steps of a solution, by a formula of the table above.

    The values are finite, and probabilities in [0, 1] where `needs_probabilities` says so; the temperature is T of
    `soft_min`, above 0.  Raises `ValueError` if they are not, or there is no step.
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


def min_weights(values: Sequence[float], temperature: float = TEMPERATURE) -> tuple[float, ...]:
    """Return the weights softmax(-r / T) of PURE's min-form credit; they sum to 1, and the least step gets most."""
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


_FORMULAS: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "min": min,
    "product": math.prod,
    "geometric_mean": _geometric_mean,
    "mean": lambda values: math.fsum(values) / len(values),
    "last": lambda values: values[-1],
    "max": max,
    "sum": math.fsum,
    "mean_logit": lambda values: math.fsum(math.log(r) - math.log1p(-r) for r in map(_inner, values)) / len(values),
    "mean_odds": lambda values: math.fsum(r / (1 - r) for r in map(_inner, values)) / len(values),
    "sum_log": lambda values: math.fsum(math.log(max(value, EDGE)) for value in values),
}


Pooling: TypeAlias = Literal["mean_p", "exp_mean_logp", "min", "prod"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def pooled(logprobs: Sequence[float], how: Pooling) -> float:
    """Return one number for the natural log-probabilities of a text's tokens, one at least, in [0, 1]."""
    if how not in POOLINGS:
        raise ValueError(f"unknown pooling {how!r}; it must be one of {', '.join(POOLINGS)}")
    if not logprobs:
        raise ValueError("a text without tokens has no probability; give a reference that is not empty")
    return min(max(_POOLED[how](logprobs), 0.0), 1.0)  # rounding may leave a logprob a little above 0


_POOLED: Mapping[Pooling, Callable[[Sequence[float]], float]] = {
    "mean_p": lambda logprobs: math.fsum(map(math.exp, logprobs)) / len(logprobs),
    "exp_mean_logp": lambda logprobs: math.exp(sum(logprobs) / len(logprobs)),
    "min": lambda logprobs: math.exp(min(logprobs)),
    "prod": lambda logprobs: math.exp(sum(logprobs)),
}
