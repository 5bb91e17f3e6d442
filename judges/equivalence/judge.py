"""A judge that says whether a final answer means the same as the accepted one: the last tier behind rules.

In a cascade, programs settle what they can read, and this judge is asked about the rest:
`{cascade: {stages: [math, {answer_judge: {engine: ..}}], pass_on: [undecided, unparsable_answer]}}`.

Not covered: whether the way to the answer is right, and questions without one right answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from adjudge.judges.pointwise.judge import Judge
from adjudge.prompts.template import Value
from adjudge.protocol import Sample


@dataclass(frozen=True, kw_only=True)
class AnswerJudge(Judge):
    """1 when a model finds that the final answer means the same as the accepted one, else 0.

    The reference is the accepted answer as a text or a number, or a list of accepted ones.
    """

    name: ClassVar[str] = "answer_judge"
    needs_reference: ClassVar[bool | None] = True
    text_template: ClassVar[str] = "judges/answer"
    direct_template: ClassVar[str] = "judges/answer_direct"

    shortest: int = 1
    reasons: Mapping[str, str] = field(default_factory=lambda: {"different": "wrong", "invalid": "no_answer"})
    labels: Mapping[str, float] | None = None

    @property
    def worth(self) -> Mapping[str, float]:
        """What each verdict is worth."""
        if self.labels is None:
            return {"same": 1.0, "different": 0.0, "invalid": 0.0}
        return super().worth

    @property
    def range(self) -> None:
        """The verdict is a label."""
        return

    def check_reference(self, sample: Sample) -> None:
        """Raise `ValueError` unless the reference holds one accepted answer at least."""
        accepted_answers(sample.reference)

    def shown_reference(self, sample: Sample) -> Value:
        """Return the accepted answers, one on each line."""
        return "\n".join(accepted_answers(sample.reference))


def accepted_answers(reference: Any) -> list[str]:
    """Return the accepted answers as texts.

    Raises:
        ValueError: the reference is neither a text or a number nor a list of them, or one of them is empty.
    """
    several = reference if isinstance(reference, list | tuple) else [reference]
    answers = [str(answer).strip() for answer in several if isinstance(answer, str | int | float)]
    if not several or len(answers) < len(several) or not all(answers):
        raise ValueError(
            f"the reference is {reference!r}; it must be the accepted answer as a text or a number, or a list of them"
        )
    return answers
