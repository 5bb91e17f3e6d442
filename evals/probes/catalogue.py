"""All probes, the options of probing a scorer, and the transforms of reWordBench (arXiv 2503.11751) without a model.

These change both responses of a pair in the same way, so the better one must stay ahead; where there is no bad one, the
score must stay.  Words with a digit, accepted answers, code and mathematics are never touched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final, Literal

from adjudge.evals.probes.changes import CODE, GIVEN, LENGTH, POSITION, STEPS
from adjudge.evals.probes.fixed_texts import INJECTIONS, PERSUASION, WORTHLESS
from adjudge.evals.probes.form import FORM, TRUTH
from adjudge.evals.probes.probe import Maker, Probe, ProbeRow, Variant
from adjudge.evals.probes.prose import some_words, with_words, words_of
from adjudge.evals.reports.config import EvalConfig
from adjudge.options import Range, named

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


def chosen(only: Sequence[str] = (), skip: Sequence[str] = (), *, fast: bool = False) -> tuple[Probe, ...]:
    """Return probes by their names, in the catalogue's order.

    Raises:
        ValueError: a name is unknown, or nothing is left.
    """
    known = {probe.name: probe for probe in PROBES}
    for name in (*only, *skip):
        named(known, name, "probe")
    found = [probe for probe in (FAST if fast else PROBES) if not only or probe.name in only]
    found = [probe for probe in found if probe.name not in skip]
    if not found:
        raise ValueError("no probe is left; name fewer in --skip, or others in --only")
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class ProbesConfig(EvalConfig):
    """Change responses on purpose, and see whether the scores answer as they must.

    Rows hold a prompt, a good response or a reference, and best a bad response too.
    The input rows:NAME names rows that adjudge ships: text, pairs, code, ...

    Raises:
        ValueError: an option is out of range, or a probe is unknown.
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

    fast: bool = False
    """Only the probes that adjudge check tries."""

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

    given_bad: bool = False
    """Use only bad responses that rows hold. Without it, a row that has none takes
    the good response of a row with another reference."""

    compare: Literal["auto", "yes", "no"] = "auto"
    """Whether the scorer's reference is the other response of a pair.
    "auto" asks the scorer."""

    prompt_column: str = ""
    """Column of the prompts: text or chat turns. Of every column: without it, the
    usual names are tried."""

    good_column: str = ""
    """Column of the good responses. Without any, the answer in the reference is it."""

    bad_column: str = ""
    """Column of the bad responses."""

    reference_column: str = ""
    """Column of the references."""

    id_column: str = ""
    """Column of the ids; without one, rows are named by their number, from 0."""

    domain_column: str = ""
    """Column that says text, code or verdict; without it, the response tells."""

    extra_column: tuple[str, ...] = ()
    """A further column that the scorer asks for by name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compare not in ("auto", "yes", "no"):
            raise ValueError(f"compare is {self.compare!r}; it must be auto, yes or no")
        _ = self.probes

    @property
    def probes(self) -> tuple[Probe, ...]:
        """The probes to try."""
        return chosen(self.only, self.skip, fast=self.fast)
