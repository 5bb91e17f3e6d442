"""PF-PPO (arXiv 2409.06957): PPO on responses drawn from a group by how much their rewards can be trusted.

| policy | weight of a response | when rewards are trustworthy |
|---|---|---|
| `best` | 1 for the best, 0 for the rest | at the top |
| `best_random` | 0.4 for the best, 0.1 for each other | at the top, with some noise |
| `best_worst` | 1 for the best and the worst, 0 for the rest | at both ends |
| `power` | |r|^p, p = 2 | far from 0 |

Equal bests share their weight, and so do equal worsts.  Take the policy whose kept samples' rewards have the largest R²
with a true score.  verl's code looks for best and worst in the whole batch; the paper and this in each prompt's group.

Not covered: the model of that R², and rewards of other scales than the reward model's for `power`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.objectives.arrays import Floats, Integers
from adjudge.rl_integration.trainer.objectives.groups import Groups
from adjudge.rl_integration.trainer.objectives.options import check_choice, check_least, check_whole

Keeping: TypeAlias = Literal["best", "best_random", "best_worst", "power"]


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
        check_choice("policy", self.policy, get_args(Keeping))
        check_least("exponent", self.exponent, 0.0)

    def weights(self, groups: Groups) -> Floats:
        """Return (n,) the chance of each sample to be drawn from its group; 0 for samples that are not valid.

        The chances of a group sum to 1, or are all 0 where no member is valid.
        """
        best = self._share(groups, groups.rewards == groups.largest())
        match self.policy:
            case "best":
                raw = best
            case "best_random":
                others = groups.valid & (best == 0)
                raw = 0.4 * best + 0.1 * others
            case "best_worst":
                raw = best + self._share(groups, groups.rewards == -groups.largest(-groups.rewards))
            case "power":
                raw = np.where(groups.valid, np.abs(groups.rewards) ** self.exponent, 0.0)
        total = groups.sums(raw)
        even = groups.valid / np.maximum(groups.counts(), 1)  # all powers 0: nothing to prefer
        return np.where(total > 0, raw / np.where(total > 0, total, 1.0), even)

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

    def _share(self, groups: Groups, which: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
        """1 for each group, shared by the valid samples that are meant."""
        chosen = np.where(groups.valid & which, 1.0, 0.0)
        found: Floats = chosen / np.maximum(groups.sums(chosen), 1)
        return found
