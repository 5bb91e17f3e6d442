"""A response with the units that constraints count, each found once however many constraints ask for it.

Forbidden words in disguise: with letters that look alike, digits in their place, accents, signs or blanks between.

A text is packed: letters alone, each as the plain one that it stands for.  Where a word lies in that, the text there
is the word in disguise, unless it is several words of their own ("a part" is not an "apart"; "bo mb" is "bomb").

Not covered: units of single families of kinds (`text_units` counts as our own kinds do).
"""

from __future__ import annotations

import itertools
import re
import string
import unicodedata
from functools import cache, cached_property
from typing import Final

from adjudge.responses.rendering import as_read
from adjudge.responses.visible import in_plain_letters
from adjudge.verifiers.instructions import sentences as english_sentences
from adjudge.verifiers.instructions.english import SMALL_WORDS_ELSEWHERE, STOP_WORDS, is_common
from adjudge.verifiers.instructions.text_units import bounds, in_plain_signs, spelled

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
_LETTERS = re.compile(r"[^\W_]+")
_LISTED = re.compile(r"[^\W_](?:\W*[,;+/&]\W*[^\W_])+")
_POSSESSIVE = re.compile(r"(?<![sS])(?:['`]| \u0301)[sS]\Z")
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")


class Packed:
    """A text without all that is not a letter, each letter with where it stands."""

    def __init__(self, text: str) -> None:
        """Pack a text; linear in its length."""
        self._text = text = in_plain_signs(_STRETCHED.sub(r"\1", unicodedata.normalize("NFKC", text)))
        letters = [(place, plain) for place, sign in enumerate(text) if (plain := _plain(sign))]
        bare = [one for one in letters if text[one[0]].isalnum()]  # a sign between letters may be none of them
        self._packed = [
            ("".join(plain for _, plain in one), [place for place, _ in one])
            for one in ([letters] if len(bare) == len(letters) else [letters, bare])
        ]
        self._accents = not text.isascii() and _has_accents(text)
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
            is_word = self._is_word(word, places[at : at + len(wanted)])
            count += is_word
            at = letters.find(wanted, at + (len(wanted) if is_word else 1))
        return count

    def _is_word(self, word: str, places: list[int]) -> bool:
        start, end = places[0], places[-1] + 1
        if self._in_word(start - 1) or self._in_word(end) or end - start > len(word) + _GAP * len(places):
            return False
        text, signs = self._text[start:end], [self._text[place] for place in places]
        as_it_is = text.casefold() == word.casefold()
        if self._joins(start - 1, "-'_" if as_it_is else "'") or (as_it_is and self._joins(end, "-'_")):
            return False  # part of a longer word
        letters = list(filter(_plain, word.lower()))
        twice = zip(itertools.pairwise(signs), itertools.pairwise(letters), strict=True)
        if not all(map(_may_be, signs, letters)) or any(ll == ("l", "l") != wanted for ll, wanted in twice):
            return False  # "tall" is not a "tail"
        plain, others = sum(map(_is_ascii_letter, signs)), sum(not sign.isalpha() for sign in signs)
        if 2 * others > len(signs) or (others and (text[-1] in "!|" or (text[0] in "!|" and not text[1].isalnum()))):
            return False
        if plain + others < len(signs) and (self._accents or not (plain or self._latin)):
            return False  # a word of a language that has such letters
        return text.casefold().split() == word.casefold().split() or _is_split(word, text)

    def _joins(self, place: int, signs: str) -> bool:
        return self._text[place : place + 1] in tuple(signs) and self._in_word(place - 1) and self._in_word(place + 1)

    def _in_word(self, place: int) -> bool:
        return 0 <= place < len(self._text) and self._text[place].isalnum()


def _has_accents(text: str) -> bool:
    """Return whether the language of a text has letters with accents, going by its small words and by their number."""
    words = _LETTERS.findall(text.lower())
    accented = sum(not word.isascii() for word in words)
    english, other = (sum(word in small for word in words) for small in (STOP_WORDS, SMALL_WORDS_ELSEWHERE))
    return other > english or (accented > 3 and accented * 12 > len(text.split()))


def _is_split(word: str, text: str) -> bool:
    """Return whether a text is one word, parted or not: no words, numbers or letters that stand for themselves."""
    pieces = _LETTERS.findall(text)
    if text.isalpha() and not STOP_WORDS.isdisjoint(word.lower().split()[: len(word.split()) - 1]):
        return False  # "the rapist" is not a "therapist"
    if len(pieces) == 1:
        return True
    if all(len(piece) == 1 for piece in pieces):
        return not (_LISTED.fullmatch(text) and pieces == sorted(set(pieces)))  # as in "vitamins A, C, E"
    edges = ((pieces[0], word[0]), (pieces[-1], word[-1]))
    if any(piece.isdigit() or (piece == "I" != letter.upper()) for piece, letter in edges):
        return False  # "day 5" is not "days", and "an AI, I" not "all"
    if len(pieces[-2]) > 1 and _POSSESSIVE.search(text):
        return False
    return sum(len(piece) == 1 for piece in pieces) > 1 or not all(map(is_common, pieces))


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
    name = _NAMED.match(unicodedata.name(base, ""))
    return name[1].lower() if name else ""


def _may_be(sign: str, letter: str) -> bool:
    letter = letter.lower()
    return letter in _STANDS_FOR.get(sign, "") or _letter(sign) == letter or sign.lower() == letter


_WORD = re.compile(r"\w+")
_CODE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})(?![ \t]*(?:markdown|md)\b)[^\n]*\n(?:.*?^[ \t]*\1[`~]*|.*)", re.MULTILINE | re.DOTALL
)
_NO_MARKS: Final = dict.fromkeys(map(ord, string.punctuation))


class Text:
    """A response and its units.

    Attributes:
        raw: the response as it is written.
        shown: whether its words are those that a reader sees; else every character counts.
    """

    def __init__(self, raw: str, *, shown: bool = True) -> None:
        """Hold a response; its units are found when they are asked for."""
        self.raw = raw
        self.shown = shown

    @cached_property
    def read(self) -> str:
        """What is read of it: without tags, targets of links and the like."""
        return in_plain_letters(as_read(self.raw)) if self.shown else self.raw

    @cached_property
    def outside_code(self) -> str:
        """What is read of it outside fences of code, in which no mark of Markdown counts."""
        return Text(_CODE.sub("", self.raw), shown=self.shown).read if _CODE.search(self.raw) else self.read

    @cached_property
    def lower(self) -> str:
        """What is read in small letters."""
        return self.read.lower()

    @cached_property
    def words(self) -> list[str]:
        r"""Its runs of letters, digits and underscores: how IFEval counts words (`\w+`)."""
        return _WORD.findall(self.read)

    @cached_property
    def chunks(self) -> list[str]:
        """What stands between white space."""
        return self.read.split()

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, as newlines part them."""
        return self.raw.split("\n")

    @cached_property
    def bare(self) -> str:
        """What is read without ASCII punctuation."""
        return without_marks(self.read)

    @cached_property
    def bare_words(self) -> list[str]:
        """Words in small letters, without ASCII punctuation, as white space parts them."""
        return self.bare.lower().split()

    @cached_property
    def sentences(self) -> list[str]:
        """Its sentences, as Punkt parts them."""
        return english_sentences.sentences(self.read)

    @cached_property
    def tokens(self) -> list[str]:
        """Words and marks, as the Treebank tokenizer parts them."""
        return [token for sentence in self.sentences for token in english_sentences.tokens(sentence)]

    def times(self, word: str) -> int:
        """Return how often a word occurs by itself, case aside; in disguise too, where a reader sees through it."""
        plain = re.compile(whole_word(in_plain_signs(word)), re.IGNORECASE)
        count = max(len(plain.findall(in_plain_signs(text))) for text in {self.raw, self.read})
        return max(count, self.disguised(word))

    def disguised(self, word: str) -> int:
        """Return how often a word occurs by itself, as it is or in disguise, where a reader sees it."""
        return self._packed.times(word) if self.shown else 0

    @cached_property
    def _packed(self) -> Packed:
        return Packed(self.read)


def whole_word(word: str) -> str:
    r"""Return a pattern that finds a word by itself: with what `\b` asks for at an end that is a letter or a digit.

    At another end, as in "C++" or ".NET", `\b` would ask for a letter beside it, so that the word were never found;
    in a script without blanks it asks for a mark.
    """
    word = word.strip()
    before, after = bounds(word, underscore=True)
    return f"{before}{spelled(word)}{after}"


def without_marks(text: str) -> str:
    """Return a text without ASCII punctuation."""
    return text.translate(_NO_MARKS)
