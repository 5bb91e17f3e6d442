"""An objective: which advantages, which loss, what a critic adds, and what goes with them.

worth = objective.advantages(groups)                    # (n,), NumPy; `objective.critic.gae` where there is a critic
value = objective.loss(TokenBatch(..., counted=objective.counted(groups)))      # for each part of a batch's tokens
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from adjudge.options import Options, Range, Share
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import moments
from adjudge.rl_integration.trainer.algorithms.objectives.inside import AttentionRhythm, EffectiveRank, Shaping
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss, Preference, Rover
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import LossValue, TokenBatch, Totals
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, check_kind, flags, floats, same_shape
from adjudge.rl_integration.trainer.rewards.groups import Groups, Overlong
from adjudge.training.config_keys import WORDS


@dataclass(frozen=True, kw_only=True)
class Gae(Options):
    """Generalized advantage estimation (arXiv 1506.02438): advantages and returns of tokens, by a critic's values.

        delta_t = r_t + gamma * V_{t+1} - V_t      A_t = delta_t + gamma * lambda * A_{t+1}      return_t = A_t + V_t

    t runs over the tokens that the policy wrote; what stands between them, such as a tool's output, is skipped.
    After the last token V is 0, also where a response was cut off.

    Attributes:
        gamma: the discount, in [0, 1].
        lam: lambda, in [0, 1]: 0 trusts the values, 1 the rewards.
        whiten: whether the advantages of the batch's tokens get mean 0 and variance 1; returns never.
    """

    gamma: Share = 1.0
    lam: Share = 0.95
    whiten: bool = True

    def __call__(self, rewards: Floats, values: Floats, mask: Bools) -> tuple[Floats, Floats]:
        """Return advantages and returns, (n, t) each, 0 outside the mask.

        Args:
            rewards: (n, t) reward of each token.
            values: (n, t) value of the state before each token.
            mask: (n, t) tokens of the policy, of valid samples alone.

        Raises:
            ValueError: shapes differ, a number that counts is not finite, or a reward stands where the mask hides it.
        """
        mask = flags("mask", mask)
        rewards, values = floats("rewards", rewards), floats("values", values)
        for name, given in (("rewards", rewards), ("values", values)):
            same_shape(name, given.shape, mask.shape)
            if not np.isfinite(given[mask]).all():
                raise ValueError(f"{name} hold a number that is not finite under the mask")
        if np.any(np.where(mask, 0.0, np.nan_to_num(rewards)) != 0):
            raise ValueError("a reward stands at a token that the mask hides, where it would be lost; move it")
        advantages = self._backwards(np.where(mask, rewards, 0.0), np.where(mask, values, 0.0), mask)
        returns = np.where(mask, advantages + np.where(mask, values, 0.0), 0.0)
        if self.whiten:
            mean, variance = moments(advantages[mask], np.ones(int(mask.sum())))
            advantages = np.where(mask, (advantages - mean) / math.sqrt(variance + 1e-8), 0.0)
        return advantages, returns

    def _backwards(self, rewards: Floats, values: Floats, mask: Bools) -> Floats:
        advantages = np.zeros(mask.shape)
        after, value = np.zeros(len(mask)), np.zeros(len(mask))
        for place in reversed(range(mask.shape[1])):
            here = mask[:, place]
            delta = rewards[:, place] + self.gamma * value - values[:, place]
            after = np.where(here, delta + self.gamma * self.lam * after, after)
            value = np.where(here, values[:, place], value)
            advantages[:, place] = np.where(here, after, 0.0)
        return advantages


@dataclass(frozen=True, kw_only=True)
class ValueLoss(Options):
    """PPO's loss of the value model: the clipped squared error of values, which keeps them from moving far at once.

        l_t = 1/2 max( (V - R)², (clip(V, V_old - range, V_old + range) - R)² ),   L = mean over tokens,   R of `Gae`

    Attributes:
        clip: the range; None for no clipping.
        weight: what the loss is multiplied by.
    """

    clip: Annotated[float, Range(gt=0)] | None = 0.2
    weight: Annotated[float, Range(ge=0)] = 1.0

    def __call__(
        self, values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, *, totals: Totals | None = None
    ) -> LossValue:
        """Return the loss and its metrics.

        Args:
            values: (n, t) of the value model, with gradient.
            old_values: (n, t) when the rollouts were scored.
            returns: (n, t) targets.
            mask: (n, t) tokens of the policy, of samples that take part.
            totals: of the whole update, where this is a part of it.

        Raises:
            ValueError: shapes differ.
        """
        for name, given in (("old_values", old_values), ("returns", returns), ("mask", mask)):
            if given.shape != values.shape:
                raise ValueError(f"{name} has the shape {tuple(given.shape)}; it must be {tuple(values.shape)}")
        hidden = ~mask.bool()
        value, old, target = (
            given.masked_fill(hidden, 0.0) for given in (values, old_values.detach(), returns.detach())
        )
        squares = (value - target) ** 2
        count = max(1, totals.tokens if totals is not None else int(mask.sum()))
        outside = torch.zeros_like(squares)
        if self.clip is not None:
            near = torch.maximum(torch.minimum(value, old + self.clip), old - self.clip)
            other = (near - target) ** 2
            outside = (other > squares).to(squares.dtype)
            squares = torch.maximum(squares, other)
        loss = self.weight * squares.sum() / 2 / count
        metrics = {
            "value_clip_ratio": outside.sum() / count,
            "value_error": ((value - target) ** 2).detach().sum() / count,
        }
        return LossValue(loss=loss, metrics=metrics)


class AdvantageRule(Protocol):
    """One number for each sample, from the rewards of all.

    A rule is a pure function with its options bound: the result depends on the groups alone, and not on their order.
    """

    @property
    def min_size(self) -> int:
        """How many valid members a group needs to take part: 2 where members are compared, otherwise 1."""
        ...

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages; 0 for samples that do not take part (`Groups.counted(min_size)`)."""
        ...


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Critic:
    """What a value model adds.

    Attributes:
        gae: advantages and returns from its values.
        loss: what it is trained with.
    """

    gae: Gae = field(default_factory=Gae)
    loss: ValueLoss = field(default_factory=ValueLoss)


@dataclass(frozen=True, kw_only=True)
class Objective(Options):
    """One way to learn from rewards; `table.OBJECTIVES` has the published ones.

    Attributes:
        rule: advantages from rewards; None for an objective with a critic.
        policy: the loss of the policy.
        critic: for an objective with a value model.
        reward_beta: weight of the divergence from the reference policy that is subtracted from the reward (`shaping`).
        overlong: a penalty of length that is added to the reward.
        resample: whether groups of equal rewards are drawn anew (`groups.informative`).
        shaping: what becomes of advantages by what goes on inside the policy; it takes one more forward pass.
        reweighted_reference: whether the reference is taken to the power of the answer's score, kept in [0, 1], token
            by token: the worse an answer, the more evenly it holds all tokens for possible (RAPO, arXiv 2510.03865).
    """

    rule: AdvantageRule | None
    policy: PolicyLoss | Rover | Preference
    critic: Critic | None = None
    reward_beta: Annotated[float, Range(ge=0)] = 0.0
    overlong: Overlong | None = None
    resample: bool = False
    reweighted_reference: bool = False
    shaping: Shaping | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("policy", self.policy, PolicyLoss, Rover, Preference)
        check_kind("critic", self.critic, Critic, type(None))
        check_kind("overlong", self.overlong, Overlong, type(None))
        if self.rule is not None and not (callable(self.rule) and hasattr(self.rule, "min_size")):
            raise ValueError(f"rule={self.rule!r}; it must be an advantage rule, such as GroupRelative(), or None")
        check_kind("shaping", self.shaping, AttentionRhythm, EffectiveRank, type(None))
        if self.shaping is not None and isinstance(self.policy, Preference):
            raise ValueError(
                "shaping changes the advantages of tokens, and an objective of pairs compares whole answers"
            )
        if self.reweighted_reference and not self.needs_reference:
            raise ValueError("reweighted_reference is true, and no divergence is measured; set policy.beta")
        if (self.rule is None) == (self.critic is None):
            raise ValueError("an objective has either a rule of advantages or a critic; give one of the two")

    @property
    def needs_reference(self) -> bool:
        """Whether log-probabilities of a reference policy are needed."""
        return bool(self.reward_beta) or isinstance(self.policy, Preference) or bool(getattr(self.policy, "beta", 0.0))

    def counted(self, groups: Groups) -> Bools:
        """Return (n,) which samples take part: the only ones with a gradient."""
        return groups.counted(1 if self.rule is None else self.rule.min_size)

    def advantages(self, groups: Groups) -> Floats:
        """Return (n,) advantages, 0 for samples that take no part.

        Raises:
            ValueError: the objective has a critic, or the rule cannot read these rewards.
        """
        if self.rule is None:
            raise ValueError("this objective takes its advantages from a critic; call objective.critic.gae")
        return self.rule(groups)

    def loss(self, tokens: TokenBatch) -> LossValue:
        """Return the policy's loss and its metrics.

        Raises:
            ValueError: a tensor that it needs is not there.
        """
        return self.policy(tokens)

    def but(self, changes: Mapping[str, Any]) -> Self:
        """Return the same with other options; `policy.clip_ratio_high` reaches into parts."""
        return with_options(self, changes)


def with_options(part: T, changes: Mapping[str, Any]) -> T:
    """Return a configuration with other options; dots reach into its parts.

    Raises:
        ValueError: there is no such option, or it cannot have that value.
    """
    for path, value in changes.items():
        part = _with(part, path, path, value)
    return part


def _with(part: Any, path: str, rest: str, value: Any) -> Any:
    name, _, deeper = rest.partition(".")
    known = list(getattr(part, "__dataclass_fields__", ()))
    if name not in known:
        own = "objective.set."
        near = " or ".join(repr(key.removeprefix(own)) for key in WORDS.get(path.lower(), ()) if key.startswith(own))
        hint = f" (did you mean {near}?)" if near else ""
        raise ValueError(f"there is no option {path!r}{hint}; at this place there are {', '.join(known) or 'none'}")
    value = _with(getattr(part, name), path, deeper, value) if deeper else value
    try:
        return replace(part, **{name: value})
    except ValueError as error:
        raise ValueError(f"{path}: {error}" if "." in path else str(error)) from error
