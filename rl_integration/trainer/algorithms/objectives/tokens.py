"""The tokens of a batch as every loss reads them, ratios to the policy before, and sums over tokens.

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
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, get_args

import torch
from torch import Tensor
from torch.nn.functional import pad

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
