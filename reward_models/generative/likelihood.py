"""How likely a response is behind its prompt, or whether it surprises as much as it should.

    without a centre: pool(p(token of the response | prompt, what stands before it))
    with one:         exp(-((s - center) / width)^2),   s = -log of that

By itself it is the ranking that a policy has of its own answers (CycleAlign, arXiv 2310.16271).  With a centre, a text
pays that is neither what everybody would write nor noise (COS(M+O)S, arXiv 2501.17104); s is in nats for each token.

A likely text need be no good one: repetition is likely.  Put a judge beside it.

Not covered: base models without a chat template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from adjudge.options import Range
from adjudge.protocol import Sample, Score, response_text
from adjudge.responses.aggregate import Pooling
from adjudge.reward_models.generative.assistant_turn import policy_turn
from adjudge.reward_models.generative.forced_scorer import Asked, Forced, ForcedScorer, Probability, turns_of


@dataclass(frozen=True, kw_only=True)
class Likelihood(ForcedScorer):
    """The pooled probability of a response's tokens, in [0, 1], or how near its surprisal is to a centre.

    An empty response, and one that the engine refuses for its own sake, scores 0.

    Attributes:
        center: the surprisal -log(pool(p)) that scores 1, such as the mean of texts that people liked, under the same
            model; None for the probability itself.
        width: at this distance from the centre the score is 1 / e.
    """

    name: ClassVar[str] = "likelihood"
    needs_reference: ClassVar[bool | None] = False

    pooling: Pooling = "exp_mean_logp"
    center: float | None = None
    width: Annotated[float, Range(gt=0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.center is None and self.width != 1.0:
            raise ValueError(f"{self.name} option width={self.width} has no center beside it; give one, or no width")

    def check_reference(self, sample: Sample) -> None:
        """There is nothing to check."""

    def asked(self, sample: Sample) -> Asked | Score:
        """Return the response behind its prompt."""
        try:
            response = response_text(sample)
        except ValueError as error:
            return Score.scored(0.0, "no_answer", error=str(error))
        if not response.strip():
            return Score.scored(0.0, "no_answer")
        if len(response) > self.max_characters:
            return Score.scored(0.0, "too_complex")
        prompt = turns_of(sample.prompt)
        text = policy_turn(response, special=self.special_tokens, as_written=True)  # no template reads it
        other = Forced(turns=prompt, text="-")
        return Asked(forced=[Forced(turns=prompt, text=text)], plain=other, shaped=other, scored=self._scored)

    def _scored(self, row: Sequence[Probability], end: Score | None) -> Score:
        (one,) = row
        surprisal = -math.log(one.value) if one.value else math.inf
        value = one.value if self.center is None else math.exp(-(((surprisal - self.center) / self.width) ** 2))
        return Score(value=value, evidence={"probability": one.value}, cost=one.cost)
