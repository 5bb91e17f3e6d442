"""Prompts near a wanted pass rate, chosen before anything is sampled: MoPPS and PCL.

| rule | estimate of the pass rate | source |
|---|---|---|
| `Mopps` | one draw from Beta(a + right, b + wrong) for each candidate | MoPPS, arXiv 2507.04632 |
| `nearest` | any estimates, such as a value model's of the prompt alone (`prompt_value`) | PCL, arXiv 2510.01135 |

Both take the candidates nearest to 0.5, MoPPS of 16 for each place and PCL of four.  A draw instead of the mean keeps
uncertain prompts in play.  On some data MoPPS forgets: `Record(memory=0.5)`.

Not covered: which prompts are candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, floats
from adjudge.rl_integration.trainer.contract.options import check_above, check_between, check_whole
from adjudge.rl_integration.trainer.rollouts.curricula.record import Record


def nearest(estimates: Floats, count: int, *, target: float = 0.5) -> Integers:
    """Return the places of the candidates whose estimates are nearest to the target, nearest first.

    Args:
        estimates: (n,) pass rates.
        count: how many are wanted; all if there are no more.
        target: the wanted pass rate, in [0, 1].

    Raises:
        ValueError: an estimate is not finite, or an option is out of range.
    """
    check_whole("count", count, 0)
    check_between("target", target, 0.0, 1.0)
    estimates = floats("estimates", estimates)
    if not np.isfinite(estimates).all():
        raise ValueError("an estimate of a pass rate is not finite; leave that prompt out")
    return np.argsort(np.abs(estimates - target), kind="stable")[:count]


@dataclass(frozen=True, kw_only=True)
class Mopps:
    """Thompson sampling of prompts; see the module.

    Attributes:
        target: the wanted pass rate.
        prior: a and b of the Beta distribution of prompts that were never seen.
    """

    target: float = 0.5
    prior: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_between("target", self.target, 0.0, 1.0)
        for value in self.prior:
            check_above("prior", value, 0.0)

    def estimates(self, record: Record, candidates: Sequence[str], random: np.random.Generator) -> Floats:
        """Return one draw from each candidate's distribution of pass rates."""
        known = [record.prompt(name) for name in candidates]
        right = np.array([self.prior[0] + one.right for one in known])
        wrong = np.array([self.prior[1] + one.wrong for one in known])
        return random.beta(right, wrong)

    def means(self, record: Record, candidates: Sequence[str]) -> Floats:
        """Return the mean of each candidate's distribution."""
        known = [record.prompt(name) for name in candidates]
        return np.array([(self.prior[0] + one.right) / (sum(self.prior) + one.right + one.wrong) for one in known])

    def select(self, record: Record, candidates: Sequence[str], count: int, random: np.random.Generator) -> list[str]:
        """Return so many of the candidates, those whose draws are nearest to the target first."""
        places = nearest(self.estimates(record, candidates, random), count, target=self.target)
        return [candidates[int(place)] for place in places]
