r"""What the verifiers of this folder have in common: an answer that the response marks, and a rule for the response.

The answer is the last `<answer>` element, or else the last `\boxed{}`; never the whole text, unless `where` asks for
it.  So an answer in the reasoning, a copy of the prompt, and a list of candidates are not answers.  What Markdown and
TeX put around it is taken off, and arrows, braces and texts of TeX are read as typed ones.

InternBootcamp's rule for the whole response is two options: `min_characters=100` and `thought=True`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Generic

from adjudge.options import Range
from adjudge.protocol import THINK_END, Sample, Score, response_text
from adjudge.responses.answer_span import Span, shorten
from adjudge.responses.markup import unfenced, unwrap, without_tex
from adjudge.scoring.verifier_base import Gold
from adjudge.verifiers.logic.literal import LiteralError
from adjudge.verifiers.text.answer_verifier import AnswerVerifier

MAX_ANSWER: Final = 100_000  # characters of an answer that are read

# Of a program's value the quotes are a part, and of a board the stars.
_WHOLE: Final = re.compile(r"(['\"]).*\1|\*(?:\s|[^*\n]*\n).*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class MarkedAnswerVerifier(AnswerVerifier[Gold], Generic[Gold]):
    """Base of the verifiers that read one marked answer.

    Attributes:
        min_characters: characters that a response must have, its reasoning included; a shorter one is worth 0.
        thought: whether a response without an end-of-thinking tag is worth 0.
    """

    min_characters: Annotated[int, Range(ge=0)] = 0
    thought: bool = False

    @abstractmethod
    def judge_text(self, answer: str, gold: Gold) -> Score:
        """Return the score of an answer, which is not blank and has at most `MAX_ANSWER` characters.

        Raises:
            LiteralError: it cannot be read; its reason is that of the zero.
        """

    def bare(self, answer: str, gold: Gold) -> str:
        """Return an answer without the marks around it, and without those of TeX inside."""
        del gold
        return without_tex(unwrap(unfenced(answer), keep=_WHOLE))

    def verify(self, sample: Sample) -> Score:
        """Return the score; a reference that cannot be read is `gold_unparsable`."""
        score = super().verify(sample)
        if score.status != "scored" or not (self.min_characters or self.thought):
            return score
        text = response_text(sample)
        if self.thought and not any(tag in text for tag in THINK_END):
            return Score.scored(0.0, "bad_format", error="there is no end-of-thinking tag")
        if len(text) < self.min_characters:
            return Score.scored(0.0, "too_short", characters=len(text))
        return score

    def judge(self, spans: Sequence[Span], gold: Gold) -> Score:
        """Return the score of the marked answer."""
        marked = (span for span in spans if span.where in ("boxed", "tag") and any(span.texts))
        span = next(marked, None) if self.where == "auto" else spans[0]
        if span is None:
            return Score.scored(0.0, "no_answer")
        if len(set(span.texts)) > 1:
            return Score.scored(0.0, "several_answers", answer=shorten(" | ".join(span.texts)), where=span.where)
        text = span.texts[-1]
        if len(text) > MAX_ANSWER:
            return Score.scored(0.0, "too_complex", error=f"{len(text)} characters; an answer may have {MAX_ANSWER}")
        answer = self.bare(text.strip(), gold)
        try:
            score = self.judge_text(answer, gold) if answer else Score.scored(0.0, "no_answer")
        except LiteralError as error:
            return Score.scored(0.0, error.reason, answer=shorten(answer), error=str(error))
        fault = ""
        if score.value:  # what stands behind the answer may repeat it with its marks or without them
            fault = self.taken_back(span) and self.taken_back(replace(span, texts=(answer,)))
        return Score.scored(0.0, fault, answer=shorten(answer), where=span.where) if fault else score
