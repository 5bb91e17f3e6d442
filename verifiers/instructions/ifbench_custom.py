"""IFBench's kinds that belong to one prompt each: its group `custom`.

Not covered: whether the questions, dates and countries in a response are true.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.verifiers.instructions.check import Check, Finding
from adjudge.verifiers.instructions.text import Text

_EDGES: Final = string.punctuation + " "
_CAPITALS: Final = (
    "Reykjavik", "Helsinki", "Oslo", "Tallinn", "Stockholm", "Riga", "Moscow", "Copenhagen", "Vilnius", "Minsk",
    "Dublin", "Berlin", "Amsterdam", "Warsaw", "London", "Brussels", "Prague", "Luxembourg", "Paris", "Vienna",
    "Bratislava", "Budapest", "Vaduz", "Chisinau", "Bern", "Ljubljana", "Zagreb",
)  # fmt: skip
_QUESTION = re.compile(r"Question \d+[.|):;]?\s*")
_OPTION = re.compile(r"[A-Ea-e][.|)]\s*\w")
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_SPECIAL = re.compile(r'"[^\n]*[^\w\s][^\n]*"')
_COUNTRIES: Final = 52


@dataclass(frozen=True, kw_only=True)
class Multiples(Check):
    """The multiples of 7 from 14 to 49 and no other number."""

    def look(self, text: Text) -> Finding:
        """Read the runs of digits."""
        numbers = re.findall(r"\d+", text.raw)
        return Finding(numbers == [str(number) for number in range(14, 50, 7)], {"numbers": numbers[:20]})


@dataclass(frozen=True, kw_only=True)
class McqCountLength(Check):
    """Four questions headed "Question 1" and so on, each longer than the last, with five options each."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Part the questions, and the options from them."""
        if not text.raw.startswith("Question"):
            return Finding(False, {"questions": 0})
        questions = [part.strip() for part in _QUESTION.split(text.raw) if part.strip()]
        lengths, options = [], []
        for question in questions:
            lines = [line.strip() for line in question.split("\n")]
            first = next((at for at, line in enumerate(lines) if _OPTION.match(line)), len(lines))
            lengths.append(len(" ".join(lines[:first]).strip()))
            options.append(sum(bool(_OPTION.match(line)) for line in lines))
        longer = all(one < other for one, other in itertools.pairwise(lengths))
        return Finding(options == [5] * 4 and longer, {"lengths": lengths[:20], "options": options[:20]})


@dataclass(frozen=True, kw_only=True)
class ReverseNewline(Check):
    """52 lines or more from the one with Zimbabwe on, in reverse alphabetical order."""

    def look(self, text: Text) -> Finding:
        """Compare each line with the next, without accents."""
        lines = [stripped for line in text.lines if (stripped := line.strip(_EDGES))]
        first = next((at for at, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
        countries = [_plain(line) for line in lines[first:]]
        sorted_ = all(one >= other for one, other in itertools.pairwise(countries))
        return Finding(len(countries) >= _COUNTRIES and sorted_, {"lines": len(countries), "sorted": sorted_})


@dataclass(frozen=True, kw_only=True)
class WordReverse(Check):
    """The bald eagle, in one sentence that is written word by word from its end."""

    def look(self, text: Text) -> Finding:
        """Turn the words round and look for the answer."""
        turned = " ".join(reversed(text.bare_words))
        return Finding("bald eagle" in turned, {"turned": turned[:200]})


@dataclass(frozen=True, kw_only=True)
class CharacterReverse(Check):
    """The bald eagle, written letter by letter from its end."""

    def look(self, text: Text) -> Finding:
        """Look for it."""
        return Finding("elgae dlab" in text.lower)


@dataclass(frozen=True, kw_only=True)
class SentenceAlphabet(Check):
    """26 sentences that begin with the letters of the alphabet."""

    def look(self, text: Text) -> Finding:
        """Compare the first letters; punctuation before them aside."""
        letters = "".join(sentence.lstrip(string.punctuation)[:1].lower() or "?" for sentence in text.sentences)
        return Finding(letters == string.ascii_lowercase, {"letters": letters[:50]})


@dataclass(frozen=True, kw_only=True)
class EuropeanCapitalsSort(Check):
    """The capitals north of 45 degrees from north to south, with commas between them."""

    def look(self, text: Text) -> Finding:
        """Compare the list, without accents."""
        cities = tuple(city for part in _plain(text.raw).split(",") if (city := part.strip()))
        wrong = next((city for city, other in zip(cities, _CAPITALS, strict=False) if city != other), "")
        return Finding(cities == _CAPITALS, {"cities": len(cities), "wrong": wrong[:100]})


@dataclass(frozen=True, kw_only=True)
class CsvCity(Check):
    """CSV with the five columns asked for, and seven rows."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Read it as CSV."""
        rows = _csv(text.raw, ",")
        met = len(rows) == 8 and rows[0] == ["ID", "Country", "City", "Year", "Count"]
        return Finding(met and all(len(row) == 5 for row in rows), {"rows": len(rows)})


@dataclass(frozen=True, kw_only=True)
class CsvSpecialCharacter(Check):
    """CSV with the five columns asked for, 14 rows, and a quoted field with a special character."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Read it as CSV with the quotation marks kept."""
        head = _head(text, ("ProductID", "Category", "Brand", "Price", "Stock"), ",")
        rows = _csv(text.raw.replace('"', '"""'), ",")
        special = next((at for at, row in enumerate(rows[1:]) if any(map(_SPECIAL.match, row))), None)
        whole = special is not None and all(len(row) == 5 for row in rows[1 : special + 2])
        return Finding(head and len(rows) == 15 and whole, {"rows": len(rows), "special": special})


@dataclass(frozen=True, kw_only=True)
class CsvQuotes(Check):
    """Three rows of five fields with tabs between them, each in double quotation marks."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Read it as CSV with the quotation marks kept."""
        head = _head(text, ("StudentID", "Subject", "Grade", "Semester", "Score"), "\t")
        rows = _csv(text.raw.replace('"', '"""'), "\t")
        quoted = all(field.strip()[:1] == '"' == field.strip()[-1:] for row in rows for field in row)
        return Finding(head and len(rows) == 4 and all(len(row) == 5 for row in rows) and quoted, {"rows": len(rows)})


@dataclass(frozen=True, kw_only=True)
class DateFormatList(Check):
    """Dates in Napoleon's life, YYYY-MM-DD, with commas between them."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Read each date."""
        dates = [date.strip() for date in text.raw.split(",")]
        wrong = next((date for date in dates if not _is_date(date)), None)
        return Finding(wrong is None, {"dates": len(dates), "wrong": (wrong or "")[:100]})


CUSTOM: Final[Mapping[str, type[Check]]] = {
    "custom:multiples": Multiples,
    "custom:mcq_count_length": McqCountLength,
    "custom:reverse_newline": ReverseNewline,
    "custom:word_reverse": WordReverse,
    "custom:character_reverse": CharacterReverse,
    "custom:sentence_alphabet": SentenceAlphabet,
    "custom:european_capitals_sort": EuropeanCapitalsSort,
    "custom:csv_city": CsvCity,
    "custom:csv_special_character": CsvSpecialCharacter,
    "custom:csv_quotes": CsvQuotes,
    "custom:date_format_list": DateFormatList,
}
"""Kinds by the names IFBench gives them."""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _csv(text: str, delimiter: str) -> list[list[str]]:
    """Return the rows, none where it is no CSV."""
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []


def _head(text: Text, columns: tuple[str, ...], delimiter: str) -> bool:
    names = text.lines[0].strip().split(delimiter)
    return len(names) == len(columns) and all(
        name.lstrip(" \t") in (column, f'"{column}"') for name, column in zip(names, columns, strict=True)
    )


def _is_date(date: str) -> bool:
    found = _DATE.fullmatch(date)
    if not found:
        return False
    year, month, day = map(int, found.groups())
    days = 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    return 1769 <= year <= 1821 and 1 <= month <= 12 and 1 <= day <= days
