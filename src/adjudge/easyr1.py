"""EasyR1: a reward function.

    # my_reward.py
    compute_score = EasyR1Reward(scorer="math", fallback=0.0)

    worker.reward.reward_function=my_reward.py:compute_score

EasyR1 knows numbers alone, and what a reward raises ends the run: without a `fallback` an answer without a score does.
All metrics stand beside `overall`, and are the same for each answer.

Written from EasyR1's source (commit b44b311).  Not covered: prompts and groups, which a reward function is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.protocol import Score
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class EasyR1Reward(RowReward):
    """Scores one answer (`reward_type: sequential`) or a batch (`batch`); the fields are those of `RowReward`."""

    framework = "EasyR1"
    reference: Place = "ground_truth"

    def __call__(self, reward_inputs: Any) -> Any:
        """Return `overall`, `accuracy` (the same), `valid`, `failed` and `abstained` for each answer.

        Args:
            reward_inputs: EasyR1's inputs, with `response` and `ground_truth`; one, or a list.

        Raises:
            NotScored: there is no score and no fallback.
            TooManyFailures: too many of the latest answers failed.
        """
        rows: Sequence[Mapping[str, Any]] = (
            [reward_inputs] if isinstance(reward_inputs, Mapping) else list(reward_inputs)
        )
        samples = [self.made_sample(row, "", row["response"]) for row in rows]
        told = [self._told(score) for score in self.scores_blocking(rows, samples)]
        return told[0] if isinstance(reward_inputs, Mapping) else told

    def _told(self, score: Score) -> dict[str, float]:
        value = self.number(score)
        marks = {"valid": "scored", "failed": "failed", "abstained": "abstained"}
        return {"overall": value, "accuracy": value} | {
            name: float(score.status == status) for name, status in marks.items()
        }
