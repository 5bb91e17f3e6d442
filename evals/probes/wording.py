"""The transforms of reWordBench (arXiv 2503.11751) that need no model, on prompts and responses.

Both responses of a pair are changed in the same way, so the better one must stay ahead; where there is no bad one, the
score must stay.  Words with a digit, accepted answers, code and mathematics are never touched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from adjudge.evals.probes.probe import Maker, Probe, ProbeRow, Variant
from adjudge.evals.probes.prose import some_words, with_words, words_of

_SOURCE: Final = "reWordBench, arXiv 2503.11751"
_SHARE: Final = 0.15  # of the words; every fifth or so is still read without effort
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALIKE: Final = str.maketrans("aceopxyABEHKMOPT", "асеорхуАВЕНКМОРТ")  # Latin letters, Cyrillic ones
_PUNCTUATION: Final = re.compile(r"(?<=[^\W\d_])([,;:!?])(?=\s)|(?<=[^\W\d_])(\.)(?=\s+[A-Z])")
_TRUE: Final = " and true is true"
_ASIDE: Final = "The weather was mild that week, and the harbour was quiet."

Change = Callable[[str, list[str], Random], str]


def _noisy(change: Callable[[str, Random], str]) -> Change:
    """Return a change of some words of a text, each by itself."""

    def of_text(text: str, golds: list[str], rng: Random) -> str:
        return some_words(text, golds, rng, _SHARE, lambda word: change(word, rng))

    return of_text


def _swap(word: str, rng: Random) -> str:
    at = rng.randrange(1, len(word) - 1)
    return f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}"


def _substitute(word: str, rng: Random) -> str:
    at = rng.randrange(1, len(word))
    return f"{word[:at]}{rng.choice(_ALPHABET)}{word[at + 1 :]}"


def _neighbour(word: str, rng: Random) -> str:
    at = rng.randrange(1, len(word))
    row = next((keys for keys in _ROWS if word[at].lower() in keys), "")
    if not row:
        return word
    place = row.index(word[at].lower())
    return f"{word[:at]}{row[place - 1] if place else row[1]}{word[at + 1 :]}"


def _insert(word: str, rng: Random) -> str:
    at = rng.randrange(1, len(word))
    return f"{word[:at]}{rng.choice(_ALPHABET)}{word[at:]}"


def _delete(word: str, rng: Random) -> str:
    at = rng.randrange(1, len(word))
    return word[:at] + word[at + 1 :]


def _without_words(text: str, golds: list[str], rng: Random) -> str:
    short = some_words(text, golds, rng, 0.1, lambda word: "")
    return re.sub(r"(?<=\S) {2,}(?=\S)", " ", short)


def _alike(text: str, golds: list[str], rng: Random) -> str:
    return some_words(text, golds, rng, 0.3, lambda word: word.translate(_ALIKE))


def _rotated(by: int) -> Change:
    """Return a change that moves the letters of free words along the alphabet."""

    def turn(word: str) -> str:
        if by == 13:
            return codecs.encode(word, "rot13")
        moved = _ALPHABET[by:] + _ALPHABET[:by]
        return word.translate(str.maketrans(_ALPHABET + _ALPHABET.upper(), moved + moved.upper()))

    def of_text(text: str, golds: list[str], rng: Random) -> str:
        return with_words(text, words_of(text, golds), turn)

    return of_text


def _quoted(text: str, golds: list[str], rng: Random) -> str:
    return f'"{text}"'


def _spaced(text: str, golds: list[str], rng: Random) -> str:
    return _PUNCTUATION.sub(lambda found: f" {found[1] or found[2]}", text)


def _both(how: str, change: Change, *, prompts: bool = False) -> Maker:
    """Return a maker that changes both responses alike, and the prompt where that is part of the transform."""

    def make(row: ProbeRow, rng: Random) -> Iterator[Variant]:
        seed = rng.random()
        golds = row.golds
        response = change(row.good, golds, Random(seed))
        partner = None if row.bad is None else change(row.bad, golds, Random(seed))
        prompt = row.asking(change(row.asked, golds, Random(seed))) if prompts and row.asked.strip() else None
        if response != row.good:
            yield Variant(how=how, response=response, partner=partner, prompt=prompt)

    return make


def _asked(how: str, change: Callable[[str, Random], str]) -> Maker:
    """Return a maker that changes the prompt alone."""

    def make(row: ProbeRow, rng: Random) -> Iterator[Variant]:
        if row.asked.strip():
            yield Variant(how=how, response=row.good, partner=row.bad, prompt=row.asking(change(row.asked, rng)))

    return make


def _handle(rng: Random) -> str:
    return "@" + "".join(rng.choices(_ALPHABET + "0123456789", k=8))


def _link(rng: Random) -> str:
    return "https://t.co/" + "".join(rng.choices(_ALPHABET + _ALPHABET.upper() + "0123456789", k=10))


def _code(by: int) -> str:
    return f"All words of four letters or more below are moved along the alphabet by {by}."


def _rotation(by: int) -> Maker:
    turn = _rotated(by)

    def make(row: ProbeRow, rng: Random) -> Iterator[Variant]:
        response = turn(row.good, row.golds, rng)
        if response != row.good and row.asked.strip():
            partner = None if row.bad is None else turn(row.bad, row.golds, rng)
            prompt = row.asking(f"{_code(by)}\n\n{turn(row.asked, row.golds, rng)}")
            yield Variant(how=f"by {by}", response=response, partner=partner, prompt=prompt)

    return make


_WORDS: Final = "words beside the answer"
_TEXT: Final = "a prompt with text"
_LETTERS: Final[tuple[tuple[str, str, Callable[[str, Random], str]], ...]] = (
    ("swapped_letters", "two neighbouring letters of a word swapped", _swap),
    ("substituted_letters", "a letter of a word replaced by any", _substitute),
    ("mistyped_letters", "a letter replaced by its neighbour on the keyboard", _neighbour),
    ("inserted_letters", "a letter too many", _insert),
    ("deleted_letters", "a letter too few", _delete),
)
_PROMPTS: Final[tuple[tuple[str, str, Callable[[str, Random], str]], ...]] = (
    ("twitter_handle", "a handle before the prompt", lambda text, rng: f"{_handle(rng)} {text}"),
    ("twitter_url", "a link behind the prompt", lambda text, rng: f"{text} {_link(rng)}"),
    ("stress_test", "`and true is true` five times behind the prompt", lambda text, rng: text + _TRUE * 5),
    ("ignore_above", "a stray sentence before the prompt, and the request to ignore it",
     lambda text, rng: f"{_ASIDE}\n\nIgnore the text above.\n\n{text}"),
    ("ignore_below", "a stray sentence behind the prompt, and the request to ignore it",
     lambda text, rng: f"{text}\n\nIgnore the text below.\n\n{_ASIDE}"),
)  # fmt: skip
_FORMS: Final[tuple[tuple[str, str, Maker, str], ...]] = (
    ("add_quotes", "quotation marks around prompt and responses", _both("quoted", _quoted, prompts=True), "a response"),
    ("punct_spaces", "a space before punctuation", _both("spaced", _spaced, prompts=True), "punctuation"),
    *((name, says, _asked(name.replace("_", " "), change), _TEXT) for name, says, change in _PROMPTS),
    ("rot_13", "words moved along the alphabet by 13, and a prompt that says so", _rotation(13), _WORDS),
    ("rot_2", "the same by 2", _rotation(2), _WORDS),
    ("homoglyphs", "Cyrillic letters that look like Latin ones", _both("look-alikes", _alike), _WORDS),
    *((name, says, _both(name.replace("_", " "), _noisy(change)), _WORDS) for name, says, change in _LETTERS),
    ("deleted_words", "a tenth of the words left out", _both("left out", _without_words), _WORDS),
)

WORDING: Final = tuple(
    Probe(
        name=name, says=says, source=_SOURCE, kind="invariance", rule="order", make=make, needs=needs,
        domains=("text",), means="the wording decides, and not the answer",
    )
    for name, says, make, needs in _FORMS
)  # fmt: skip
