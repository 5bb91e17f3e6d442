"""A batch of rollouts and what is known of it, as the updates read it.

Not covered: the updates (`learner`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.losses.tokens import TokenBatch, Totals
from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats
from adjudge.rl_integration.trainer.contract.rollout import Rollout, by_task
from adjudge.rl_integration.trainer.rollouts.token_rows import TokenRows


@dataclass
class LearningBatch:
    """A batch of rollouts and what was found out about it; lists have a row for each."""

    rollouts: Sequence[Rollout]
    sampler: bool

    def __post_init__(self) -> None:
        size = len(self.rollouts)
        self.old: Sequence[Any] | None = None
        self.reference: Sequence[Any] | None = None
        self.values: Sequence[Any] | None = None
        self.returns: Sequence[Any] | None = None
        self.behaviour: Sequence[Any] = [rollout.logprobs for rollout in self.rollouts]
        self.advantages: Sequence[Any] = [0.0] * size
        self.injected: Bools | None = None
        self.counted: Bools = np.zeros(size, dtype=np.bool_)
        self.needed: Bools = np.zeros(size, dtype=np.bool_)
        self.numbers: dict[str, float] = {}
        numbers = {task: number for number, task in enumerate(by_task(self.rollouts))}
        self.group = [numbers[rollout.task.id] for rollout in self.rollouts]
        self.width = max(len(rollout.ids) for rollout in self.rollouts)

    def mask(self) -> Bools:
        """(n, width) tokens that the policy wrote."""
        found = np.zeros((len(self.rollouts), self.width), dtype=np.bool_)
        for row, rollout in zip(found, self.rollouts, strict=True):
            row[: len(rollout.ids)] = rollout.own
        return found

    def padded(self, name: str) -> Floats:
        """(n, width) of a list of rows."""
        found = np.zeros((len(self.rollouts), self.width))
        for row, given in zip(found, getattr(self, name), strict=True):
            row[: len(given)] = given
        return found

    def rows(self, padded: Floats) -> list[Floats]:
        """Return the rows of (n, width) numbers of tokens, each as long as its answer."""
        return [row[: len(rollout.ids)] for row, rollout in zip(padded, self.rollouts, strict=True)]

    def tensor(self, name: str, part: Sequence[int], rows: TokenRows) -> Tensor:
        """(len(part), R) of a list of rows."""
        found = torch.zeros(rows.answer_ids.shape, dtype=torch.float32)
        for row, place in enumerate(part):
            given = np.asarray(getattr(self, name)[place], dtype=np.float32)
            found[row, : len(self.rollouts[place].ids)] = torch.from_numpy(np.atleast_1d(given))
        return found.to(rows.answer_ids.device)

    def totals(self, places: Sequence[int]) -> Totals:
        """What the sums over some of the rollouts are divided by."""
        tokens = sum(int(self.rollouts[place].own.sum()) for place in places)
        groups = len({self.rollouts[place].task.id for place in places})
        return Totals(sequences=len(places), tokens=tokens, groups=groups)

    def tokens(
        self, part: Sequence[int], rows: TokenRows, logprobs: Tensor, entropies: Tensor, totals: Totals
    ) -> TokenBatch:
        """The part as the losses read it."""
        group = torch.tensor([self.group[place] for place in part], device=logprobs.device)
        injected = None if self.injected is None else torch.from_numpy(self.injected[list(part)]).to(logprobs.device)
        return TokenBatch(
            logp=logprobs,
            mask=rows.own,
            advantages=self.tensor("advantages", part, rows),
            old_logp=self.tensor("old", part, rows) if self.old is not None else None,
            sampler_logp=rows.behaviour if self.sampler else None,
            reference_logp=self.tensor("reference", part, rows) if self.reference is not None else None,
            entropy=entropies,
            next_value=torch.zeros_like(entropies),  # ROVER's before the first update of a batch, the only one it makes
            group=group,
            injected=injected,
            totals=totals,
        )
