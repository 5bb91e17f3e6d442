"""Forbidden words in disguise: with letters that look alike, digits in their place, accents, signs or blanks between.

A text is packed: letters alone, each as the plain one that it stands for.  Where a word lies in that, the text there
is the word in disguise, unless it is several words of their own ("a part" is no "apart"; "bo mb" is "bomb").

Not covered: synonyms, misspellings, words written backwards, and words of one or two letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

from adjudge.instructions.english import STOP_WORDS, is_common

_LEAST: Final = 3  # letters of a word that may be disguised
_GAP: Final = 12  # characters between two letters of one word
_STANDS_FOR: Final = {
    "0": "o", "1": "il", "3": "e", "4": "a", "5": "s", "6": "b", "7": "t", "+": "t", "8": "b", "9": "g", "@": "a",
    "$": "s", "!": "i", "|": "il", "€": "e", "£": "l", "¡": "i", "I": "il", "l": "il", "i": "i",
}  # fmt: skip
_LOOKS_LIKE: Final = {
    letter: plain
    for plain, letters in {
        "a": "αа∂ɑᎪꓮΑА", "b": "βьвБƄƅЬϐᏴꓐʙß♭", "c": "сςⲥꓚᏟС¢©", "d": "ԁɗᎠꓓժ",
        "e": "еεєҽ℮ᎬꓰЕΕ", "f": "ƒғꓝϝ", "g": "ɡցԍᏀꓖ",
        "h": "һнհᎻꓧНΗ", "i": "іιıɩӏᎥΙІ", "j": "јϳյᎫꓙ", "k": "кκқᏦꓗК", "l": "ǀⅼӀᏞꓡ", "m": "мᎷꓟМΜ", "n": "ոռпηꓠΝ",
        "o": "οоօσθ๐០ഠ၀оꓳОΟ°", "p": "рρᏢꓑРΡ®", "q": "ԛզգ", "r": "гяꓣᖇ", "s": "ѕꓢᏚЅ§", "t": "тτᎢꓔТΤ†", "u": "υսцʋꓴ",
        "v": "νѵᏙꓦ", "w": "ωшщѡաԝᎳꓪ", "x": "хχꓫХΧ×", "y": "уγүყꓬУΥ", "z": "ᏃꓜΖ",
    }.items()
    for letter in letters
}  # fmt: skip
_NAMED = re.compile(r"(?:LATIN|MODIFIER) (?:SMALL |CAPITAL |LETTER )+([A-Z])(?: WITH .*)?\Z")
_WORD = re.compile(r"[^\W_]+")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")


class Packed:
    """A text without all that is no letter, each letter with where it stands."""

    def __init__(self, text: str) -> None:
        """Pack a text; linear in its length."""
        self._text = text = _STRETCHED.sub(r"\1", unicodedata.normalize("NFKC", text))
        letters = [(place, plain) for place, sign in enumerate(text) if (plain := _plain(sign))]
        bare = [one for one in letters if text[one[0]].isalnum()]  # a sign between letters may be none of them
        self._packed = [
            ("".join(plain for _, plain in one), [place for place, _ in one])
            for one in ([letters] if len(bare) == len(letters) else [letters, bare])
        ]
        accented = [word for word in _WORD.findall(text) if not word.isascii()]
        self._accents = len(accented) > 3 and len(accented) * 12 > len(text.split())
        self._latin = 5 * sum(map(_is_ascii_letter, text)) >= 4 * sum(map(str.isalpha, text))

    def times(self, word: str) -> int:
        """Return how often a word occurs by itself, in disguise or not."""
        wanted = "".join(map(_plain, word))
        if len(max(word.split(), key=len, default="")) < _LEAST or not word.isascii() or any(map(str.isdigit, word)):
            return 0
        return max(self._times(word, wanted, *packed) for packed in self._packed)

    def _times(self, word: str, wanted: str, letters: str, places: list[int]) -> int:
        count, at = 0, letters.find(wanted)
        while at >= 0:
            found = self._is_word(word, places[at : at + len(wanted)])
            count += found
            at = letters.find(wanted, at + (len(wanted) if found else 1))
        return count

    def _is_word(self, word: str, places: list[int]) -> bool:
        start, end = places[0], places[-1] + 1
        if self._in_word(start - 1) or self._in_word(end) or end - start > len(word) + _GAP * len(places):
            return False
        text, signs = self._text[start:end], [self._text[place] for place in places]
        if text.casefold() == word.casefold() and (self._joins(start - 1) or self._joins(end)):
            return False  # as it is, and part of a word with a hyphen
        if not all(map(_may_be, signs, filter(_plain, word))):
            return False
        plain, others = sum(map(_is_ascii_letter, signs)), sum(not sign.isalpha() for sign in signs)
        if 2 * others > len(signs) or (others and text[-1] in "!|"):
            return False
        if plain + others < len(signs) and (self._accents or not (plain or self._latin)):
            return False  # a word of a language that has such letters
        pieces = _WORD.findall(text)
        if text.isalpha() and not STOP_WORDS.isdisjoint(word.lower().split()[: len(word.split()) - 1]):
            return False  # "the rapist" is no "therapist"
        own = text.casefold().split() == word.casefold().split()
        return own or len(pieces) == 1 or sum(len(one) == 1 for one in pieces) > 1 or not all(map(is_common, pieces))

    def _joins(self, place: int) -> bool:
        return (
            self._text[place : place + 1] in ("-", "'", "’") and self._in_word(place - 1) and self._in_word(place + 1)
        )

    def _in_word(self, place: int) -> bool:
        return 0 <= place < len(self._text) and self._text[place].isalnum()


def _is_ascii_letter(sign: str) -> bool:
    return sign.isascii() and sign.isalpha()


@cache
def _plain(sign: str) -> str:
    """Return the letter that a sign stands for, "" for one that stands for none; "l" is "i", since "1" is both."""
    if sign in _STANDS_FOR:
        return _STANDS_FOR[sign][0]
    if "a" <= sign <= "z":
        return sign
    letter = _letter(sign)
    return "i" if letter == "l" else letter


@cache
def _letter(sign: str) -> str:
    """Return the Latin letter that a character is or looks like, in small, or ""."""
    if sign in _LOOKS_LIKE:
        return _LOOKS_LIKE[sign]
    base = unicodedata.normalize("NFKD", sign)[:1]
    if base in _LOOKS_LIKE:
        return _LOOKS_LIKE[base]
    if base.isascii():
        return base.lower() if base.isalpha() else ""
    found = _NAMED.match(unicodedata.name(base, ""))
    return found[1].lower() if found else ""


def _may_be(sign: str, letter: str) -> bool:
    letter = letter.lower()
    return letter in _STANDS_FOR.get(sign, "") or _letter(sign) == letter or sign.lower() == letter
