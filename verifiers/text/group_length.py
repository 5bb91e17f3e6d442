"""A term for length beside what a scorer pays, by the lengths of the other responses to the same prompt.

With len the length of a response, min and max those of its group, and right what `scorer` gives `right` or more:

- "kimi_k15" (Kimi k1.5, arXiv 2501.12599):

      lambda = 0.5 - (len - min) / (max - min)
      term   = lambda if right, min(0, lambda) if wrong;  0 for all where max = min

- "conciser" (ConciseR, arXiv 2505.21178; the form is from memory; its repository holds no code):

      term = 1 - len / max_length, at least 0, where every response of the group is right, else 0

- "optima" (Optima, `thunlp/Optima` at f9dd9be, `reward/reward.py`):

      term = -len / max;  0 for all where max is 0

The value is what `scorer` pays + weight * term.  The first two do not say the weight; 1 is ours.  Kimi k1.5 turns its
term on late in training, which is a second run with this scorer here.

A response without a number from `scorer`, or without a length, has none here, and the others are compared without it.
A right answer, however long, should beat a wrong one: with 0 and 1 it does at a weight below 2 ("kimi_k15").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from adjudge.options import Count, Range
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.runtime.contract import grouped, require_group
from adjudge.scoring.compose.composite import Composite
from adjudge.verifiers.text.length import Unit, length_of


@dataclass(frozen=True, kw_only=True)
class GroupLength(Composite):
    """A scorer's value, and a term for the length of the response beside those of its group.

    Attributes:
        scorer: what says how good the response is.
        rule: "kimi_k15", "conciser" or "optima"; formulas in the module's description.
        weight: what the term is multiplied by, above 0.
        right: the least value of `scorer` that means a right answer.
        max_length: of "conciser", the length at which the term is 0, in units.
        unit: "tokens" reads the policy's own count from `Sample.extra[count_key]`; "words" counts what stands between
            whitespace, "characters" counts code points, both of the whole response.
        count_key: the extra column with the number of completion tokens, or with the list of their ids.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{scorer: SPEC, rule: ..., weight: ..., unit: ..., name: ...}`"
    example: ClassVar[str] = "{group_length: {scorer: math, rule: kimi_k15}}"

    scorer: Scorer | Verifier
    rule: Literal["kimi_k15", "conciser", "optima"] = "kimi_k15"
    weight: Annotated[float, Range(gt=0)] = 1.0
    right: float = 1.0
    max_length: Count = 16_384
    unit: Unit = "tokens"
    count_key: str = "completion_tokens"
    name: str = "group_length"

    @property
    def groupwise(self) -> bool:
        """True: a score depends on the other responses of the group."""
        return True

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` if the scorer objects, or if there is no group or no length."""
        super().validate(sample)
        require_group(self.name, sample)
        length_of(sample, self.unit, self.count_key)

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score, then add the term."""
        (part,) = self.members()
        own = await part.score(samples, inside=self.name)
        scores = [replace(score, steps=(), evidence={}, parts={part.name: score}, uncertainty=None) for score in own]
        lengths: dict[int, int] = {}
        for at, sample in enumerate(samples):
            try:
                lengths[at] = length_of(sample, self.unit, self.count_key)[0]
                require_group(self.name, sample)
            except ValueError as error:
                lengths.pop(at, None)
                parts = scores[at].parts
                scores[at] = replace(Score.failed("bad_sample", error=str(error)), parts=parts)
        known = {at: samples[at].group for at in lengths if scores[at].value is not None}
        for members in grouped(known).values():
            values = [own[at].value or 0.0 for at in members]
            terms = self.terms([lengths[at] for at in members], [value >= self.right for value in values])
            for at, value, term in zip(members, values, terms, strict=True):
                evidence = {"length": lengths[at], "unit": self.unit, "term": term}
                scores[at] = replace(scores[at], value=value + self.weight * term, evidence=evidence)
        return scores

    def terms(self, lengths: Sequence[int], right: Sequence[bool]) -> list[float]:
        """Return the terms of the responses of one group, before the weight."""
        if self.rule == "conciser":
            return [max(0.0, 1 - length / self.max_length) if all(right) else 0.0 for length in lengths]
        low, high = min(lengths), max(lengths)
        if self.rule == "optima":
            return [-length / (high or 1) for length in lengths]
        if low == high:
            return [0.0] * len(lengths)
        shares = [0.5 - (length - low) / (high - low) for length in lengths]
        return [share if good else min(0.0, share) for share, good in zip(shares, right, strict=True)]
