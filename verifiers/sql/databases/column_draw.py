"""New values for a column: of the form and within the bounds of those that it has in a file, and aimed at a query.

The form is what all values of a column share: dates and times as they are written, groups of digits, signs between.

Not covered: values that hang on other columns or rows (`databases.rows_like`); of forms, those that
only some of the values have, and dates that begin with YYYY-MM-DD, which are known as such.
"""

from __future__ import annotations

import calendar
import datetime
import itertools
import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from adjudge.verifiers.sql.databases.file_facts import ColumnFacts, Row
from adjudge.verifiers.sql.databases.mutants import OTHER
from adjudge.verifiers.sql.databases.row_maker import fitting

_DAY: Final = datetime.timedelta(days=1)
_WITH_YEAR: Final = re.compile(r"[%_]*(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?(?!\d)")
_WITHOUT_YEAR: Final = re.compile(r"[%_-]*(?P<month>\d{1,2})(?:-(?P<day>\d\d))?[-%_]*")
_TELLING: Final = 3  # texts whose common beginning is meant
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
                    days = _days_near(named, [edge.year for edge in self.edges])
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


_TRIES: Final = 8  # for a value that no other row has
_NULLS: Final = 0.15  # least share of NULL where a new value is drawn and the file has any
_OTHERS: Final = 6  # values of a column that stand for all of them
_UNSAID: Final = re.compile(rf"{OTHER}|[%_*]")  # what a pattern leaves open
_CLASSES: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """What a query looks at in a file.

    `reads` are lower-case names of tables; `witnesses` are rows of tables, by such names, that make up its result;
    `spared` are such names of columns with a condition that leaves no row of the file out, though others must exist.
    """

    reads: frozenset[str] = frozenset()
    spared: frozenset[str] = frozenset()
    witnesses: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a query asks.

    Attributes:
        constants: lower-case column name -> what it is compared with.
        ranked: lower-case names of columns whose largest or smallest values it asks for: they get no new ties.
        sizes: numbers of rows that it may ask for.
        sorted_by: lower-case names of columns that it sorts by.
        reached: lower-case column name -> texts that a candidate reaches for, though the column may hold no others, or
            the length of a beginning that it looks at.
        named: lower-case names of columns that a candidate names and the query does not.
        aimed: whether a candidate's constants are among those of the query.
        limit: how many rows a candidate takes at most where the query takes all; 0 for all.
    """

    constants: Mapping[str, tuple[Any, ...]]
    ranked: frozenset[str]
    sizes: tuple[int, ...]
    looked_at: LookedAt
    sorted_by: frozenset[str] = frozenset()
    reached: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    aimed: bool = False
    limit: int = 0


class ColumnDraw:
    """New values for a column, of the form and within the bounds of those it has.

    `whole` says that all of the file's rows were read.
    """

    def __init__(self, column: ColumnFacts, aim: Aim, whole: bool) -> None:
        self._column = column
        self._whole = column.numbered and all(isinstance(value, int) for value in column.values)
        self._places = _decimals(column.values) if column.numbered else 0
        self._bounds = self._widened() if column.numbered else (0.0, 0.0)
        texts = [value for value in column.values if isinstance(value, str)]
        self._dated = column.shape.kind in ("date", "moment") and all(_date_of(text) is not None for text in texts)
        self._tails = sorted({text[10:] for text in texts}) or [""]
        self._common = _common_beginning(texts)
        letters = sorted(set().union(*texts))
        self._classes = ["".join(letter for letter in letters if letter in known) for known in _CLASSES]
        edges = (min(texts), max(texts)) if texts and self._dated else ()
        days = [day for day in map(_date_of, edges) if day is not None]
        self._days = days if len(days) == 2 else []
        name = column.shape.name.lower()
        constants = aim.constants.get(name, ())
        parts = [part for constant in constants for part in _UNSAID.split(str(constant)) if part]
        first = sorted(column.values, key=lambda value: -sum(len(part) for part in parts if part in str(value)))
        self._form = None if self._dated and texts else form_of(first)
        near = [value for constant in constants for value in self._neighbours(constant)]
        self._near = [value for value in near if self._allowed(value)]
        if self._closed(constants):
            unread = () if whole or set(column.values) <= {0, 1} else constants
            self._near = [value for value in self._near if value in column.values or value in unread]
        self._parts = [part for constant in constants if (part := str(constant).strip("%_*"))]
        finer = self._finer() if name in aim.sorted_by and not column.closed else []
        others = self._others() if name in aim.constants or name in aim.named else []
        reached = self._reached(aim.reached.get(name, ()))
        self.reached = reached if any(constant in column.values for constant in constants) else []
        misses = dict.fromkeys([*self._near, *reached, *finer, *others])
        self.edges = frozenset(constants)
        self.misses = [value for value in misses if value is None or self.fits(value)]

    def fits(self, value: Any) -> bool:
        """Return whether a value has the form of the column's others."""
        return self._form is None or self._form.fits(str(value))

    def _fitted(self, value: Any) -> list[Any]:
        """Return values of the column's form about one, which need not have it."""
        if self._form is None:
            return [value]
        return [int(text) if self._whole else text for text in self._form.fitted(str(value))]

    def _others(self) -> list[Any]:
        """Return a few values all over those that a column has, and NULL where it has any."""
        values = sorted(self._column.values, key=lambda value: (str(type(value)), value))
        some = values[:: max(1, len(values) // (_OTHERS - 1))] + values[-1:]
        return some + [None] * bool(self._column.nulls)

    def _closed(self, constants: Sequence[Any]) -> bool:
        """Return whether a column takes no values but those read.

        Compared numbers do if they are not as far from each other, or if a constant stands between them.
        """
        column = self._column
        asked = [constant for constant in constants if isinstance(constant, int | float)]
        if not column.closed or not column.numbered or len(column.values) < 3 or not asked:
            return column.closed
        values = sorted(column.values)
        steps = {round(after - before, 9) for before, after in itertools.pairwise(values)}
        between = any(values[0] < constant < values[-1] and constant not in values for constant in asked)
        return len(steps) == 1 and not between

    def _reached(self, reached: Sequence[str | int]) -> list[str]:
        """Return the texts that a candidate reaches for, of a column of texts."""
        values = self._column.values
        if self._dated or not values or not all(isinstance(value, str) for value in values):
            return []
        texts = [text for text in reached if isinstance(text, str)]
        lengths = [length for length in reached if isinstance(length, int)]
        # that only differ from some values beyond their first characters
        texts += [value[:length] + OTHER for length in lengths for value in values[:2] if len(value) >= length]
        return [fitted for text in texts for fitted in self._fitted(text)]

    def _finer(self) -> list[Any]:
        """Return values that stand right beside others, and one with more digits than any."""
        column = self._column
        if not column.numbered or column.shape.key:
            return []
        low, high = self._bounds
        step = 10.0**-self._places
        values = sorted(column.values)[:: max(1, len(column.values) // 6)]
        beside = [round(value + step) if self._whole else round(value + step, self._places) for value in values]
        if low >= 0 and high > 100 and not (self._whole and 1800 <= low <= high <= 2200):
            beside.append(10 ** len(str(int(max(column.values)))))
        return [value for value in beside if self._allowed(value) and (value <= high or value > 100)]

    def value(self, old: Any, chooser: random.Random, narrow: Sequence[Any]) -> Any:
        """Return a value for a row, which may be the old one; `narrow` are the few to take instead of all others."""
        column = self._column
        if column.nulls and chooser.random() < max(column.nulls, _NULLS):
            return None
        if not column.values:
            return old
        if self._near and chooser.random() < 0.5:
            return chooser.choice(self._near)
        if narrow:
            return chooser.choice(narrow)
        known = column.closed or chooser.random() < 0.5
        return chooser.choice(column.values) if known else self.fresh(old, chooser)

    def fresh(self, old: Any, chooser: random.Random) -> Any:
        """Return a value that the column need not have had, of the form of the old one."""
        column = self._column
        if column.closed or not column.values:
            return old
        if self._form is not None and self._form.formats:
            text = self._form.fresh(str(old), chooser)
            return int(text) if self._whole else text
        if column.numbered:
            low, high = self._bounds
            if self._whole:
                return chooser.randint(int(low), max(int(low), int(high)))
            return round(chooser.uniform(low, high), self._places)
        if not isinstance(old, str):
            old = chooser.choice(column.values)
        if not isinstance(old, str):
            return old
        if not self._dated:
            return self._text(old, chooser)
        if not self._days:
            return old
        step = chooser.randint(0, (self._days[1] - self._days[0]).days)
        return (self._days[0] + datetime.timedelta(days=step)).isoformat() + old[10:]

    def beside(self, old: Any, chooser: random.Random) -> Any:
        """Return a value near the old one: another time of that day, or a number that little separates from it."""
        if isinstance(old, str) and self._dated and len(self._tails) > 1:
            return old[:10] + chooser.choice(self._tails)
        if self._column.numbered and isinstance(old, int | float):
            other = old + chooser.randint(1, 9) * 10.0**-self._places
            other = round(other) if self._whole else round(other, self._places)
            return other if self.fits(other) else self.fresh(old, chooser)
        return self.fresh(old, chooser)

    def _neighbours(self, constant: Any) -> list[Any]:
        """Return a constant, and what just misses it."""
        column = self._column
        if self._dated and column.values and all(isinstance(known, str) for known in column.values):
            years = sorted({day.year for day in map(_date_of, column.values) if day is not None})
            days = _days_near(constant, [*years[:1], *years[-1:], *(year - year % 4 for year in years[-1:])])
            tails = [str(constant)[10:]] * (len(str(constant)) > 10) + self._tails[:: max(1, len(self._tails) // 2)]
            return [day.isoformat() + tail for day in days for tail in dict.fromkeys(tails)]
        if self._form is not None:
            return self._fitted(constant)
        value = fitting(column.shape, constant)
        if not column.numbered:
            return [value] if type(value) in {type(known) for known in column.values} else []
        if isinstance(value, str) or value is None:
            return []
        step = 10.0**-self._places
        near = [value, value, value - step, value + step]
        return [round(one) for one in near] if self._whole else [round(float(one), self._places) for one in near]

    def _allowed(self, value: Any) -> bool:
        """Return whether a neighbour of a constant keeps the column's sign, and a share below 1."""
        if not self._column.numbered:
            return True
        low, high = min(self._column.values), max(self._column.values)
        if (low >= 0 and value < 0) or (low > 0 and value <= 0):
            return False
        return self._whole or not (low >= 0 and high <= 1 < value)

    def _widened(self) -> tuple[float, float]:
        """Return the least and the largest number that the column may hold."""
        column = self._column
        low, high = min(column.values), max(column.values)
        if column.unique and self._whole:
            return low, high + len(column.values)
        if self._whole and high - low <= 31:  # months, marks and stars end where they end
            return low, high
        half = (high - low) / 2
        least = low - half if low < 0 else max(low - half, 10.0**-self._places if low > 0 else 0.0)
        most = high + half
        if low >= 0 and high <= 100:  # shares and percentages
            most = min(most, 1 if high <= 1 else 100)
        return min(least, low), most

    def _text(self, old: str, chooser: random.Random) -> str:
        """Return a text of the column's letters, class by class; what all values begin with stays."""
        for _ in range(_TRIES):
            text = old[: self._common] + "".join([self._letter(letter, chooser) for letter in old[self._common :]])
            # The same letters in another case: real columns rarely mix cases, and `LIKE` is a fair answer.
            if self.fits(text) and not any(part.lower() in text.lower() and part not in text for part in self._parts):
                return text
        return old

    def _letter(self, old: str, chooser: random.Random) -> str:
        """Return another letter or digit of the same class that the column has; other signs stay."""
        letters = next((letters for letters in self._classes if old in letters), old)
        return letters[int(chooser.random() * len(letters))]


def _date_of(text: Any) -> datetime.date | None:
    """Return the date, YYYY-MM-DD, that a text begins with."""
    first = str(text)[:10]
    try:
        return datetime.date.fromisoformat(first) if first[4:5] == first[7:8] == "-" else None
    except ValueError:
        return None


def _days_near(constant: Any, years: Sequence[int]) -> list[datetime.date]:
    """Return the days at the ends of what a constant names, those beside them, and the same a month and a year away.

    A constant is a date, a month or a year, or a month or a day of any year; `years` are then taken.
    """
    text = str(constant)
    if (match := _WITH_YEAR.match(text)) is not None:
        years = [int(match["year"])]
    elif (match := _WITHOUT_YEAR.fullmatch(text)) is None:
        return []
    month, day = (int(match[part]) if match[part] else 0 for part in ("month", "day"))
    near: dict[datetime.date, None] = {}
    for year in years:
        try:
            first = datetime.date(year, month or 1, day or 1)
            if not 2 < year < 9990:
                continue
        except ValueError:
            continue
        last = first if day else first.replace(month=month or 12)
        if not day:
            last = last.replace(day=calendar.monthrange(year, last.month)[1])
        beside = [first, last, first - _DAY, last + _DAY, first - 2 * _DAY, last + 2 * _DAY]
        away = [first + days * _DAY for days in (-31, 31, -366, 366)] + [last - _DAY]
        near.update(dict.fromkeys(beside + away))
    return list(near)


def _decimals(values: Sequence[Any]) -> int:
    """Return how many decimals numbers have at most, up to 4."""
    texts = [repr(value) for value in values[:100]]
    return min(4, max(0 if "e" in text or text.endswith(".0") else len(text.partition(".")[2]) for text in texts))


def _common_beginning(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, where they are enough to tell."""
    if len(texts) < _TELLING:
        return 0
    first, last = min(texts), max(texts)
    return next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
