"""The life of a verifier that compares a response with a reference, written once for all of them.

A verifier says how its reference is read, which part of a response is judged, and what that part is worth.  The rest
is here: a bad reference is `gold_unparsable` in `verify` and, where its form is wrong, a `ValueError` in `validate`; a
missing engine is `engine_unavailable`; options are held to their annotations; reasoning is cut off, and what was
truncated or has no answer is a scored 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from adjudge.options import check_options
from adjudge.protocol import Sample, Score, Verifier, response_text, split_reasoning
from adjudge.responses.markup import text_end
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.wire import json_hint

Gold = TypeVar("Gold")
Answer = TypeVar("Answer")

Reasoning: TypeAlias = Literal["strip", "keep"]
Truncated: TypeAlias = Literal["zero", "grade"]


@dataclass(frozen=True, kw_only=True)
class ReferenceVerifier(Verifier, Generic[Gold, Answer]):
    """Base of the verifiers that compare a response with a reference.

    The reference is looked at first, so that a bad one is reported even when the response is empty.

    Attributes:
        unavailable: errors that say that an engine is missing; a `reason` that they have is the score's.
    """

    unavailable: ClassVar[tuple[type[Exception], ...]] = ()

    def __post_init__(self) -> None:
        check_options(self, f"{self.name} option")

    @abstractmethod
    def read_reference(self, reference: Any) -> Gold:
        """Return what the response is compared with.

        Raises:
            BadReferenceError: the reference cannot be read.
        """

    @abstractmethod
    def find(self, sample: Sample, gold: Gold) -> Answer | Score:
        """Return what is judged of a response, or its score where there is nothing to judge."""

    @abstractmethod
    def judge(self, answer: Answer, gold: Gold) -> Score:
        """Return the score of what `find` has found.

        Raises:
            BadReferenceError: only judging has shown that the reference cannot be used.
        """

    def gold_of(self, sample: Sample) -> Gold:
        """Return what a sample's response is compared with: its reference, read."""
        return self.read_reference(sample.reference)

    def check_reference(self, sample: Sample) -> None:
        """Look at a sample's reference before any work; override it where `gold_of` runs something.

        Raises:
            BadReferenceError: the reference cannot be read.
        """
        self.gold_of(sample)

    def verify(self, sample: Sample) -> Score:
        """Return the score of a response; a reference that cannot be read is `gold_unparsable`."""
        score = self._verified(sample)
        if score.reason != "gold_unparsable" or not (hint := json_hint(sample.reference)):
            return score
        return replace(score, evidence={**score.evidence, "error": f"{hint}: {score.evidence.get('error', '')}"})

    def _verified(self, sample: Sample) -> Score:
        try:
            gold = self.gold_of(sample)
            answer = self.find(sample, gold)
            return answer if isinstance(answer, Score) else self.judge(answer, gold)
        except BadReferenceError as error:
            return Score.failed("gold_timeout" if error.limit else "gold_unparsable", error=str(error))
        except self.unavailable as error:
            return Score.failed(getattr(error, "reason", "engine_unavailable"), error=str(error))

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or has not the form that this verifier takes."""
        super().validate(sample)
        try:
            refuse_mistakes(self.name, sample, lambda: self.check_reference(sample))
        except self.unavailable as error:
            raise ValueError(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class TextVerifier(ReferenceVerifier[Gold, Answer], Generic[Gold, Answer]):
    """Base of the verifiers that look for an answer in the text of a response.

    Attributes:
        reasoning: "strip" grades only what follows the last end-of-thinking tag, and a response that ends inside
            its reasoning gets 0; "keep" grades the whole text.
        truncated: what a response with `finish_reason="length"` gets: "zero", or "grade" as if it were complete.
    """

    reasoning: Reasoning = "strip"
    truncated: Truncated = "zero"

    @abstractmethod
    def find_in(self, text: str, sample: Sample, gold: Gold) -> Answer | Score:
        """Return what is judged of the graded text, or the score where there is nothing to judge."""

    def nothing(self, reason: str, sample: Sample, gold: Gold) -> Score:
        """Return the score of a response without a text to grade."""
        return Score.scored(0.0, reason)

    def find(self, sample: Sample, gold: Gold) -> Answer | Score:
        """Return what is judged of a response, or its score where there is nothing to judge."""
        text, fault = graded_text(sample, self.reasoning, self.truncated)
        return self.nothing(fault, sample, gold) if fault else self.find_in(text, sample, gold)


def refuse_mistakes(name: str, sample: Sample, read: Callable[[], object]) -> None:
    """Read a sample for `validate`: what is wrong with it is the user's mistake, but for a reference of the right form.

    Args:
        name: the scorer's name.
        sample: named in the message.
        read: reads the reference, or something else of the sample.

    Raises:
        ValueError: the reference has a wrong form, or `read` raises any other `ValueError`.
    """
    try:
        read()
    except ValueError as error:
        if not isinstance(error, BadReferenceError) or error.mistake:
            said = (
                f"{error}; {hint}" if (hint := json_hint(sample.reference)) and "JSON text" not in str(error) else error
            )
            raise ValueError(f"{name}{f', sample {sample.id!r}' if sample.id else ''}: {said}") from error


def graded_text(
    sample: Sample, reasoning: str, truncated: str = "grade", *, end_tokens: bool = False
) -> tuple[str, str]:
    """Return the text to grade, and the reason for a zero when there is none.

    Args:
        sample: its response is looked at.
        reasoning: "strip" leaves out what stands before the end-of-thinking tag; "keep" leaves out nothing.
        truncated: whether a response that was cut off is worth 0 ("zero") or graded like any other ("grade").
        end_tokens: whether the tokens that end a turn, such as `<|im_end|>`, belong to the text.

    Returns:
        The text and "", or "" and "unfinished_reasoning" or "truncated".
    """
    text = response_text(sample)
    if reasoning == "strip":
        _, text, unfinished = split_reasoning(text)
        if unfinished:
            return "", "unfinished_reasoning"
    if truncated == "zero" and sample.finish_reason == "length":
        return "", "truncated"
    return (text if end_tokens else text[: text_end(text)]), ""
