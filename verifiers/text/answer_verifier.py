"""What the verifiers that compare an answer with a reference have in common.

`find` cuts the reasoning off and finds where the answer may stand, and `judge` compares it.  What the response did
wrong (stopped inside its reasoning, cut off at the token limit, no answer) is a scored 0.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from adjudge.protocol import Sample, Score
from adjudge.responses.answer_context import taken_back
from adjudge.responses.answer_span import ANSWER_MARKERS, Span, Where, find_spans
from adjudge.responses.markup import visible_answer
from adjudge.scoring.bad_reference import ReferenceFormError
from adjudge.scoring.reference_fields import one_text
from adjudge.scoring.verifier_base import Gold, TextVerifier

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
class AnswerVerifier(TextVerifier[Gold, Sequence[Span]], Generic[Gold]):
    """Base of the verifiers that find one answer in a response and compare it with a reference.

    Attributes:
        where: where the answer is looked for; see `adjudge.responses.answer_span.find_spans`.
    """

    where: Where = "auto"

    markers: ClassVar[re.Pattern[str]] = ANSWER_MARKERS

    @abstractmethod
    def judge(self, spans: Sequence[Span], gold: Gold) -> Score:
        """Return the score of an answer; `spans` says where it may stand, best first, and is not empty."""

    def shown(self, text: str, gold: Gold) -> str:
        """Return the text without what its reader does not see or sees struck out."""
        del gold
        return visible_answer(text)

    def is_whole(self, text: str, gold: Gold) -> bool:
        """Return whether a text is an accepted answer from beginning to end, though it looks like "answer: x"."""
        del text, gold
        return False

    def taken_back(self, span: Span) -> str:
        """Return the reason for a zero when what stands around an answer denies it or gives another, else ""."""
        said = " ".join(" ".join(span.texts).casefold().split())

        def agrees(text: str, bare: bool) -> bool | None:
            text = " ".join(text.casefold().split())
            return None if bare or _REMARK.match(text) else said in text or text.rstrip(" .!*_$") in said

        if span.where in ("boxed", "tag") and _OFFER.match(span.after):
            return "several_answers"
        return taken_back(span, _PLAIN_MARKERS, agrees)

    def find_in(self, text: str, sample: Sample, gold: Gold) -> Sequence[Span] | Score:
        """Return where the answer may stand, best first; a text that is an accepted one is the answer as a whole."""
        del sample
        shown = self.shown(text, gold)
        for whole in (shown, text) if self.where == "auto" else ():
            if self.is_whole(whole, gold):
                return [Span("response", (whole.strip(),))]
        return find_spans(shown, self.where, self.markers) or Score.scored(0.0, "no_answer")


def alternatives(reference: Any, kinds: str) -> list[Any]:
    """Return the accepted alternatives of a reference: one value, or a list of them that is not empty.

    `{"answer": ...}` stands for what it holds; `kinds` says in errors what a value may be.
    """
    if reference is None:
        raise ReferenceFormError(f"there is no reference; give {kinds}")
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    if not isinstance(reference, list | tuple):
        return [one_text(reference)]
    if not reference:
        raise ReferenceFormError(f"the reference is an empty list; give {kinds}")
    return list(reference)
