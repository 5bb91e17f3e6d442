"""Answers that are learnt after another prompt than they were written to.

What the policy thought of their tokens when it wrote them says nothing about the prompt they are learnt after, so such
a rollout carries NaN, and the learner asks the policy anew before the first update.

Not covered: how they are learnt from (`objectives.losses.injected`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Bools, Floats
from adjudge.rl_integration.trainer.contract.rollout import Rollout


def injected(rollouts: Sequence[Rollout]) -> Bools:
    """Return (n,) which rollouts were written to another prompt than the one they have here."""
    return np.array([bool(np.isnan(one.logprobs[one.own]).any()) for one in rollouts], dtype=np.bool_)


def with_logprobs(
    rollouts: Sequence[Rollout], logprobs: Callable[[Sequence[Rollout]], Sequence[Floats]]
) -> list[Rollout]:
    """Return the rollouts with what the policy thinks of those that were injected.

    Args:
        rollouts: a batch.
        logprobs: asks the policy.
    """
    places = np.flatnonzero(injected(rollouts)).tolist()
    found = list(rollouts)
    if places:
        for place, row in zip(places, logprobs([rollouts[place] for place in places]), strict=True):
            found[place] = replace(rollouts[place], logprobs=np.asarray(row, dtype=np.float32))
    return found
