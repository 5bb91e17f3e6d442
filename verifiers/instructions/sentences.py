"""Sentences and words of English text, parted where the published checkers of IFEval and IFBench part them.

Those use NLTK's Punkt with parameters learned from newspapers.  This has its rules, which are few, and lists of our
own in the place of what was learned: a mark before white space or a closing sign ends a sentence, except a period
after an abbreviation or an initial, or after a number before a small letter, and except three dots.  Words are those of
NLTK's Treebank tokenizer: marks are tokens of their own, "don't" is "do" and "n't", "it's" is "it" and "'s", and only
the period at the end of a sentence leaves its word.

Not covered: what Punkt learned of single words ("Mr. Smith Co. said" and the like differ in rare cases), languages
that do not end sentences with ".", "?" or "!": their text is one sentence, as it is for the published checkers; and the
names that the tokenizer gives to quotation marks (they stay as written here).
"""

from __future__ import annotations

import itertools
import re
from typing import Final

_MARKS = re.compile(r"[.?!]+")
_WORD_BEFORE = re.compile(r"[^\s()\"`{}\[\]:;&#*@,!?]{1,40}\Z")
_CLOSERS = re.compile(r"[\"')\]}]+(?:\s+|(?=--)|\Z)")
_GAP = re.compile(r"\s+")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*\Z")
_BREAKERS: Final = frozenset(")\";}]*:@'({[")  # curly quotes are none: `“Why?” he said` is one sentence

_ABBREVIATIONS: Final = frozenset(
    "dr mr mrs ms messrs prof rep reps sen gen col maj lt adm gov st jr sr inc ltd co corp cos bros ave vs ft yr ph.d "
    "m.b.a b.v s.p.a s.a n.v u.s u.k u.n u.s.a u.s.s.r d.c n.y l.a a.m p.m jan feb aug sep sept oct nov dec tues wed "
    "fri ala ariz calif colo conn fla ga ill kan ky mich minn n.c n.d n.h n.j n.m nev okla ore pa r.i s.c tenn va vt "
    "w.va wash wis ct mg".split()
)  # fmt: skip
"""Words that a period belongs to, without it and in small letters."""

STARTERS: Final = frozenset(
    "he she it they we i this these those there the in if when while although though however despite since so but yet "
    "nor both some many most even indeed instead moreover nevertheless nonetheless meanwhile thus therefore similarly "
    "among under according".split()
)  # fmt: skip
"""Words that begin a sentence when they stand with a capital letter behind an abbreviation or three dots."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without white space around them; linear in its length."""
    pieces = []
    start = 0
    marks = [mark for mark in _MARKS.finditer(text) if _may_end(text, mark.end())]
    ended = False
    for mark, later in itertools.zip_longest(marks, marks[1:]):
        ended = ended or _ends(text, mark)
        if later is not None and not _GAP.search(text, mark.end(), later.start()):
            continue  # of several marks in one word, "now!).", the last is where the sentence ends
        if ended:
            end = _after_gap(text, mark.end())
            closers = _CLOSERS.match(text, end)
            end = closers.end() if closers else end
            pieces.append(text[start:end])
            start = end
        ended = False
    pieces.append(text[start:])
    return [sentence for piece in pieces if (sentence := piece.strip())]


def _may_end(text: str, end: int) -> bool:
    """Return whether text follows that could be another sentence."""
    after = text[end : end + 1]
    return after in _BREAKERS or (after.isspace() and _after_gap(text, end) < len(text))


def _after_gap(text: str, end: int) -> int:
    gap = _GAP.match(text, end)
    return gap.end() if gap else end


def _ends(text: str, mark: re.Match[str]) -> bool:
    """Return whether marks end a sentence."""
    if mark[0] != "." and not mark[0].endswith(".."):
        return True
    at = _after_gap(text, mark.end())
    following = text[at : at + 40]
    starts = following[0].isupper() and _first_word(following) in STARTERS
    if mark[0] != ".":
        return starts
    before = _WORD_BEFORE.search(text, max(0, mark.start() - 40), mark.start())
    word = before[0].lower() if before else ""
    if len(word) == 1 and word.isalpha():
        return not following[0].isalpha() or starts
    if word in _ABBREVIATIONS or word.rpartition("-")[2] in _ABBREVIATIONS:
        return starts
    return not (_NUMBER.match(word) and following[0].islower())


def _first_word(text: str) -> str:
    word = re.match(r"[^\W\d_]+", text)
    return word[0].lower() if word else ""


_MARK_TOKENS: Final = r";@#$%&?!*\[\](){}<>«»“”„‘’\""
_PIECE = re.compile(
    rf"\.{{2,}}|--|[{_MARK_TOKENS}]|`+|[:,](?!\d)|(?:(?!\.\.|--|[:,](?!\d))[^{_MARK_TOKENS}`\s])+"
)  # each alternative begins with another character, so no text is read twice
_CLITIC = re.compile(r"(?i)(?<=[^'])(n't|'ll|'re|'ve|'s|'m|'d|')\Z")
_FINAL = re.compile(r"(?<=[^.])\.(?=[\])}>\"'»”’ ]*\Z)")
_JOINED: Final = {"cannot": 3, "gimme": 3, "gonna": 3, "gotta": 3, "lemme": 3, "wanna": 3}


def tokens(sentence: str) -> list[str]:
    """Return the words and marks of one sentence."""
    final = _FINAL.search(sentence, max(0, len(sentence) - 20))
    if final:
        sentence = f"{sentence[: final.start()]} . {sentence[final.end() :]}"
    parted: list[str] = []
    for piece in _PIECE.findall(sentence):
        if "'" in piece and len(piece) > 1:
            parted += _at_clitic(piece)
        elif len(piece) in (5, 6) and piece.lower() in _JOINED:
            parted += [piece[:3], piece[3:]]
        else:
            parted.append(piece)
    return parted


def _at_clitic(piece: str) -> list[str]:
    clitic = _CLITIC.search(piece, max(0, len(piece) - 4))
    return [piece[: clitic.start()], piece[clitic.start() :]] if clitic and clitic.start() else [piece]
