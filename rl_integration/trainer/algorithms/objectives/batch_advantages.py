"""Advantages beside the whole batch, a shifted or soft baseline, or nothing.

| rule | advantage | source |
|---|---|---|
| `BatchRelative` | (x - mean of x) / sqrt(variance of x + eps), x = r or r - m | REINFORCE++, arXiv 2501.03262 |
| `Asymmetric` | r - (m + shift): right answers pull more than wrong ones push | AsymRE, arXiv 2506.20520 |
| `SoftMean` | r - m, or r - tau * log mean exp(r / tau); its loss divides by 1 + tau | OPMD, Trinity-RFT |
| `Tilted` | w (r - mean of r by w), or (r - m) exp((r - m) / T) | RED-Drop, RED-Weight, arXiv 2509.24203 |
| `Signed` | right * r + wrong * (r - 1), r in [0, 1] | PSR, NSR, W-REINFORCE, arXiv 2506.01347 |

`Tilted` "drop": the released code (Trinity-RFT) drops wrong answers, those below m, at random until they are no more
than the others.  w is the chance of an answer to stay, 1 or (others / wrong ones): what the code learns from rewards of
two values in the mean over its draws, and nearly so from others.

Variances have n - 1 below.  verl takes mean and variance over response tokens (`per_token`).  A sample that is alone in
its group has the baseline 0 in released code of REINFORCE++ and AsymRE; here it takes no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Options, Range
from adjudge.rl_integration.trainer.data.arrays import Floats
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
    """r - m, or r - tau * log mean exp(r / tau).

    Attributes:
        baseline: "mean", which released code takes, or "logavgexp".
        tau: the temperature of "logavgexp", in the unit of the reward.
    """

    baseline: Literal["mean", "logavgexp"] = "mean"
    tau: Annotated[float, Range(gt=0)] = 1.0

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        counted = groups.counted(self.min_size)
        if self.baseline == "mean":
            return np.where(counted & ~groups.uniform(), groups.rewards - groups.means(), 0.0)
        largest = np.where(counted, groups.largest(), 0.0)  # exp of differences alone cannot overflow
        powers = np.exp(np.where(counted, groups.rewards - largest, 0.0) / self.tau)
        baseline = largest + self.tau * np.log(np.where(counted, groups.means(powers), 1.0))
        return np.where(counted, groups.rewards - baseline, 0.0)


@dataclass(frozen=True, kw_only=True)
class Tilted(Options):
    """Wrong answers weigh less where they are many, or all less the worse they are; see the module.

    Attributes:
        how: "drop" or "weight".
        temperature: T of "weight", in the unit of the reward.
    """

    how: Literal["drop", "weight"] = "drop"
    temperature: Annotated[float, Range(gt=0)] = 1.0

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        informed = groups.counted(self.min_size) & ~groups.uniform()
        beside = np.where(informed, groups.rewards - groups.means(), 0.0)
        if self.how == "weight":
            tilted: Floats = beside * np.exp(beside / self.temperature)
            return tilted
        others = groups.sums((beside >= 0).astype(float))
        wrong = np.maximum(groups.counts() - others, 1)
        weights = np.where(beside < 0, np.minimum(others / wrong, 1.0), 1.0)
        means = groups.sums(weights * groups.rewards) / np.maximum(groups.sums(weights), 1)
        return np.where(informed, weights * (groups.rewards - means), 0.0)


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
