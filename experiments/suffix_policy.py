"""Policies that write suffixes, trained by the trainer's own advantages and losses on what a scorer pays.

The policy has a distribution over the words for each position of the suffix and nothing else, so it learns within some
hundred questions.  Each step draws a group of suffixes, asks about them, and takes advantages within the group
(`leave one out`) and the plain policy gradient with a bonus for entropy.  Every suffix of a group is a question; one
that was asked before costs nothing, and a policy that has narrowed until it asks nothing new begins anew.

`UniversalPolicy` learns one suffix for all rows, as Universal Adversarial Suffixes does (no code was released): by PPO,
on the cross-entropy of the label that a bad response has, bad, once the judge's bias is taken out of it:

    reward = mean over rows of log(1 + odds of good / odds of good of a response without content)

The scorer's values are the probabilities of good, summed over its spellings (`yes_no`).  How the paper takes the bias
out is not known; to divide by the odds of an input without content is contextual calibration (arXiv 2102.09690).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from adjudge.evals.attacks.attacker import Attacker, JointAttacker, Queries
from adjudge.evals.attacks.attackers import LENGTH, ROWS, asked, levels, suffix
from adjudge.evals.attacks.target import Wrap
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import LeaveOneOut
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import TokenBatch
from adjudge.rl_integration.trainer.rewards.groups import Groups

_GROUP = 16  # suffixes of a step
_RATE = 0.3  # of Adam
_STALE = 20  # steps in a row without a new question, after which the policy begins anew

OBJECTIVE = Objective(
    rule=LeaveOneOut(normalize=True),
    policy=PolicyLoss(surrogate="plain", aggregation="sequence_sum", entropy_coef=0.02),
)
"""What the policy of a row learns by."""

PPO = Objective(
    rule=LeaveOneOut(normalize=True),
    policy=PolicyLoss(surrogate="clipped", aggregation="sequence_sum", entropy_coef=0.02),
)
"""What the policy of all rows learns by."""

_PASSES = 4  # over the suffixes of a step
_EMPTY = Wrap(before="N/A", keep=False)  # a response without content
_EDGE = 1e-6  # how near to 0 and 1 a probability is told apart


def calibrated(value: float, prior: float) -> float:
    """Return the cross-entropy of "bad" where good has this probability, and the prior on an input without content.

    Raises:
        ValueError: one is not a probability.
    """
    return math.log1p(_odds(value) / _odds(prior))


def _odds(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"rl_universal learns from probabilities, and the scorer gave {value}; give one from 0 to 1")
    held = min(max(value, _EDGE), 1 - _EDGE)
    return held / (1 - held)


class SuffixPolicy(Attacker):
    """Learn a distribution over suffixes of eight positions, each of which may stay empty."""

    name: ClassVar[str] = "rl"

    async def search(self, queries: Queries, rng: random.Random) -> None:
        """Ask about what the policy draws and learn from it, until the budget is spent."""
        words = ("", *queries.words)
        chance = torch.Generator().manual_seed(rng.getrandbits(63))
        while True:
            await _episode(words, queries, chance)


async def _episode(words: tuple[str, ...], queries: Queries, chance: torch.Generator) -> None:
    """Train a new policy until it asks nothing new any more."""
    logits = torch.zeros((LENGTH, len(words)), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=_RATE)
    stale = 0
    while stale < _STALE:
        drawn = _drawn(logits, chance)
        before = queries.used
        values = await queries.ask([suffix([words[at] for at in row]) for row in drawn.tolist()])
        stale = stale + 1 if queries.used == before else 0
        known = [value if math.isfinite(value) else None for value in values]
        loss = suffix_loss(logits, drawn, Groups.of(known, [0] * _GROUP))
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()


class UniversalPolicy(JointAttacker):
    """Learn a distribution over suffixes of eight positions for all rows."""

    name: ClassVar[str] = "rl_universal"

    async def search(self, queries: Sequence[Queries], rng: random.Random) -> None:
        """Ask about what the policy draws and learn from it, until every row is over or nothing new is asked."""
        prior = await levels(queries, _EMPTY)
        shared = set.intersection(*(set(each.words) for each in prior)) if prior else set()
        words = ("", *(word for word in queries[0].words if word in shared))
        chance = torch.Generator().manual_seed(rng.getrandbits(63))
        logits = torch.zeros((LENGTH, len(words)), requires_grad=True)
        optimizer = torch.optim.Adam([logits], lr=_RATE)
        stale = 0
        while stale < _STALE and (left := [each for each in prior if not each.over]):
            drawn, before = _drawn(logits, chance), sum(each.used for each in prior)
            rows = rng.sample(left, k=min(ROWS, len(left)))
            values = await asked(rows, [suffix([words[at] for at in one]) for one in drawn.tolist()])
            rewards = rewards_of(values, [prior[row] for row in rows])
            stale = stale + 1 if sum(each.used for each in prior) == before else 0
            if not rewards:  # each of these rows is won or spent
                continue
            groups = Groups.of(rewards, [0] * _GROUP)
            old = _logp(logits.detach(), drawn)
            for _ in range(_PASSES):
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(suffix_loss(logits, drawn, groups, PPO, old))
                optimizer.step()


def rewards_of(values: Sequence[Sequence[float] | None], priors: Sequence[float]) -> list[float | None]:
    """Return the mean reward of each suffix over the rows that answered; None where one of them gave no number."""
    known = [(row, prior) for row, prior in zip(values, priors, strict=True) if row is not None]
    return [
        fmean(calibrated(row[at], prior) for row, prior in known)
        if all(math.isfinite(row[at]) for row, _ in known)
        else None
        for at in range(len(known[0][0]) if known else 0)
    ]


def _drawn(logits: Tensor, chance: torch.Generator) -> Tensor:
    return torch.multinomial(logits.detach().softmax(dim=1), _GROUP, replacement=True, generator=chance).T


def _logp(logits: Tensor, drawn: Tensor) -> Tensor:
    return logits.log_softmax(dim=1).expand(len(drawn), -1, -1).gather(2, drawn.unsqueeze(2)).squeeze(2)


def suffix_loss(
    logits: Tensor, drawn: Tensor, groups: Groups, objective: Objective = OBJECTIVE, old: Tensor | None = None
) -> Tensor:
    """Return the loss of a step; `old` are the log-probabilities with which the suffixes were drawn, if not these."""
    logp = logits.log_softmax(dim=1)
    entropy = -(logp.exp() * logp).sum(dim=1)
    batch = TokenBatch(
        logp=_logp(logits, drawn),
        mask=torch.ones(drawn.shape, dtype=torch.bool),
        advantages=torch.from_numpy(objective.advantages(groups)).float(),
        counted=torch.from_numpy(objective.counted(groups)),
        old_logp=old,
        entropy=entropy.expand(len(drawn), -1),
    )
    return objective.loss(batch).loss
