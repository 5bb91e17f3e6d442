"""Evolution strategies in the place of gradients (arXiv 2509.24372; VsonicV/es-fine-tuning-paper at 04d4075).

    w += learning_rate / N * Σ_i z_i e_i,   z_i = (R_i - mean of R) / (standard deviation of R + 1e-8),   e_i ~ N(0, 1)

R_i is the mean score of the answers of a policy with the weights w + sigma e_i to a step's tasks, the same for all N.
Noise is drawn anew from its seed wherever it is needed.  The released code takes it off again, which leaves the
rounding of two sums; here the weights are put back from a copy, so that processes that had other members stay alike.
The code draws all tensors of a size with one seed, unless told otherwise; here each has its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.loop.batches import Batch, Batches
from adjudge.rl_integration.trainer.loop.config import EvolutionConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.writer import Answered


class Evolution:
    """Moves a policy's trained weights towards those of their neighbours that score well."""

    def __init__(self, config: EvolutionConfig, policy: Policy, processes: Processes, *, seed: int) -> None:
        self._config = config
        self._policy = policy
        self._processes = processes
        self._seed = seed
        self._weights: list[Tensor] = [value for value in policy.model.parameters() if value.requires_grad]

    def step(self, batches: Batches, step: int, *, learning_rate: float) -> Batch:
        """Make one update; return what all members answered, with the numbers of the step.

        Raises:
            TooManyFailures: too many answers could not be judged.
        """
        tasks = batches.tasks(step)
        start = [weight.detach().clone() for weight in self._weights]
        mine: list[tuple[int, list[Rollout], list[Score]]] = []
        for member in self._processes.share(range(self._config.population)):
            try:
                self._move(step, member)
                answered = batches.answered(tasks, version=step, name=f"{step}.{member}")
            finally:
                self._put(start)
            mine.append((member, answered.rollouts, answered.scores))
        met = self._processes.all_gather(mine)
        rollouts = [one for _, written, _ in met for one in written]
        scores = [score for _, _, judged in met for score in judged]
        batches.checked(scores)
        rewards = np.array([_mean(judged) for _, _, judged in met])
        shares = standardized(rewards)
        norm = self._update(
            step, [(member, share) for (member, _, _), share in zip(met, shares, strict=True)], learning_rate
        )
        known = rewards[~np.isnan(rewards)]
        numbers = {"update_norm": norm, "members_std": float(known.std()) if len(known) else float("nan")}
        return Batch(
            rollouts=rollouts,
            scores=scores,
            copies=np.zeros(len(rollouts), dtype=np.int64),
            drawn=Answered(rollouts=rollouts, scores=scores),
            numbers=numbers,
        )

    def _noise(self, step: int, member: int, place: int) -> Tensor:
        """One tensor's part of a member's direction."""
        weight = self._weights[place]
        half = self._config.population // 2
        mirrored = self._config.antithetic and member >= half
        direction = member - half if mirrored else member
        state = np.random.SeedSequence([self._seed % 2**32, step, direction, place]).generate_state(1, np.uint64)[0]
        generator = torch.Generator(device=weight.device).manual_seed(int(state >> np.uint64(1)))
        noise = torch.randn(weight.shape, generator=generator, device=weight.device, dtype=weight.dtype)
        return -noise if mirrored else noise

    @torch.no_grad()
    def _move(self, step: int, member: int) -> None:
        with self._policy.lock:
            for place, weight in enumerate(self._weights):
                weight.add_(self._noise(step, member, place), alpha=self._config.sigma)

    @torch.no_grad()
    def _put(self, weights: Sequence[Tensor]) -> None:
        with self._policy.lock:
            for weight, given in zip(self._weights, weights, strict=True):
                weight.copy_(given)

    @torch.no_grad()
    def _update(self, step: int, shares: Sequence[tuple[int, float]], learning_rate: float) -> float:
        """Add what the members share; return its length."""
        squares = 0.0
        with self._policy.lock:
            for place, weight in enumerate(self._weights):
                total = torch.zeros_like(weight)
                for member, share in shares:
                    if share:
                        total.add_(self._noise(step, member, place), alpha=share)
                total.mul_(learning_rate / self._config.population)
                weight.add_(total)
                squares += float(total.square().sum())
        return math.sqrt(squares)


def standardized(rewards: Floats) -> list[float]:
    """Return what each member counts; 0 for those without a reward (NaN), and for all where the rewards are equal."""
    known = ~np.isnan(rewards)
    if not known.any() or np.ptp(rewards[known]) == 0:
        return [0.0] * len(rewards)
    centred = np.where(known, rewards - rewards[known].mean(), 0.0)
    shares: list[float] = (centred / (rewards[known].std() + 1e-8)).tolist()
    return shares


def _mean(scores: Sequence[Score]) -> float:
    values = [score.value for score in scores if score.value is not None]
    return sum(values) / len(values) if values else math.nan
