"""What of a batch is learnt from: groups with some spread (DAPO, ReST-GRPO, RLPR), and PF-PPO's draws.

Groups that are left out of a batch since their rewards hardly differ.

| rule | a group is kept if its standard deviation is | source |
|---|---|---|
| `min_spread(groups, 0.05)` | at least 0.05 | ReST-RL: ReST-GRPO |
| `SpreadFilter` | at least beta times a moving average of the batches' mean deviation | RLPR |

Dropping groups of equal rewards alone is `groups.informative`.  RLPR takes beta 0.5 for Qwen, 0.9 for
Llama and 1 for Gemma, starts the average at step 6 and the filter at step 11.  A batch is measured against the average
of those before it, so that it does not set its own bar.

A group with fewer than two valid members has no deviation: it is never kept, and does not enter the average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Bools, Integers
from adjudge.rl_integration.trainer.contract.options import check_between, check_flag, check_min, check_whole
from adjudge.rl_integration.trainer.rewards.groups import Groups, PfPpo, informative
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Filter, Setting, random_of


def min_spread(groups: Groups, min_std: float = 0.05) -> Bools:
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


class GroupFilter:
    """Keeps whole groups by a rule that looks at one batch.

    Args:
        rule: which samples' groups are kept.
        refills: whether further batches are drawn for the others.
    """

    def __init__(self, rule: Callable[[Groups], Bools], *, refills: bool) -> None:
        self._rule = rule
        self.refills = refills

    def copies(self, groups: Groups) -> Integers:
        """Return 1 in groups that are kept, and 0 in the others."""
        return self._rule(groups).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return nothing: it remembers nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Do nothing."""


class MovingFilter:
    """Keeps whole groups by RLPR's moving average.

    Args:
        rule: its options.
        refills: whether further batches are drawn for the others.
    """

    def __init__(self, rule: SpreadFilter, *, refills: bool) -> None:
        self._rule = rule
        self._average = SpreadAverage()
        self.refills = refills

    def copies(self, groups: Groups) -> Integers:
        """Return 1 in groups that are kept, and 0 in the others."""
        kept, self._average = self._rule(groups, self._average)
        return kept.astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return the moving average."""
        return asdict(self._average)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._average = SpreadAverage(**state)


class DrawnFilter:
    """Draws as many answers of each group as it has, with replacement, by PF-PPO's weights.

    Args:
        rule: the weights.
        seed: of the draws.
    """

    refills = False

    def __init__(self, rule: PfPpo, *, seed: int) -> None:
        self._rule = rule
        self._seed = seed
        self._batches = 0

    def copies(self, groups: Groups) -> Integers:
        """Return how often each answer was drawn."""
        drawn = self._rule.draw(groups, None, random_of(self._seed, self._batches))
        self._batches += 1
        return np.bincount(drawn, minlength=len(groups)).astype(np.int64)

    def state(self) -> dict[str, Any]:
        """Return how many batches it has seen."""
        return {"batches": self._batches}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._batches = state["batches"]


@dataclass(frozen=True, kw_only=True)
class ZeroVarianceRule:
    """DAPO's dynamic sampling (arXiv 2503.14476): groups of equal scores are dropped and drawn anew.

    Attributes:
        spread: the difference of the best and the worst score that a group must exceed.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    spread: float = 0.0
    refill: bool = True

    def __post_init__(self) -> None:
        check_min("spread", self.spread, 0.0)
        check_flag("refill", self.refill)

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(
            filter=GroupFilter(lambda groups: informative(groups, spread=self.spread), refills=self.refill)
        )


@dataclass(frozen=True, kw_only=True)
class RestGrpoRule:
    """ReST-GRPO's filter (`THUDM/ReST-RL`): groups of little spread are dropped.

    Attributes:
        min_std: the standard deviation that a group needs.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    min_std: float = 0.05
    refill: bool = False

    def __post_init__(self) -> None:
        check_min("min_std", self.min_std, 0.0)
        check_flag("refill", self.refill)

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=GroupFilter(lambda groups: min_spread(groups, self.min_std), refills=self.refill))


@dataclass(frozen=True, kw_only=True)
class RlprRule(SpreadFilter):
    """RLPR's filter (`OpenBMB/RLPR`): groups of less spread than a share of the usual are dropped.

    Attributes:
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    refill: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("refill", self.refill)

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=MovingFilter(self, refills=self.refill))


@dataclass(frozen=True, kw_only=True)
class PfPpoRule(PfPpo):
    """PF-PPO (arXiv 2409.06957): answers drawn anew by how much their scores can be trusted."""

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=DrawnFilter(self, seed=setting.seed))


def both(first: Filter | None, second: Filter | None) -> Filter | None:
    """Return a filter that keeps what both keep; where either is None, the other."""
    if first is None or second is None:
        return first or second
    return _Both(first, second)


class _Both:
    """Keeps what two filters keep, as often as the first says."""

    def __init__(self, first: Filter, second: Filter) -> None:
        self._filters = (first, second)
        self.refills = first.refills or second.refills

    def copies(self, groups: Groups) -> Integers:
        first, second = (one.copies(groups) for one in self._filters)
        return np.where(second > 0, first, 0)

    def state(self) -> dict[str, Any]:
        return {str(place): one.state() for place, one in enumerate(self._filters)}

    def restore(self, state: Mapping[str, Any]) -> None:
        for place, one in enumerate(self._filters):
            one.restore(state[str(place)])
