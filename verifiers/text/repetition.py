r"""Punish a response that repeats itself.

Source: the n-gram repetition penalty of Yeo et al. (2025, arXiv 2502.03373, appendix C.2), as in open-r1.  With the
tokens t of the response in lower case and n = `ngram`:

    grams = (t[0..n-1], t[1..n], ...),   total = len(t) - n + 1
    value = max_penalty * (1 - distinct(grams) / total),   0 when total < 1

so 0 means that no n-gram occurs twice, and the value comes near `max_penalty` when one n-gram is all there is.

The published tokens are what stands between whitespace (`unit="words"`), which sees a text without spaces as one word
and never punishes it.  The default, "mixed", also takes every character of a script written without spaces as a
token, and every character of a "word" longer than 40.

A response beyond 2,000,000 characters or 500,000 tokens is not counted and gets `max_penalty`.

Not covered: the paper's dense variant, which puts the penalty on the repeated tokens themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from adjudge.options import Count, Range, check_options
from adjudge.protocol import Sample, Score, Verifier
from adjudge.responses.markup import spaced
from adjudge.scoring.verifier_base import graded_text

MAX_WORD = 40
MAX_CHARACTERS = 2_000_000
MAX_TOKENS = 500_000


@dataclass(frozen=True, kw_only=True)
class RepetitionPenalty(Verifier):
    """A value between `max_penalty` and 0 that falls with the share of repeated n-grams.

    Attributes:
        ngram: n, at least 1.  open-r1 uses 3; Yeo et al. use 40 for long chains of thought.
        max_penalty: the value at full repetition, finite and at most 0.
        unit: what a token is: "mixed", "words" (as published) or "characters".
        reasoning: "keep" looks at the whole response; "strip" only at what follows the last end-of-thinking tag, and
            an unfinished reasoning then gets `max_penalty`.
    """

    name: ClassVar[str] = "repetition"
    version: ClassVar[str] = "2"
    needs_reference: ClassVar[bool] = False

    ngram: Count = 3
    max_penalty: Annotated[float, Range(le=0)] = -1.0
    unit: Literal["mixed", "words", "characters"] = "mixed"
    reasoning: Literal["keep", "strip"] = "keep"

    def __post_init__(self) -> None:
        check_options(self, "repetition option")

    def verify(self, sample: Sample) -> Score:
        """Return the penalty; the evidence holds how many n-grams there are and how many differ."""
        text, fault = graded_text(sample, self.reasoning)
        if fault:
            return Score.scored(self.max_penalty, fault)
        tokens = self._tokens(text.lower()) if len(text) <= MAX_CHARACTERS else []
        if len(text) > MAX_CHARACTERS or len(tokens) > MAX_TOKENS:
            return Score.scored(self.max_penalty, "too_complex", characters=len(text))
        total = len(tokens) - self.ngram + 1
        if total < 1:
            return Score.scored(0.0, ngrams=0, distinct=0)
        distinct = distinct_ngrams(tokens, self.ngram)
        share = 1 - distinct / total
        if not share or not self.max_penalty:
            return Score.scored(0.0, ngrams=total, distinct=distinct)
        return Score.scored(self.max_penalty * share, "repetition", ngrams=total, distinct=distinct)

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return `max_penalty`: 0 would be the best value there is."""
        return Score.scored(self.max_penalty, reason)

    def _tokens(self, text: str) -> list[str]:
        if self.unit == "characters":
            return list(text)
        if self.unit == "words":
            return text.split()
        tokens: list[str] = []
        for word in spaced(text).split():
            if len(word) > MAX_WORD:
                tokens.extend(word)
            else:
                tokens.append(word)
        return tokens


def distinct_ngrams(tokens: list[str], n: int) -> int:
    """Return how many different n-grams a list of at least n tokens has.

    Every n-gram gets a number, built from the numbers of its two overlapping halves, so the cost is
    len(tokens) * log2(n) small integers instead of len(tokens) tuples of n words.
    """
    numbers: dict[object, int] = {}
    ids = [numbers.setdefault(token, len(numbers)) for token in tokens]
    size = 1
    while size < n:
        step = min(size, n - size)
        base = len(ids)
        pairs: dict[int, int] = {}
        ids = [pairs.setdefault(ids[at] * base + ids[at + step], len(pairs)) for at in range(len(ids) - step)]
        size += step
    return len(set(ids))
