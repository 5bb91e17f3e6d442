"""The reward of a translation as in MT-R1-Zero: its form, then a metric on words, a metric by a model, or both.

Which model is the user's choice: `semantic` is any scorer that judges samples by themselves.  It is asked about
translations in the right form alone, with the source as the prompt, the translation as the response, and the accepted
translations as the reference, so metrics without references (COMETKiwi) and with them (COMET) are used alike.

Not covered: COMET's own checkpoints, which are not models of transformers; wrap the `comet` package in a scorer of your
own (docs/text_verifiers.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from adjudge.fingerprints import fingerprint_of
from adjudge.options import Share
from adjudge.protocol import Sample, Score
from adjudge.reasons import of_parts
from adjudge.runtime.contract import score_checked, validate_sample
from adjudge.runtime.verifying import VerifierScorer
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.nested import HasInnerScorers
from adjudge.verifiers.text.translation.verifier import (
    Lexical,
    TranslationOptions,
    TranslationReference,
    TranslationVerifier,
    lexical_of,
)


@dataclass(frozen=True, kw_only=True)
class TranslationScorer(TranslationOptions, HasInnerScorers):
    """A translation behind a format gate: BLEU, chrF, a model's metric or a mix; -3 to 3 as in MT-R1-Zero, or 0 to 1.

    The reference is a translation, a list of accepted ones, or `{"references": [..], "source": .., "language": ..}`.

    Attributes:
        metric: "bleu", "chrf", "semantic" (the scorer of that name alone) or "mix" (the sum of both, or their mean on
            the unit scale; with "discrete" both must be above their thresholds).
        lexical: "bleu" or "chrf": the other metric of a mix.
        semantic: the scorer of meaning; "semantic" and "mix" need one.
        semantic_range: its values for the worst and the best translation.
        semantic_above: its threshold for "discrete", in [0, 1] after `semantic_range`.
    """

    name: ClassVar[str] = "translation"
    version: ClassVar[str] = "3"
    inner: ClassVar[tuple[str, ...]] = ("semantic",)

    metric: Literal["bleu", "chrf", "semantic", "mix"] = "bleu"
    lexical: Lexical = "bleu"
    semantic: Any = None
    semantic_range: tuple[float, float] = (0.0, 1.0)
    semantic_above: Share | None = None
    _lexical: VerifierScorer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        TranslationOptions.__post_init__(self)
        self._check_range()
        if self._asks and self.semantic is None:
            raise ValueError(f'translation: metric="{self.metric}" needs the option semantic, a scorer')
        if not self._asks and self.semantic is not None:
            raise ValueError(
                f'translation: metric="{self.metric}" does not ask the semantic scorer; give metric="mix" or "semantic"'
            )
        HasInnerScorers.__post_init__(self)
        if self.reward == "discrete":
            for option in ("lexical_above",) * (self.metric != "semantic") + ("semantic_above",) * self._asks:
                if getattr(self, option) is None:
                    raise ValueError(
                        f'translation: reward="discrete" pays by a threshold; give {option}, a number from 0 to 1'
                    )
        object.__setattr__(self, "_lexical", VerifierScorer(self._words()))

    @property
    def verifier(self) -> TranslationVerifier | None:
        """The verifier that does all the work, or None where a model is asked too."""
        verifier = None if self._asks else self._lexical.verifier
        return verifier if isinstance(verifier, TranslationVerifier) else None

    @property
    def fingerprint(self) -> str:
        """That of the verifier, or one over all options and the semantic scorer's own."""
        if not self._asks:
            return self._lexical.fingerprint
        return fingerprint_of(self, self._lexical)

    def validate(self, sample: Sample) -> None:
        """Raise `ValueError` when the reference is missing or malformed, or the semantic scorer objects."""
        self._lexical.validate(sample)
        if not self._asks:
            return
        try:
            reference = self.read_reference(sample.reference)
        except BadReferenceError:
            return
        try:
            validate_sample(self.semantic, _asked(sample, reference.texts[0], reference))
        except ValueError as error:
            raise ValueError(f"translation: the semantic scorer {self.semantic.name!r}: {error}") from error

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Return one score per sample, in order; with a model, `parts` has what each metric says."""
        lexical = await self._lexical.score(samples)
        if not self._asks:
            return lexical
        places, asked = [], []
        for place, (sample, score) in enumerate(zip(samples, lexical, strict=True)):
            if "lexical" in score.evidence:
                reference = self.read_reference(sample.reference)
                places.append(place)
                asked.append(_asked(sample, self.translation_of(sample, reference), reference))
        called = f"the semantic scorer {self.semantic.name!r} of 'translation'"
        said = dict(zip(places, await score_checked(self.semantic, asked, called=called), strict=True))
        origin = self.origin
        return [
            replace(self._mixed(score, said[place]) if place in said else score, provenance=origin)
            for place, score in enumerate(lexical)
        ]

    def _mixed(self, words: Score, meaning: Score) -> Score:
        parts = {"lexical": words, "semantic": meaning}
        cost = words.cost + meaning.cost
        if meaning.value is None:
            error = f"semantic: {meaning.status}: {meaning.reason}"
            return replace(Score.failed(of_parts([meaning.reason]), error=error), parts=parts, cost=cost)
        low, high = self.semantic_range
        semantic = min(1.0, max(0.0, (meaning.value - low) / (high - low)))
        lexical = float(words.evidence["lexical"])
        both = self.metric == "mix"
        metrics = (lexical, semantic) if both else (semantic,)
        above = (self.lexical_above, self.semantic_above) if both else (self.semantic_above,)
        value, reason = self.worth(metrics, above)
        return Score(
            value=value,
            reason=reason,
            parts=parts,
            evidence={"lexical": lexical, "semantic": semantic},
            cost=cost,
        )

    @property
    def _asks(self) -> bool:
        return self.metric in ("semantic", "mix")

    def _words(self) -> TranslationVerifier:
        if self.metric == "bleu" or self.metric == "chrf":
            return lexical_of(self, self.metric)
        # Where the model's metric counts alone, chrF stands beside it as evidence: it needs no tokenizer.
        return lexical_of(self, self.lexical if self.metric == "mix" else "chrf", reward="continuous")

    def _check_range(self) -> None:
        given: Any = self.semantic_range
        numbers = isinstance(given, tuple) and all(
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in given
        )
        if not numbers or len(given) != 2 or given[0] >= given[1]:
            raise ValueError(
                f"translation option semantic_range={given!r}; give the values of the worst and the best translation, "
                "such as (0.0, 1.0)"
            )


def _asked(sample: Sample, text: str, reference: TranslationReference) -> Sample:
    accepted: Any = reference.texts[0] if len(reference.texts) == 1 else list(reference.texts)
    return replace(
        sample, prompt=reference.source or sample.prompt, response=text, reference=accepted, finish_reason=None
    )
