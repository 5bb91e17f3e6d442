"""Arena-Hard's judge (arXiv 2406.11939): five labels, two games, and a clear win counts as three.

Not covered: ratings from many games and style control; `adjudge.evals.trust.arena_hard` makes those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from adjudge.judges.pairwise.judge import PairwiseJudge
from adjudge.judges.pairwise.orders import Policy
from adjudge.prompts.asking import Retry

_NUDGE = "Go on with your judgement, and end with exactly one of the five verdict labels."


@dataclass(frozen=True, kw_only=True)
class ArenaHardJudge(PairwiseJudge):
    """Arena-Hard's comparison: the share of the games won, in both orders, where a clear win is three games."""

    name: ClassVar[str] = "arena_hard"
    text_template: ClassVar[str] = "judges/arena_hard"
    direct_template: ClassVar[str] = ""

    policy: Policy = "weighted"
    attempts: int = 2
    max_tokens: int = 4096
    labels: Mapping[str, float] | None = None

    @property
    def advantages(self) -> Mapping[str, float]:
        """The five labels; 3 is a clear win."""
        if self.labels is not None:
            return super().advantages
        return {"A>>B": 3.0, "A>B": 1.0, "A=B": 0.0, "B>A": -1.0, "B>>A": -3.0}

    def retry(self) -> Retry:
        """Return when the model is asked again: once, to finish what it began."""
        return Retry(attempts=self.attempts, temperature=self.retry_temperature, nudge=_NUDGE)
