"""What the verifiers that compare an answer with a reference have in common.

`AnswerVerifier.verify` reads the reference, cuts the reasoning off, finds the answer and hands both to `judge`.
The order matters: a bad reference is reported even when the response is empty, and what the response did wrong
(stopped inside its reasoning, cut off at the token limit, no answer) is a scored 0.

Not covered: reading references and comparing answers; each verifier does that.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, Verifier, response_text, split_reasoning
from adjudge.verifiers.text.answer_context import taken_back
from adjudge.verifiers.text.answer_span import ANSWER_MARKERS, WHERE, Span, Where, find_spans
from adjudge.verifiers.text.markup import visible_answer

Gold = TypeVar("Gold")

# Behind an answer that may be any text, "This answer is well known" states nothing.
_PLAIN_MARKERS = re.compile(
    r"\b(?:the|my|final|correct|right|actual|real|true|corrected|better) answer (?:is\b|should be\b|would be\b|:)[:\s]"
    r"|\banswer\s?:|(?:^\s*|[.!?]\s)(?:correction|no,? wait|actually|sorry)\b[,:\s]",
    re.IGNORECASE | re.MULTILINE,
)
_OFFER = re.compile(r"[\s$)}*_]*(?:or\b(?! equivalently)|[/|]\s*\w)", re.IGNORECASE)
_REMARK = re.compile(
    r"\W*(?:well|correct|right|wrong|unique|therefore|thus|consistent|supported|also|indeed|given|based|found|obtained"
    r"|as|in|shown|verified|clear|above|below|boxed|not|that|because|since|i|we|it|this|there|for|about|to|has"
    r"|an?|the|our|one|now|complete|valid|what|which|exactly)\b|\W*\Z"
)


@dataclass(frozen=True, kw_only=True)
class AnswerVerifier(Verifier, Generic[Gold]):
    """Base of the verifiers that find one answer in a response and compare it with a reference.

    Attributes:
        where: where the answer is looked for; see `adjudge.verifiers.text.answer_span.find_spans`.
        reasoning: "strip" grades only what follows the last end-of-thinking tag, and a response that ends inside
            its reasoning gets 0; "keep" grades the whole text.
        truncated: what a response with `finish_reason="length"` gets: "zero", because the last answer counts and
            nobody knows what it would have been, or "grade" as if it were complete.
    """

    where: Where = "auto"
    reasoning: Literal["strip", "keep"] = "strip"
    truncated: Literal["zero", "grade"] = "zero"

    markers: ClassVar[re.Pattern[str]] = ANSWER_MARKERS

    def __post_init__(self) -> None:
        """Reject options that are not in the lists."""
        require_choice(self, "where", WHERE)
        require_choice(self, "reasoning", ("strip", "keep"))
        require_choice(self, "truncated", ("zero", "grade"))

    @abstractmethod
    def read_reference(self, reference: Any) -> Gold:
        """Return what the answer is compared with.

        Raises:
            BadReferenceError: the reference cannot be read.
        """

    @abstractmethod
    def judge(self, spans: Sequence[Span], gold: Gold) -> Score:
        """Return the score of an answer; `spans` says where it may stand, best first, and is not empty."""

    def shown(self, text: str, gold: Gold) -> str:
        """Return the text without what its reader does not see or sees struck out."""
        del gold
        return visible_answer(text)

    def taken_back(self, span: Span) -> str:
        """Return the reason for a zero when what stands around an answer denies it or gives another, else ""."""
        said = " ".join(" ".join(span.texts).casefold().split())

        def agrees(text: str, bare: bool) -> bool | None:
            text = " ".join(text.casefold().split())
            return None if bare or _REMARK.match(text) else said in text or text.rstrip(" .!*_$") in said

        if span.where in ("boxed", "tag") and _OFFER.match(span.after):
            return "several_answers"
        return taken_back(span, _PLAIN_MARKERS, agrees)

    def verify(self, sample: Sample) -> Score:
        """Return 1, 0 or a value between them; a reference that cannot be read is `gold_unparsable`."""
        try:
            gold = self.read_reference(sample.reference)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        text, fault = graded_text(sample, self.reasoning)
        text = self.shown(text, gold)
        if not fault and self.truncated == "zero" and sample.finish_reason == "length":
            fault = "truncated"
        if fault:
            return Score.scored(0.0, fault)
        spans = find_spans(text, self.where, self.markers)
        return self.judge(spans, gold) if spans else Score.scored(0.0, "no_answer")

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or of a type this verifier does not take."""
        super().validate(sample)
        try:
            self.read_reference(sample.reference)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"{self.name}{f', sample {sample.id!r}' if sample.id else ''}: {error}") from error


def graded_text(sample: Sample, reasoning: str) -> tuple[str, str]:
    """Return the text to grade, and the reason for a zero when there is nothing to grade ("" otherwise)."""
    text = response_text(sample)
    if reasoning == "keep":
        return text, ""
    _, answer, unfinished = split_reasoning(text)
    return answer, "unfinished_reasoning" if unfinished else ""


def require_choice(verifier: Verifier, option: str, allowed: tuple[str, ...]) -> None:
    """Raise `ValueError` unless the option has one of the allowed values."""
    value = getattr(verifier, option)
    if value not in allowed:
        raise ValueError(f"{verifier.name}: {option} is {value!r}; it must be one of {', '.join(allowed)}")


def alternatives(reference: Any, kinds: str) -> list[Any]:
    """Return the accepted alternatives of a reference that is one value or a list of them.

    Args:
        reference: one value, or a non-empty list or tuple; `{"answer": ...}` stands for what it holds.
        kinds: what a value may be, for the error message.

    Raises:
        BadReferenceError: there is no reference, or the list is empty.
    """
    if reference is None:
        raise BadReferenceError(f"there is no reference; give {kinds}", mistake=True)
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    if not isinstance(reference, list | tuple):
        return [reference]
    if not reference:
        raise BadReferenceError(f"the reference is an empty list; give {kinds}", mistake=True)
    return list(reference)
