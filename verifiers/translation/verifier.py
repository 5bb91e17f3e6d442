"""The part of a translation's reward that needs no model: its form, and BLEU or chrF.

`adjudge.verifiers.translation.scorer` is the whole, with metrics by models; it runs this in the worker pool.

Not covered: what a reader would call right.  A good translation in other words has a low BLEU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.attacks import AttackCase
from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, Verifier
from adjudge.verifiers.text.answer_span import shorten
from adjudge.verifiers.translation.lexical import bleu, chrf
from adjudge.verifiers.translation.options import Fault, TranslationOptions, require_one_of
from adjudge.verifiers.translation.reference import TranslationReference
from adjudge.verifiers.translation.rewards import lowest

Lexical = Literal["bleu", "chrf"]


@dataclass(frozen=True, kw_only=True)
class TranslationVerifier(TranslationOptions, Verifier):
    """BLEU or chrF of a translation behind a format gate; -3 to 3 as in MT-R1-Zero, or 0 to 1.

    The reference is a translation, a list of accepted ones, or `{"references": [..], "source": .., "language": ..}`.

    Attributes:
        metric: "bleu" or "chrf".
    """

    name: ClassVar[str] = "translation"
    version: ClassVar[str] = "2"

    metric: Lexical = "bleu"

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        require_one_of("metric", self.metric, ("bleu", "chrf"))
        if self.reward == "discrete" and self.lexical_above is None:
            raise ValueError(
                'translation: reward="discrete" pays by a threshold; give lexical_above, a number from 0 to 1'
            )

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or malformed, or its tokenizer is not installed."""
        super().validate(sample)
        try:
            reference = self.read_reference(sample.reference)
        except BadReferenceError as error:
            if error.mistake:
                raise ValueError(f"translation{f', sample {sample.id!r}' if sample.id else ''}: {error}") from error
            return
        if self.metric == "bleu":
            self.tokenizer_of(reference)

    def verify(self, sample: Sample) -> Score:
        """Return the reward; the evidence has the metric's value under "lexical", or the problem."""
        try:
            reference = self.read_reference(sample.reference)
        except BadReferenceError as error:
            return Score.failed("gold_unparsable", error=str(error))
        try:
            measured_by = self.tokenizer_of(reference) if self.metric == "bleu" else "characters"
        except ValueError as error:
            return Score.failed("engine_unavailable", error=str(error))
        found = self.find(sample, reference)
        if isinstance(found, Fault):
            return self.worthless(found)
        value = self._measured(found, reference)
        return Score.scored(
            *self.worth((value,), (self.lexical_above,)),
            lexical=value,
            metric=self.metric,
            tokenizer=measured_by,
            translation=shorten(found),
        )

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the lowest value: 0 would be better than a wrong form."""
        return Score.scored(lowest(self.scale), reason)

    def warm_up(self) -> None:
        """Import sacrebleu before any sample's time runs."""
        bleu("a", ["a"], tokenizer="13a")
        chrf("a", ["a"])

    def attacks(self, folder: Path) -> Iterator[AttackCase]:
        """Yield responses that would earn a translation's reward without translating, and honest ones near them."""
        from adjudge.verifiers.translation.attacks import attack_cases

        del folder  # the cases need no files
        return attack_cases(self.metric)

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
