r"""Strict reading of what a judge wrote: a declared answer in a declared form, or nothing.

A form is the judge's line with `{answer}` in it: `[[{answer}]]`, `Final Decision: {answer}`, `[RESULT] {answer}`,
`<answer>{answer}</answer>`, and with `{nonce}` where the prompt asks for its own key, `Verdict {nonce}: {answer}`.
The last place in the text that has the form counts.  What stands there must be the answer and nothing else; two
different answers on that line are none.  In a form that closes, the answer may have a line of its own: a tag's content
often has.  There is no default and no second guess: `None` means that nobody knows.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from adjudge.protocol import THINK_END, THINK_START
from adjudge.wire import no_constant, unique_keys

Json: TypeAlias = Any

WHOLE = "{answer}"
"""The form of an answer that is the whole text."""

_DECORATION = " \t\n*_`\"'“”"
_ENDING = ".。!;,"
_NUMBER = re.compile(r"([+-]?[0-9]{1,6})(?:\s?/\s?([0-9]{1,6}))?", re.ASCII)
AROUND = r"[\s*_`]{0,8}"  # between a tag and what stands in it
_LONGEST_ANSWER = 200  # characters between the two halves of a form
_LONGEST_JSON = 65_536  # characters from the end that are searched for JSON; a verdict is shorter


_OPENED = re.compile(rf"^[ \t]*(?:{'|'.join(map(re.escape, THINK_START))})", re.MULTILINE)


def concluded(text: str) -> str:
    """Return what stands behind the thinking in a model's text, all of it if it has none; "" where it still thinks.

    A tag in the middle of a line opens nothing: there the model speaks of one.
    """
    rest = text[max(text.rfind(tag) + len(tag) if tag in text else 0 for tag in THINK_END) :]
    return "" if _OPENED.search(rest) else rest


@functools.lru_cache(maxsize=1024)
def frame(form: str, nonce: str = "") -> re.Pattern[str]:
    """Return the pattern that finds a form; its group `answer` is what stands in the place of `{answer}`.

    Args:
        form: text with `{answer}` once, and with `{nonce}` at most once; `{answer}` alone is the whole text.
        nonce: what stands in the place of `{nonce}`.

    Raises:
        ValueError: the form has no place for an answer, or nothing before it.
    """
    if form == WHOLE:
        return re.compile(r"\A(?P<answer>[\s\S]*)\Z")
    before, place, after = form.partition("{answer}")
    if not place or not before.strip() or "{answer}" in after:
        raise ValueError(
            f"the form {form!r} must hold {{answer}} once, with something before it, as in '[[{{answer}}]]'"
        )
    if "{nonce}" in form and not nonce:
        raise ValueError(f"the form {form!r} is keyed, so it is read with the nonce of the prompt")
    opening, closing = (_loosely(part.strip(), nonce) for part in (before, after))
    if closing:  # an opening without its closing is a place too, with no answer in it
        inside = rf"(?:[ \t]{{0,8}}\n\s{{0,8}}(?!{opening}))?(?P<answer>[^\n]{{0,{_LONGEST_ANSWER}}}?)(?:\n\s{{0,8}})?"
        return re.compile(rf"{opening}(?:{inside}{closing})?", re.IGNORECASE)
    return re.compile(rf"{opening}(?P<answer>[^\n]*)", re.IGNORECASE)


def _loosely(literal: str, nonce: str) -> str:
    """A literal with any blanks between its words, and with emphasis around its words, in tags and before a colon."""
    words = [re.escape(word.replace("{nonce}", nonce)) for word in literal.split()]
    return r"[ \t*_]{1,4}".join(at_tags(re.sub(r":$", r"[*_]{0,3}:", word)) for word in words)


def at_tags(pattern: str) -> str:
    """Return a pattern that lets blanks, line breaks and emphasis stand behind each tag in it and before each."""
    return re.sub(r"(?<=>)(?=.)|(?<=.)(?=<)", lambda _: AROUND, pattern)


def mark(form: str) -> str:
    """Return the pattern of what must not be found in text that others wrote, for a form without a nonce.

    Where the whole text is the answer there is no such pattern; read probabilities there, which nobody can spoof.
    """
    if form == WHOLE:
        return r"(?!)"
    return _loosely(form.partition("{answer}")[0].strip(), "")


def answers(text: str, form: str, nonce: str = "") -> list[tuple[str, int]]:
    """Return what stands in each place that has the form, without decoration, and where the place begins."""
    return [(_bare(place["answer"] or ""), place.start()) for place in frame(form, nonce).finditer(text)]


def _bare(answer: str) -> str:
    answer = answer.strip(_DECORATION).rstrip(_ENDING + _DECORATION)
    return answer[1:-1].strip() if answer[:1] + answer[-1:] in ("()", "[]") else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A verdict with places to fill in, for a model that is asked for each alone and may say nothing but the choices.

    Attributes:
        places: for each place, the text before it and what may stand in it; without choices, any words on one line.
        end: the text behind the last.
        distinct: whether what stands in one place may stand in no other.
    """

    places: tuple[tuple[str, tuple[str, ...]], ...]
    end: str = ""
    distinct: bool = False

    @classmethod
    def of(
        cls, form: str, nonce: str, choices: Sequence[Sequence[str]], *, between: str = ", ", distinct: bool = False
    ) -> Blank:
        """Return the blank of a form whose answer has these places, with `between` between them."""
        before, _, end = form.replace("{nonce}", nonce).partition("{answer}")
        places = tuple((between if at else before, tuple(some)) for at, some in enumerate(choices))
        return cls(places=places, end=end, distinct=distinct)

    @classmethod
    def of_lines(cls, nonce: str, choices: Mapping[str, Sequence[str]]) -> Blank:
        """Return the blank of lines `NONCE NAME: LABEL`, as `keyed_lines` reads them."""
        starts = (f"{nonce} {name}: " if at == 0 else f"\n{nonce} {name}: " for at, name in enumerate(choices))
        return cls(places=tuple(zip(starts, map(tuple, choices.values()), strict=True)))

    def filled(self, words: Sequence[str]) -> str:
        """Return the text up to the first place that is not filled, or all of it."""
        texts = [before + word for (before, _), word in zip(self.places, words, strict=False)]
        open_ = [self.places[len(words)][0]] if len(words) < len(self.places) else [self.end]
        return "".join((*texts, *open_))

    def choices(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return what may stand in the first place that is not filled."""
        return tuple(one for one in self.places[len(words)][1] if not (self.distinct and one in words))


@dataclass(frozen=True, kw_only=True)
class LabelReader:
    """Reads one label out of a declared set.

    Attributes:
        form: the form that holds the answer.
        labels: the labels there are; their case does not matter.
        window: only so many characters at the end of the text are looked at; 0 for all.
        sole: whether every place that has the form must hold the same label, and not only those on the last line.
    """

    form: str
    labels: tuple[str, ...]
    window: int = 0
    sole: bool = False

    def __post_init__(self) -> None:
        frame(self.form, "0")
        folded = [_bare(label).casefold() for label in self.labels]
        if len(set(folded)) < len(folded) or len(folded) < 2 or not all(folded):
            raise ValueError(
                f"the labels {self.labels!r} must be two or more texts that differ by more than case, emphasis, "
                "brackets around them and a sign at their end"
            )
        if self.window < 0:
            raise ValueError(f"the window is {self.window!r}; it must be 0 (the whole text) or more")

    def __call__(self, text: str, nonce: str = "") -> str | None:
        """Return the label, as it was declared, or None."""
        answer = _standing(text, self.form, nonce, window=self.window, sole=self.sole)
        known = {_bare(label).casefold(): label for label in self.labels}
        return None if answer is None else known.get(answer.casefold())

    def blank(self, nonce: str) -> Blank:
        """Return the verdict with its place to fill in."""
        return Blank.of(self.form, nonce, [self.labels])


@dataclass(frozen=True, kw_only=True)
class NumberReader:
    """Reads one whole number within a declared range.

    `7/10` is read as 7 where 10 is the highest number; a number with any other denominator is none.

    Attributes:
        form: the form that holds the answer.
        low: the lowest number.
        high: the highest.
    """

    form: str
    low: float
    high: float

    def __post_init__(self) -> None:
        frame(self.form, "0")
        if not self.low < self.high:
            raise ValueError(f"the range {self.low!r} to {self.high!r} is empty; the low end comes first")

    def __call__(self, text: str, nonce: str = "") -> float | None:
        """Return the number, or None."""
        answer = _standing(text, self.form, nonce)
        return None if answer is None else number(answer, self.low, self.high)

    def blank(self, nonce: str) -> Blank:
        """Return the number with its place to fill in."""
        return Blank.of(self.form, nonce, [whole_numbers(self.low, self.high)])


@dataclass(frozen=True, kw_only=True)
class NumberListReader:
    """Reads a declared count of whole numbers, separated by commas, each within the range.

    Attributes:
        form: the form that holds the answer.
        count: how many numbers there must be.
        low: the lowest number.
        high: the highest.
    """

    form: str
    count: int
    low: float
    high: float

    def __post_init__(self) -> None:
        frame(self.form, "0")
        if not self.low < self.high or self.count < 1:
            raise ValueError(f"{self.count!r} numbers of {self.low!r} to {self.high!r} cannot be read; both must exist")

    def __call__(self, text: str, nonce: str = "") -> tuple[float, ...] | None:
        """Return the numbers in order, or None."""
        answer = _standing(text, self.form, nonce)
        parts = [] if answer is None else [_bare(part) for part in answer.split(",")]
        numbers = [number(part, self.low, self.high) for part in parts]
        known = tuple(one for one in numbers if one is not None)
        return known if len(known) == len(parts) == self.count else None

    def blank(self, nonce: str) -> Blank:
        """Return the list with a place for each number."""
        return Blank.of(self.form, nonce, [whole_numbers(self.low, self.high)] * self.count)


def whole_numbers(low: float, high: float) -> tuple[str, ...]:
    """Return the whole numbers of a range as texts."""
    return tuple(str(number) for number in range(math.ceil(low), math.floor(high) + 1))


def number(text: str, low: float, high: float) -> float | None:
    """Return the whole number a short text is, or None when it is not one, or lies outside the range."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or (match[2] is not None and float(match[2]) != high):
        return None
    value = float(match[1])
    return value if low <= value <= high else None


def _standing(text: str, form: str, nonce: str, *, window: int = 0, sole: bool = False) -> str | None:
    """What the last place holds, if the other places on its line (with `sole`, all others) hold the same."""
    looked_at = text[-window:] if window else text
    places = answers(looked_at, form, nonce)
    if not places:
        return None
    last, at = places[-1]
    line = 0 if sole else looked_at.rfind("\n", 0, at) + 1
    return last if all(answer.casefold() == last.casefold() for answer, where in places if where >= line) else None


def keyed_lines(text: str, nonce: str, names: Sequence[str], labels: Sequence[str]) -> dict[str, str] | None:
    """Read one verdict for each name from lines `NONCE NAME: LABEL`.

    Returns:
        Name to label, in the order of `names`; None unless every name has exactly one verdict, out of the labels,
        and no other name has any.
    """
    known = {_bare(label).casefold(): label for label in labels}
    verdicts: dict[str, str] = {}
    for line in text.splitlines():
        key, _, rest = line.strip(_DECORATION + "-").partition(" ")
        if key.casefold() != nonce.casefold():
            continue
        name, colon, answer = rest.partition(":")
        name, label = name.strip(_DECORATION), known.get(_bare(answer).casefold())
        if not colon or label is None or name not in names or verdicts.get(name, label) != label:
            return None
        verdicts[name] = label
    return {name: verdicts[name] for name in names} if len(verdicts) == len(names) else None


def json_value(text: str, kind: type[dict[str, Json]] | type[list[Json]]) -> Json | None:
    """Return the last JSON object (`dict`) or array (`list`) of the text that stands inside no other, or None.

    Only the last 65,536 characters are looked at.  A text that holds an object with a key given twice, NaN, infinity,
    or a nesting too deep to follow is refused as a whole.
    """
    last = None
    try:
        for value in _json_values(text[-_LONGEST_JSON:]):
            if isinstance(value, kind):
                last = value
    except (ValueError, RecursionError):  # JSON that can be read in two ways, or in none that JSON knows
        return None
    return last


def json_object(text: str, keys: Mapping[str, type | tuple[type, ...]]) -> dict[str, Json] | None:
    """Return the last JSON object of the text if it has exactly the declared keys with values of these types, or None.

    `bool` is not a number here: where `int` or `float` is declared, true and false are refused.
    """
    value = json_value(text, dict)
    if value is None or set(value) != set(keys):
        return None
    for key, kinds in keys.items():
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value[key], allowed) or (isinstance(value[key], bool) and bool not in allowed):
            return None
    return {key: value[key] for key in keys}


_OPENING = re.compile(r"[{\[]")


def _json_values(text: str) -> Iterator[Json]:
    opening = _OPENING.search(text)
    while opening:
        try:
            value, at = _DECODER.raw_decode(text, opening.start())
            yield value
        except json.JSONDecodeError:
            at = opening.end()
        opening = _OPENING.search(text, at)


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=no_constant)
