"""CAPO (arXiv 2508.02298): a critic names the wrong steps, and their tokens pay for it.

| answer | tokens of steps said to be right, and of none | tokens of steps said to be wrong |
|---|---|---|
| right | C | C - P |
| wrong | 0 | -P |

Of several critiques the wrong steps are those that all name (`intersection`), more than half (`majority`), or, for
`average`, each by the share that names it, with the penalty in proportion.  C = 2, P = 1 and four critiques are from a
re-implementation; the authors' code was not found.

What becomes of the rewards there was not found either: in the loop a token's reward is compared with those of all
tokens of its group, (reward - mean) / (standard deviation + eps).  A step's value is 1 less the share of critiques that
name it, as the `critic` scorer gives it, and an answer is right from `right` on.

Not covered: the critic.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.credit.spans import over_tokens
from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import GroupRelative
from adjudge.rl_integration.trainer.contract.arrays import Floats, Integers
from adjudge.rl_integration.trainer.contract.options import check_choice, check_finite, check_min
from adjudge.rl_integration.trainer.rewards.groups import Groups

Vote: TypeAlias = Literal["intersection", "majority", "average"]


@dataclass(frozen=True, kw_only=True)
class Capo:
    """Token rewards from the outcome and the steps said to be wrong; see the module.

    Attributes:
        correct: C, more than `penalty`, so that a right answer stays worth more than a wrong one.
        penalty: P.
        vote: what several critiques say together.
        right: the score from which on an answer is right.
        eps: what is added to standard deviations.
    """

    correct: float = 2.0
    penalty: float = 1.0
    vote: Vote = "intersection"
    right: float = 0.5
    eps: float = 1e-4

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_min("penalty", self.penalty, 0.0)
        check_min("correct", self.correct, self.penalty)
        check_choice("vote", self.vote, get_args(Vote))
        check_finite("right", self.right)
        check_min("eps", self.eps, 0.0)

    def __call__(self, right: bool, critiques: Sequence[Set[int]], steps: Integers) -> Floats:
        """Return (t,) rewards of tokens.

        Args:
            right: whether the answer is right.
            critiques: the wrong steps that each critique names, from 0; without any nothing is penalised.
            steps: (t,) step of each token, -1 for none.

        Raises:
            ValueError: a critique names a step that has no token.
        """
        count = int(steps.max(initial=-1)) + 1
        named = np.zeros(count)
        for critique in critiques:
            if critique and not 0 <= min(critique) <= max(critique) < count:
                raise ValueError(f"a critique names the steps {sorted(critique)}; there are the steps 0 to {count - 1}")
            named[sorted(critique)] += 1
        share = named / max(1, len(critiques))
        match self.vote:
            case "intersection":
                share = (share == 1).astype(float)
            case "majority":
                share = (share > 0.5).astype(float)
            case "average":
                pass
        return self.correct * right - self.penalty * over_tokens(share, steps)

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; see `rule.CreditRule`.  The outcome's advantages are not read.

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
