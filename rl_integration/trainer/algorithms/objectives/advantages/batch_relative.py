"""A sample's reward beside the whole batch: REINFORCE with a batch baseline, REINFORCE++ (arXiv 2501.03262).

    x_i = r_i, or r_i - m of its group (`baseline="group"`)
    A_i = (x_i - mean of x) / sqrt(variance of x + 1e-8)

| objective | baseline | scale |
|---|---|---|
| REINFORCE, mean baseline | none | no |
| REINFORCE++ | none | yes |
| REINFORCE++ with baseline | group | yes |

Released code (verl) takes mean and variance over response tokens, so a long response has a larger vote:
`per_token=True` with `Groups.lengths` does that.  With one sample in a group verl's baseline is 0, so its raw reward
enters; here it takes no part.  Variances have n - 1 below.

Not covered: discounting and token rewards; REINFORCE++ with a penalty in the reward is `shaping` first, then this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_choice, check_flag, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups

Baseline: TypeAlias = Literal["none", "group"]


@dataclass(frozen=True, kw_only=True)
class BatchRelative:
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
    eps: float = 1e-8

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_flag("scale", self.scale)
        check_flag("per_token", self.per_token)
        check_choice("baseline", self.baseline, get_args(Baseline))
        check_min("eps", self.eps, 0.0)

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
