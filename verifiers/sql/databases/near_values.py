"""Values that just miss a constant: days around a date, a month or a year, texts beside a pattern or a bound."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

_DAY: Final = datetime.timedelta(days=1)
_WITH_YEAR: Final = re.compile(r"[%_]*(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?(?!\d)")
_WITHOUT_YEAR: Final = re.compile(r"[%_-]*(?P<month>\d{1,2})(?:-(?P<day>\d\d))?[-%_]*")
_TELLING: Final = 3  # texts whose common beginning is meant
OTHER: Final = "ab"  # what stands beyond a part of a text that is looked at


def date_of(text: Any) -> datetime.date | None:
    """Return the date, YYYY-MM-DD, that a text begins with."""
    first = str(text)[:10]
    try:
        return datetime.date.fromisoformat(first) if first[4:5] == first[7:8] == "-" else None
    except ValueError:
        return None


def days_near(constant: Any, years: Sequence[int]) -> list[datetime.date]:
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


def filled(pattern: str) -> str:
    """Return a text that fits a pattern of LIKE or GLOB."""
    return pattern.replace("%", OTHER).replace("_", "c").replace("*", OTHER)


def beside_bound(bound: str) -> Iterator[str]:
    """Yield texts just below and just above a bound."""
    yield from (bound, bound + "b")
    if bound and ord(bound[-1]) > 32:
        yield bound[:-1] + chr(ord(bound[-1]) - 1) + "b"


def around_part(part: str) -> Iterator[str]:
    """Yield texts that begin or end with what a part of them is compared with."""
    yield from (part + OTHER, OTHER + part)


def same_beginning(values: Sequence[Any], length: int) -> Iterator[str]:
    """Yield texts that only differ from some values beyond their first characters."""
    yield from (value[:length] + OTHER for value in values if isinstance(value, str) and len(value) >= length)


def decimals(values: Sequence[Any]) -> int:
    """Return how many decimals numbers have at most, up to 4."""
    texts = [repr(value) for value in values[:100]]
    return min(4, max(0 if "e" in text or text.endswith(".0") else len(text.partition(".")[2]) for text in texts))


def common_beginning(texts: Sequence[str]) -> int:
    """Return how many characters all texts begin with, where they are enough to tell."""
    if len(texts) < _TELLING:
        return 0
    first, last = min(texts), max(texts)
    return next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
