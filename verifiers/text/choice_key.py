"""The key of a multiple-choice question: its labels, its options as far as they are known, and the right one.

Not covered: labels of more than one character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from adjudge.io.questions import as_question
from adjudge.protocol import Message, turn_texts
from adjudge.responses.answer_context import undecorated
from adjudge.responses.answer_span import shorten
from adjudge.responses.listed_options import listed_options
from adjudge.responses.markup import invisible, unwrap, without_tex
from adjudge.responses.number_text import NumberError, Quantity, raised, read_quantity, shared_currency
from adjudge.scoring.bad_reference import BadReferenceError, ReferenceFormError
from adjudge.scoring.reference_fields import shown, wrong_form

LABELS = "ABCDEFGHIJ"

_DISPLAYED = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_ARTICLE = re.compile(r"\A(?:[Tt]he|[Aa]n|a)\s+(?=\w)")  # "A" may be a label
_WIDE_STOP = re.compile(r"(?<![A-Za-z])([A-Za-z])[：．、](?=\S)")  # behind a label; ASCII ones have a space behind them
_PARTS = re.compile(r"(?<=[.?!。？！])\s*|\n")
_ASKS = re.compile(r"[?？:：]\s*\Z|\b(?:which|what|following|except)\b|下列|以下|哪", re.IGNORECASE)
_WRONG = re.compile(
    r"\b(?:not|except|false|incorrect|wrong|untrue|invalid|contraindicated|avoid\w*|least|unlikely|inappropriate"
    r"|unsuitable|eliminat\w*|exclud\w*|ruled? out|reject\w*|distractor|trap|worst|never|cannot)\b|n['’]t\b"
    r"|[不非错錯除]",
    re.IGNORECASE,
)
_POWER = re.compile(r"\^\{\s?(-?\w+)\s?\}")
_NOISE = re.compile(r"\\[()\[\]]|[$*`_~]|</?(?:b|i|u|em|strong|code|p|span|div)>")


@dataclass(frozen=True, slots=True)
class ChoiceKey:
    """A question's labels, one character each, its answer, and the options as `comparable` writes them, if known.

    `asks_wrong` is whether the question looks for an option that is wrong, or not to be taken.
    """

    labels: str
    answer: str
    texts: tuple[str, ...] = ()
    asks_wrong: bool = False

    def text_of(self, label: str) -> str:
        """Return the text of an option, or ""."""
        return dict(zip(self.labels, self.texts, strict=False)).get(label, "")

    def by_text(self, text: str) -> str:
        """Return the label of the one option with this text, or "" when there is none or more than one."""
        for read in (str, without_article):  # "The" only where no option says so
            wanted = comparable(read(plain(text))) if self.texts else ""
            options = zip(self.labels, map(read, self.texts), strict=False)
            if fitting := [label for label, option in options if option == wanted]:
                return fitting[0] if len(fitting) == 1 else ""
        return ""

    def by_number(self, text: str) -> str:
        """Return the label of the one option that is the number a text states ("5,200" for "5200 feet"), or ""."""
        try:
            said = read_quantity(text) if self.texts else None
        except NumberError:
            said = None
        options = zip(self.labels, _quantities(self.texts), strict=False) if said else ()
        fitting = [label for label, option in options if said and option and _same_quantity(said, option)]
        return fitting[0] if len(fitting) == 1 else ""


def read_choice_key(reference: Any, labels: str = LABELS) -> ChoiceKey:
    """Return what a reference says: a label ("B" or "(B)"), or `{"choices": [text, ...], "answer": ...}`.

    The answer is a label, the text of exactly one option, or the 0-based position of the option as an int.  A text that
    is both the label of one option and the text of another is refused.  Rows of published data sets are read too
    (`as_question`); labels that they give count in the place of `labels`.
    """
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    if isinstance(reference, str):
        return ChoiceKey(labels, _label(reference, labels) or _unknown(reference, labels))
    reference = as_question(reference)
    if not isinstance(reference, Mapping) or not {"choices", "answer"} <= reference.keys():
        raise wrong_form(
            reference,
            'the label of the right option, or {"choices": [...], "answer": ...} with a label, an option\'s text or '
            "its 0-based position",
        )
    choices, answer = reference["choices"], reference["answer"]
    if isinstance(choices, Mapping) and choices.keys() == {"text", "label"}:  # labels of the row's own
        own, choices = choices["label"], choices["text"]
        labels = "".join(own)
        if answer in own:
            answer = own.index(answer)
    if (
        isinstance(choices, str | Mapping)
        or not isinstance(choices, Sequence)
        or not all(isinstance(text, str) for text in choices)
        or not 2 <= len(choices) <= len(labels)
    ):
        raise ReferenceFormError(f'"choices" must be a list of 2 to {len(labels)} texts')
    key = ChoiceKey(labels[: len(choices)], "", tuple(map(comparable, choices)))
    return ChoiceKey(key.labels, _answer(answer, key, choices), key.texts)


def plain(text: str) -> str:
    """Return a text in NFKC without markup: LaTeX text commands, dollars, asterisks, underscores, backticks."""
    if not text.isascii():
        text = raised(_WIDE_STOP.sub(r"\1: ", text))
        text = undecorated(unicodedata.normalize("NFKC", text)).replace("−", "-")
    if not text.isprintable():
        text = invisible(text)
    if "^{" in text:
        text = _POWER.sub(r"^\1", text)
    return unwrap(_NOISE.sub(" ", without_tex(text)).replace("i.e.", "that is").strip())


def comparable(text: str) -> str:
    """Return the form in which option texts are compared: plain, no stop at the end, one case, single spaces."""
    text = _DISPLAYED.sub(r"\\frac", plain(text))
    return " ".join((text.rstrip(" .;,。；，") or text).casefold().split())


def without_article(text: str) -> str:
    """Return a text without the article that it begins with."""
    return _ARTICLE.sub("", text)


def in_prompt(key: ChoiceKey, prompt: str | Sequence[Message]) -> ChoiceKey:
    """Return a key with what the prompt says: the options, if the key has none, and whether it asks for a wrong one."""
    options = [] if key.texts else listed_options(prompt, key.labels)
    if len(options) > key.labels.index(key.answer):
        key = replace(key, texts=tuple(map(comparable, options)))
    return replace(key, asks_wrong=_asks_wrong("\n".join(turn_texts(prompt, "user"))))


@lru_cache(maxsize=64)
def _asks_wrong(prompt: str) -> bool:
    asking = [part for part in _PARTS.split(prompt) if _ASKS.search(part)] if _WRONG.search(prompt) else []
    return any(map(_WRONG.search, asking or [prompt]))


def _answer(answer: Any, key: ChoiceKey, choices: Sequence[str]) -> str:
    if isinstance(answer, int) and not isinstance(answer, bool):
        if 0 <= answer < len(key.labels):
            return key.labels[answer]
        raise BadReferenceError(f"the answer is position {answer} of {len(key.labels)} choices")
    if not isinstance(answer, str):
        raise ReferenceFormError(
            f'"answer" is {shown(answer)}; give a label, an option\'s text or its 0-based position'
        )
    label = _label(answer, key.labels)
    same = [other for other, text in zip(key.labels, choices, strict=True) if text.strip() == answer.strip()]
    if label and same not in ([], [label]):
        raise BadReferenceError(
            f"the answer {answer!r} is a label and also the text of option {same[0]}; give its 0-based position"
        )
    return label or key.by_text(answer) or _unknown(answer, key.labels)


def _label(text: str, labels: str) -> str:
    text = unicodedata.normalize("NFKC", text).strip().strip("()[]. ")
    if len(text) != 1:
        return ""
    return text if text in labels else text.upper() if text.upper() in labels else ""


def _unknown(answer: str, labels: str) -> str:
    raise BadReferenceError(
        f"the answer {shorten(answer, 60)!r} is none of the labels {labels} and not the text of exactly one option"
    )


@lru_cache(maxsize=64)
def _quantities(texts: tuple[str, ...]) -> list[Quantity | None]:
    read: list[Quantity | None] = []
    for text in texts:
        try:
            read.append(read_quantity(text))
        except NumberError:
            read.append(None)
    return read


def _same_quantity(said: Quantity, option: Quantity) -> bool:
    """Tell whether a number is an option's; a unit or a sign of percent may be left out, and not be another."""
    if said.unit[: len(option.unit)] != option.unit and said.unit:
        return False
    if said.currency and option.currency and not shared_currency(said.currency, option.currency):
        return False
    return said.direction * option.direction >= 0 and option.number == said.number and option.percent >= said.percent
