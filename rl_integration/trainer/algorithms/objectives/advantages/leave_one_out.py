"""A sample's reward beside the mean of the others in its group: RLOO (arXiv 2402.14740), LOOP (arXiv 2502.01600).

    A_i = r_i - mean of r_j, j != i  =  n / (n - 1) * (r_i - m)

RLOO takes one ratio for the whole response and LOOP one for each token; both take PPO's clipping.  TRL's
`normalize_advantages` then subtracts the mean of all advantages and divides by their standard deviation + 1e-4.

Not covered: the penalty for leaving the reference policy, which RLOO subtracts from the reward (`shaping`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import deviation
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_flag, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """r - mean of the others' rewards; see the module.

    Attributes:
        normalise: whether the advantages of the batch are brought to mean 0 and standard deviation 1.
        eps: what is added to that standard deviation.
    """

    normalise: bool = False
    eps: float = 1e-4

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_flag("normalise", self.normalise)
        check_min("eps", self.eps, 0.0)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages."""
        counted = groups.counted(self.min_size)
        counts = groups.counts()
        informed = counted & ~groups.uniform()
        found = np.where(informed, counts / np.maximum(counts - 1, 1) * (groups.rewards - groups.means()), 0.0)
        if not self.normalise or not counted.any():
            return found
        below = deviation(found[counted]) + self.eps
        return np.where(counted, (found - found[counted].mean()) / below if below > 0 else 0.0, 0.0)
