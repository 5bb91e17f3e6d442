"""Weights of tokens: of those that another policy wrote, and by how the policy decides them; none has a gradient.

    w = exp(old_logp - sampler_logp), of a token or of a whole response

| rule | weight | source |
|---|---|---|
| `ImportanceSampling`, `truncate` | w, or the bound that it is beyond | truncated importance sampling, TIS |
| `ImportanceSampling`, `mask` | w, or 0 beyond the bounds | masked importance sampling; IcePop with both |
| `TopEntropy` | 1 for the share of the batch's tokens with the highest entropy, else 0 | arXiv 2506.01939, share 0.2 |
| `Steer` | exp(-k ω), in [min_weight, 1], or falling linearly in ω from max_weight to min_weight | `zz-haooo/STEER` |
| `RelativeEntropy` | 1 + (mean of H in the group - H) / mean, H the mean entropy of a response | arXiv 2508.11356 |

STEER damps tokens that change the entropy most: ω = |A / p_old * p (1 - p) (ln p + H)| with p and H of the policy, and
k = -ln(min_weight) / max(ω_max, 0.02).  Released code takes min_weight 0.8 and, unless told otherwise, the linear form
with max_weight 1.2; where all ω are equal that form gives the middle of the two.

ETTRL's weight multiplies the advantage: a response of more than twice the group's mean H counts against it.

The loss divides by all tokens, whatever they weigh, as in TRL.  A token whose `sampler_logp` is NaN has w = 1.  The
threshold and the largest ω are those of the tokens given: weigh an update whole, and give its parts their share
(`TokenBatch.weight`), as the trainer does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import torch
from torch import Tensor

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import LARGEST_LOG, TokenBatch

Unit: TypeAlias = Literal["token", "sequence"]
Mode: TypeAlias = Literal["truncate", "mask"]


@dataclass(frozen=True, kw_only=True)
class ImportanceSampling(Options):
    """How tokens of another policy are weighed; see the module.

    Attributes:
        level: whether w is a token's or, the product of its tokens', a response's.
        mode: what becomes of a w outside the bounds.
        low: lower bound, 0 or more.
        high: upper bound, at least 1.
    """

    level: Unit = "token"
    mode: Mode = "truncate"
    low: Annotated[float, Range(ge=0)] = 0.0
    high: Annotated[float, Range(ge=1)] = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
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


_SMALLEST = 1e-8  # of a probability; the reciprocal of p_old must stay finite
_FLOOR = 0.02  # of the largest ω: below it the weights stay near 1, where there is nothing to damp


@dataclass(frozen=True, kw_only=True)
class TopEntropy(Options):
    """1 for the tokens of highest entropy, 0 for the rest; ties at the threshold count.

    Attributes:
        share: of the tokens, above 0 and at most 1.
    """

    share: Annotated[float, Range(gt=0, le=1)] = 0.2

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return (n, t) weights."""
        entropy = tokens.needs("entropy", "the share of tokens with the highest entropy").detach()
        ordered = entropy[tokens.mask].sort().values
        if not len(ordered):
            return torch.zeros_like(entropy)
        place = (1 - self.share) * (len(ordered) - 1)  # linear between places, as numpy and torch define quantiles
        below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
        threshold = below + (above - below) * (place - math.floor(place))
        return ((entropy >= threshold) & tokens.mask).to(entropy.dtype)


@dataclass(frozen=True, kw_only=True)
class Steer(Options):
    """Less for tokens that change the entropy more; see the module.

    Attributes:
        min_weight: the smallest weight, above 0 and below 1.
        max_weight: the largest of the linear form, at least 1; None for the exponential form, whose largest is 1.
    """

    min_weight: Annotated[float, Range(gt=0)] = 0.8
    max_weight: Annotated[float, Range(ge=1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_weight >= 1:
            raise ValueError(
                f"min_weight={self.min_weight!r}; it must be below 1, the weight of a token that changes nothing"
            )

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return (n, t) weights; 0 outside the mask."""
        entropy = tokens.needs("entropy", "STEER").detach()
        chance = tokens.logp.detach().exp().clamp(_SMALLEST, 1 - _SMALLEST)
        before = tokens.old.exp().clamp(_SMALLEST, 1.0)
        omega = (tokens.advantages / before * chance * (1 - chance) * (chance.log() + entropy)).abs() * tokens.mask
        largest = omega.max() if omega.numel() else omega.sum()
        if self.max_weight is None:
            weights = torch.exp(omega * math.log(self.min_weight) / largest.clamp(min=_FLOOR))
        else:
            smallest = omega.masked_fill(~tokens.mask, math.inf).min() if tokens.mask.any() else largest
            spread = largest - smallest
            place = torch.where(spread > 0, (omega - smallest) / spread.clamp(min=1e-30), torch.full_like(omega, 0.5))
            weights = self.max_weight - (self.max_weight - self.min_weight) * place
        return weights * tokens.mask


@dataclass(frozen=True, kw_only=True)
class RelativeEntropy(Options):
    """More for responses that the policy is surer of than of the others of their group; see the module."""

    def __call__(self, tokens: TokenBatch) -> Tensor:
        """Return (n, t) weights, one throughout a response; 0 outside the mask."""
        entropy = tokens.needs("entropy", "the relative entropy").detach()
        group = tokens.needs("group", "the relative entropy")
        own = entropy.sum(dim=1) / tokens.mask.sum(dim=1).clamp(min=1)
        together = (group.unsqueeze(1) == group).to(own.dtype)  # and not unique(), which waits for a GPU
        mean = together @ own / (together @ tokens.mask.any(dim=1).to(own.dtype)).clamp(min=1)
        return torch.where(mean > 0, 2 - own / mean, 1.0).unsqueeze(1) * tokens.mask
