"""DAPO's dynamic sampling (arXiv 2503.14476): groups from which nothing can be learned are drawn anew.

A group of equal rewards gives no gradient to an advantage that is relative to the group; neither does one with fewer
than two valid members.  DAPO drops both kinds and samples further prompts until the batch is full.

Not covered: how often to try; the trainer bounds that.
"""

from __future__ import annotations

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Bools
from adjudge.rl_integration.trainer.rewards.groups import Groups


def informative(groups: Groups, *, spread: float = 0.0) -> Bools:
    """Return (n,) whether the sample's group is worth keeping; all members of a group have the same.

    Args:
        groups: the samples; by default verifiers' 0 and 1 are meant, and any two different rewards will do.
        spread: the difference of the best and the worst reward that is needed; a group at it is not kept.
    """
    known = groups.counts() >= 2
    largest = np.where(known, groups.largest(), 0.0)
    smallest = np.where(known, -groups.largest(-groups.rewards), 0.0)
    kept: Bools = known & (largest - smallest > spread)
    return kept
