"""MaxRL (arXiv 2602.02710): the gradient of the log of the pass rate, so that hard prompts weigh more.

    A_i = (r_i - m) / (m + eps)

With rewards 0 and 1 a success then weighs about 1 / pass rate.  `order=T` follows the first T terms of the series of
log p instead, for rewards 0 and 1 alone, with F failures of N samples:

    success: 1        failure: -Σ_{k=2..min(T, F)} Π_{j=1..k-1} (F - j) / (N - j)

These are N times the released code's weights, which it sums over samples where we take the mean.  T = 1 is plain
REINFORCE; a group without success gives 0 in the first form and is pushed away from in the second.

Not covered: the leave-one-out and cross-fitted forms of the series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_min, check_whole
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihood:
    """(r - m) / (m + eps), or the series of order T; see the module.

    Attributes:
        order: T; None for the closed form.
        eps: what is added to the mean in the closed form.
    """

    order: int | None = None
    eps: float = 1e-6

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if self.order is not None:
            check_whole("order", self.order, 1)
        check_min("eps", self.eps, 0.0)

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
