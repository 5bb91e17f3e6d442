"""The part of a translation's reward that needs no model: its form, and BLEU or chrF.

`adjudge.verifiers.text.translation.scorer` is the whole, with metrics by models; it runs this in the worker pool.

Not covered: what a reader would call right.  A good translation in other words has a low BLEU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from adjudge.protocol import Sample, Score
from adjudge.responses.answer_span import shorten
from adjudge.scoring.verifier_base import ReferenceVerifier
from adjudge.verifiers.text.translation.lexical import bleu, chrf
from adjudge.verifiers.text.translation.options import (
    Fault,
    TokenizerMissingError,
    TranslationOptions,
    TranslationReference,
    lowest,
)

Lexical = Literal["bleu", "chrf"]


@dataclass(frozen=True, kw_only=True)
class TranslationVerifier(TranslationOptions, ReferenceVerifier[TranslationReference, tuple[str, str]]):
    """BLEU or chrF of a translation behind a format gate; -3 to 3 as in MT-R1-Zero, or 0 to 1.

    The reference is a translation, a list of accepted ones, or `{"references": [..], "source": .., "language": ..}`.

    Attributes:
        metric: "bleu" or "chrf".
    """

    name: ClassVar[str] = "translation"
    version: ClassVar[str] = "2"

    metric: Lexical = "bleu"

    unavailable: ClassVar[tuple[type[Exception], ...]] = (TokenizerMissingError,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reward == "discrete" and self.lexical_above is None:
            raise ValueError(
                'translation: reward="discrete" pays by a threshold; give lexical_above, a number from 0 to 1'
            )

    def check_reference(self, sample: Sample) -> None:
        """Read a sample's reference, whose tokenizer must be installed."""
        reference = self.gold_of(sample)
        if self.metric == "bleu":
            self.tokenizer_of(reference)

    def find(self, sample: Sample, gold: TranslationReference) -> tuple[str, str] | Score:
        """Return the translation, and what it is cut into."""
        tokens = self.tokenizer_of(gold) if self.metric == "bleu" else "characters"
        text = self.translation_of(sample, gold)
        return self.worthless(text) if isinstance(text, Fault) else (text, tokens)

    def judge(self, answer: tuple[str, str], gold: TranslationReference) -> Score:
        """Return the reward; the evidence has the metric's value under "lexical", or the problem."""
        text, tokens = answer
        value = self._measured(text, gold)
        return Score.scored(
            *self.worth((value,), (self.lexical_above,)),
            lexical=value,
            metric=self.metric,
            tokenizer=tokens,
            translation=shorten(text),
        )

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the lowest value: 0 would be better than a wrong form."""
        return Score.scored(lowest(self.scale), reason)

    def warm_up(self) -> None:
        """Import sacrebleu before any sample's time runs."""
        bleu("a", ["a"], tokenizer="13a")
        chrf("a", ["a"])

    def _measured(self, text: str, reference: TranslationReference) -> float:
        if self.metric == "chrf":
            return chrf(text, reference.texts, words=self.chrf_words)
        return bleu(
            text,
            reference.texts,
            tokenizer=self.tokenizer_of(reference),
            effective_order=self.effective_order,
            merged=self.several == "merged",
        )


def lexical_of(options: TranslationOptions, metric: Lexical, **other: Any) -> TranslationVerifier:
    """Return the verifier with the options of another class, some of them replaced."""
    given = {name: getattr(options, name) for name in TranslationOptions.__dataclass_fields__}
    return TranslationVerifier(**{**given, "metric": metric, **other})
