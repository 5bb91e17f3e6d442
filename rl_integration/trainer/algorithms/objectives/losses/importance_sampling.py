"""Weights for tokens that another policy wrote: an older one, or the same weights in an engine that rounds otherwise.

    w = exp(old_logp - sampler_logp), of a token or of a whole response, without gradient

| mode | w outside [low, high] | known as |
|---|---|---|
| `truncate` | becomes the bound | truncated importance sampling, TIS |
| `mask` | becomes 0 | masked importance sampling; IcePop with both bounds |

A token whose `sampler_logp` is NaN (its engine did not say) has no weight of its own: w = 1.

Not covered: which rollouts are too old to use at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.ratio import LARGEST_LOG
from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import TokenBatch
from adjudge.rl_integration.trainer.contract.options import check_choice, check_min

Level: TypeAlias = Literal["token", "sequence"]
Mode: TypeAlias = Literal["truncate", "mask"]


@dataclass(frozen=True, kw_only=True)
class ImportanceSampling:
    """How tokens of another policy are weighed; see the module.

    Attributes:
        level: whether w is a token's or, the product of its tokens', a response's.
        mode: what becomes of a w outside the bounds.
        low: lower bound, 0 or more.
        high: upper bound, at least 1.
    """

    level: Level = "token"
    mode: Mode = "truncate"
    low: float = 0.0
    high: float = 2.0

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("level", self.level, get_args(Level))
        check_choice("mode", self.mode, get_args(Mode))
        check_min("low", self.low, 0.0)
        check_min("high", self.high, 1.0)
        if self.low > 1:
            raise ValueError(f"low={self.low}; it must be at most 1, which is the weight of a token that is not stale")

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return weights, (n, t) or (n, 1) for responses; 1 throughout where the sampler's are not given."""
        if tokens.sampler_logp is None:
            return torch.ones_like(tokens.old)
        logs = _logs(tokens.old, tokens.sampler_logp)
        if self.level == "sequence":
            logs = logs.sum(dim=1, keepdim=True)
        weights = logs.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
        if self.mode == "truncate":
            return weights.clamp(self.low, self.high)
        return weights * ((weights >= self.low) & (weights <= self.high))


def sampling_logp_difference(tokens: TokenBatch) -> Tensor:
    """Return |log w| of each token, (n, t); 0 throughout where the sampler's log-probabilities are not given.

    What vLLM writes with the same weights has about 1e-5 in float32 and some hundredths in bfloat16; much more means
    that it has other weights.
    """
    return torch.zeros_like(tokens.old) if tokens.sampler_logp is None else _logs(tokens.old, tokens.sampler_logp).abs()


def _logs(old: Tensor, sampler: Tensor) -> Tensor:
    return torch.nan_to_num(old - sampler.detach(), nan=0.0)
