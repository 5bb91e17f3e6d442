"""What an advantage rule is.

Not covered: rules that need values of states (`advantages.gae`).
"""

from __future__ import annotations

from typing import Protocol

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.rewards.groups import Groups


class AdvantageRule(Protocol):
    """One number for each sample, from the rewards of all.

    A rule is a pure function with its options bound: the result depends on the groups alone, and not on their order.
    """

    @property
    def min_size(self) -> int:
        """How many valid members a group needs to take part: 2 where members are compared, otherwise 1."""
        ...

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages; 0 for samples that do not take part (`Groups.counted(min_size)`)."""
        ...
