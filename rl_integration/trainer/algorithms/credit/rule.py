"""What a rule of credit within answers is.

Not covered: the rules.
"""

from __future__ import annotations

from typing import Protocol

from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.rewards.groups import Groups


class CreditRule(Protocol):
    """One number for each token, from the rewards of all answers and of their steps.

    A rule is a pure function with its options bound.  An answer that was not judged gets 0, and has no vote.
    """

    def over(self, answers: Answers, groups: Groups, outcome: Floats) -> Floats:
        """Return (n, t) advantages of tokens; what stands at tokens that are not the policy's own is not read.

        Args:
            answers: n answers; `values` are the rewards of their steps.
            groups: of the answers, with their rewards.
            outcome: (n,) their advantages by the objective's rule; 0 for those that take no part.

        Raises:
            ValueError: the rule cannot read these answers.
        """
        ...
