"""What of a batch is learnt from: groups with some spread (DAPO, ReST-GRPO, RLPR), and PF-PPO's draws.

Not covered: the rules (`objectives.resampling`, `prompts.filters`, `prompts.pf_ppo`), and ReST-GRPO's prompts that
begin with a part of the best answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from adjudge.response_weights import Keeping
from adjudge.rl_integration.trainer.contract.arrays import Bools, Integers
from adjudge.rl_integration.trainer.contract.options import check_flag, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rewards.pf_ppo import PfPpo
from adjudge.rl_integration.trainer.rewards.resampling import informative
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Filter, Setting, random_of
from adjudge.rl_integration.trainer.rollouts.curricula.spread_filter import SpreadAverage, SpreadFilter, least_spread


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
        """Reject what cannot be meant."""
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
        """Reject what cannot be meant."""
        check_min("min_std", self.min_std, 0.0)
        check_flag("refill", self.refill)

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=GroupFilter(lambda groups: least_spread(groups, self.min_std), refills=self.refill))


@dataclass(frozen=True, kw_only=True)
class RlprRule:
    """RLPR's filter (`OpenBMB/RLPR`): groups of less spread than a share of the usual are dropped.

    Attributes:
        beta: that share; the paper takes 0.5 for Qwen, 0.9 for Llama and 1 for Gemma.
        decay: what of the moving average stays with each batch.
        first_average: the batch from which on the average is taken, counted from 1.
        first_filter: the batch from which on groups are dropped.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    beta: float = 0.5
    decay: float = 0.99
    first_average: int = 6
    first_filter: int = 11
    refill: bool = False

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_flag("refill", self.refill)
        self._rule()

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=MovingFilter(self._rule(), refills=self.refill))

    def _rule(self) -> SpreadFilter:
        return SpreadFilter(
            beta=self.beta, decay=self.decay, first_average=self.first_average, first_filter=self.first_filter
        )


@dataclass(frozen=True, kw_only=True)
class PfPpoRule:
    """PF-PPO (arXiv 2409.06957): answers drawn anew by how much their scores can be trusted.

    Attributes:
        policy: "best", "best_random", "best_worst" or "power".
        exponent: of `power`.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"filter"})

    policy: Keeping = "best_worst"
    exponent: float = 2.0

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        self._rule()

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=DrawnFilter(self._rule(), seed=setting.seed))

    def _rule(self) -> PfPpo:
        return PfPpo(policy=self.policy, exponent=self.exponent)


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
