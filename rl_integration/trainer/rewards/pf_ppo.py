"""PF-PPO (arXiv 2409.06957): PPO on responses drawn from a group by how much their rewards can be trusted.

The policies are those of `adjudge.response_weights`.  verl's code looks for best and worst in the whole batch; the
paper and this in each prompt's group.  `adjudge data filter --rule pf_ppo` measures on labelled data which one to take.

Not covered: rewards of other scales than the reward model's for `power`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.response_weights import KEEPING, Keeping, response_weights
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.options import check_choice, check_min, check_whole
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class PfPpo:
    """Weights of responses, and draws by them; see the module.

    Attributes:
        policy: the rule.
        exponent: p of `power`.
    """

    policy: Keeping = "best_worst"
    exponent: float = 2.0

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("policy", self.policy, KEEPING)
        check_min("exponent", self.exponent, 0.0)

    def weights(self, groups: Groups) -> Floats:
        """Return (n,) the chance of each sample to be drawn from its group; 0 for samples that are not valid.

        The chances of a group sum to 1, or are all 0 where no member is valid.
        """
        found = np.zeros(len(groups))
        found[groups.valid] = response_weights(
            groups.rewards[groups.valid], groups.ids[groups.valid], self.policy, exponent=self.exponent
        )
        return found

    def draw(self, groups: Groups, count: int | None, random: np.random.Generator) -> Integers:
        """Return places of samples, by group, drawn with replacement.

        Args:
            groups: the samples.
            count: how many of each group with a valid member; None for as many as it has members, valid or not.
            random: where they are drawn from.
        """
        if count is not None:
            check_whole("count", count, 1)
        weights = self.weights(groups)
        found = [np.zeros(0, dtype=np.int64)]
        for group in np.unique(groups.ids[groups.valid]):
            rows = np.flatnonzero(groups.ids == group)
            found.append(
                random.choice(rows, size=len(rows) if count is None else count, p=weights[rows] / weights[rows].sum())
            )
        return np.concatenate(found)
