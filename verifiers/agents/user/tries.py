"""An answer that may be tried again: worth less with each try before it, and less where tries repeat (UFO).

With T turns of the assistant's, v what `scorer` pays for the newest one by itself, and E the number of answers that
differ:

    value = v * decay^(T - 1) - repetition * (1 - E / T)

The user who asks again is `rollouts.user: {kind: try_again}` in a run, and leaves with the first right answer.

Source: UFO (arXiv 2507.14295); `lichengliu03/unary-feedback`: decay 1/2 is ragen/env/static/env.py at 6d664d8, which
pays no penalty; the penalty is the README's, without a number.  Ours: what an answer is, and that all turns without one
count as one and the same.

Not covered: the -0.1 that the code's trainer adds for each turn in a wrong form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from adjudge.options import Range, Share
from adjudge.protocol import Sample, Score, Scorer, Verifier
from adjudge.responses.answer_span import Where, find_spans
from adjudge.scoring.compose.composite import Composite
from adjudge.scoring.verifier_base import graded_text
from adjudge.verifiers.agents.user.dialogue import turns_of


@dataclass(frozen=True, kw_only=True)
class Tries(Composite):
    """What a scorer gives the newest of several tries, less for those before it (UFO).

    The response is turns of the assistant's with a user between them; one text is one try.

    Attributes:
        scorer: says how good one try is by itself, 0 being wrong.
        decay: what a try is worth beside the one before it.
        repetition: what a conversation of nothing but one answer, again and again, nearly loses.
        where: where a try's answer is looked for, to tell it from others.
        name: short name, used in provenance and reports.
    """

    spec_form: ClassVar[str] = "`{scorer: SPEC, decay: ..., repetition: ..., where: ..., name: ...}`"
    example: ClassVar[str] = "{tries: {scorer: math}}"

    scorer: Scorer | Verifier
    decay: Share = 0.5
    repetition: Annotated[float, Range(ge=0)] = 0.0
    where: Where = "auto"
    name: str = "tries"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reject_groupwise(self.members(), sees="one try of each response")

    async def mix(self, samples: Sequence[Sample]) -> list[Score]:
        """Score the newest try, then count those before it."""
        tries: dict[int, list[Sample]] = {}
        scores: dict[int, Score] = {}
        for at, sample in enumerate(samples):
            try:
                said = [turn.text for turn in turns_of(sample, "keep")] or [""]
            except ValueError as error:
                scores[at] = Score.failed("bad_sample", error=str(error))
            else:
                tries[at] = [replace(sample, response=text) for text in said]
        (part,) = self.members()
        own = await part.score([made[-1] for made in tries.values()], inside=self.name) if tries else []
        for (at, made), score in zip(tries.items(), own, strict=True):
            different = len({self._answer(one) for one in made})
            value = score.value
            if value is not None:
                value = value * self.decay ** (len(made) - 1) - self.repetition * (1 - different / len(made))
            evidence = {"tries": len(made), "different": different}
            scores[at] = replace(
                score, value=value, steps=(), evidence=evidence, parts={part.name: score}, uncertainty=None
            )
        return [scores[at] for at in range(len(samples))]

    def _answer(self, sample: Sample) -> str:
        """A try's answer without white space and in small letters; "" without one."""
        text, fault = graded_text(sample, "strip")
        spans = [] if fault else find_spans(text, self.where)
        return "".join(spans[0].texts[0].lower().split()) if spans else ""
