"""DARS (arXiv 2508.13755): more samples for harder prompts, after a first round that says which they are.

Total samples of a prompt by its accuracy over the first n = 8, which they include:

| accuracy | 0 | up to 1/8 | up to 2/8 | up to 3/8 | above |
|---|---|---|---|---|---|
| `EVEN` | 32 | 18 | 11 | 9 | 8 |
| `HARD` | 48 | 24 | 12 | 9 | 8 |

Released code's two schedules; above 3/8 nothing is added.

Not covered: DARS-B, which is the same with one update for the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.rl_integration.trainer.contract.options import check_between, check_whole
from adjudge.rl_integration.trainer.rollouts.curricula.record import PromptRecord


@dataclass(frozen=True, kw_only=True)
class Dars:
    """How many samples a prompt gets in all; see the module.

    Attributes:
        first: samples of the first round.
        totals: the totals for accuracies of 0, up to 1 / `first`, up to 2 / `first`, and so on.
    """

    first: int = 8
    totals: tuple[int, ...] = (32, 18, 11, 9)

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        check_whole("first", self.first, 1)
        for total in self.totals:
            check_whole("totals", total, self.first)

    def total(self, accuracy: float) -> int:
        """Return the samples for a prompt of this accuracy over the first round.

        Raises:
            ValueError: the accuracy is outside [0, 1].
        """
        check_between("accuracy", accuracy, 0.0, 1.0)
        for step, total in enumerate(self.totals):
            if accuracy <= step / self.first + 1e-9:  # sums of rewards are not exact
                return total
        return self.first

    def further(self, record: PromptRecord) -> int:
        """Return how many samples to draw after a first round; none where nothing could be judged."""
        judged = record.right + record.wrong
        return self.total(min(1.0, record.right / judged)) - self.first if judged > 0 else 0


EVEN = Dars()
HARD = Dars(totals=(48, 24, 12, 9))
