"""Advantages of a sample beside the others of its group, the whole batch, a shifted or soft baseline, or nothing.

m and s are the group's mean and standard deviation.

| rule | A_i | source |
|---|---|---|
| `GroupRelative` | (r_i - m) / (s + eps) | GRPO (arXiv 2402.03300), DAPO, GSPO, CISPO |
| `GroupRelative(scale="batch")` | s of the batch: a group of nearly equal rewards is not blown up | arXiv 2508.08221 |
| `GroupRelative(scale="none")` | r_i - m | Dr.GRPO, arXiv 2503.20783 |
| `LeaveOneOut` | r_i - mean of the others = n / (n - 1) * (r_i - m) | RLOO (arXiv 2402.14740), LOOP (2502.01600) |
| `Stratified` | a * (r_i - m_k) / (s_k + eps) + (1 - a) * (r_i - m) / (s + eps) | SAN, arXiv 2510.06214 |
| `BestOfGroup` | (r_max - r_second) / (s + eps) for the best, all others 0 | GRPO for pass@k, arXiv 2503.19595 |
| `MaximumLikelihood` | (r - m) / (m + eps): a success weighs about 1 / pass rate | MaxRL, arXiv 2602.02710 |
| `SeveralRewards` | rewards of several scorers on one scale, before or after they are mixed | GDPO, arXiv 2601.05242 |

Standard deviations have n - 1 below.  eps stands beside s, not inside a root: 1e-4 as in TRL, 1e-6 in verl.  With one
valid member verl keeps the raw reward; here, as in TRL, it gets 0.

k is the stratum of sample i within its group, such as its number of searches; one valid member alone gets the group's
term.  The paper's a is not known to us; 0.7 is ours.  If two samples share the best reward, nobody gets anything.

    before:  x_i = Σ_j w_j (r_ij - m_j) / (s_j + eps) in the group,  A_i = (x_i - mean of x) / (s_x + eps) in the batch
    after:   A_i = (x_i - m) / (s + eps) in the group,  x_i = Σ_j w_j r_ij

These equal TRL's `normalize_then_sum` and `sum_then_normalize` where every reward is there.  Where one is missing
(NaN): before, it says nothing about that sample, which is 0; after, the sum would be invented, so it is an error.

`MaximumLikelihood(order=T)` follows the first T terms of the series of log p, for rewards 0 and 1 alone, with F
failures of N samples; T = 1 is plain REINFORCE.  These are N times the released code's weights, which it sums where we
take means.

    success: 1        failure: -Σ_{k=2..min(T, F)} Π_{j=1..k-1} (F - j) / (N - j)

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

verl takes mean and variance over response tokens (`per_token`).  A sample that is alone in its group has the baseline 0
in released code of REINFORCE++ and AsymRE; here it takes no part.

Not covered: pass@k for k below the group's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Count, Options, Range, Share
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, check_number
from adjudge.rl_integration.trainer.rewards.groups import Groups

Scale: TypeAlias = Literal["group", "batch", "none"]


@dataclass(frozen=True, kw_only=True)
class GroupRelative(Options):
    """(r - m) / (s + eps); see the module.

    Attributes:
        scale: whose standard deviation s is.
        eps: what is added to s; 0 or more.
    """

    scale: Scale = "group"
    eps: Annotated[float, Range(ge=0)] = 1e-4

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        centred = np.where(groups.counted(self.min_size) & ~groups.uniform(), groups.rewards - groups.means(), 0.0)
        match self.scale:
            case "group":
                below = groups.deviations() + self.eps
            case "batch":
                below = np.full(len(groups), deviation(groups.rewards[groups.valid]) + self.eps)
            case "none":
                return centred
        advantages: Floats = centred / np.where(below > 0, below, 1.0)
        return advantages


def deviation(values: Floats) -> float:
    """Return the standard deviation with n - 1 below; 0 for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _normalized(values: Floats, counted: Bools, eps: float) -> Floats:
    """Numbers of the samples that take part, brought to mean 0 and standard deviation 1; 0 for the others."""
    if not counted.any():
        return values
    below = deviation(values[counted]) + eps
    return np.where(counted, (values - values[counted].mean()) / below if below > 0 else 0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(Options):
    """r - mean of the others' rewards; see the module.

    Attributes:
        normalize: whether the advantages of the batch are brought to mean 0 and standard deviation 1.
        eps: what is added to that standard deviation.
    """

    normalize: bool = False
    eps: Annotated[float, Range(ge=0)] = 1e-4

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        counts = groups.counts()
        advantages: Floats = counts / np.maximum(counts - 1, 1) * GroupRelative(scale="none")(groups)
        return _normalized(advantages, groups.counted(self.min_size), self.eps) if self.normalize else advantages


@dataclass(frozen=True, kw_only=True)
class Stratified(Options):
    """A mix of the stratum's advantage and the group's; see the module.

    Attributes:
        share: a, the weight of the stratum.
        eps: what is added to standard deviations.
    """

    share: Share = 0.7
    eps: Annotated[float, Range(ge=0)] = 1e-4

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: the groups have no strata.
        """
        if groups.strata is None:
            raise ValueError("stratified advantages need Groups(strata=...), such as the number of searches")
        pairs = np.stack([groups.ids, groups.strata], axis=1)
        within = replace(groups, ids=np.unique(pairs, axis=0, return_inverse=True)[1].reshape(len(groups)))
        rule = GroupRelative(eps=self.eps)
        whole = rule(groups)
        mixed = self.share * rule(within) + (1 - self.share) * whole
        return np.where(within.counted(2), mixed, whole)


@dataclass(frozen=True, kw_only=True)
class BestOfGroup(Options):
    """r_max - r_second for the best sample; see the module.

    Attributes:
        scale: whether to divide by the group's standard deviation.
        eps: what is added to it.
    """

    scale: bool = True
    eps: Annotated[float, Range(ge=0)] = 1e-6

    min_size = 2

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        best = groups.valid & (groups.rewards == groups.largest())
        alone = best & (groups.sums(best.astype(float)) == 1) & groups.counted(self.min_size)
        others = groups.largest(np.where(best, -np.inf, groups.rewards))
        lead = np.where(alone, groups.rewards - np.where(alone, others, 0.0), 0.0)
        return lead / (groups.deviations() + self.eps) if self.scale else lead


When: TypeAlias = Literal["before", "after"]


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
            raise ValueError(
                f"sample {place} has the reward {rewards[place]}; maxrl needs {wanted} (`transform` scales)"
            )
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
class SeveralRewards(Options):
    """A weighted sum of `Groups.parts`; see the module.

    Attributes:
        weights: of the rewards by their names, which leaves out those that are not named; or one for each, in the order
            of their names; () weighs all 1.
        normalize: before or after mixing.
        eps: what is added to standard deviations.
    """

    weights: Sequence[float] | Mapping[str, float] = ()
    normalize: When = "before"
    eps: Annotated[float, Range(ge=0)] = 1e-4

    min_size = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        for weight in self.weights.values() if isinstance(self.weights, Mapping) else self.weights:
            check_number("weights", weight)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: there are no parts, or others than the weights are for, or a valid sample lacks what is summed.
        """
        parts, weights = self._parts(groups)
        rule = GroupRelative(eps=self.eps)
        if self.normalize == "after":
            return rule(replace(groups, rewards=np.where(groups.valid, parts @ weights, 0.0)))
        total = np.zeros(len(groups))
        for part, weight in zip(parts.T, weights, strict=True):
            total += weight * rule(replace(groups, rewards=part, valid=groups.valid & ~np.isnan(part)))
        return _normalized(total, groups.counted(self.min_size), self.eps)

    def _parts(self, groups: Groups) -> tuple[Floats, Floats]:
        parts = groups.parts
        if parts is None:
            raise ValueError(
                "gdpo mixes the parts of a reward (Groups.parts), and this one has none; give several scorers, as in "
                "{weighted: {math: 1.0, format: 0.1}}, or another objective"
            )
        if isinstance(self.weights, Mapping) and self.weights:
            for name in self.weights:
                if name not in groups.names:
                    known = ", ".join(groups.names)
                    raise ValueError(
                        f"rule.weights has {name!r}, which is no part of the reward; its parts are {known}"
                    )
            parts = parts[:, [groups.names.index(name) for name in self.weights]]
            weights = np.array(list(self.weights.values()), dtype=np.float64)
        else:
            weights = np.array(self.weights or (1.0,) * parts.shape[1], dtype=np.float64)
        if len(weights) != parts.shape[1]:
            raise ValueError(f"there are {len(weights)} weights and {parts.shape[1]} rewards; give one each")
        missing = np.isnan(parts)
        lacking = missing.all(axis=1) if self.normalize == "before" else missing.any(axis=1)
        bad = np.flatnonzero(groups.valid & lacking)
        if len(bad):
            raise ValueError(f"sample {bad[0]} is valid and lacks a reward that is mixed; mark it as not valid")
        return parts, weights


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
            worth = groups.rewards[bad[0]]
            raise ValueError(f"sample {bad[0]} has the reward {worth}; psr and nsr need [0, 1] (`transform` scales)")
        return np.where(groups.valid, self.right * groups.rewards + self.wrong * (groups.rewards - 1), 0.0)
