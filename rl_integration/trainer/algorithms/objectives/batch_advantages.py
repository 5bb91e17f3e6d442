"""Advantages beside the whole batch, a shifted or soft baseline, or nothing; and GAE with a critic's values.

| rule | advantage | source |
|---|---|---|
| `BatchRelative` | (x - mean of x) / sqrt(variance of x + eps), x = r or r - m | REINFORCE++, arXiv 2501.03262 |
| `Asymmetric` | r - (m + shift): right answers pull more than wrong ones push | AsymRE, arXiv 2506.20520 |
| `SoftMean` | r - tau * log mean exp(r / tau); its loss divides by 1 + tau | OPMD, Trinity-RFT |
| `Signed` | right * r + wrong * (r - 1), r in [0, 1] | PSR, NSR, W-REINFORCE, arXiv 2506.01347 |
| `MaximumLikelihood` | (r - m) / (m + eps): a success weighs about 1 / pass rate | MaxRL, arXiv 2602.02710 |
| `Gae` | delta_t + gamma * lambda * A_{t+1}, delta_t = r_t + gamma * V_{t+1} - V_t | arXiv 1506.02438 |

Variances have n - 1 below.  verl takes mean and variance over response tokens (`per_token`).  A sample that is alone in
its group has the baseline 0 in released code of REINFORCE++ and AsymRE; here it takes no part.

`MaximumLikelihood(order=T)` follows the first T terms of the series of log p, for rewards 0 and 1 alone, with F
failures of N samples; T = 1 is plain REINFORCE.  These are N times the released code's weights, which it sums where we
take means.

    success: 1        failure: -Σ_{k=2..min(T, F)} Π_{j=1..k-1} (F - j) / (N - j)

In `Gae`, t runs over the tokens that the policy wrote; what stands between them, such as a tool's output, is skipped.
return_t = A_t + V_t, and after the last token V is 0, also where a response was cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Count, Options, Range, Share
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, flags, floats, same_shape
from adjudge.rl_integration.trainer.rewards.groups import Groups

Baseline: TypeAlias = Literal["none", "group"]


@dataclass(frozen=True, kw_only=True)
class BatchRelative(Options):
    """(x - mean) / standard deviation over the batch; see the module.

    Attributes:
        baseline: what is subtracted first.
        scale: whether to divide by the standard deviation.
        per_token: whether each response has as many votes as tokens.
        eps: what is added to the variance.
    """

    baseline: Baseline = "none"
    scale: bool = True
    per_token: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-8

    @property
    def min_size(self) -> int:
        """How many valid members a group needs: a baseline from the group compares members."""
        return 2 if self.baseline == "group" else 1

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: `per_token`, and the groups have no lengths.
        """
        counted = groups.counted(self.min_size)
        if self.per_token and groups.lengths is None:
            raise ValueError("statistics over tokens need Groups(lengths=...), the response tokens of each sample")
        weights = np.ones(len(groups)) if groups.lengths is None or not self.per_token else groups.lengths.astype(float)
        values = groups.rewards
        if self.baseline == "group":
            values = np.where(groups.uniform(), 0.0, values - groups.means())
        mean, variance = moments(values[counted], weights[counted])
        below = math.sqrt(variance + self.eps) if self.scale else 1.0
        return np.where(counted, (values - mean) / below if below > 0 else 0.0, 0.0)


def moments(values: Floats, weights: Floats) -> tuple[float, float]:
    """Return mean and variance of values that stand weights times each, with total - 1 below; 0 where there is none."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0, 0.0
    if values.min() == values.max():
        return float(values[0]), 0.0  # exactly, so that equal rewards have no advantage
    mean = float(values @ weights) / total
    return mean, float((values - mean) ** 2 @ weights) / max(total - 1, 1)


@dataclass(frozen=True, kw_only=True)
class Asymmetric(Options):
    """r - (m + shift).

    Attributes:
        shift: below 0 to learn less from what is worse than the mean.
    """

    shift: float = -0.1

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages; a group of equal rewards has -shift throughout, as published."""
        return np.where(groups.counted(self.min_size), groups.rewards - groups.means() - self.shift, 0.0)


@dataclass(frozen=True, kw_only=True)
class SoftMean(Options):
    """r - tau * log mean exp(r / tau).

    Attributes:
        tau: the temperature, in the unit of the reward.
    """

    tau: Annotated[float, Range(gt=0)] = 1.0

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        counted = groups.counted(self.min_size)
        largest = np.where(counted, groups.largest(), 0.0)  # exp of differences alone cannot overflow
        powers = np.exp(np.where(counted, groups.rewards - largest, 0.0) / self.tau)
        baseline = largest + self.tau * np.log(np.where(counted, groups.means(powers), 1.0))
        return np.where(counted, groups.rewards - baseline, 0.0)


@dataclass(frozen=True, kw_only=True)
class Signed(Options):
    """right * r + wrong * (r - 1); see the module.

    Attributes:
        right: weight of right answers.
        wrong: weight of wrong ones.
    """

    right: Annotated[float, Range(ge=0)] = 1.0
    wrong: Annotated[float, Range(ge=0)] = 1.0

    min_size = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.right == self.wrong == 0:
            raise ValueError("right=0 and wrong=0; one must be above 0, or nothing is learned")

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: a valid reward is outside [0, 1].
        """
        bad = np.flatnonzero((groups.rewards < 0) | (groups.rewards > 1))
        if len(bad):
            raise ValueError(f"sample {bad[0]} has the reward {groups.rewards[bad[0]]}; this rule needs [0, 1]")
        return np.where(groups.valid, self.right * groups.rewards + self.wrong * (groups.rewards - 1), 0.0)


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Options):
    """(r - m) / (m + eps), or the series of order T; see the module.

    Attributes:
        order: T; None for the closed form.
        eps: what is added to the mean in the closed form.
    """

    order: Count | None = None
    eps: Annotated[float, Range(ge=0)] = 1e-6

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: a valid reward is below 0 or, with an order, neither 0 nor 1.
        """
        rewards = groups.rewards
        bad = rewards < 0 if self.order is None else (rewards != 0) & (rewards != 1)
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            wanted = "rewards from 0" if self.order is None else "rewards that are 0 or 1"
            raise ValueError(f"sample {place} has the reward {rewards[place]}; maximum likelihood needs {wanted}")
        counted = groups.counted(self.min_size)
        if self.order is not None:
            return np.where(counted, np.where(rewards == 1, 1.0, self._failure(groups)), 0.0)
        mean = groups.means()
        informed = counted & ~groups.uniform()
        return np.divide(rewards - mean, mean + self.eps, out=np.zeros(len(groups)), where=informed)

    def _failure(self, groups: Groups) -> Floats:
        """What a failure weighs in each sample's group: the series is 0 from k = F + 1 on by itself."""
        count = groups.counts()
        failed = count - groups.sums(groups.rewards)
        term, total = np.ones(len(groups)), np.zeros(len(groups))
        for k in range(2, min(self.order or 1, int(failed.max(initial=0))) + 1):
            term = term * np.maximum(failed - (k - 1), 0) / np.maximum(count - (k - 1), 1)
            total -= term
        return total


@dataclass(frozen=True, kw_only=True)
class Gae(Options):
    """Advantages and returns of tokens; see the module.

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
