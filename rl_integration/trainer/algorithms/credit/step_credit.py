"""Credit by steps: rewards of steps, their advantages beside other steps, and what a critic calls wrong (CAPO).

    A_it = (1 - a) * A_i  +  a * B_ik, k the step of token t; a token of no step has B = 0

A_i is the response's advantage by any rule; B is made of the steps' rewards r_ik alone, with z = (r - mean) / (s + eps)
over all steps of the group.  Outcome and steps are normalised apart since their scales differ and drift.

| name | B_ik | a | source |
|---|---|---|---|
| `TANGO` | Σ_{j>=k} z_ij | decays; 0.5 is ours | RL Tango, arXiv 2505.15034 |
| `CRITIC_SEARCH` | z_ik | 0.25 | CriticSearch |
| `IGPO` | returns to go less their mean over the group at the same place, not divided | 1 | its released code |
| `IGPO_PAPER` | Σ_{j>=k} gamma^(j-k) z_ij | 1 | arXiv 2510.14967 |
| `SHAPED` | as `IGPO`, for rewards made for a critic (Clip/Delta, PURE) | 0.5 is ours | |

The steps of a response that takes no part have no vote; one whose steps are not known keeps (1 - a) A_i.  A mean needs
two votes.  The sum of `delta` (`adjudge.responses.refine`) from step k on is v_k, that of `min_form` about the least v.

CAPO (arXiv 2508.02298): a critic names the wrong steps, and their tokens pay for it.

| answer | tokens of steps said to be right, and of none | tokens of steps said to be wrong |
|---|---|---|
| right | C | C - P |
| wrong | 0 | -P |

C = 2 and P = 1 are from a re-implementation; the authors' code was not found.  A token's reward is compared with those
of all tokens of its group.  A step's value is 1 less the share of critiques that name it, as the `critic` scorer says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np

from adjudge.options import Options, Range, Share
from adjudge.responses.refine import Refinement, refine
from adjudge.responses.step_values import TEMPERATURE
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers, over_tokens, rows_of_tokens
from adjudge.rl_integration.trainer.algorithms.objectives.group_advantages import GroupRelative
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, check_number, floats, same_shape
from adjudge.rl_integration.trainer.rewards.groups import Groups


@dataclass(frozen=True, kw_only=True)
class Shape(Options):
    """From the values of steps to their rewards.

    Attributes:
        how: the formula, such as "clip", "delta", "clip_delta", "min_form" (`adjudge.responses.refine`).
        eta: the threshold of the clipped ones; the paper's is the mean value on training questions.
        start: the value before the first step, for "gain".
        temperature: of "min_form"; PURE's 0.1 is for values in [-1, 1].
    """

    how: Refinement = "none"
    eta: float = 0.5
    start: float = 0.0
    temperature: Annotated[float, Range(gt=0)] = TEMPERATURE

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
    check_number("gamma", gamma, Range(ge=0, le=1))
    rewards = known(rewards)
    found = np.zeros(len(rewards))
    total = 0.0
    for step in reversed(range(len(rewards))):
        total = rewards[step] + gamma * total
        found[step] = total
    return found


def known(values: Floats) -> Floats:
    """Return (k,) values as an array, or raise `ValueError`."""
    found = floats("the steps' values", values)
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        raise ValueError(f"step {bad[0]} has the value {found[bad[0]]}; leave out the steps of this response instead")
    return found


Peers: TypeAlias = Literal["group", "place"]
Sum: TypeAlias = Literal["none", "before", "after"]


@dataclass(frozen=True, kw_only=True)
class StepCredit(Options):
    """Advantages of tokens by their steps; see the module.

    Attributes:
        share: a, in [0, 1].
        peers: the steps whose mean is subtracted: all of the group, or those at the same place in it.
        scale: whether to divide by the peers' standard deviation.
        to_go: whether a step is credited with those after it: not at all, summed before the mean is taken, or after.
        gamma: the discount of that sum.
        eps: what is added to standard deviations.
    """

    share: Share = 0.5
    peers: Peers = "group"
    scale: bool = True
    to_go: Sum = "after"
    gamma: Share = 1.0
    eps: Annotated[float, Range(ge=0)] = 1e-4

    def __call__(self, rewards: Sequence[Floats], steps: Integers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; 0 for responses that take no part.

        Args:
            rewards: n arrays, the rewards of each response's steps; empty where they are not known.
            steps: (n, t) step of each token, -1 for none (`answers.steps_of_tokens`).
            groups: of n responses.
            outcome: (n,) their advantages; 0 for those that take no part.

        Raises:
            ValueError: there are not n, a token belongs to a step without a reward, or a reward of a response that
                takes part is not finite.
        """
        same_shape("outcome", np.shape(outcome), (len(groups),))
        spread = rows_of_tokens(self.of_steps(rewards, groups), steps)
        mixed = self.share * spread + (1 - self.share) * np.asarray(outcome)[:, None]
        return np.where(groups.valid[:, None], mixed, 0.0)

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`."""
        return self(answers.values, answers.steps, groups, outcome)

    def of_steps(self, rewards: Sequence[Floats], groups: Groups) -> list[Floats]:
        """Return B for the steps of each response; 0 for responses that take no part.

        Raises:
            ValueError: there are not as many responses, or a reward of one that takes part is not finite.
        """
        same_shape("rewards of steps", (len(rewards),), (len(groups),))
        taken = groups.counted(2)
        rows = [known(row) if valid else np.zeros(len(row)) for row, valid in zip(rewards, taken, strict=True)]
        if self.to_go == "before":
            rows = [to_go(row, self.gamma) for row in rows]
        rows = self._normalised(rows, groups.ids.tolist(), taken.tolist())
        return [to_go(row, self.gamma) for row in rows] if self.to_go == "after" else rows

    def _normalised(self, rows: Sequence[Floats], ids: Sequence[int], taken: Sequence[bool]) -> list[Floats]:
        votes: dict[tuple[int, int], list[float]] = {}
        for row, group, valid in zip(rows, ids, taken, strict=True):
            for place, value in enumerate(row.tolist() if valid else []):
                votes.setdefault((group, self._peers(place)), []).append(value)
        scales = {peers: self._scale(np.array(values)) for peers, values in votes.items()}
        found = []
        for row, group, valid in zip(rows, ids, taken, strict=True):
            of = [scales.get((group, self._peers(place)), (0.0, np.inf)) for place in range(len(row))]
            values = [(value - mean) / below for value, (mean, below) in zip(row.tolist(), of, strict=True)]
            found.append(np.array(values) * valid)
        return found

    def _peers(self, place: int) -> int:
        return place if self.peers == "place" else 0

    def _scale(self, values: Floats) -> tuple[float, float]:
        """The mean and what to divide by; infinity where there is nothing to compare."""
        if len(values) < 2 or values.min() == values.max():
            return float(values[0]), np.inf
        return float(values.mean()), float(values.std(ddof=1)) + self.eps if self.scale else 1.0


TANGO = StepCredit()
CRITIC_SEARCH = StepCredit(share=0.25, to_go="none")
IGPO = StepCredit(share=1.0, peers="place", scale=False, to_go="before")
IGPO_PAPER = StepCredit(share=1.0)
SHAPED = StepCredit(peers="place", scale=False, to_go="before")


@dataclass(frozen=True, kw_only=True)
class Capo(Options):
    """Token rewards from the outcome and the steps said to be wrong; see the module.

    Attributes:
        correct: C, more than `penalty`, so that a right answer stays worth more than a wrong one.
        penalty: P.
        right: the score from which on an answer is right.
        eps: what is added to standard deviations.
    """

    correct: float = 2.0
    penalty: Annotated[float, Range(ge=0)] = 1.0
    right: float = 0.5
    eps: Annotated[float, Range(ge=0)] = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("correct", self.correct, Range(ge=self.penalty))

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `credit.CreditRule`.  The outcome's advantages are not read.

        Raises:
            ValueError: the value of a step is no share.
        """
        found = np.zeros(answers.own.shape)
        taken = groups.counted(2)
        for row in np.flatnonzero(taken):
            values = answers.values[row]
            if len(values) and not 0 <= values.min() <= values.max() <= 1:
                raise ValueError(f"CAPO needs steps' values from 0 (wrong) to 1, as a critic gives them; got {values}")
            wrong = over_tokens(1 - values, answers.steps[row]) if len(values) else 0.0
            found[row] = self.correct * (answers.worth[row] >= self.right) - self.penalty * wrong
        rows, columns = np.nonzero(answers.own & taken[:, None])
        tokens = Groups(rewards=found[rows, columns], ids=groups.ids[rows], valid=np.ones(len(rows), dtype=np.bool_))
        found[:] = 0.0
        found[rows, columns] = GroupRelative(eps=self.eps)(tokens)
        return found
