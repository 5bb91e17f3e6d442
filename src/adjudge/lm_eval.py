"""lm-evaluation-harness: a task whose answers our scorers judge.

    # utils.py, beside the task's YAML
    judged = LmEvalReward("math", reference="answer")
    process_results, mean_scored = judged.process_results, judged.mean_scored

    # the task's YAML
    output_type: generate_until
    process_results: !function utils.process_results
    metric_list:
      - {metric: score, aggregation: !function utils.mean_scored, higher_is_better: true}
      - {metric: unscored, aggregation: mean, higher_is_better: false}

An answer without a score has no place in the mean, and is counted in `unscored`.

Tried with lm_eval 0.4.13.  Not covered: answers that were cut off, which the harness does not tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.rl_integration.adapters.row import Place, value_in
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class LmEvalReward(RowReward):
    """Scores the generations of a task.

    Attributes:
        prompt: the document's column with the question; "" for scorers that do not read it.

    The others are those of `RowReward`.
    """

    framework = "lm-evaluation-harness"
    numbers_only = False
    reference: Place = "answer"
    prompt: str = ""

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, float]:
        """Return the metrics of a document: `score`, not a number where there is none, and `unscored`.

        Args:
            doc: the document.
            results: its generations; of several (`repeats`), the mean of those that have a score.

        Raises:
            ValueError: the document lacks a column, or has no generations.
            TooManyFailures: too many of the latest generations could not be judged.
        """
        texts = [text for item in results for text in (item if isinstance(item, list | tuple) else [item])]
        if not texts:
            raise ValueError("the document has no generations; the task needs output_type: generate_until")
        asked = value_in(doc, self.prompt, "prompt", "lm-evaluation-harness")
        scores = self.scores_blocking([doc] * len(texts), [self.made_sample(doc, asked, text) for text in texts])
        values = [self.fallback if score.value is None else score.value for score in scores]
        known = [value for value in values if value is not None]
        return {
            "score": sum(known) / len(known) if known else math.nan,
            "unscored": sum(score.value is None for score in scores) / max(1, len(scores)),
        }

    @staticmethod
    def mean_scored(items: Sequence[float]) -> float:
        """Return the mean of what has a score; not a number if nothing has."""
        known = [item for item in items if not math.isnan(item)]
        return sum(known) / len(known) if known else math.nan
