"""Which ends are right: a scorer's scores, read as yes, no, or nobody knows.

Not covered: scores between; `pass_at` says from where on an end is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.data_pipelines.steps.spending import Spending
from adjudge.io.errors import JobError
from adjudge.io.jobs.engines import GONE
from adjudge.protocol import Sample, Score, Scorer
from adjudge.runtime.contract import BrokenScorer, score_checked


@dataclass(frozen=True, kw_only=True)
class Ends:
    """Judges of whole solutions.

    Attributes:
        scorer: who scores them.
        pass_at: the least score of a right one.
    """

    scorer: Scorer
    pass_at: float = 1.0

    async def right(self, samples: Sequence[Sample], spending: Spending) -> list[bool | None]:
        """Return whether each solution is right; None where the scorer gave no number.

        Raises:
            JobError: the scorer is broken, or the model behind it is gone.
        """
        scores = await scores_of(self.scorer, samples, spending)
        spending.counts["unjudged"] += sum(score.value is None for score in scores)
        return [None if score.value is None else score.value >= self.pass_at for score in scores]


async def scores_of(scorer: Scorer, samples: Sequence[Sample], spending: Spending) -> list[Score]:
    """Return a scorer's scores, with their cost on the account.

    Raises:
        JobError: the scorer is broken, or the model behind it is gone.
    """
    try:
        scores = await score_checked(scorer, samples)
    except BrokenScorer as error:
        raise JobError(str(error)) from error
    for score in scores:
        spending.cost += score.cost
        if score.status == "failed" and score.reason in GONE:
            raise JobError(f"the model behind the scorer {scorer.name!r} is gone ({score.reason})")
    return scores
