"""Rewards of several scorers, brought to one scale before or after they are mixed: GDPO (arXiv 2601.05242).

    before:  x_i = Σ_j w_j (r_ij - m_j) / (s_j + eps) in the group,  A_i = (x_i - mean of x) / (s_x + eps) in the batch
    after:   A_i = (x_i - m) / (s + eps) in the group,  x_i = Σ_j w_j r_ij

Normalising after lets the reward of the largest spread drown the others; normalising before gives each its weight, and
the batch's spread keeps the sum from growing with the number of rewards.  Both equal TRL's `normalize_then_sum` and
`sum_then_normalize` where every reward is there.  Where one is missing (NaN): before, that reward says nothing about
that sample, which is 0, the group's mean; after, a sum without it would be an invented 0, so it is an error.

Not covered: gates and other combinations that are no weighted sum (`adjudge.compose`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import GroupRelative, deviation
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_choice, check_finite, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups

When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, kw_only=True)
class SeveralRewards:
    """A weighted sum of `Groups.parts`; see the module.

    Attributes:
        weights: of the rewards by their names, which leaves out those that are not named; or one for each, in the order
            of their names; () weighs all 1.
        normalise: before or after mixing.
        eps: what is added to standard deviations.
    """

    weights: Sequence[float] | Mapping[str, float] = ()
    normalise: When = "before"
    eps: float = 1e-4

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("normalise", self.normalise, get_args(When))
        check_min("eps", self.eps, 0.0)
        for weight in self.weights.values() if isinstance(self.weights, Mapping) else self.weights:
            check_finite("weights", weight)

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: there are no parts, or others than the weights are for, or a valid sample lacks what is summed.
        """
        parts, weights = self._parts(groups)
        rule = GroupRelative(eps=self.eps)
        if self.normalise == "after":
            return rule(replace(groups, rewards=np.where(groups.valid, parts @ weights, 0.0)))
        total = np.zeros(len(groups))
        for part, weight in zip(parts.T, weights, strict=True):
            total += weight * rule(replace(groups, rewards=part, valid=groups.valid & ~np.isnan(part)))
        counted = groups.counted(self.min_size)
        if not counted.any():
            return total
        below = deviation(total[counted]) + self.eps
        return np.where(counted, (total - total[counted].mean()) / below if below > 0 else 0.0, 0.0)

    def _parts(self, groups: Groups) -> tuple[Floats, Floats]:
        """The rewards that are mixed, and their weights."""
        parts = groups.parts
        if parts is None:
            raise ValueError("this rule needs Groups(parts=...), a column for each reward: a scorer made of several")
        if isinstance(self.weights, Mapping) and self.weights:
            for name in self.weights:
                if name not in groups.names:
                    raise ValueError(f"there is no reward {name!r} to weigh; there are {', '.join(groups.names)}")
            parts = parts[:, [groups.names.index(name) for name in self.weights]]
            weights = np.array(list(self.weights.values()), dtype=np.float64)
        else:
            weights = np.array(self.weights or (1.0,) * parts.shape[1], dtype=np.float64)
        if len(weights) != parts.shape[1]:
            raise ValueError(f"there are {len(weights)} weights and {parts.shape[1]} rewards; give one each")
        missing = np.isnan(parts)
        lacking = missing.all(axis=1) if self.normalise == "before" else missing.any(axis=1)
        bad = np.flatnonzero(groups.valid & lacking)
        if len(bad):
            raise ValueError(f"sample {bad[0]} is valid and lacks a reward that is mixed; mark it as not valid")
        return parts, weights
