"""The form that all values of a column share: dates and times as they are written, groups of digits, signs between.

Not covered: dates that begin with YYYY-MM-DD, which `near_values` knows, and forms that only some of the values have.
"""

from __future__ import annotations

import datetime
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from adjudge.verifiers.sql.databases.near_values import OTHER, days_near

_ENOUGH: Final = 4  # different values from which on what they share is no accident
_YEARS: Final = (1800, 2200)
_BEYOND: Final = 2  # years beside those of the file
_MOST: Final = 8  # values for one constant
_PATTERNS: Final = 4  # values that a part is put into, and as many of the others
_FIELD: Final = re.compile(r"%-?\w")
_UNITS: Final = (("S", 1), ("M", 60), ("H", 3600), ("I", 3600), ("d", 86_400))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a column's texts, or whole numbers written out, have in common.

    Attributes:
        values: the texts; a part is put into the first of them, and into some of the others.
        formats: those of `strptime` that fit all of them; with them, `edges` are the first and the last moment.
        digits: a pattern of groups of digits, as long as those of the values, and all that stands between.
        signs: the signs that each value has, in their order, with something around each.
    """

    values: tuple[str, ...]
    formats: tuple[str, ...] = ()
    edges: tuple[datetime.datetime, ...] = ()
    digits: re.Pattern[str] | None = None
    signs: str = ""
    lettered: bool = field(default=False)

    def fits(self, text: str) -> bool:
        """Return whether a text has the form."""
        if self.formats:
            low, high = (edge.year for edge in self.edges)
            read = [_read(text, form) for form in self.formats]
            return all(one is not None and low - _BEYOND <= one.year <= high + _BEYOND for one in read)
        if self.digits is not None:
            return self.digits.fullmatch(text) is not None
        parts = re.split(f"[{re.escape(self.signs)}]+", text)
        return all(parts) and "".join(sign for sign in text if sign in self.signs) == self.signs

    def fresh(self, old: str, chooser: random.Random) -> str:
        """Return a moment between those of the file, or the old one where none is known."""
        if not self.formats:
            return old
        low, high = self.edges
        return (low + chooser.random() * (high - low)).strftime(self.formats[0])

    def fitted(self, text: str) -> list[str]:
        """Return texts of the form that meet and just miss what a text, or a part of one, is compared with."""
        core = text.removeprefix(OTHER).removesuffix(OTHER) if self.lettered or self.signs else text.strip("abc ")
        tried = (self._beside(core), self._moments(core), self._placed(text), self._placed(core)) if core else ()
        found = itertools.zip_longest(*(filter(self.fits, dict.fromkeys(several)) for several in ((text,), *tried)))
        return list(dict.fromkeys(one for several in found for one in several if one is not None))[:_MOST]

    def _beside(self, part: str) -> Iterator[str]:
        """Yield texts whose last group of digits is the number before or after."""
        if self.digits is not None and (groups := list(re.finditer(r"\d+", part))):
            start, end = groups[-1].span()
            for number in (int(groups[-1][0]) - 1, int(groups[-1][0]) + 1):
                yield part[:start] + str(max(0, number)).zfill(end - start) + part[end:]

    def _placed(self, part: str) -> Iterator[str]:
        """Yield values with a part put into them: at an end where signs stand between, else at every place."""
        yield from (part + "1", "1" + part)
        for value in (*self.values[:_PATTERNS], *self.values[_PATTERNS :: 1 + len(self.values) // _PATTERNS]):
            if self.signs:
                cut = [at for at, sign in enumerate(value) if sign in self.signs]
                yield from (part + value[cut[0] :], value[: cut[-1] + 1] + part)
                continue
            yield from (value[:at] + part + value[at + len(part) :] for at in range(len(value) - len(part) + 1))

    def _moments(self, part: str) -> Iterator[str]:
        """Yield the moments at the ends of what a part of one names, and those beside them."""
        for form in self.formats:
            unit = next((seconds for sign, seconds in _UNITS if sign in _fields(form)), 31 * 86_400)
            for some in _parts(form):
                if (moment := _read(part, some)) is None:
                    continue
                names = _fields(some)
                near: list[datetime.datetime] = []
                if names & {"H", "I", "M", "S"}:
                    span = next(seconds for sign, seconds in _UNITS if sign in names)
                    steps = (0, -unit, span - unit, span, -span)
                    near = [moment + datetime.timedelta(seconds=step) for step in steps]
                elif names & {"Y", "y", "m", "b", "B"}:
                    month = f"{moment:%m-%d}" if "d" in names else f"{moment:%m}" if names - {"Y", "y"} else ""
                    named = "-".join(filter(None, (f"{moment:%Y}" if names & {"Y", "y"} else "", month)))
                    days = days_near(named, [edge.year for edge in self.edges])
                    near = [datetime.datetime.combine(day, self.edges[0].time()) for day in days]
                yield from (one.strftime(form) for one in near)


def form_of(values: Sequence[Any]) -> Form | None:
    """Return what texts or whole numbers have in common, where they are enough to tell; of numbers, a date alone."""
    texts = tuple(dict.fromkeys(str(value) for value in values))
    if len(texts) < _ENOUGH or not all(texts) or len({type(value) for value in values} & {str, int}) != 1:
        return None
    if not all(type(value) in (str, int) for value in values):
        return None
    lettered = any(letter.isalpha() for text in texts for letter in text)
    if formats := tuple(form for form in _formats().get(_outline(texts[0]), ()) if all(_read(t, form) for t in texts)):
        moments = [moment for text in texts if (moment := _read(text, formats[0])) is not None]
        return Form(values=texts, formats=formats, edges=(min(moments), max(moments)), lettered=lettered)
    if isinstance(values[0], int):
        return None
    if (digits := _digits(texts)) is not None:
        return Form(values=texts, digits=digits, lettered=lettered)
    counts = {sign: {text.count(sign) for text in texts} for sign in set(texts[0]) if not sign.isalnum()}
    signs = {sign for sign, found in counts.items() if len(found) == 1}
    orders = {"".join(sign for sign in text if sign in signs) for text in texts}
    form = Form(values=texts, signs=orders.pop(), lettered=lettered)
    return form if form.signs and not orders and all(map(form.fits, texts)) else None


def _digits(texts: Sequence[str]) -> re.Pattern[str] | None:
    """Return the pattern of texts that differ in groups of digits alone, each as long as in them."""
    between = re.split(r"\d+", texts[0])
    if len(between) < 2 or any(re.split(r"\d+", text) != between for text in texts):
        return None
    pattern = re.escape(between[0])
    for group, after in zip(zip(*(re.findall(r"\d+", text) for text in texts), strict=True), between[1:], strict=True):
        low, high = min(map(len, group)), max(map(len, group))
        counted = len(between) == 2 and low == 1 and not after and between[0]  # after Team 9 comes Team 10
        padded = low == high or any(len(one) > 1 and one[0] == "0" for one in group)
        sixty = high == 2 and all(int(one) < 60 for one in group) and ":" in "".join(between)
        first = "[0-5]" if sixty and low == 2 else r"\d" if padded and not counted else "(?!0.)\\d"
        pattern += f"{first}\\d{{{low - 1},{high - 1 + bool(counted)}}}{re.escape(after)}"
    return re.compile(pattern, re.DOTALL)


def _outline(text: str) -> str:
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", text))


@cache
def _formats() -> dict[str, tuple[str, ...]]:
    """Return the formats of dates and times, by the outline of what they write."""
    orders = ("%Y{0}%m{0}%d", "%m{0}%d{0}%Y", "%d{0}%m{0}%Y", "%m{0}%d{0}%y", "%d{0}%m{0}%y", "%Y{0}%m", "%m{0}%Y")
    days = [order.format(sign) for order in orders for sign in "/.- "]
    days += ["%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%B %Y", "%b %Y", "%b-%Y"]
    clocks = ["%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p"]
    padded = [*days, *clocks, *(f"{day}{sign}{clock}" for day in days for clock in clocks for sign in " T")]
    found: dict[str, tuple[str, ...]] = {"0": ("%Y%m%d", "%Y%m")}
    for form in padded:
        outline = re.sub(r"%[bBp]", "a", re.sub(r"%[^bBp]", "0", form)).replace("T0", "a0")
        forms = (*found.get(outline, ()), form, re.sub(r"%([mdHI])", r"%-\1", form))
        found[outline] = tuple(dict.fromkeys(forms))
    return found


def _fields(form: str) -> set[str]:
    return {name[-1] for name in _FIELD.findall(form)}


@cache
def _parts(form: str) -> tuple[str, ...]:
    """Return the formats that run from one field of a format to the same or a later one, the longest first."""
    places = [(match.start(), match.end()) for match in _FIELD.finditer(form)]
    parts = {form[start:end] for start, _ in places for _, end in places if end > start}
    return tuple(sorted(parts, key=lambda part: (-len(part), form.index(part))))


def _read(text: str, form: str) -> datetime.datetime | None:
    """Return the moment that a text names, where the format writes it just so."""
    try:
        moment = datetime.datetime.strptime(text, form.replace("%-", "%"))  # noqa: DTZ007 -- columns say no zone
        return moment if moment.strftime(form) == text and _YEARS[0] < moment.year < _YEARS[1] else None
    except ValueError:
        return None
