"""Reinforce-Ada (`RLHFlow/Reinforce-Ada`): draw samples of a prompt in rounds until there is something to learn from.

A prompt gets up to 4 rounds of 8.  It is done when it has n/2 right answers and n/2 wrong ones (`balanced`), or one
right answer (`positive`); right means a reward above 0.7.  Of all that was drawn, n = 4 are trained on, n/2 of each
kind where there are as many, filled up with the other kind.  The advantage is the reward less the mean of all that was
drawn, so that picking does not move the baseline:

    A_i = r_i - mean of r over everything drawn

Not covered: the rounds themselves; a trainer asks `done` after each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.options import check_choice, check_finite, check_whole

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
        """Reject what cannot be meant."""
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
