"""What the verifier and the scorer of translations have in common: their options, and how a response is read.

A response is read once: does it have the form, which text is the translation, and may that be measured at all?  What
may not has a reason, and is worth the lowest value there is.

Is a translation its own source, written out again?

A metric that looks at the source alone (COMETKiwi and its like) may pay for a copy, and so does BLEU where most of a
text stays as it is.

MT-R1-Zero's reward of a translation, and the same on a scale from 0 to 1.

Source: `fzp0424/MT-R1-Zero` @ a2e38c4, `mt_score.py` (arXiv 2504.10160).  With each metric m on a scale from 0 to 1:

| | wrong form or no translation | continuous | discrete |
|---|---|---|---|
| published | -1 - 2 = -3 | 1 + sum of m, so 1 to 2, and 1 to 3 with two metrics | 1 + 2 = 3 when every m is above its threshold, else 1 - 1.5 = -0.5 |
| unit | 0 | mean of m | 1 or 0 |
"""  # noqa: E501 a row of a table

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

from adjudge.options import Range, Share, check_options
from adjudge.protocol import Sample, Score, response_text, split_reasoning
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import invisible
from adjudge.responses.visible import visible
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.verifiers.text.answer_verifier import alternatives
from adjudge.verifiers.text.tag_format import FormatVerifier
from adjudge.verifiers.text.translation.lexical import (
    REMEDY,
    Tokenizer,
    in_their_script,
    installed,
    missing_modules,
    tokenizer_for,
)

_RUN: Final = 4  # characters; the runs of two languages hardly meet at this length


def copied_share(text: str, source: str) -> float:
    """Return the share of a text's runs of four letters that stand in the source; 1 for a copy.

    Case, blanks, punctuation, characters that show nothing and letters that look like others make no difference.
    """
    text, source = _letters(text), _letters(source)
    if not text or not source:
        return 0.0
    if min(len(text), len(source)) < _RUN:
        return float(text == source)
    theirs = {source[at : at + _RUN] for at in range(len(source) - _RUN + 1)}
    runs = range(len(text) - _RUN + 1)
    return sum(text[at : at + _RUN] in theirs for at in runs) / len(runs)


def is_copy(text: str, source: str, references: Sequence[str], *, least: float) -> bool:
    """Return whether so large a share of a text is its source's while no reference keeps as much of it."""
    return copied_share(text, source) >= least > max(copied_share(reference, source) for reference in references)


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", visible(text)).casefold()
    return "".join(char for char in folded if char.isalnum())


Reward: TypeAlias = Literal["continuous", "discrete"]
Scale: TypeAlias = Literal["published", "unit"]

FORMAT: Final = 1.0
GOOD: Final = 2.0
POOR: Final = -1.5
NOTHING: Final = -2.0


def lowest(scale: Scale) -> float:
    """Return what a response without a translation in the right form is worth: -3, or 0."""
    return NOTHING - FORMAT if scale == "published" else 0.0


def continuous(metrics: Sequence[float], *, scale: Scale) -> float:
    """Return the reward for the values of the metrics, each in [0, 1]."""
    return FORMAT + sum(metrics) if scale == "published" else sum(metrics) / len(metrics)


def discrete(metrics: Sequence[float], above: Sequence[float], *, scale: Scale) -> float:
    """Return the reward by whether every metric is above its threshold."""
    good = all(value > least for value, least in zip(metrics, above, strict=True))
    if scale == "unit":
        return float(good)
    return FORMAT + (GOOD if good else POOR)


_FIELDS: Final = ("references", "source", "language")
_KINDS: Final = 'a text, a list of accepted texts, or {"references": [..], "source": .., "language": ..}'
_CODE: Final = re.compile(r"(?P<language>[a-z]{2,3})(?:[-_](?P<rest>[A-Za-z0-9]{1,8}))*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationReference:
    """The accepted translations of one text.

    Attributes:
        texts: the accepted translations, at least one, none without a visible character.
        source: the text that was to be translated; "" where it is not given.
        language: ISO 639 code of the target language, in small letters and without a region; "" where it is not given.
    """

    texts: tuple[str, ...]
    source: str = ""
    language: str = ""


def read_translation_reference(reference: Any) -> TranslationReference:
    """Return the reference in its one form.

    Raises:
        BadReferenceError: it is of another type, a field is unknown, or a translation says nothing.
    """
    if not isinstance(reference, Mapping):
        return TranslationReference(texts=_texts(reference))
    for key in reference:
        if key not in _FIELDS:
            raise BadReferenceError(
                f"the reference has the field {shorten(repr(key), 60)}; its fields are {', '.join(_FIELDS)}",
                mistake=True,
            )
    source = reference.get("source", "")
    if not isinstance(source, str):
        raise BadReferenceError(f"the reference's source is a {type(source).__name__}; give a text", mistake=True)
    return TranslationReference(
        texts=_texts(reference.get("references")), source=source, language=language_code(reference.get("language", ""))
    )


def language_code(language: Any) -> str:
    """Return the language of a code such as "zh", "zh-CN" or "pt_BR", without its region; "" for "".

    Raises:
        BadReferenceError: it is no such code, or a pair of languages.
    """
    if language == "":
        return ""
    found = _CODE.fullmatch(language) if isinstance(language, str) else None
    if found is None or found["rest"] in ("zh", "ja", "en"):
        raise BadReferenceError(
            f"the language is {shorten(repr(language), 60)}; give the code of the target language alone, such as zh",
            mistake=True,
        )
    return found["language"]


def _texts(value: Any) -> tuple[str, ...]:
    texts = alternatives(value, _KINDS)
    for text in texts:
        if not isinstance(text, str):
            raise BadReferenceError(f"the reference holds {shorten(repr(text), 60)}; give {_KINDS}", mistake=True)
        if text.lstrip().startswith(('{"', "{'")) and "references" in text:
            raise BadReferenceError(
                f"the reference is a mapping written as text, {shorten(text, 60)}; give the mapping (--reference-json)",
                mistake=True,
            )
        if not invisible(text).strip():
            raise BadReferenceError("a reference is empty, so an empty translation would be right", mistake=False)
    return tuple(texts)


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
        max_characters: longest translation, and longest reference, that is measured.
        truncated: what a response with `finish_reason="length"` gets: "zero", the lowest value, or "grade".
    """

    form: Literal["tags", "text"] = "tags"
    tags: tuple[str, ...] = ("think", "translate")
    outside: Literal["text", "nothing"] = "text"
    opened: bool = False
    reward: Reward = "continuous"
    scale: Scale = "published"
    lexical_above: Share | None = None
    language: str = ""
    tokenizer: Tokenizer | Literal["auto"] = "auto"
    effective_order: bool = True
    several: Literal["best", "merged"] = "best"
    chrf_words: Literal[0, 1, 2] = 0
    copied: Share | None = 0.9
    script: Literal["check", "any"] = "check"
    max_characters: Annotated[int, Range(ge=1, le=200_000)] = 20_000
    truncated: Literal["zero", "grade"] = "zero"

    def __post_init__(self) -> None:
        check_options(self, "translation option")
        tags: Any = self.tags
        if not isinstance(tags, list | tuple):
            raise ValueError(f"translation option tags={tags!r}; give a list of names, such as [think, translate]")
        object.__setattr__(self, "tags", tuple(tags))
        self._format()
        language_code(self.language)
        if self.form == "text" and self.scale == "published":
            raise ValueError('translation: the published scale rewards a form; give scale="unit" with form="text"')
        if not installed():
            raise ValueError(f"translation: {REMEDY}")

    def read_reference(self, reference: Any) -> TranslationReference:
        """Return the reference."""
        read = read_translation_reference(reference)
        longest = max(map(len, (*read.texts, read.source)))
        if longest > self.max_characters:
            raise BadReferenceError(
                f"a text of the reference has {longest} characters, and at most {self.max_characters} are measured; "
                "translate in smaller pieces, or raise max_characters",
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
        if len(found) > self.max_characters:
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


def _behind_reasoning(sample: Sample) -> str | Fault:
    _, text, unfinished = split_reasoning(response_text(sample))
    if unfinished:
        return Fault(reason="unfinished_reasoning", problem="the response ends inside its reasoning")
    return text.strip()
