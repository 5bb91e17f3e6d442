"""From the log-probabilities of a text's tokens to one number in [0, 1].

| name | formula | one unlikely token |
|---|---|---|
| `mean_p` | mean of p (RLPR) | costs its share |
| `exp_mean_logp` | exp(mean log p) (IGPO), the geometric mean | pulls all down |
| `min` | the least p | decides |
| `prod` | the probability of the whole text | decides, and long texts are unlikely |

Not covered: weights of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

Pooling: TypeAlias = Literal["mean_p", "exp_mean_logp", "min", "prod"]
POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def pooled(logprobs: Sequence[float], how: Pooling) -> float:
    """Return one number for the natural log-probabilities of a text's tokens, one at least, in [0, 1]."""
    if how not in POOLINGS:
        raise ValueError(f"unknown pooling {how!r}; it must be one of {', '.join(POOLINGS)}")
    if not logprobs:
        raise ValueError("a text without tokens has no probability; give a reference that is not empty")
    return min(max(_FORMULAS[how](logprobs), 0.0), 1.0)  # rounding may leave a logprob a little above 0


_FORMULAS: Mapping[Pooling, Callable[[Sequence[float]], float]] = {
    "mean_p": lambda logprobs: math.fsum(map(math.exp, logprobs)) / len(logprobs),
    "exp_mean_logp": lambda logprobs: math.exp(sum(logprobs) / len(logprobs)),
    "min": lambda logprobs: math.exp(min(logprobs)),
    "prod": lambda logprobs: math.exp(sum(logprobs)),
}
