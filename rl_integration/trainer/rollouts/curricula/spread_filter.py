"""Groups that are left out of a batch since their rewards hardly differ.

| rule | a group is kept if its standard deviation is | source |
|---|---|---|
| `least_spread(groups, 0.05)` | at least 0.05 | ReST-RL: ReST-GRPO |
| `SpreadFilter` | at least beta times a moving average of the batches' mean deviation | RLPR |

Dropping groups of equal rewards alone is `objectives.resampling.informative`.  RLPR takes beta 0.5 for Qwen, 0.9 for
Llama and 1 for Gemma, starts the average at step 6 and the filter at step 11.  A batch is measured against the average
of those before it, so that it does not set its own bar.

A group with fewer than two valid members has no deviation: it is never kept, and does not enter the average.

Not covered: filling the batch up again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Bools
from adjudge.rl_integration.trainer.contract.options import check_between, check_min, check_whole
from adjudge.rl_integration.trainer.rewards.groups import Groups


def least_spread(groups: Groups, min_std: float = 0.05) -> Bools:
    """Return (n,) whether each sample's group has at least this standard deviation."""
    check_min("min_std", min_std, 0.0)
    return np.logical_and(groups.counts() >= 2, groups.deviations() >= min_std)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadAverage:
    """What `SpreadFilter` remembers from batch to batch.

    Attributes:
        batches: how many it has seen.
        spread: the moving average; None before it starts.
    """

    batches: int = 0
    spread: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpreadFilter:
    """RLPR's filter; see the module.  Batches count from 1.

    Attributes:
        beta: the share of the average that a group needs.
        decay: what of the average stays with each batch, in [0, 1].
        first_average: the batch from which on the average is taken.
        first_filter: the batch from which on groups are left out.
    """

    beta: float = 0.5
    decay: float = 0.99
    first_average: int = 6
    first_filter: int = 11

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_min("beta", self.beta, 0.0)
        check_between("decay", self.decay, 0.0, 1.0)
        check_whole("first_average", self.first_average, 1)
        check_whole("first_filter", self.first_filter, self.first_average + 1)

    def __call__(self, groups: Groups, average: SpreadAverage) -> tuple[Bools, SpreadAverage]:
        """Return (n,) whether each sample's group is kept, and what to remember."""
        known = groups.counts() >= 2
        spreads = groups.deviations()
        firsts = np.unique(groups.ids[known], return_index=True)[1]
        batch = average.batches + 1
        bar = average.spread if batch >= self.first_filter else None
        kept = known if bar is None else known & (spreads >= self.beta * bar)
        spread = average.spread
        if batch >= self.first_average and len(firsts):
            mean = float(spreads[known][firsts].mean())
            spread = mean if spread is None else self.decay * spread + (1 - self.decay) * mean
        return kept, SpreadAverage(batches=batch, spread=spread)
