"""open-instruct: a verifier for the datasets that name it.

    # my_verifiers.py, imported before the verifiers are built
    MathVerifier = OpenInstructReward(scorer="math").verifier("adjudge_math")

open-instruct finds verifiers among the subclasses of its `VerifierFunction`, and a row chooses one by its column
`dataset`.  It knows numbers alone: a sample without a score stops the run, or gets the `fallback`, and `reasoning` says
so.  Its own verifiers give 0 there.

Written from open-instruct's source (commit e6c3044).  Not covered: answers that were cut off, which open-instruct does
not tell a verifier; its option `non_stop_penalty` sees them.  The cost in dollars of `VerificationResult` stays 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.adapters.row import Place
from adjudge.rl_integration.adapters.row_reward import RowReward


@dataclass(eq=False, kw_only=True)
class OpenInstructReward(RowReward):
    """Scores predictions; `verifier` makes the class that open-instruct looks for.

    Attributes:
        reference: where the reference is; the columns are `label` and `query`.

    The others are those of `RowReward`.
    """

    framework = "open-instruct"
    reference: Place = "label"

    def sample(self, prediction: Any, label: Any, query: Any) -> Sample:
        """Return what open-instruct gives as a sample.

        Raises:
            ValueError: the prediction or the query is not text, or the reference is missing.
        """
        return self.made_sample({"label": label, "query": query}, query, prediction)

    async def score(self, sample: Sample) -> tuple[float, str]:
        """Return the number for a sample and one line about it.

        Raises:
            NotScored: there is no score and no fallback.
            TooManyFailures: too many of the latest samples failed.
        """
        (score,) = await self._asked.scores([sample])
        return self._told(score)

    def score_blocking(self, sample: Sample) -> tuple[float, str]:
        """Return the same from any thread, also inside a running event loop."""
        (score,) = self._asked.scores_blocking([sample])
        return self._told(score)

    def _told(self, score: Score) -> tuple[float, str]:
        fallback = "" if score.value is not None else "; the score is the fallback"
        return self._asked.number(score), f"{score.status} {score.reason}".rstrip() + fallback

    def verifier(self, name: str, *, weight: float = 1.0) -> type[Any]:
        """Return a verifier class, which registers itself with open-instruct as long as something holds it.

        Args:
            name: what a row's column `dataset` calls it; a name of open-instruct's own ("math") replaces that one.
            weight: open-instruct multiplies the score with it, and with its `verification_reward` (10).

        Raises:
            ValueError: the name is empty.
        """
        if not name.strip():
            raise ValueError(f"name={name!r}; it must be what the column `dataset` of the rows says")
        theirs: Any = import_module("open_instruct.ground_truth_utils")
        parent: Any = theirs.VerifierFunction
        reward = self

        class AdjudgeVerifier(parent):  # type: ignore[misc]
            def __init__(self, verifier_config: Any = None) -> None:
                super().__init__(name, weight=weight, verifier_config=verifier_config)

            def __call__(
                self,
                tokenized_prediction: list[int],
                prediction: str,
                label: Any,
                query: str | None = None,
                rollout_state: Mapping[str, Any] | None = None,
            ) -> Any:
                number, told = reward.score_blocking(reward.sample(prediction, label, query))
                return theirs.VerificationResult(score=number, reasoning=told)

            async def async_call(
                self,
                tokenized_prediction: list[int],
                prediction: str,
                label: Any,
                query: str | None = None,
                rollout_state: Mapping[str, Any] | None = None,
            ) -> Any:
                number, told = await reward.score(reward.sample(prediction, label, query))
                return theirs.VerificationResult(score=number, reasoning=told)

        return AdjudgeVerifier
