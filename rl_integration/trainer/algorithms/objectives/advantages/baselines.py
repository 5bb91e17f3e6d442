"""Rewards above a shifted or soft mean of the group: AsymRE and OPMD, both made for samples of an older policy.

| rule | A_i | source |
|---|---|---|
| `Asymmetric` | r_i - (m + shift), shift = -0.1: right answers pull more than wrong ones push | arXiv 2506.20520 |
| `SoftMean` | r_i - tau * log mean exp(r / tau), above the mean for every tau | OPMD, Trinity-RFT |

OPMD's loss divides by 1 + tau (`losses.surrogates`).  Released code of AsymRE gives a sample that is alone in its group
the baseline 0; here it takes no part.

Not covered: OPMD with the mean as the baseline: that is `GroupRelative(scale="none")`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_above, check_finite
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class Asymmetric:
    """r - (m + shift).

    Attributes:
        shift: below 0 to learn less from what is worse than the mean.
    """

    shift: float = -0.1

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_finite("shift", self.shift)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages; a group of equal rewards has -shift throughout, as published."""
        return np.where(groups.counted(self.min_size), groups.rewards - groups.means() - self.shift, 0.0)


@dataclass(frozen=True, kw_only=True)
class SoftMean:
    """r - tau * log mean exp(r / tau).

    Attributes:
        tau: the temperature, in the unit of the reward.
    """

    tau: float = 1.0

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_above("tau", self.tau, 0.0)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        counted = groups.counted(self.min_size)
        largest = np.where(counted, groups.largest(), 0.0)  # exp of differences alone cannot overflow
        powers = np.exp(np.where(counted, groups.rewards - largest, 0.0) / self.tau)
        baseline = largest + self.tau * np.log(np.where(counted, groups.means(powers), 1.0))
        return np.where(counted, groups.rewards - baseline, 0.0)
