"""GenRM (arXiv 2408.15240): the reward is P(Yes) after "Is the answer correct?", at once or behind a written rationale.

Directly, the first word is read.  With rationales (GenRM-CoT), K of them are sampled and P(Yes) is read behind each;
the mean is the reward, its standard error the uncertainty.  By votes, the verdicts that were written are counted: what
is left where a server tells no probabilities.

Not covered: several questions (`yes_no`), principles (`rlbff`), ratings (`judge`), pairs (`pairwise_judge`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from adjudge.engines.interface import Fault
from adjudge.prompts.scorer import Case, Unsure, require_text
from adjudge.prompts.template import Template, Value, load_template
from adjudge.protocol import Sample, Score
from adjudge.reward_models.generative.chain_scorer import YES_NO, ChainScorer, VerdictReader, decision_of

_DIRECT = "reward_models/generative/genrm_direct"


@dataclass(frozen=True, kw_only=True)
class GenRm(ChainScorer):
    """The chance that a model says Yes when it is asked whether the answer is correct.

    The reference, if there is one, is a correct answer that the model is shown.

    Attributes:
        question: what is asked about the response, answered by Yes or No.
        readout: "direct" reads P(Yes) at once, "probabilities" behind each of `chains` rationales, "votes" counts the
            verdicts of `chains` rationales.  "direct" with `low_mass: sample` counts votes where it is unsure.
    """

    name: ClassVar[str] = "genrm"
    chain_template: ClassVar[str] = "reward_models/generative/genrm"

    question: str = "Is the answer correct?"
    readout: Literal["direct", "probabilities", "votes"] = "direct"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.question.strip():
            raise ValueError(f"{self.name}: question is empty; ask something that is answered by Yes or No")
        if self.readout == "direct" and self.double_checks:
            raise ValueError(
                f"{self.name}: double_checks={self.double_checks} and readout='direct'; nothing is written"
            )

    def readouts(self) -> tuple[str, ...]:
        """Return the values that `readout` may have."""
        return ("direct", "probabilities", "votes")

    def templates(self) -> tuple[Template, ...]:
        """Return every prompt that is used with these options."""
        if self.readout != "direct":
            return super().templates()
        direct = load_template(self.template or _DIRECT)
        return (direct, *super().templates()) if self.low_mass == "sample" else (direct,)

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference is a text, or there is none."""
        require_text(sample.reference)

    def values(self, case: Case) -> dict[str, Value]:
        """Return what fills the prompt's fields."""
        return {
            "prompt": case.sample.prompt,
            "reference": case.sample.reference,
            "response": case.response,
            "question": self.question,
        }

    async def judge(self, cases: Sequence[Case]) -> list[Score]:
        """Return one score per case, in order."""
        if self.readout != "direct":
            return await self._by_chains(cases)
        template = self.templates()[0]
        shares = await self.label_shares(cases, lambda case: self.filled(template, self.values(case)), YES_NO)
        scores: list[Score] = []
        unsure: list[int] = []
        for place, share in enumerate(shares):
            read = decision_of(share, min_mass=self.min_mass, temperature=self.decision_temperature)
            if isinstance(read, Unsure) and self.low_mass == "sample":
                unsure.append(place)
            if isinstance(read, Fault):
                scores.append(self.unanswered(read))
            else:
                spread = math.sqrt(read.chance * (1.0 - read.chance))
                evidence = {"chances": [read.chance], "mass": read.mass}
                scores.append(Score(**self.valued(read.chance, spread), evidence=evidence, cost=read.cost))
        if unsure:
            voted = await replace(self, readout="votes")._by_chains([cases[place] for place in unsure])
            for place, score in zip(unsure, voted, strict=True):
                scores[place] = replace(score, cost=scores[place].cost + score.cost)
        return scores

    async def _by_chains(self, cases: Sequence[Case]) -> list[Score]:
        template = self.chain_prompt()
        read = VerdictReader(form=template.form)
        rows = await self.written(cases, lambda case: self.filled(template, self.values(case)), read)
        return [self.scored(row) for row in rows]
