"""How a response says that it does not know: a closed list of sentences.

An answer abstains when all of it is one of the sentences, with an apology before it or "this question" behind it if it
likes.  "I don't know, but it is Paris" is none of them: it names an
answer, so it hedges.  "I don't know who will win" says what it does not know, and is one.  Case, punctuation, blanks
and characters that show nothing make no difference.

Not covered: every other way to say it.  A detector (any scorer) reads those; see `abstention`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from adjudge.responses.markup import spaced, unwrap
from adjudge.responses.visible import visible

_BY_LANGUAGE: Final = {
    "en": (
        "I don't know | I do not know | I don't know the answer | I do not know the answer | I'm not sure | "
        "I am not sure | Sorry, I don't know | I'm sorry, I don't know | I'm sorry, but I don't know | "
        "I don't have enough information | I do not have enough information | "
        "I don't have enough information to answer | I do not have enough information to answer | "
        "I can't answer this question | I cannot answer this question | I can't answer that | "
        "I cannot answer that | I am unable to answer this question | I'm unable to answer this question | "
        "This question cannot be answered | The question cannot be answered | "
        "The answer cannot be determined | It cannot be determined | There is not enough information | "
        "There is not enough information to answer | Not enough information | Insufficient information | "
        "Cannot be determined | Unanswerable | Unknown | IDK"
    ),
    "zh": (
        "我不知道 | 我不知道答案 | 抱歉，我不知道 | 对不起，我不知道 | 我不清楚 | 我不确定 | 我无法回答 | "
        "我无法回答这个问题 | 抱歉，我无法回答这个问题 | 这个问题无法回答 | 该问题无法回答 | 没有足够的信息 | "
        "没有足够的信息来回答 | 信息不足 | 无法确定 | 无法回答 | 不知道 | 我無法回答這個問題"
    ),
}
BUILT_IN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {language: tuple(texts.split(" | ")) for language, texts in _BY_LANGUAGE.items()}
)
"""Sentences by language; the choice is ours."""

MAX_CHARACTERS: Final = 2_000_000  # a longer text is taken to hold a sentence: padding must not hide one

_SPARE: Final = 1_000  # characters more than the longest sentence's, for blanks and marks around one

_MIN_WORDS: Final = 3  # "unknown" stands in many answers that know
_MIN_CHARACTERS: Final = 4  # of scripts without blanks: "他不知道" says something about him
_ASKS: Final = re.compile(  # how an indirect question begins
    r"(?:who|whom|whose|what|when|where|which|why|how|whether|if)\b|谁|誰|什|哪|怎|为|是 否|如 何|多 少|几"
)
_APOLOGY: Final = re.compile(r"(?:(?:im |i am )?(?:so |very )?sorry|i apologi[sz]e|unfortunately) (?:but )?")
_THIS: Final = re.compile(r" (?:to |for )?(?:this|that|the|your)(?: question)?\Z")
_GOES_ON: Final = re.compile(r"[,;:.!?…\n，；：。！？—–]|\s-\s")
_APOSTROPHES: Final = dict.fromkeys(map(ord, "'’ʼ`´"))


@dataclass(frozen=True, slots=True)
class Sentences:
    """The normal forms of a list of sentences, and those of them that are told inside a longer text too.

    These have three words, or four characters of a script without blanks.
    """

    known: frozenset[str]
    inner: tuple[str, ...]
    max_characters: int

    @classmethod
    def of(cls, texts: Iterable[str]) -> Sentences:
        """Return the list of the texts given; `ValueError` if one of them has no letter or digit."""
        forms = {}
        for text in texts:
            if not isinstance(text, str) or not (form := normal(text)):
                raise ValueError(f"{text!r} is not a sentence; give texts with letters")
            forms[form] = text
        return cls(
            known=frozenset(forms),
            inner=tuple(sorted(filter(_is_long, forms))),
            max_characters=max(map(len, forms), default=0) + _SPARE,
        )

    def whole(self, text: str) -> bool:
        """Return whether all of a text is one of the sentences."""
        text = text.strip()
        if len(text) > self.max_characters:
            return False
        form = normal(unwrap(text))
        bare = _APOLOGY.sub("", form, count=1) if _APOLOGY.match(form) else form
        return not self.known.isdisjoint((form, bare, _THIS.sub("", bare)))

    def told(self, text: str) -> bool:
        """Return whether all of a text is one of the sentences, alone or with the question that it is about."""
        if self.whole(text):
            return True
        text = unwrap(text.strip()).strip().rstrip(".!。！")
        if len(text) > self.max_characters or _GOES_ON.search(text):
            return False
        form = normal(text)
        return any(form.startswith(f"{one} ") and _ASKS.match(form, len(one) + 1) for one in self.inner)

    def inside(self, text: str) -> bool:
        """Return whether one of the sentences stands in a text, alone or beside something else."""
        if len(text) > MAX_CHARACTERS:
            return True
        form = f" {normal(text)} "
        return any(f" {sentence} " in form for sentence in self.inner)


def sentences_of(languages: Any, own: Any, *, inside: str) -> Sentences:
    """Return the sentences that two options of the scorer `inside` name: built-in languages, or texts of one's own."""
    if own is not None:
        if not own:
            raise ValueError(f"{inside}: sentences is empty, so nothing would abstain; give at least one")
        try:
            return Sentences.of(own)
        except ValueError as error:
            raise ValueError(f"{inside}: sentences: {error}") from error
    for language in languages:
        if language not in BUILT_IN:
            raise ValueError(
                f"{inside}: there are no sentences for the language {language!r}, but for {', '.join(BUILT_IN)}; give "
                "your own with the option sentences"
            )
    if not languages:
        raise ValueError(f"{inside}: languages is empty, so nothing would abstain; give at least one")
    return Sentences.of(text for language in languages for text in BUILT_IN[language])


def normal(text: str) -> str:
    """Return the words of a text, in small letters and with single blanks between them."""
    text = unicodedata.normalize("NFKC", visible(text)).casefold().translate(_APOSTROPHES)
    blank = {ord(char): " " for char in set(text) if unicodedata.category(char)[0] in "PSC"}
    return " ".join(spaced(text.translate(blank)).split())


def _is_long(form: str) -> bool:
    return len(form.split()) >= (_MIN_WORDS if form.isascii() else _MIN_CHARACTERS)
