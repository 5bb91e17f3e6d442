"""Only the best sample of a group counts: GRPO for pass@k (arXiv 2503.19595).

    A_best = (r_max - r_second) / (s + eps), all others 0

If two share the best reward nobody gets anything, so the order of samples does not matter.  verl's code divides by s
by default; without it (`scale=False`) the estimate is unbiased.

Not covered: pass@k for k below the group's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_flag, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class BestOfGroup:
    """r_max - r_second for the best sample; see the module.

    Attributes:
        scale: whether to divide by the group's standard deviation.
        eps: what is added to it.
    """

    scale: bool = True
    eps: float = 1e-6

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_flag("scale", self.scale)
        check_min("eps", self.eps, 0.0)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        best = groups.valid & (groups.rewards == groups.largest())
        alone = best & (groups.sums(best.astype(float)) == 1) & groups.counted(self.min_size)
        others = groups.largest(np.where(best, -np.inf, groups.rewards))
        lead = np.where(alone, groups.rewards - np.where(alone, others, 0.0), 0.0)
        return lead / (groups.deviations() + self.eps) if self.scale else lead
