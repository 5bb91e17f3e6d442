"""The part of a translation's reward that needs no model: its form, BLEU or chrF, and what may not be measured.

A response is read once: does it have the form, which text is the translation, and may that be measured at all?  What
may not has a reason, and is worth the lowest value there is.  So is a copy of the source: a metric that looks at the
source alone (COMETKiwi and its like) may pay for one, and so does BLEU where most of a text stays as it is.

Source: `fzp0424/MT-R1-Zero` @ a2e38c4, `mt_score.py` (arXiv 2504.10160), and the same on a scale from 0 to 1.  Each
metric m is on a scale from 0 to 1.

| | wrong form or no translation | continuous | discrete |
|---|---|---|---|
| published | -3 | 1 + sum of m: 1 to 2, to 3 with two metrics | 3 when every m is above its threshold, else -0.5 |
| unit | 0 | mean of m | 1 or 0 |

`adjudge.verifiers.text.translation.scorer` is the whole, with metrics by models; it runs this in the worker pool.

Not covered: what a reader would call right.  A good translation in other words has a low BLEU.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from adjudge.options import Range, Share, check_options
from adjudge.protocol import Sample, Score, response_text
from adjudge.reasons import ReasonedError
from adjudge.responses.answer_span import shorten
from adjudge.responses.markup import invisible
from adjudge.responses.visible import visible
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import fields_of, shown
from adjudge.scoring.verifier_base import ReferenceVerifier, graded_text
from adjudge.verifiers.text.answer_verifier import alternatives
from adjudge.verifiers.text.tag_format import FormatVerifier
from adjudge.verifiers.text.translation.lexical import (
    REMEDY,
    Tokenizer,
    bleu,
    chrf,
    in_their_script,
    installed,
    missing_modules,
    tokenizer_for,
)

Lexical = Literal["bleu", "chrf"]

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


_KINDS: Final = 'a text, a list of accepted texts, or {"references": [..], "source": .., "language": ..}'
_CODE: Final = re.compile(r"(?P<language>[a-z]{2,3})(?:[-_](?P<rest>[A-Za-z0-9]{1,8}))*")


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationReference:
    """The accepted translations of one text, their source, and the ISO 639 code of the language, "" if not given."""

    texts: tuple[str, ...]
    source: str = ""
    language: str = ""


def read_translation_reference(reference: Any) -> TranslationReference:
    """Return the reference in its one form; a translation must say something."""
    if not isinstance(reference, Mapping):
        return TranslationReference(texts=_texts(reference))
    reference = fields_of(reference, ("references",), ("source", "language"), give=_KINDS)
    source = reference.get("source", "")
    if not isinstance(source, str):
        raise ReferenceFormError(f"the reference's source is a {type(source).__name__}; give a text")
    return TranslationReference(
        texts=_texts(reference["references"]), source=source, language=language_code(reference.get("language", ""))
    )


def language_code(language: Any) -> str:
    """Return the language of a code such as "zh", "zh-CN" or "pt_BR", without its region; "" for ""."""
    if language == "":
        return ""
    code = _CODE.fullmatch(language) if isinstance(language, str) else None
    if code is None or code["rest"] in ("zh", "ja", "en"):
        raise ReferenceFormError(
            f"the language is {shown(language)}; give the code of the target language alone, such as zh"
        )
    return code["language"]


def _texts(value: Any) -> tuple[str, ...]:
    texts = alternatives(value, _KINDS)
    for text in texts:
        if not isinstance(text, str):
            raise ReferenceFormError(f"the reference holds {shown(text)}; give {_KINDS}")
        if text.lstrip().startswith(('{"', "{'")) and "references" in text:
            raise ReferenceFormError(
                f"the reference is a mapping written as text, {shorten(text, 60)}; give the mapping (--reference-json)"
            )
        if not invisible(text).strip():
            raise BadReferenceError("a reference is empty, so an empty translation would be right")
    return tuple(texts)


class TokenizerMissingError(ValueError):
    """A tokenizer of BLEU needs a package that is not installed."""


class WorthlessError(ReasonedError):
    """A response that is worth the lowest value."""


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """The options of a translation's reward.

    Attributes:
        form: "tags": the response is the elements of `tags`, each once and in order, the last of them the translation;
            "text": it is the translation, behind its reasoning.
        tags, outside, opened: as for the scorer `format`; text between and around the elements is allowed as published.
        reward: "continuous", or "discrete": by whether each metric is above its threshold.
        scale: "published": -3 to 3; "unit": 0 to 1.
        lexical_above: threshold of BLEU or chrF, in [0, 1]; "discrete" needs it.
        language: target language of references that do not say theirs, such as "zh"; "" goes by their script.
        tokenizer: of BLEU; "auto" goes by the language.
        effective_order: whether BLEU leaves out runs of words longer than the translation; false as released, where a
            perfect translation of three words is worth 0.
        several: of references BLEU takes the "best", or has them "merged" as sacrebleu does, which pays for all.
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
    reward: Literal["continuous", "discrete"] = "continuous"
    scale: Literal["published", "unit"] = "published"
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
                "translate in smaller pieces, or raise max_characters"
            )
        return read

    def language_of(self, reference: TranslationReference) -> str:
        """Return the target language, "" if nobody says it."""
        return reference.language or language_code(self.language)

    def tokenizer_of(self, reference: TranslationReference) -> Tokenizer:
        """Return BLEU's tokenizer for a reference, if the packages that it needs are installed."""
        chosen = self.tokenizer
        if chosen == "auto":
            chosen = tokenizer_for(self.language_of(reference), reference.texts)
        if missing := missing_modules(chosen):
            raise TokenizerMissingError(
                f"translation: the tokenizer {chosen} needs {' and '.join(missing)}; pip install "
                f"'sacrebleu[{chosen[:2]}]', or give tokenizer=char, which is another metric"
            )
        return chosen

    def translation_of(self, sample: Sample, reference: TranslationReference) -> str:
        """Return the translation of a response; `WorthlessError` if there is none to measure."""
        if self.truncated == "zero" and sample.finish_reason == "length":
            raise WorthlessError("truncated", "the response was cut off")
        tags = self.form == "tags"
        text, fault = (self._element(response_text(sample)), "") if tags else graded_text(sample, "strip")
        if fault:
            raise WorthlessError(fault, "the response ends inside its reasoning")
        if not invisible(text).strip():
            raise WorthlessError("no_answer", "the translation is empty")
        if len(text) > self.max_characters:
            raise WorthlessError("too_complex", f"the translation has {len(text)} characters")
        if self.script == "check" and not in_their_script(text, reference.texts, language=self.language_of(reference)):
            raise WorthlessError("wrong", "the translation is in another script than its references")
        if self.copied is not None and is_copy(text, reference.source, reference.texts, least=self.copied):
            raise WorthlessError("wrong", "the translation is a copy of the source")
        return text

    def worth(self, metrics: tuple[float, ...], above: tuple[float | None, ...]) -> tuple[float, str]:
        """Return the reward for the values of the metrics, and "wrong" where it is that of a wrong translation."""
        published = self.scale == "published"
        if self.reward == "continuous":
            value = 1.0 + sum(metrics) if published else sum(metrics) / len(metrics)
            return value, "" if any(metrics) else "wrong"
        good = all(one > (least or 0.0) for one, least in zip(metrics, above, strict=True))
        return (3.0 if good else -0.5) if published else float(good), "" if good else "wrong"

    @property
    def lowest(self) -> float:
        """What a response without a translation in the right form is worth."""
        return -3.0 if self.scale == "published" else 0.0

    def _element(self, text: str) -> str:
        checked = self._format().verify(Sample(prompt="", response=text))
        if checked.value != 1.0:
            raise WorthlessError("bad_format", str(checked.evidence.get("problem", "")))
        tag = self.tags[-1]
        start = text.find(f"<{tag}>")  # -1 where the prompt wrote it
        return text[start + len(tag) + 2 if start >= 0 else 0 : text.find(f"</{tag}>")].strip()

    def _format(self) -> FormatVerifier:
        return FormatVerifier(tags=self.tags, outside=self.outside, opened=self.opened, min_characters=0)


@dataclass(frozen=True, kw_only=True)
class TranslationVerifier(TranslationOptions, ReferenceVerifier[TranslationReference, tuple[str, str]]):
    """BLEU or chrF of a translation behind a format gate; -3 to 3 as in MT-R1-Zero, or 0 to 1.

    The reference is a translation, a list of accepted ones, or `{"references": [..], "source": .., "language": ..}`.

    Attributes:
        metric: "bleu" or "chrf".
    """

    name: ClassVar[str] = "translation"
    version: ClassVar[str] = "3"

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
        try:
            return self.translation_of(sample, gold), tokens
        except WorthlessError as error:
            return Score.scored(self.lowest, error.reason, problem=str(error))

    def judge(self, answer: tuple[str, str], gold: TranslationReference) -> Score:
        """Return the reward; the evidence has the metric's value under "lexical", or the problem."""
        text, tokens = answer
        if self.metric == "chrf":
            value = chrf(text, gold.texts, words=self.chrf_words)
        else:
            value = bleu(
                text,
                gold.texts,
                tokenizer=self.tokenizer_of(gold),
                effective_order=self.effective_order,
                merged=self.several == "merged",
            )
        return Score.scored(
            *self.worth((value,), (self.lexical_above,)),
            lexical=value,
            metric=self.metric,
            tokenizer=tokens,
            translation=shorten(text),
        )

    def killed(self, sample: Sample, reason: str) -> Score:
        """Return the lowest value: 0 would be better than a wrong form."""
        return Score.scored(self.lowest, reason)

    def warm_up(self) -> None:
        """Import sacrebleu before any sample's time runs."""
        bleu("a", ["a"], tokenizer="13a")
        chrf("a", ["a"])


def lexical_of(options: TranslationOptions, metric: Lexical, **other: Any) -> TranslationVerifier:
    """Return the verifier with the options of another class, some of them replaced."""
    given = {name: getattr(options, name) for name in TranslationOptions.__dataclass_fields__}
    return TranslationVerifier(**{**given, "metric": metric, **other})
