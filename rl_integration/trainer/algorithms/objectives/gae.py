"""Generalized advantage estimation (arXiv 1506.02438): advantages and returns of tokens, by a critic's values.

    delta_t = r_t + gamma * V_{t+1} - V_t        A_t = delta_t + gamma * lambda * A_{t+1}        return_t = A_t + V_t

t runs over the tokens that the policy wrote; what stands between them, such as a tool's output, is skipped.
After the last token V is 0, also where a response was cut off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adjudge.options import Options, Share
from adjudge.rl_integration.trainer.algorithms.objectives.batch_advantages import moments
from adjudge.rl_integration.trainer.data.arrays import Bools, Floats, flags, floats, same_shape


@dataclass(frozen=True, kw_only=True)
class Gae(Options):
    """Advantages and returns of tokens; see the module.

    Attributes:
        gamma: the discount, in [0, 1].
        lam: lambda, in [0, 1]: 0 trusts the values, 1 the rewards.
        whiten: whether the advantages of the batch's tokens get mean 0 and variance 1; returns never.
    """

    gamma: Share = 1.0
    lam: Share = 0.95
    whiten: bool = True

    def __call__(self, rewards: Floats, values: Floats, mask: Bools) -> tuple[Floats, Floats]:
        """Return advantages and returns, (n, t) each, 0 outside the mask.

        Args:
            rewards: (n, t) reward of each token.
            values: (n, t) value of the state before each token.
            mask: (n, t) tokens of the policy, of valid samples alone.

        Raises:
            ValueError: shapes differ, a number that counts is not finite, or a reward stands where the mask hides it.
        """
        mask = flags("mask", mask)
        rewards, values = floats("rewards", rewards), floats("values", values)
        for name, given in (("rewards", rewards), ("values", values)):
            same_shape(name, given.shape, mask.shape)
            if not np.isfinite(given[mask]).all():
                raise ValueError(f"{name} hold a number that is not finite under the mask")
        if np.any(np.where(mask, 0.0, np.nan_to_num(rewards)) != 0):
            raise ValueError("a reward stands at a token that the mask hides, where it would be lost; move it")
        advantages = self._backwards(np.where(mask, rewards, 0.0), np.where(mask, values, 0.0), mask)
        returns = np.where(mask, advantages + np.where(mask, values, 0.0), 0.0)
        if self.whiten:
            mean, variance = moments(advantages[mask], np.ones(int(mask.sum())))
            advantages = np.where(mask, (advantages - mean) / math.sqrt(variance + 1e-8), 0.0)
        return advantages, returns

    def _backwards(self, rewards: Floats, values: Floats, mask: Bools) -> Floats:
        advantages = np.zeros(mask.shape)
        after, value = np.zeros(len(mask)), np.zeros(len(mask))
        for place in reversed(range(mask.shape[1])):
            here = mask[:, place]
            delta = rewards[:, place] + self.gamma * value - values[:, place]
            after = np.where(here, delta + self.gamma * self.lam * after, after)
            value = np.where(here, values[:, place], value)
            advantages[:, place] = np.where(here, after, 0.0)
        return advantages
