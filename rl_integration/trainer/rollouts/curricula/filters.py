"""What of a batch is learnt from (DAPO, ReST-GRPO, RLPR, PF-PPO), and tasks that get more answers (DARS, Ada).

| curriculum | what is learnt from | source |
|---|---|---|
| `ZeroVariance` | groups whose rewards differ (`groups.informative`) | DAPO, arXiv 2503.14476 |
| `RestGrpo` | groups whose standard deviation is at least 0.05 | `THUDM/ReST-RL` |
| `Rlpr` | at least beta times a moving average of the batches' mean deviation | `OpenBMB/RLPR` at 8490fca |
| `PfPpo` | responses drawn from a group by how much their rewards can be trusted | PF-PPO, arXiv 2409.06957 |

RLPR takes beta 0.5 for Qwen, 0.9 for Llama and 1 for Gemma.  A batch is measured against the average of those before
it, which begins, as in the released code, as the plain mean of the batches that were only watched.  verl's code of
PF-PPO looks for best and worst in the whole batch; the paper and this in each prompt's group.

The first round is the run's own, `rollouts.num_generations` answers; the rounds after it are written when its scores
are there.  DARS (arXiv 2508.13755) has one more, by the accuracy over the first n = 8; total samples, which include
these, in the released code's two schedules:

| accuracy | 0 | up to 1/8 | up to 2/8 | up to 3/8 | above |
|---|---|---|---|---|---|
| `dars` | 32 | 18 | 11 | 9 | 8 |
| `dars_hard` | 48 | 24 | 12 | 9 | 8 |

Reinforce-Ada (`RLHFlow/Reinforce-Ada`): up to 4 rounds of 8, until a prompt has n/2 right answers and n/2 wrong ones
(`balanced`), or one right answer (`positive`).  n = 4 are trained on, n/2 of each kind where there are as many; what is
not picked still has a vote in the group's mean, so that picking does not move the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from adjudge.options import Count, Options, Range, Share
from adjudge.response_weights import Keeping, response_weights
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, Integers, check_number
from adjudge.rl_integration.trainer.rewards.groups import Groups, informative
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Filter, Setting, marks, random_of

_FILTER = frozenset({"filter"})


@dataclass(frozen=True, kw_only=True)
class ZeroVariance(Options):
    """DAPO's dynamic sampling: groups of equal scores are dropped and drawn anew.

    Attributes:
        spread: the difference of the best and the worst score that a group must exceed.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = _FILTER

    spread: Annotated[float, Range(ge=0)] = 0.0
    refill: bool = True

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(
            filter=Filter(lambda groups, memory: informative(groups, spread=self.spread), refills=self.refill)
        )


@dataclass(frozen=True, kw_only=True)
class RestGrpo(Options):
    """ReST-GRPO's filter: groups of little spread are dropped.

    Attributes:
        min_std: the standard deviation that a group needs.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = _FILTER

    min_std: Annotated[float, Range(ge=0)] = 0.05
    refill: bool = False

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=Filter(lambda groups, memory: self.kept(groups), refills=self.refill))

    def kept(self, groups: Groups) -> Bools:
        """Return (n,) whether each sample's group is kept."""
        return np.logical_and(groups.counts() >= 2, groups.deviations() >= self.min_std)


@dataclass(frozen=True, kw_only=True)
class Rlpr(Options):
    """RLPR's filter: groups of less spread than a share of the usual are dropped.  Batches count from 1.

    Attributes:
        beta: the share of the average that a group needs.
        decay: what of the average stays with each batch, in [0, 1].
        first_average: the batch from which on deviations are watched; the average begins as their mean.
        first_filter: the batch from which on groups are left out.
        refill: whether further batches are drawn, up to `rollouts.max_num_gen_batches`.
    """

    parts: ClassVar[frozenset[str]] = _FILTER

    beta: Annotated[float, Range(ge=0)] = 0.5
    decay: Share = 0.99
    first_average: Count = 6
    first_filter: int = 11
    refill: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("first_filter", self.first_filter, Range(ge=self.first_average + 1), whole=True)

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=Filter(self.kept, refills=self.refill))

    def kept(self, groups: Groups, memory: dict[str, Any]) -> Bools:
        """Return (n,) whether each sample's group is kept.

        Args:
            groups: a batch.
            memory: {} before the first batch; it counts "batches", and has the mean deviations of those "watched", and
                the average "spread", None before `first_filter`.
        """
        known = groups.counts() >= 2
        spreads = groups.deviations()
        firsts = np.unique(groups.ids[known], return_index=True)[1]
        batch, watched = memory.get("batches", 0) + 1, memory.get("watched", [])
        spread = memory.get("spread")
        if batch >= self.first_filter and spread is None and watched:
            watched, spread = [], sum(watched) / len(watched)
        kept = known if spread is None else known & (spreads >= self.beta * spread)
        if batch >= self.first_average and len(firsts):
            mean = float(spreads[known][firsts].mean())
            if spread is None:
                watched = [*watched, mean]
            else:
                spread = self.decay * spread + (1 - self.decay) * mean
        memory.update(batches=batch, watched=watched, spread=spread)
        return kept


@dataclass(frozen=True, kw_only=True)
class PfPpo(Options):
    """PF-PPO: as many answers of each group as it has, drawn with replacement by how far their scores can be trusted.

    Attributes:
        policy: the rule.
        exponent: p of `power`, which is for rewards in the scale of the reward model's.
    """

    parts: ClassVar[frozenset[str]] = _FILTER

    policy: Keeping = "best_worst"
    exponent: Annotated[float, Range(ge=0)] = 2.0

    def made(self, setting: Setting) -> Curriculum:
        """Return the filter."""
        return Curriculum(filter=Filter(partial(self.copies, setting.seed)))

    def weights(self, groups: Groups) -> Floats:
        """Return (n,) the chance of each sample to be drawn from its group; 0 for samples that are not valid.

        The chances of a group sum to 1, or are all 0 where no member is valid.
        """
        weights = np.zeros(len(groups))
        weights[groups.valid] = response_weights(
            groups.rewards[groups.valid], groups.ids[groups.valid], self.policy, exponent=self.exponent
        )
        return weights

    def draw(self, groups: Groups, count: int | None, random: np.random.Generator) -> Integers:
        """Return places of samples, by group, drawn with replacement.

        Args:
            groups: the samples.
            count: how many of each group with a valid member; None for as many as it has members, valid or not.
            random: where they are drawn from.
        """
        if count is not None:
            check_number("count", count, Range(ge=1), whole=True)
        weights = self.weights(groups)
        drawn = [np.zeros(0, dtype=np.int64)]
        for group in np.unique(groups.ids[groups.valid]):
            rows = np.flatnonzero(groups.ids == group)
            drawn.append(
                random.choice(rows, size=len(rows) if count is None else count, p=weights[rows] / weights[rows].sum())
            )
        return np.concatenate(drawn)

    def copies(self, seed: int, groups: Groups, memory: dict[str, Any]) -> Integers:
        """Return how often each answer was drawn; the memory counts batches."""
        batch = memory.get("batches", 0)
        memory["batches"] = batch + 1
        return np.bincount(self.draw(groups, None, random_of(seed, batch)), minlength=len(groups))


@dataclass(frozen=True, kw_only=True)
class Dars(Options):
    """DARS: one more round for hard tasks; see the module.

    Attributes:
        totals: answers in all for accuracies of 0, up to 1 / n, up to 2 / n, and so on, n being
            `rollouts.num_generations`.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"rounds"})

    totals: tuple[int, ...] = (32, 18, 11, 9)
    right_above: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for total in self.totals:
            check_number("totals", total, Range(ge=1), whole=True)

    def made(self, setting: Setting) -> Curriculum:
        """Return the rounds.

        Raises:
            ValueError: a total is less than a group.
        """
        first = setting.num_generations
        if min(self.totals, default=first) < first:
            raise ValueError(
                f"dars gives a task {min(self.totals)} answers in all, and the first round has {first} "
                "(rollouts.num_generations); raise the curriculum's option totals, or lower rollouts.num_generations"
            )
        return Curriculum(rounds=partial(self.further, first))

    def total(self, accuracy: float, first: int = 8) -> int:
        """Return the samples in all for a prompt of this accuracy, in [0, 1], over a first round of so many."""
        for step, total in enumerate(self.totals):
            if accuracy <= step / first + 1e-9:  # sums of rewards are not exact
                return total
        return first

    def further(self, first: int, values: Sequence[float | None], rounds: int) -> int:
        """Return how many samples to draw after a first round of so many; none where nothing could be judged."""
        judged = [value for value in marks(values, self.right_above) if value is not None]
        return self.total(sum(judged) / len(judged), first) - first if judged and rounds == 1 else 0


@dataclass(frozen=True, kw_only=True)
class ReinforceAda(Options):
    """Reinforce-Ada: rounds until there is something to learn from, then a balanced pick; see the module.

    Attributes:
        keep: n, answers to a task that are learnt from, an even number.
        max_rounds: the most rounds of `rollouts.num_generations` answers.
        stop: when a task is done before: "balanced" or "positive".
        right_above: a score above it is right.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"rounds", "filter"})

    keep: Annotated[int, Range(ge=2)] = 4
    max_rounds: Count = 4
    stop: Literal["balanced", "positive"] = "balanced"
    right_above: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep % 2:
            raise ValueError(f"keep={self.keep}; it must be even, half for right answers and half for wrong ones")

    def made(self, setting: Setting) -> Curriculum:
        """Return the rounds and the pick."""
        return Curriculum(
            rounds=partial(self.further, setting.num_generations), filter=Filter(partial(self.copies, setting.seed))
        )

    def further(self, size: int, values: Sequence[float | None], rounds: int) -> int:
        """Return how many samples to draw in rounds of a size; none where nothing could be judged so far."""
        judged = any(value is not None for value in values)  # else nothing says that further answers would be
        return size if judged and not self.done(values, rounds) else 0

    def done(self, rewards: Sequence[float | None], rounds: int) -> bool:
        """Return whether a prompt needs no further round.

        Args:
            rewards: of all samples drawn so far; None where one could not be judged.
            rounds: how many rounds were drawn.
        """
        right = sum(reward is not None and reward > self.right_above for reward in rewards)
        wrong = sum(reward is not None and reward <= self.right_above for reward in rewards)
        enough = right >= 1 if self.stop == "positive" else min(right, wrong) >= self.keep // 2
        return enough or rounds >= self.max_rounds

    def pick(self, rewards: Sequence[float | None], random: np.random.Generator) -> Integers:
        """Return places of the samples to train on, in order.

        Fewer than `keep` if fewer were judged; none if fewer than two were.
        """
        judged = np.array([place for place, reward in enumerate(rewards) if reward is not None], dtype=np.int64)
        values = np.array([reward for reward in rewards if reward is not None], dtype=np.float64)
        if len(judged) < 2:
            return judged[:0]
        right = random.permutation(np.flatnonzero(values > self.right_above))
        wrong = random.permutation(np.flatnonzero(values <= self.right_above))
        rights = min(len(right), max(self.keep // 2, self.keep - len(wrong)))
        kept = np.sort(np.concatenate([right[:rights], wrong[: self.keep - rights]]))
        picked: Integers = judged[kept]
        return picked

    def copies(self, seed: int, groups: Groups, memory: dict[str, Any]) -> Integers:
        """Return 1 for what is picked of each group, and 0 for the rest; the memory counts batches."""
        batch = memory.get("batches", 0)
        copies = np.zeros(len(groups), dtype=np.int64)
        for group in np.unique(groups.ids):
            rows = np.flatnonzero(groups.ids == group)
            values = [float(groups.rewards[row]) if groups.valid[row] else None for row in rows]
            copies[rows[self.pick(values, random_of(seed, batch, int(group)))]] = 1
        memory["batches"] = batch + 1
        return copies
