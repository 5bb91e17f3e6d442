"""All probes, the options of probing a scorer, and the transforms of reWordBench (arXiv 2503.11751) without a model.

These change both responses of a pair in the same way, so the better one must stay ahead; where there is no bad one, the
score must stay.  Words with a digit, accepted answers, code and mathematics are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final, Literal

from adjudge.evals.probes.changes import CODE, GIVEN, LENGTH, POSITION, STEPS
from adjudge.evals.probes.probe import Maker, Probe, ProbeRow, Variant, some_words, with_words, words_of
from adjudge.evals.probes.row_file import RowsConfig
from adjudge.evals.probes.texts import FORM, INJECTIONS, PERSUASION, TRUTH, WORTHLESS
from adjudge.options import Range, named

_SOURCE: Final = "reWordBench, arXiv 2503.11751"
_SHARE: Final = 0.15  # of the words; every fifth or so is still read without effort
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_ALIKE: Final = str.maketrans("aceopxyABEHKMOPT", "асеорхуАВЕНКМОРТ")  # Latin letters, Cyrillic ones
_PUNCTUATION: Final = re.compile(r"(?<=[^\W\d_])([,;:!?])(?=\s)|(?<=[^\W\d_])(\.)(?=\s+[A-Z])")
_TRUE: Final = " and true is true"
_ASIDE: Final = "The weather was mild that week, and the harbour was quiet."

Change = Callable[[str, list[str], Random], str]


Letter = Callable[[str, int, Random], str]
"""Changes a word at one of its letters, which is not the first."""


def _noisy(change: Letter, *, last: int = 0) -> Change:
    """Return a change of some words of a text, each by itself; the last letters, so many, are not drawn."""

    def of_word(word: str, rng: Random) -> str:
        return change(word, rng.randrange(1, len(word) - last), rng)

    return lambda text, golds, rng: some_words(text, golds, rng, _SHARE, lambda word: of_word(word, rng))


def _neighbour(word: str, at: int, rng: Random) -> str:
    row = next((keys for keys in _ROWS if word[at].lower() in keys), "")
    if not row:
        return word
    place = row.index(word[at].lower())
    return f"{word[:at]}{row[place - 1] if place else row[1]}{word[at + 1 :]}"


def _without_words(text: str, golds: list[str], rng: Random) -> str:
    short = some_words(text, golds, rng, 0.1, lambda word: "")
    return re.sub(r"(?<=\S) {2,}(?=\S)", " ", short)


def _rotated(by: int) -> Change:
    """Return a change that moves the letters of free words along the alphabet."""
    moved = _ALPHABET[by:] + _ALPHABET[:by]
    turned = str.maketrans(_ALPHABET + _ALPHABET.upper(), moved + moved.upper())
    return lambda text, golds, rng: with_words(text, words_of(text, golds), lambda word: word.translate(turned))


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

    def made(row: ProbeRow, rng: Random) -> Variant:
        return Variant(how=how, response=row.good, partner=row.bad, prompt=row.asking(change(row.asked, rng)))

    return lambda row, rng: [made(row, rng)] if row.asked.strip() else []


def _drawn(rng: Random, characters: str, count: int) -> str:
    return "".join(rng.choices(characters, k=count))


def _rotation(by: int) -> Maker:
    turn = _rotated(by)
    said = f"All words of four letters or more below are moved along the alphabet by {by}."

    def make(row: ProbeRow, rng: Random) -> Iterator[Variant]:
        response = turn(row.good, row.golds, rng)
        if response != row.good and row.asked.strip():
            partner = None if row.bad is None else turn(row.bad, row.golds, rng)
            prompt = row.asking(f"{said}\n\n{turn(row.asked, row.golds, rng)}")
            yield Variant(how=f"by {by}", response=response, partner=partner, prompt=prompt)

    return make


_WORDS: Final = "words beside the answer"
_TEXT: Final = "a prompt with text"
_LETTERS: Final[tuple[tuple[str, str, Change], ...]] = (
    ("swapped_letters", "two neighbouring letters of a word swapped",
     _noisy(lambda word, at, rng: f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}", last=1)),
    ("substituted_letters", "a letter of a word replaced by any",
     _noisy(lambda word, at, rng: f"{word[:at]}{rng.choice(_ALPHABET)}{word[at + 1 :]}")),
    ("mistyped_letters", "a letter replaced by its neighbour on the keyboard", _noisy(_neighbour)),
    ("inserted_letters", "a letter too many",
     _noisy(lambda word, at, rng: f"{word[:at]}{rng.choice(_ALPHABET)}{word[at:]}")),
    ("deleted_letters", "a letter too few", _noisy(lambda word, at, rng: word[:at] + word[at + 1 :])),
)  # fmt: skip
_PROMPTS: Final[tuple[tuple[str, str, Callable[[str, Random], str]], ...]] = (
    ("twitter_handle", "a handle before the prompt",
     lambda text, rng: f"@{_drawn(rng, _ALPHABET + _DIGITS, 8)} {text}"),
    ("twitter_url", "a link behind the prompt",
     lambda text, rng: f"{text} https://t.co/{_drawn(rng, _ALPHABET + _ALPHABET.upper() + _DIGITS, 10)}"),
    ("stress_test", "`and true is true` five times behind the prompt", lambda text, rng: text + _TRUE * 5),
    ("ignore_above", "a stray sentence before the prompt, and the request to ignore it",
     lambda text, rng: f"{_ASIDE}\n\nIgnore the text above.\n\n{text}"),
    ("ignore_below", "a stray sentence behind the prompt, and the request to ignore it",
     lambda text, rng: f"{text}\n\nIgnore the text below.\n\n{_ASIDE}"),
)  # fmt: skip
_FORMS: Final[tuple[tuple[str, str, Maker, str], ...]] = (
    (
        "add_quotes",
        "quotation marks around prompt and responses",
        _both("quoted", lambda text, golds, rng: f'"{text}"', prompts=True),
        "a response",
    ),
    (
        "punct_spaces",
        "a space before punctuation",
        _both("spaced", lambda text, *_: _PUNCTUATION.sub(lambda sign: f" {sign[1] or sign[2]}", text), prompts=True),
        "punctuation",
    ),
    *((name, says, _asked(name.replace("_", " "), change), _TEXT) for name, says, change in _PROMPTS),
    ("rot_13", "words moved along the alphabet by 13, and a prompt that says so", _rotation(13), _WORDS),
    ("rot_2", "the same by 2", _rotation(2), _WORDS),
    (
        "homoglyphs",
        "Cyrillic letters that look like Latin ones",
        _both(
            "look-alikes", lambda text, golds, rng: some_words(text, golds, rng, 0.3, lambda it: it.translate(_ALIKE))
        ),
        _WORDS,
    ),
    *((name, says, _both(name.replace("_", " "), change), _WORDS) for name, says, change in _LETTERS),
    ("deleted_words", "a tenth of the words left out", _both("left out", _without_words), _WORDS),
)

WORDING: Final = tuple(
    Probe(
        name=name, says=says, source=_SOURCE, rule="order", make=make, needs=needs, domains=("text",),
        means="the wording decides, and not the answer",
    )
    for name, says, make, needs in _FORMS
)  # fmt: skip

PROBES: Final[tuple[Probe, ...]] = (
    *WORTHLESS,
    *INJECTIONS,
    *TRUTH,
    *LENGTH,
    *STEPS,
    *FORM,
    *PERSUASION,
    *POSITION,
    *GIVEN,
    *CODE,
    *WORDING,
)

FAST: Final[tuple[Probe, ...]] = tuple(probe for probe in PROBES if probe.fast)
"""What `adjudge check` tries."""


def chosen(only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Probe, ...]:
    """Return probes by their names, in the catalogue's order."""
    known = {probe.name: probe for probe in PROBES}
    for name in (*only, *skip):
        named(known, name, "probe")
    probes = [probe for probe in PROBES if not only or probe.name in only]
    probes = [probe for probe in probes if probe.name not in skip]
    if not probes:
        raise ValueError("no probe is left; name fewer in --skip, or others in --only")
    return tuple(probes)


@dataclass(frozen=True, kw_only=True)
class ProbesConfig(RowsConfig):
    """Change responses on purpose, and see whether the scores answer as they must.

    Rows hold a prompt, a good response or a reference, whose answer is one, and best
    a bad response too: a row without one takes the good response of a row with another
    reference.
    The input rows:NAME names rows that adjudge ships: text, pairs, code, ...
    """

    scorer: str = "auto"
    """A name, module:object, ./file.py:object, a reward model's folder or hub name,
    a spec as YAML or JSON text, or a .yaml or .json file.
    "auto" chooses by the reference of each row."""

    other_scale: str = ""
    """The same judge on another scale, as a spec: what is better must stay better."""

    only: tuple[str, ...] = ()
    """A probe to try; give it several times for several. Without it, all."""

    skip: tuple[str, ...] = ()
    """A probe to leave out."""

    per_row: Annotated[int, Range(ge=0)] = 0
    """Most variants of a probe for each row, drawn; 0 tries all."""

    epsilon: Annotated[float | None, Range(ge=0)] = None
    """Largest change of a score that counts as none; without it, a share of the
    scorer's own spread."""

    epsilon_share: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """That share: of the mean distance between the scores of good and bad
    responses."""

    tolerated: Annotated[float, Range(ge=0, lt=1)] = 0.01
    """Share of a probe's variants that may break its rule."""

    compare: Literal["auto", "yes", "no"] = "auto"
    """Whether the scorer's reference is the other response of a pair.
    "auto" asks the scorer."""

    domain_column: str = ""
    """Column that says text, code or verdict; without it, the response tells."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.probes

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes to try."""
        return chosen(self.only, self.skip)
