"""Samples beside those that were made in the same way: stratified advantages, SAN (arXiv 2510.06214).

    A_i = a * (r_i - m_k) / (s_k + eps)  +  (1 - a) * (r_i - m) / (s + eps)

k is the stratum of sample i within its group, such as its number of searches: answers after one search compete with
each other and not with those after five.  A stratum of one valid member has no spread, and its member gets the group's
term alone.  The paper's a is not known to us; 0.7 is ours.

Not covered: how strata are chosen (`Groups.strata`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import GroupRelative
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_between, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class Stratified:
    """A mix of the stratum's advantage and the group's; see the module.

    Attributes:
        share: a, the weight of the stratum.
        eps: what is added to standard deviations.
    """

    share: float = 0.7
    eps: float = 1e-4

    min_size = 2

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_between("share", self.share, 0.0, 1.0)
        check_min("eps", self.eps, 0.0)

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
