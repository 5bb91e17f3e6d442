"""Tasks that get more answers than others: DARS and Reinforce-Ada.

The first round is the run's own, `rollouts.num_generations` answers; the rounds after it are written when its scores
are there.

Not covered: the rules (`prompts.dars`, `prompts.reinforce_ada`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Integers
from adjudge.rl_integration.trainer.contract.options import check_finite
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting, marks, random_of
from adjudge.rl_integration.trainer.rollouts.curricula.dars import Dars
from adjudge.rl_integration.trainer.rollouts.curricula.record import PromptRecord
from adjudge.rl_integration.trainer.rollouts.curricula.reinforce_ada import ReinforceAda, Stop


@dataclass(frozen=True, kw_only=True)
class DarsRule:
    """DARS (arXiv 2508.13755): one more round for hard tasks.

    Attributes:
        totals: answers in all for accuracies of 0, up to 1 / n, up to 2 / n, and so on, n being
            `rollouts.num_generations`.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"rounds"})

    totals: tuple[int, ...] = (32, 18, 11, 9)
    right_above: float | None = None

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        Dars(first=1, totals=self.totals)
        if self.right_above is not None:
            check_finite("right_above", self.right_above)

    def made(self, setting: Setting) -> Curriculum:
        """Return the rounds.

        Raises:
            ValueError: a total is less than a group.
        """
        if min(self.totals, default=setting.num_generations) < setting.num_generations:
            raise ValueError(
                f"dars gives a task {min(self.totals)} answers in all, and the first round has "
                f"{setting.num_generations} (rollouts.num_generations); raise the curriculum's option "
                "totals, or lower rollouts.num_generations"
            )
        return Curriculum(
            rounds=_Dars(rule=Dars(first=setting.num_generations, totals=self.totals), right_above=self.right_above)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dars:
    rule: Dars
    right_above: float | None

    def further(self, values: Sequence[float | None], rounds: int) -> int:
        judged = [value for value in marks(values, self.right_above) if value is not None]
        if rounds > 1:
            return 0
        right = sum(judged)
        return self.rule.further(PromptRecord(seen=len(judged), right=right, wrong=len(judged) - right))


@dataclass(frozen=True, kw_only=True)
class ReinforceAdaRule:
    """Reinforce-Ada (`RLHFlow/Reinforce-Ada`): rounds until there is something to learn from, then a balanced pick.

    Means are those of all that was drawn, as in the paper: what is not picked still has a vote.

    Attributes:
        keep: answers to a task that are learnt from, an even number.
        max_rounds: the most rounds of `rollouts.num_generations` answers.
        stop: when a task is done before: "balanced" or "positive".
        right_above: a score above it is right.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"rounds", "filter"})

    keep: int = 4
    max_rounds: int = 4
    stop: Stop = "balanced"
    right_above: float = 0.7

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        self._rule(1)

    def made(self, setting: Setting) -> Curriculum:
        """Return the rounds and the pick."""
        rule = self._rule(setting.num_generations)
        return Curriculum(rounds=_Ada(rule=rule), filter=AdaPick(rule, seed=setting.seed))

    def _rule(self, size: int) -> ReinforceAda:
        return ReinforceAda(
            keep=self.keep, rounds=self.max_rounds, size=size, stop=self.stop, threshold=self.right_above
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ada:
    rule: ReinforceAda

    def further(self, values: Sequence[float | None], rounds: int) -> int:
        judged = any(value is not None for value in values)  # else nothing says that further answers would be
        return self.rule.size if judged and not self.rule.done(values, rounds) else 0


class AdaPick:
    """A balanced pick from each group.

    Args:
        rule: what is picked.
        seed: of the pick.
    """

    refills = False

    def __init__(self, rule: ReinforceAda, *, seed: int) -> None:
        self._rule = rule
        self._seed = seed
        self._batches = 0

    def copies(self, groups: Groups) -> Integers:
        """Return 1 for what is picked, and 0 for the rest."""
        found = np.zeros(len(groups), dtype=np.int64)
        for group in np.unique(groups.ids):
            rows = np.flatnonzero(groups.ids == group)
            values = [float(groups.rewards[row]) if groups.valid[row] else None for row in rows]
            places, _ = self._rule.pick(values, random_of(self._seed, self._batches, int(group)))
            found[rows[places]] = 1
        self._batches += 1
        return found

    def state(self) -> dict[str, Any]:
        """Return how many batches it has seen."""
        return {"batches": self._batches}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._batches = state["batches"]
