r"""Token F1 and exact match between an answer and a reference, as SQuAD and MRQA define them.

Source: the SQuAD 1.1 evaluation (Rajpurkar et al., 2016), used by MRQA (Fisch et al., 2019).  Both texts are
normalised in this order: text commands and escapes of TeX, and typographic quotes and dashes, written plainly (not in
the source); lower case; ASCII punctuation removed (not replaced by a space, so "well-known" is one
token); the words a, an, the removed; split at whitespace.  Then with bags of tokens P (answer) and G (reference)

    common    = sum over tokens of min(count in P, count in G)
    precision = common / |P|,  recall = common / |G|
    F1        = 2 * precision * recall / (precision + recall),  0 when common is 0
    EM        = 1 when the normalised texts are equal, else 0

and the best value over the accepted references.  Over several references this is a maximum, not a mean.  An answer
beyond 2,000,000 characters scores 0 unread.

Not covered: SQuAD 2's unanswerable questions.  A reference without a single token is refused, because the empty
answer would score 1.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adjudge.protocol import Score
from adjudge.responses.answer_span import Span, shorten
from adjudge.responses.markup import plain_quotes, spaced, without_tex
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.verifiers.text.answer_verifier import AnswerVerifier, alternatives

MAX_CHARACTERS = 2_000_000

_ASCII_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True, kw_only=True)
class TokenF1Verifier(AnswerVerifier[tuple[tuple[str, ...], ...]]):
    """The best token F1, or exact match, of the answer over the accepted references; between 0 and 1.

    The reference is a text, or a list of accepted texts.

    Attributes:
        metric: "f1" or "exact_match".
        language: "en" is the published English definition; "any" keeps articles, removes all Unicode punctuation and
            takes every character of a script written without spaces as a token (Chinese, Japanese, Thai, ...).
    """

    name: ClassVar[str] = "token_f1"
    version: ClassVar[str] = "8"

    metric: Literal["f1", "exact_match"] = "f1"
    language: Literal["en", "any"] = "en"

    def read_reference(self, reference: Any) -> tuple[tuple[str, ...], ...]:
        """Return the tokens of each accepted text."""
        golds = []
        for value in alternatives(reference, "a text, or a list of accepted texts"):
            if not isinstance(value, str):
                shown = shorten(repr(value), 60)
                raise ReferenceFormError(f"the reference holds {shown}; token_f1 compares texts")
            if not (tokens := self.tokens(value)):
                raise BadReferenceError(f"the reference {shorten(value, 60)!r} has no token")
            golds.append(tuple(tokens))
        return tuple(golds)

    def is_whole(self, text: str, gold: tuple[tuple[str, ...], ...]) -> bool:
        """Return whether a text is an accepted one from beginning to end."""
        return len(text) <= MAX_CHARACTERS and tuple(self.tokens(text)) in gold

    def judge(self, spans: Sequence[Span], gold: tuple[tuple[str, ...], ...]) -> Score:
        """Return the best value over the accepted references."""
        span = spans[0]
        evidence = {"answer": shorten(" | ".join(span.texts)), "where": span.where}
        if sum(map(len, span.texts)) > MAX_CHARACTERS:
            return Score.scored(0.0, "too_complex", **evidence)
        tokens = self.tokens(" ".join(span.texts))
        if not tokens:
            return Score.scored(0.0, "no_answer", **evidence)
        if self.metric == "exact_match":
            best = float(tuple(tokens) in gold)
        else:
            counts = Counter(tokens)
            best = max(token_f1(counts, Counter(accepted)) for accepted in gold)
        if best and (fault := self.taken_back(span)):
            return Score.scored(0.0, fault, **evidence)
        return Score.scored(best, "" if best else "wrong", **evidence)

    def tokens(self, text: str) -> list[str]:
        """Return the normalised tokens of a text."""
        text = plain_quotes(without_tex(text))
        if self.language == "en":
            return _ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split()
        text = unicodedata.normalize("NFKC", text).casefold()
        marks = {ord(char): None for char in set(text) if unicodedata.category(char)[0] in "PS"}
        return spaced(text.translate(marks)).split()


def token_f1(answer: Counter[str], reference: Counter[str]) -> float:
    """Return the F1 of two bags of tokens; 0 when they share none.

    >>> token_f1(Counter(["cat", "sat"]), Counter(["cat", "sat", "down"]))
    0.8
    """
    common = sum(min(count, answer[token]) for token, count in reference.items())
    if not common:
        return 0.0
    # 2pr / (p + r) with p = common/|P| and r = common/|G| is 2 * common / (|P| + |G|): one rounding instead of five.
    return 2 * common / (answer.total() + reference.total())
