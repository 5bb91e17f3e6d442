"""A sample's reward beside its group's mean: GRPO, Dr.GRPO, Lite PPO.

    A_i = (r_i - m) / (s + eps)

| objective | s | where |
|---|---|---|
| GRPO (arXiv 2402.03300), DAPO, GSPO, CISPO | standard deviation of the group | `scale="group"` |
| Lite PPO (arXiv 2508.08221) | of the batch: a group of nearly equal rewards is not blown up | `scale="batch"` |
| Dr.GRPO (arXiv 2503.20783) | none: A = r - m | `scale="none"` |

Standard deviations have n - 1 below.  eps stands beside s, not inside a root: 1e-4 as in TRL, 1e-6 in verl.  With one
valid member verl keeps the raw reward; here, as in TRL, it gets 0.

Not covered: rewards of several scorers (`several_rewards`), strata (`stratified`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_choice, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups

Scale: TypeAlias = Literal["group", "batch", "none"]


@dataclass(frozen=True, kw_only=True)
class GroupRelative:
    """(r - m) / (s + eps); see the module.

    Attributes:
        scale: whose standard deviation s is.
        eps: what is added to s; 0 or more.
    """

    scale: Scale = "group"
    eps: float = 1e-4

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("scale", self.scale, get_args(Scale))
        check_min("eps", self.eps, 0.0)

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
        found: Floats = centred / np.where(below > 0, below, 1.0)
        return found


def deviation(values: Floats) -> float:
    """Return the standard deviation with n - 1 below; 0 for fewer than two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
