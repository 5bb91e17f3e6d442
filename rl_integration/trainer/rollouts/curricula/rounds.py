"""Tasks that get more answers than others: DARS and Reinforce-Ada.

DARS (arXiv 2508.13755): more samples for harder prompts, after a first round that says which they are.

Total samples of a prompt by its accuracy over the first n = 8, which they include:

| accuracy | 0 | up to 1/8 | up to 2/8 | up to 3/8 | above |
|---|---|---|---|---|---|
| `EVEN` | 32 | 18 | 11 | 9 | 8 |
| `HARD` | 48 | 24 | 12 | 9 | 8 |

Released code's two schedules; above 3/8 nothing is added.

Reinforce-Ada (`RLHFlow/Reinforce-Ada`): draw samples of a prompt in rounds until there is something to learn from.

A prompt gets up to 4 rounds of 8.  It is done when it has n/2 right answers and n/2 wrong ones (`balanced`), or one
right answer (`positive`); right means a reward above 0.7.  Of all that was drawn, n = 4 are trained on, n/2 of each
kind where there are as many, filled up with the other kind.  The advantage is the reward less the mean of all that was
drawn, so that picking does not move the baseline:

    A_i = r_i - mean of r over everything drawn

The first round is the run's own, `rollouts.num_generations` answers; the rounds after it are written when its scores
are there.

Not covered: DARS-B, which is the same with one update for the whole batch; the rounds themselves; a trainer asks `done`
after each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.options import check_between, check_choice, check_finite, check_whole
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import (
    Curriculum,
    PromptRecord,
    Setting,
    marks,
    random_of,
)


@dataclass(frozen=True, kw_only=True)
class Dars:
    """How many samples a prompt gets in all; see the module.

    Attributes:
        first: samples of the first round.
        totals: the totals for accuracies of 0, up to 1 / `first`, up to 2 / `first`, and so on.
    """

    first: int = 8
    totals: tuple[int, ...] = (32, 18, 11, 9)

    def __post_init__(self) -> None:
        check_whole("first", self.first, 1)
        for total in self.totals:
            check_whole("totals", total, self.first)

    def total(self, accuracy: float) -> int:
        """Return the samples for a prompt of this accuracy over the first round.

        Raises:
            ValueError: the accuracy is outside [0, 1].
        """
        check_between("accuracy", accuracy, 0.0, 1.0)
        for step, total in enumerate(self.totals):
            if accuracy <= step / self.first + 1e-9:  # sums of rewards are not exact
                return total
        return self.first

    def further(self, record: PromptRecord) -> int:
        """Return how many samples to draw after a first round; none where nothing could be judged."""
        judged = record.right + record.wrong
        return self.total(min(1.0, record.right / judged)) - self.first if judged > 0 else 0


EVEN = Dars()
HARD = Dars(totals=(48, 24, 12, 9))


Stop: TypeAlias = Literal["balanced", "positive"]


@dataclass(frozen=True, kw_only=True)
class ReinforceAda:
    """When to stop drawing, and what to keep; see the module.

    Attributes:
        keep: n, an even number.
        rounds: the most rounds.
        size: samples of each round.
        stop: when a prompt is done before.
        threshold: a reward above it is right.
    """

    keep: int = 4
    rounds: int = 4
    size: int = 8
    stop: Stop = "balanced"
    threshold: float = 0.7

    def __post_init__(self) -> None:
        check_whole("keep", self.keep, 2)
        if self.keep % 2:
            raise ValueError(f"keep={self.keep}; it must be even, half for right answers and half for wrong ones")
        check_whole("rounds", self.rounds, 1)
        check_whole("size", self.size, 1)
        check_choice("stop", self.stop, get_args(Stop))
        check_finite("threshold", self.threshold)

    def done(self, rewards: Sequence[float | None], rounds: int) -> bool:
        """Return whether a prompt needs no further round.

        Args:
            rewards: of all samples drawn so far; None where one could not be judged.
            rounds: how many rounds were drawn.
        """
        right = sum(reward is not None and reward > self.threshold for reward in rewards)
        wrong = sum(reward is not None and reward <= self.threshold for reward in rewards)
        enough = right >= 1 if self.stop == "positive" else min(right, wrong) >= self.keep // 2
        return enough or rounds >= self.rounds

    def pick(self, rewards: Sequence[float | None], random: np.random.Generator) -> tuple[Integers, Floats]:
        """Return places of the samples to train on, in order, and their advantages.

        Fewer than `keep` if fewer were judged; none if fewer than two were.
        """
        judged = np.array([place for place, reward in enumerate(rewards) if reward is not None], dtype=np.int64)
        values = np.array([reward for reward in rewards if reward is not None], dtype=np.float64)
        if len(judged) < 2:
            return judged[:0], values[:0]
        right = random.permutation(np.flatnonzero(values > self.threshold))
        wrong = random.permutation(np.flatnonzero(values <= self.threshold))
        rights = min(len(right), max(self.keep // 2, self.keep - len(wrong)))
        kept = np.sort(np.concatenate([right[:rights], wrong[: self.keep - rights]]))
        return judged[kept], values[kept] - values.mean()


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
