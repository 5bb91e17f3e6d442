"""Advantages of steps beside the other steps of their group, mixed with the advantage of the outcome.

    A_it = (1 - a) * A_i  +  a * B_ik, k the step of token t; a token of no step has B = 0

A_i is the response's advantage by any rule, normalised by itself; B is made of the steps' rewards r_ik alone, with
z = (r - mean) / (s + eps) over all steps of the group:

| name | B_ik | a | source |
|---|---|---|---|
| `TANGO` | Σ_{j>=k} z_ij | decays; 0.5 is ours | RL Tango, arXiv 2505.15034 |
| `CRITIC_SEARCH` | z_ik | 0.25 | CriticSearch |
| `IGPO` | returns to go less their mean over the group at the same place, not divided | 1 | its released code |
| `IGPO_PAPER` | Σ_{j>=k} gamma^(j-k) z_ij | 1 | arXiv 2510.14967 |

With a = 1 the outcome is the reward of the last step.  Outcome and steps are normalised apart since their scales differ
and drift.  The steps of a response that takes no part have no vote; a response whose steps are not known is given with
none, and keeps (1 - a) A_i.  A mean needs two votes.

`SHAPED` is what rewards of steps become that were made for a critic (Clip/Delta, PURE): returns to go less their mean
at the same place, with half of the advantage; that mix is ours.

Not covered: how a decays (`credit.Credit.half_life`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.credit.spans import rows_of_tokens
from adjudge.rl_integration.trainer.algorithms.credit.step_rewards import known, to_go
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers, same_shape
from adjudge.rl_integration.trainer.contract.options import check_between, check_choice, check_flag, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups

Peers: TypeAlias = Literal["group", "place"]
Sum: TypeAlias = Literal["none", "before", "after"]


@dataclass(frozen=True, kw_only=True)
class StepCredit:
    """Advantages of tokens by their steps; see the module.

    Attributes:
        share: a, in [0, 1].
        peers: the steps whose mean is subtracted: all of the group, or those at the same place in it.
        scale: whether to divide by the peers' standard deviation.
        to_go: whether a step is credited with those after it: not at all, summed before the mean is taken, or after.
        gamma: the discount of that sum.
        eps: what is added to standard deviations.
    """

    share: float = 0.5
    peers: Peers = "group"
    scale: bool = True
    to_go: Sum = "after"
    gamma: float = 1.0
    eps: float = 1e-4

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_flag("scale", self.scale)
        check_between("share", self.share, 0.0, 1.0)
        check_choice("peers", self.peers, get_args(Peers))
        check_choice("to_go", self.to_go, get_args(Sum))
        check_between("gamma", self.gamma, 0.0, 1.0)
        check_min("eps", self.eps, 0.0)

    def __call__(self, rewards: Sequence[Floats], steps: Integers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; 0 for responses that take no part.

        Args:
            rewards: n arrays, the rewards of each response's steps; empty where they are not known.
            steps: (n, t) step of each token, -1 for none (`spans.steps_of_tokens`).
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
        """Return (n, t) advantages of tokens; see `rule.CreditRule`."""
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
