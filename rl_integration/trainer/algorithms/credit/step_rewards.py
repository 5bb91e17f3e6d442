"""Rewards of the steps of an answer, shaped so that more steps do not pay, and summed up to what follows.

The formulas are `adjudge.solutions.refine`'s; scorers of steps can refine by themselves, and these are for scores that
come as they are.  The sum of `delta` from step k on is v_k, whatever comes after it; that of `min_form` from the first
is about the least v.

Not covered: steps without a value; leave such an answer's steps out, and its outcome alone counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from adjudge.rl_integration.trainer.contract.arrays import Floats, floats
from adjudge.rl_integration.trainer.contract.options import check_above, check_between, check_choice, check_finite
from adjudge.solutions.refine import Refinement, refine
from adjudge.solutions.step_values import TEMPERATURE


@dataclass(frozen=True, kw_only=True)
class Shape:
    """From the values of steps to their rewards.

    Attributes:
        how: the formula, such as "clip", "delta", "clip_delta", "min_form" (`adjudge.solutions.refine`).
        eta: the threshold of the clipped ones; the paper's is the mean value on training questions.
        start: the value before the first step, for "gain".
        temperature: of "min_form"; PURE's 0.1 is for values in [-1, 1].
    """

    how: Refinement = "none"
    eta: float = 0.5
    start: float = 0.0
    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_choice("how", self.how, get_args(Refinement))
        check_finite("eta", self.eta)
        check_finite("start", self.start)
        check_above("temperature", self.temperature, 0.0)

    def __call__(self, values: Floats) -> Floats:
        """Return (k,) rewards of steps; none of none.

        Raises:
            ValueError: a value is missing or not finite.
        """
        given = known(values).tolist()
        if not given:
            return np.zeros(0)
        found = refine(given, self.how, eta=self.eta, start=self.start, temperature=self.temperature)
        return np.array(found, dtype=np.float64)


def to_go(rewards: Floats, gamma: float = 1.0) -> Floats:
    """Return for each step what it and those after it get, discounted by the number of steps between."""
    check_between("gamma", gamma, 0.0, 1.0)
    rewards = known(rewards)
    found = np.zeros(len(rewards))
    total = 0.0
    for step in reversed(range(len(rewards))):
        total = rewards[step] + gamma * total
        found[step] = total
    return found


def known(values: Floats) -> Floats:
    """Return (k,) values as an array.

    Raises:
        ValueError: one is missing or not finite.
    """
    found = floats("the steps' values", values)
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        raise ValueError(f"step {bad[0]} has the value {found[bad[0]]}; leave out the steps of this response instead")
    return found
