"""What the verifier and the scorer of translations have in common: their options, and how a response is read.

A response is read once: does it have the form, which text is the translation, and may that be measured at all?  What
may not has a reason, and is worth the lowest value there is.

Not covered: measuring (`verifier`, `scorer`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from adjudge.bad_reference import BadReferenceError
from adjudge.protocol import Sample, Score, response_text, split_reasoning
from adjudge.verifier_base import check_options, require_choice, require_whole
from adjudge.verifiers.text.markup import invisible
from adjudge.verifiers.text.tag_format import FormatVerifier
from adjudge.verifiers.translation.copying import is_copy
from adjudge.verifiers.translation.lexical import (
    REMEDY,
    Tokenizer,
    installed,
    missing_modules,
    tokenizer_for,
)
from adjudge.verifiers.translation.reference import (
    TranslationReference,
    language_code,
    read_translation_reference,
)
from adjudge.verifiers.translation.rewards import Reward, Scale, continuous, discrete, lowest
from adjudge.verifiers.translation.scripts import in_their_script


class TokenizerMissingError(ValueError):
    """A tokenizer of BLEU needs a package that is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a response is worth the lowest value: a code of `adjudge.reasons`, and what is wrong in words."""

    reason: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """The options of a translation's reward.

    Attributes:
        form: "tags": the response is the elements of `tags`, each once and in order, the last of them the translation;
            "text": it is the translation, behind its reasoning.
        tags: names of the elements.
        outside: "text" allows text between and around the elements, as published; "nothing" does not.
        opened: the prompt already ends with the first opening tag.
        reward: "continuous", or "discrete": by whether each metric is above its threshold.
        scale: "published": -3 to 3; "unit": 0 to 1.
        lexical_above: threshold of BLEU or chrF, in [0, 1]; "discrete" needs it.
        language: target language of references that do not say theirs, such as "zh"; "" goes by their script.
        tokenizer: of BLEU; "auto" goes by the language.
        effective_order: whether BLEU leaves out runs of words longer than the translation; false as released, where a
            perfect translation of three words is worth 0.
        several: what BLEU does with several references: "best", or "merged" as sacrebleu does, which pays for writing
            all of them.
        chrf_words: longest run of words that chrF counts: 0, or 2 for chrF++.
        copied: a translation with so large a share of it in the source is a copy (0.9 is ours); none for no check.
            Only references that give their source are checked.
        script: whether a translation mostly in letters of another script than its references' is worthless ("check").
        most_characters: longest translation, and longest reference, that is measured.
        truncated: what a response with `finish_reason="length"` gets: "zero", the lowest value, or "grade".
    """

    form: Literal["tags", "text"] = "tags"
    tags: tuple[str, ...] = ("think", "translate")
    outside: Literal["text", "nothing"] = "text"
    opened: bool = False
    reward: Reward = "continuous"
    scale: Scale = "published"
    lexical_above: float | None = None
    language: str = ""
    tokenizer: Tokenizer | Literal["auto"] = "auto"
    effective_order: bool = True
    several: Literal["best", "merged"] = "best"
    chrf_words: int = 0
    copied: float | None = 0.9
    script: Literal["check", "any"] = "check"
    most_characters: int = 20_000
    truncated: Literal["zero", "grade"] = "zero"

    def __post_init__(self) -> None:
        check_options(self)
        require_choice(self, "chrf_words", (0, 1, 2))
        tags: Any = self.tags
        if not isinstance(tags, list | tuple):
            raise ValueError(f"translation: tags is {tags!r}; give a list of names, such as [think, translate]")
        object.__setattr__(self, "tags", tuple(tags))
        self._format()
        language_code(self.language)
        require_share("lexical_above", self.lexical_above)
        require_share("copied", self.copied)
        require_whole(self, most_characters=(1, 200_000))
        if self.form == "text" and self.scale == "published":
            raise ValueError('translation: the published scale rewards a form; give scale="unit" with form="text"')
        if not installed():
            raise ValueError(f"translation: {REMEDY}")

    def read_reference(self, reference: Any) -> TranslationReference:
        """Return the reference.

        Raises:
            BadReferenceError: it cannot be read, or is longer than `most_characters`.
        """
        read = read_translation_reference(reference)
        longest = max(map(len, (*read.texts, read.source)))
        if longest > self.most_characters:
            raise BadReferenceError(
                f"a text of the reference has {longest} characters, and at most {self.most_characters} are measured; "
                "translate in smaller pieces, or raise most_characters",
                mistake=False,
            )
        return read

    def language_of(self, reference: TranslationReference) -> str:
        """Return the target language, "" where nobody says it."""
        return reference.language or language_code(self.language)

    def tokenizer_of(self, reference: TranslationReference) -> Tokenizer:
        """Return BLEU's tokenizer for a reference.

        Raises:
            TokenizerMissingError: a package that it needs is not installed.
        """
        chosen = self.tokenizer
        if chosen == "auto":
            chosen = tokenizer_for(self.language_of(reference), reference.texts)
        if missing := missing_modules(chosen):
            raise TokenizerMissingError(
                f"translation: the tokenizer {chosen} needs {' and '.join(missing)}; pip install "
                f"'sacrebleu[{chosen[:2]}]', or give tokenizer=char, which is another metric"
            )
        return chosen

    def translation_of(self, sample: Sample, reference: TranslationReference) -> str | Fault:
        """Return the translation of a response, or why there is none to measure."""
        if self.truncated == "zero" and sample.finish_reason == "length":
            return Fault(reason="truncated", problem="the response was cut off")
        found = self._element(response_text(sample)) if self.form == "tags" else _behind_reasoning(sample)
        if isinstance(found, Fault):
            return found
        if not invisible(found).strip():
            return Fault(reason="no_answer", problem="the translation is empty")
        if len(found) > self.most_characters:
            return Fault(reason="too_complex", problem=f"the translation has {len(found)} characters")
        if self.script == "check" and not in_their_script(found, reference.texts, language=self.language_of(reference)):
            return Fault(reason="wrong", problem="the translation is in another script than its references")
        if self.copied is not None and is_copy(found, reference.source, reference.texts, least=self.copied):
            return Fault(reason="wrong", problem="the translation is a copy of the source")
        return found

    def worth(self, metrics: tuple[float, ...], above: tuple[float | None, ...]) -> tuple[float, str]:
        """Return the reward for the values of the metrics, and "wrong" where it is that of a wrong translation."""
        if self.reward == "continuous":
            return continuous(metrics, scale=self.scale), "" if any(metrics) else "wrong"
        value = discrete(metrics, [least for least in above if least is not None], scale=self.scale)
        return value, "" if value > 0 else "wrong"

    def worthless(self, fault: Fault) -> Score:
        """Return the score of a response that has no translation to measure."""
        return Score.scored(lowest(self.scale), fault.reason, problem=fault.problem)

    def _element(self, text: str) -> str | Fault:
        checked = self._format().verify(Sample(prompt="", response=text))
        if checked.value != 1.0:
            return Fault(reason="bad_format", problem=str(checked.evidence.get("problem", "")))
        tag = self.tags[-1]
        start = text.find(f"<{tag}>")  # -1 where the prompt wrote it
        return text[start + len(tag) + 2 if start >= 0 else 0 : text.find(f"</{tag}>")].strip()

    def _format(self) -> FormatVerifier:
        return FormatVerifier(tags=self.tags, outside=self.outside, opened=self.opened, min_characters=0)


def require_share(option: str, value: Any) -> None:
    """Raise `ValueError` unless an option is None or a number in [0, 1]."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if value is not None and not (number and 0 <= value <= 1):
        raise ValueError(f"translation: {option} is {value!r}; it must be a number from 0 to 1, or none")


def _behind_reasoning(sample: Sample) -> str | Fault:
    _, text, unfinished = split_reasoning(response_text(sample))
    if unfinished:
        return Fault(reason="unfinished_reasoning", problem="the response ends inside its reasoning")
    return text.strip()
