"""IFBench's kinds that look at the form of a response, and those that belong to one prompt each (2507.02833).

Its groups `format` and `custom`.  Where a checker of IFBench is looser than its words, so is this (see
`docs/instructions.md`).

Not covered: whether the questions, dates and countries in a response are true.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
import string
import unicodedata
from collections.abc import Sequence
from typing import Final

from adjudge.verifiers.instructions.english import is_emoji
from adjudge.verifiers.instructions.kind import Kinds, Observation
from adjudge.verifiers.instructions.sentences import sentences
from adjudge.verifiers.instructions.substance import different, holds_something
from adjudge.verifiers.instructions.text import Text, without_marks

FORMATS: Final = Kinds()
"""Kinds by the names IFBench gives them."""

_EDGES: Final = string.punctuation + " "
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_TEMPLATE: Final = ("My Answer:", "My Conclusion:", "Future Outlook:")
_LETTERS = re.compile(r"\W*[aA]\W*[bB]\W*[cC]\W*")
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


@FORMATS.kind("format:parentheses", "format")
def parentheses(text: Text) -> Observation:
    """Brackets nested five deep that close again."""
    opened: list[str] = []
    deepest = 0
    for letter in text.raw:
        if letter in "([{":
            opened.append(letter)
            deepest = max(deepest, len(opened))
        elif letter in _PAIRS:
            if not opened or opened.pop() != _PAIRS[letter]:
                opened, deepest = [], 0
            elif deepest >= 5:
                return Observation(True, {"depth": deepest})
    return Observation(False, {"depth": deepest})


@FORMATS.kind("format:quotes", "format")
def quotes(text: Text) -> Observation:
    """Quotations nested three deep, double and single marks in turn."""
    opened: list[str] = []
    deepest = 0
    for mark in text.raw:
        if opened and mark == opened[-1]:
            opened.pop()
            if deepest - len(opened) >= 3:
                return Observation(True, {"depth": deepest})
        elif mark in "\"'":
            opened.append(mark)
            deepest = max(deepest, len(opened))
    return Observation(False, {"depth": deepest})


@FORMATS.kind("format:options", "format")
def options(text: Text, options: str) -> Observation:
    """One of the options and nothing else; letters exactly as written, texts but for case and punctuation."""
    separator = next((one for one in ("/", r"\bor\b") if re.search(one, options)), ",")
    listed = [option.strip() for option in re.split(separator, options)]
    if _LETTERS.match(options):
        return Observation(text.raw in listed, {"options": listed})
    given = text.raw.strip(_EDGES).lower()
    return Observation(given in [option.strip(_EDGES).lower() for option in listed], {"options": listed})


@FORMATS.kind("format:newline", "format")
def newline(text: Text) -> Observation:
    """Each word on a line of its own."""
    lines, words = sum(map(bool, text.bare.strip().split("\n"))), len(text.bare.split())
    return Observation(lines == words, {"lines": lines, "words": words})


@FORMATS.kind("format:emoji", "format")
def emoji(text: Text) -> Observation:
    """An emoji at the end of each sentence, before its mark or behind."""
    bare = [without_marks(sentence).strip() for sentence in text.sentences]
    for at, sentence in enumerate(bare):
        ends = any(map(is_emoji, sentence[-2:]))
        following = bare[at + 1][:1] if at + 1 < len(bare) else ""
        if not sentence or not (ends or (following and is_emoji(following))):
            return Observation(False, {"at": at})
    return Observation(True)


@FORMATS.kind("format:line_indent", "format")
def line_indent(text: Text) -> Observation:
    """Each line is indented deeper than the one before."""
    depths = [len(line) - len(line.lstrip(" ")) for line in text.lines if line.strip()]
    deeper = all(one < other for one, other in itertools.pairwise(depths))
    return Observation(deeper, {"depths": depths[:50]}, vacuous=len(depths) < 2)


@FORMATS.kind("format:quote_unquote", "format")
def quote_unquote(text: Text) -> Observation:
    """No quotation follows another at once, and none is the end."""
    packed = "".join(text.raw.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
    rest = packed.strip(string.digits + string.punctuation.replace('"', ""))
    met = '""' not in packed and not rest.endswith('"')
    return Observation(met, {"adjacent": '""' in packed}, vacuous='"' not in packed)


@FORMATS.kind("format:list", "format")
def own_bullets(text: Text, sep: str) -> Observation:
    """A sign of one's own in the place of bullet points, twice at least."""
    items = text.raw.split(sep)[1:]
    return Observation(len(items) >= 2, {"signs": len(items)}, vacuous=different(items) < 2)


@FORMATS.kind("format:thesis", "format")
def thesis(text: Text) -> Observation:
    """A text in HTML italics, and text behind it."""
    start = next((at for tag in ("<i>", "<em>") if (at := text.raw.find(tag)) >= 0), len(text.raw))
    rest = text.raw[start:]
    end = next((at for tag in ("</i>", "</em>") if (at := rest.find(tag)) >= 0), -1)
    thesis = rest[3:end].strip() if end >= 0 else ""
    return Observation(bool(thesis) and bool(rest[end + 4 :].strip()), {"italics": thesis[:200]})


@FORMATS.kind("format:sub-bullets", "format")
def sub_bullets(text: Text) -> Observation:
    """Behind each star, up to the next one, there is a dash."""
    points = text.raw.split("*")[1:]
    return Observation(all("-" in point for point in points), {"bullets": len(points)}, vacuous=not points)


@FORMATS.kind("format:no_bullets_bullets", "format")
def no_bullets_bullets(text: Text) -> Observation:
    """Two sentences or more, then two lines or more that begin with a star, and nothing else."""
    lines = [line.strip() for line in text.lines]
    first = next((at for at, line in enumerate(lines) if line.startswith("*")), len(lines))
    running, points = lines[:first], lines[first:]
    count = sum(len(sentences(line)) for line in running)
    met = count >= 2 and len(points) >= 2 and all(point.startswith("*") for point in points)
    return Observation(met, {"sentences": count, "lines": len(points)}, vacuous=different(points) < len(points))


@FORMATS.kind("format:title_case", "format")
def title_case(text: Text) -> Observation:
    """No word in small letters, and none that begins small and goes on in capitals."""
    small = [token for token in text.tokens if token[0].isalpha() and token[0].islower()]
    wrong = [token for token in small if len(token) == 1 or token[1:].islower() or token[1:].isupper()]
    cased = any(token[0].isalpha() for token in text.tokens)
    return Observation(not wrong, {"wrong": len(wrong), "first": wrong[:10]}, vacuous=not cased)


@FORMATS.kind("format:output_template", "format")
def output_template(text: Text) -> Observation:
    """The three headings of the template occur."""
    missing = [heading for heading in _TEMPLATE if heading not in text.raw]
    parts = re.split("|".join(_TEMPLATE), text.raw)[1:]
    return Observation(not missing, {"missing": missing}, vacuous=not all(map(holds_something, parts)))


@FORMATS.kind("format:no_whitespace", "format")
def no_whitespace(text: Text) -> Observation:
    """No white space, at the ends neither."""
    return Observation(not any(map(str.isspace, text.raw)))


@FORMATS.kind("custom:multiples")
def multiples(text: Text) -> Observation:
    """The multiples of 7 from 14 to 49 and no other number."""
    numbers = re.findall(r"\d+", text.raw)
    return Observation(numbers == [str(number) for number in range(14, 50, 7)], {"numbers": numbers[:20]})


@FORMATS.kind("custom:mcq_count_length", "format")
def mcq_count_length(text: Text) -> Observation:
    """Four questions headed "Question 1" and so on, each longer than the last, with five options each."""
    if not text.raw.startswith("Question"):
        return Observation(False, {"questions": 0})
    questions = [part.strip() for part in _QUESTION.split(text.raw) if part.strip()]
    lengths, options = [], []
    for question in questions:
        lines = [line.strip() for line in question.split("\n")]
        first = next((at for at, line in enumerate(lines) if _OPTION.match(line)), len(lines))
        lengths.append(len(" ".join(lines[:first]).strip()))
        options.append(sum(bool(_OPTION.match(line)) for line in lines))
    longer = all(one < other for one, other in itertools.pairwise(lengths))
    return Observation(options == [5] * 4 and longer, {"lengths": lengths[:20], "options": options[:20]})


@FORMATS.kind("custom:reverse_newline")
def reverse_newline(text: Text) -> Observation:
    """52 lines or more from the one with Zimbabwe on, in reverse alphabetical order."""
    lines = [stripped for line in text.lines if (stripped := line.strip(_EDGES))]
    first = next((at for at, line in enumerate(lines) if "Zimbabwe" in line), len(lines))
    countries = [_plain(line) for line in lines[first:]]
    sorted_ = all(one >= other for one, other in itertools.pairwise(countries))
    return Observation(len(countries) >= _COUNTRIES and sorted_, {"lines": len(countries), "sorted": sorted_})


@FORMATS.kind("custom:word_reverse")
def word_reverse(text: Text) -> Observation:
    """The bald eagle, in one sentence that is written word by word from its end."""
    turned = " ".join(reversed(text.bare_words))
    return Observation("bald eagle" in turned, {"turned": turned[:200]})


@FORMATS.kind("custom:character_reverse")
def character_reverse(text: Text) -> Observation:
    """The bald eagle, written letter by letter from its end."""
    return Observation("elgae dlab" in text.lower)


@FORMATS.kind("custom:sentence_alphabet")
def sentence_alphabet(text: Text) -> Observation:
    """26 sentences that begin with the letters of the alphabet."""
    letters = "".join(sentence.lstrip(string.punctuation)[:1].lower() or "?" for sentence in text.sentences)
    return Observation(letters == string.ascii_lowercase, {"letters": letters[:50]})


@FORMATS.kind("custom:european_capitals_sort")
def european_capitals_sort(text: Text) -> Observation:
    """The capitals north of 45 degrees from north to south, with commas between them."""
    cities = tuple(city for part in _plain(text.raw).split(",") if (city := part.strip()))
    wrong = next((city for city, other in zip(cities, _CAPITALS, strict=False) if city != other), "")
    return Observation(cities == _CAPITALS, {"cities": len(cities), "wrong": wrong[:100]})


@FORMATS.kind("custom:csv_city", "format")
def csv_city(text: Text) -> Observation:
    """CSV with the five columns asked for, and seven rows."""
    rows = _csv(text.raw, ",")
    met = len(rows) == 8 and rows[0] == ["ID", "Country", "City", "Year", "Count"]
    return Observation(met and all(len(row) == 5 for row in rows), {"rows": len(rows)}, vacuous=_repeats(rows))


@FORMATS.kind("custom:csv_special_character", "format")
def csv_special_character(text: Text) -> Observation:
    """CSV with the five columns asked for, 14 rows, and a quoted field with a special character."""
    head = _head(text, ("ProductID", "Category", "Brand", "Price", "Stock"), ",")
    rows = _csv(text.raw.replace('"', '"""'), ",")
    special = next((at for at, row in enumerate(rows[1:]) if any(map(_SPECIAL.match, row))), None)
    whole = special is not None and all(len(row) == 5 for row in rows[1 : special + 2])
    seen = {"rows": len(rows), "special": special}
    return Observation(head and len(rows) == 15 and whole, seen, vacuous=_repeats(rows))


@FORMATS.kind("custom:csv_quotes", "format")
def csv_quotes(text: Text) -> Observation:
    """Three rows of five fields with tabs between them, each in double quotation marks."""
    head = _head(text, ("StudentID", "Subject", "Grade", "Semester", "Score"), "\t")
    rows = _csv(text.raw.replace('"', '"""'), "\t")
    quoted = all(field.strip()[:1] == '"' == field.strip()[-1:] for row in rows for field in row)
    met = head and len(rows) == 4 and all(len(row) == 5 for row in rows) and quoted
    return Observation(met, {"rows": len(rows)}, vacuous=_repeats(rows))


@FORMATS.kind("custom:date_format_list", "format")
def date_format_list(text: Text) -> Observation:
    """Dates in Napoleon's life, YYYY-MM-DD, with commas between them."""
    dates = [date.strip() for date in text.raw.split(",")]
    wrong = next((date for date in dates if not _is_date(date)), None)
    return Observation(wrong is None, {"dates": len(dates), "wrong": (wrong or "")[:100]})


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")


def _csv(text: str, delimiter: str) -> list[list[str]]:
    """Return the rows, none where it is not CSV."""
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        return []


def _repeats(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a row is empty, or there again."""
    return different(map(" ".join, rows)) < len(rows)


def _head(text: Text, columns: tuple[str, ...], delimiter: str) -> bool:
    names = text.lines[0].strip().split(delimiter)
    return len(names) == len(columns) and all(
        name.lstrip(" \t") in (column, f'"{column}"') for name, column in zip(names, columns, strict=True)
    )


def _is_date(date: str) -> bool:
    match = _DATE.fullmatch(date)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    days = 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31
    return 1769 <= year <= 1821 and 1 <= month <= 12 and 1 <= day <= days
