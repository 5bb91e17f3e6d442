"""The tokens of a batch as every loss reads them: ratios to the policy before, weights, and sums over tokens.

| level | log of the ratio to the policy that the update began with | used by |
|---|---|---|
| `token` | logp_t - old_t | PPO, GRPO, DAPO, CISPO, LOOP |
| `sequence` | mean over the response's tokens, one ratio for all of them | GSPO (arXiv 2507.18071) |
| `turn` | mean over the tokens of a turn, which is what the policy wrote in one go | ATPO (arXiv 2601.04767) |
| `whole` | sum over the response's tokens | RLOO as TRL has it |

| aggregation | formula, N responses, T tokens in all | used by |
|---|---|---|
| `sequence_mean` | 1/N Σ_i 1/|o_i| Σ_t l_it: short responses weigh more for each token | GRPO, GSPO, RLOO |
| `token_mean` | 1/T Σ_i Σ_t l_it | DAPO, CISPO, PPO, Lite PPO, REINFORCE++ |
| `sequence_sum` | 1/N Σ_i Σ_t l_it | OPMD, AsymRE |
| `constant` | 1/(N * length) Σ_i Σ_t l_it, length the same throughout a run | Dr.GRPO |

Logs are cut at 20 in size, as in verl.  N counts responses that take part, also those without a token.

Weights are of tokens that another policy wrote, or by how the policy decides a token; none has a gradient.

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
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

from adjudge.options import Options, Range

_PER_TOKEN = ("old_logp", "sampler_logp", "reference_logp", "entropy", "weight", "next_value")


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What sums over a whole update are divided by.

    Attributes:
        sequences: responses that take part.
        tokens: their tokens under the mask.
        groups: the groups that they are from; 0 where groups were not given.
    """

    sequences: int
    tokens: int
    groups: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenBatch:
    """Responses, padded to one length.

    What stands outside the mask is never read, so padding may hold anything.

    Attributes:
        logp: (n, t) log-probabilities of the tokens under the policy, with gradient.
        mask: (n, t) tokens that the policy wrote; text of tools and padding are not.
        advantages: (n,) of responses, or (n, t) of tokens.
        counted: (n,) responses that take part (`Groups.counted`); by default all.  The others have no gradient, no
            vote in any mean, and no token in any total.
        old_logp: (n, t) under the policy when this update began; by default it is that policy.
        sampler_logp: (n, t) under what wrote the tokens, such as an older policy or another engine; by default
            `old_logp`.
        reference_logp: (n, t) under the reference policy; needed for a divergence from it.
        entropy: (n, t) of the policy's next-token distributions, with gradient; needed for a bonus or weights.
        weight: (n, t) what each token's loss is multiplied by, where a rule compares the tokens of the whole update and
            this is a part of it; by default the rule (`PolicyLoss.weighting`) compares these tokens.
        next_value: (n, t) what `Rover` needs.
        group: (n,) groups, as whole numbers; what `Preference` needs.
        injected: (n,) responses that were written to another prompt (`Injected`); by default none.
        totals: of the whole update, where this is a part of it: then the losses of the parts sum to the whole's.

    Raises:
        ValueError: a shape does not fit.
    """

    logp: Tensor
    mask: Tensor
    advantages: Tensor
    counted: Tensor | None = None
    old_logp: Tensor | None = None
    sampler_logp: Tensor | None = None
    reference_logp: Tensor | None = None
    entropy: Tensor | None = None
    weight: Tensor | None = None
    next_value: Tensor | None = None
    group: Tensor | None = None
    injected: Tensor | None = None
    totals: Totals | None = None
    _total: Totals = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check shapes, and blank what the mask hides, so that NaN there reaches neither sums nor gradients."""
        shape = self.logp.shape
        if len(shape) != 2:
            raise ValueError(f"logp has the shape {tuple(shape)}; it must be (responses, tokens)")
        every = torch.ones(shape[:1], dtype=torch.bool, device=self.logp.device)
        counted = every if self.counted is None else self.counted.bool()
        _check("mask", self.mask, shape)
        _check("counted", counted, shape[:1])
        mask = self.mask.bool() & counted.unsqueeze(1)
        advantages = self.advantages.detach().to(self.logp.dtype)
        if advantages.dim() == 1:
            _check("advantages", advantages, shape[:1])
            advantages = advantages.unsqueeze(1).expand(shape)
        _check("advantages", advantages, shape)
        for name in ("group", "injected"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), shape[:1])
        self._set("counted", counted)
        self._set("mask", mask)
        self._set("logp", self.logp.masked_fill(~mask, 0.0))
        self._set("advantages", advantages.masked_fill(~mask, 0.0))
        for name in _PER_TOKEN:
            given: Tensor | None = getattr(self, name)
            if given is not None:
                _check(name, given, shape)
                self._set(name, given.masked_fill(~mask, 0.0))
        totals = self.totals
        if totals is None:  # each of its numbers waits for the GPU
            groups = 0 if self.group is None else len(set(self.group[counted].tolist()))
            totals = Totals(sequences=int(counted.sum()), tokens=int(mask.sum()), groups=groups)
        self._set("_total", totals)

    def _set(self, name: str, value: Tensor | Totals) -> None:
        object.__setattr__(self, name, value)

    @property
    def old(self) -> Tensor:
        """(n, t) log-probabilities when this update began, without gradient."""
        return (self.logp if self.old_logp is None else self.old_logp).detach()

    @property
    def total(self) -> Totals:
        """What sums are divided by; this batch's own numbers unless those of a whole update were given."""
        return self._total

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of (n, t) values over the tokens of the update."""
        return (values * self.mask).sum() / max(1, self.total.tokens)

    def needs(self, name: str, why: str) -> Tensor:
        """Return a tensor that was given, or raise a `ValueError` that says who needs it."""
        tensor: Tensor | None = getattr(self, name)
        if tensor is None:
            raise ValueError(f"{why} needs TokenBatch({name}=...)")
        return tensor

    def part(self, rows: slice) -> Self:
        """Return some of the rows as a part of this update: losses of all parts sum to this batch's loss."""
        names = ("logp", "mask", "advantages", "counted", "group", "injected", *_PER_TOKEN)
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        cut: dict[str, Any] = {name: None if value is None else value[rows] for name, value in given.items()}
        return replace(self, **cut, totals=self.total)


@dataclass(frozen=True, kw_only=True)
class LossValue:
    """What a loss gives.

    Attributes:
        loss: a scalar with gradient; 0, with a gradient of 0, where no sample takes part.
        metrics: scalars without gradient; means over the tokens of the update, so those of parts sum up as well.
    """

    loss: Tensor
    metrics: dict[str, Tensor]


def _check(name: str, given: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(given.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {tuple(given.shape)}; it must be {tuple(shape)}")


Level: TypeAlias = Literal["token", "turn", "sequence", "whole"]
LEVELS: tuple[Level, ...] = get_args(Level)

LARGEST_LOG = 20.0


def ratio(tokens: TokenBatch, level: Level) -> Tensor:
    """Return the ratio, (n, t) or, for a whole response, (n, 1)."""
    logs = tokens.logp - tokens.old
    if level == "turn":
        turn = (tokens.mask & ~pad(tokens.mask, (1, -1))).cumsum(dim=1)  # from 1; logs are 0 where others wrote
        sums = pad(torch.zeros_like(logs), (1, 0))  # as many as there can be: a GPU is not waited for
        counts = sums.scatter_add(1, turn, tokens.mask.to(logs.dtype)).clamp(min=1)
        logs = (sums.scatter_add(1, turn, logs) / counts).gather(1, turn)
    elif level != "token":
        logs = logs.sum(dim=1, keepdim=True)
    if level == "sequence":
        logs = logs / tokens.mask.sum(dim=1, keepdim=True).clamp(min=1)
    return logs.clamp(-LARGEST_LOG, LARGEST_LOG).exp()


Aggregation: TypeAlias = Literal["sequence_mean", "token_mean", "sequence_sum", "constant"]


def aggregate(losses: Tensor, tokens: TokenBatch, how: Aggregation, *, length: int = 1) -> Tensor:
    """Return a scalar.

    Args:
        losses: (n, t), or (n, 1) for one number throughout a response.
        tokens: whose mask and totals are used.
        how: see the table above.
        length: the constant of `constant`, in tokens.
    """
    sequences = max(1, tokens.total.sequences)
    sums = (losses * tokens.mask).sum(dim=1)
    match how:
        case "sequence_mean":
            return (sums / tokens.mask.sum(dim=1).clamp(min=1)).sum() / sequences
        case "token_mean":
            return sums.sum() / max(1, tokens.total.tokens)
        case "sequence_sum":
            return sums.sum() / sequences
        case "constant":
            return sums.sum() / (sequences * length)


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
