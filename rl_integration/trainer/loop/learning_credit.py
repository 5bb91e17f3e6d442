"""The credit of a run beside its objective: what the learner asks for each batch.

Not covered: the rules (`table`), and the updates (`adjudge.rl_integration.trainer.loop.learner`).
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.credit.answers import Answers
from adjudge.rl_integration.trainer.algorithms.credit.choice import CreditChoice
from adjudge.rl_integration.trainer.algorithms.credit.token_spans import Decode
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.loop.learning_batch import LearningBatch
from adjudge.rl_integration.trainer.rewards.groups import Groups


class LearningCredit:
    """Gives credit within the answers of a batch.

    Args:
        choice: how.
        objective: what answers as a whole are worth.
        decode: of the policy.

    Raises:
        ValueError: the objective has no use for it.
    """

    def __init__(self, choice: CreditChoice, objective: Objective, decode: Decode) -> None:
        self._credit = choice.made()
        self._credit.check(objective)
        self._part = choice.part
        self._objective = objective
        self._decode = decode

    def of(self, batch: LearningBatch, scores: Sequence[Score], groups: Groups, *, step: int) -> Floats:
        """Return (n, t) advantages of tokens or, for an objective with a critic, rewards of tokens.

        The batch's numbers say for how many judged answers the steps were known (`steps_known`).

        Args:
            batch: of n answers.
            scores: one for each.
            groups: their rewards, penalties included.
            step: of the run, from 0.
        """
        answers = Answers.of(batch.rollouts, scores, self._decode, part=self._part)
        judged = max(1, int(groups.valid.sum()))
        batch.numbers["steps_known"] = float((answers.known & groups.valid).sum()) / judged
        if self._objective.critic is not None:
            return self._credit.token_rewards(answers, groups)
        return self._credit.advantages(answers, groups, self._objective.advantages(groups), step=step)
