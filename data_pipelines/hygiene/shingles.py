"""Texts as sets of n-grams, so that two of them can be compared where their spelling differs.

A text is normalised (NFKC, case folded, invisible characters removed, white space as one space) and cut into tokens:
words, single characters of scripts that are written without spaces (Han, Kana, Thai, Lao, Khmer, Myanmar, Tibetan), and
single symbols.  Its shingles are the runs of n tokens; a text with fewer tokens is one shingle.

Not covered: words of scripts without spaces, which would need a dictionary; stems; translations.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

TokenKind: TypeAlias = Literal["words", "characters"]

_INVISIBLE: Final = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_SPACELESS: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Vowel signs and accents that no letter takes in are no \w, but without them words of Hindi or Hebrew fall to pieces.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
# A run of 64 characters without a space is no word but data, such as base64; its pieces are tokens.
_WORD: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}]){{1,64}}")
_TOKEN: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}]){{1,64}}|\S")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]{1,64}")
_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]{1,64}|\S")
_MARK_RUN: Final = re.compile(r"([^\w\s]{64,})")
_MARK_SLICE: Final = 64


def normalised(text: str) -> str:
    """Return a text without what does not change its meaning: case, width, ligatures, invisible characters, spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = _compose(_INVISIBLE.sub("", text)).casefold()
    # Folding can take a composition apart ("\u0130"), and composing can make a letter that folds.
    return " ".join(_compose(text).casefold().split())


def tokens(text: str, *, symbols: bool = True) -> list[str]:
    """Return the tokens of a text, normalised.

    Args:
        text: any text.
        symbols: whether punctuation and operators count; without them "a, b" equals "a b".  A text that has nothing
            else keeps them in any case.
    """
    text = normalised(text)
    if text.isascii():
        found = (_ASCII_TOKEN if symbols else _ASCII_WORD).findall(text)
    else:
        apart = _SPACELESS.sub(r" \g<0> ", text)
        found = (_TOKEN if symbols else _WORD).findall(apart)
    return found if found or symbols or not text else tokens(text)


@dataclass(frozen=True, kw_only=True)
class Shingles:
    """How texts are cut into n-grams.

    Attributes:
        ngram: tokens of a shingle, 1 to 64.
        kind: "words", or "characters" for n-grams of characters, spaces included.
        symbols: whether punctuation and operators are tokens of their own; for "words" alone.
    """

    ngram: int = 5
    kind: TokenKind = "words"
    symbols: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.ngram <= 64:
            raise ValueError(f"an n-gram of {self.ngram} tokens; choose 1 to 64")
        if self.kind not in ("words", "characters"):
            raise ValueError(f"n-grams of {self.kind!r}; choose words or characters")

    def tokens(self, text: str) -> Sequence[str]:
        """Return the tokens of a text in order."""
        return normalised(text) if self.kind == "characters" else tokens(text, symbols=self.symbols)

    def of(self, text: str) -> frozenset[str]:
        """Return the shingles of a text; none for a text without a token."""
        found = self.tokens(text)
        return frozenset(grams(found, self.ngram))


def grams(found: Sequence[str], size: int) -> list[str]:
    """Return the runs of so many tokens as texts in order; all tokens as one if there are fewer.

    Two runs give the same text only if they are the same: no token holds a space, but single characters, which are
    joined without one.
    """
    if not found:
        return []
    if isinstance(found, str):
        return [found[start : start + size] for start in range(max(1, len(found) - size + 1))]
    if size == 1:
        return list(found)
    return [" ".join(found[start : start + size]) for start in range(max(1, len(found) - size + 1))]


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the size of the common part over that of both together, 0 to 1; 1 for two empty sets."""
    common = len(one & other)
    together = len(one) + len(other) - common
    return common / together if together else 1.0


def _compose(text: str) -> str:
    """Return NFKC in linear time: the standard library sorts a run of combining marks in quadratic time."""
    if _MARK_RUN.search(text) is None:
        return unicodedata.normalize("NFKC", text)
    pieces = []
    for part in _MARK_RUN.split(text):
        step = _MARK_SLICE if _MARK_RUN.fullmatch(part) else max(1, len(part))
        pieces += [unicodedata.normalize("NFKC", part[start : start + step]) for start in range(0, len(part), step)]
    return "".join(pieces)


UNICODE: Final = unicodedata.unidata_version  # what normalising depends on
