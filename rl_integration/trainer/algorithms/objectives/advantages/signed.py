"""Learning from right answers and from wrong ones with weights of their own: PSR, NSR, W-REINFORCE (arXiv 2506.01347).

    A_i = right * r_i + wrong * (r_i - 1),   r in [0, 1]

| objective | right | wrong |
|---|---|---|
| positive sample reinforcement | 1 | 0 |
| negative sample reinforcement: keeps pass@k up to 256 | 0 | 1 |
| W-REINFORCE | 0.1 | 1 |

Nothing is compared within a group, so a single sample takes part.

Not covered: rewards outside [0, 1]; `adjudge.compose` brings them there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.options import check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class Signed:
    """right * r + wrong * (r - 1); see the module.

    Attributes:
        right: weight of right answers.
        wrong: weight of wrong ones.
    """

    right: float = 1.0
    wrong: float = 1.0

    min_size = 1

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_min("right", self.right, 0.0)
        check_min("wrong", self.wrong, 0.0)
        if self.right == self.wrong == 0:
            raise ValueError("right=0 and wrong=0; one must be above 0, or nothing is learned")

    def __call__(self, groups: Groups) -> Floats:
        """Return (n,) advantages.

        Raises:
            ValueError: a valid reward is outside [0, 1].
        """
        bad = np.flatnonzero((groups.rewards < 0) | (groups.rewards > 1))
        if len(bad):
            raise ValueError(f"sample {bad[0]} has the reward {groups.rewards[bad[0]]}; this rule needs [0, 1]")
        return np.where(groups.valid, self.right * groups.rewards + self.wrong * (groups.rewards - 1), 0.0)
