"""The kinds that `adjudge data constraints` composes and MulDimIF's prompts ask for, in its four classes.

Each says what it means without a published checker behind it: a word is a word of its own, case aside, and a length is
a range.

Not covered: what only a model can judge ("be polite"), and parts of a response ("each slide").
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from adjudge.options import Range
from adjudge.verifiers.instructions import text_units
from adjudge.verifiers.instructions.kind import MAX_COUNT, Kinds, Limits, Observation
from adjudge.verifiers.instructions.substance import (
    besides,
    commas,
    different,
    has_values,
    holds_something,
    is_quoted_as_one,
    times_apart,
    worth,
)
from adjudge.verifiers.instructions.text import Text
from adjudge.wire import no_constant

Mark = Literal[".", "!", "?"]
Language = Literal["en", "zh", "ru", "ar", "ko"]
MARKS: Final[tuple[Mark, ...]] = (".", "!", "?")

_QUOTES: Final = '"“”'
_TITLE = re.compile(r"<<([^<>\n]+)>>")
_TAG = re.compile(r"<[A-Za-z_]([^<>]*)>")
_ATTRIBUTE = re.compile(r"=\s*[\"']")
_FENCED = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)```", re.DOTALL)


COMPOSED: Final = Kinds()
"""Kinds that constraints are composed of, by name."""

WRITTEN: Final = Kinds()
"""Kinds that MulDimIF's prompts ask for besides, by name."""


def _counted(unit: str, worth_of: Callable[[str], int]) -> Callable[..., Observation]:
    """Return a check of so many of a unit, of which the second function counts those that are not filler."""

    def look(text: Text, limits: Limits) -> Observation:
        """So many of a unit."""
        count = text_units.COUNTS[unit](text.read)
        glued = text_units.glued(text.read) if unit == "words" else 0
        met = limits.least <= count and limits.holds(count + glued)
        return Observation(met, {unit: count}, vacuous=worth_of(text.read) < limits.least)

    return look


def _worthy_words(text: str) -> int:
    return worth(text_units.words(text))


def _worthy_characters(text: str) -> int:
    words = text_units.words(text)
    return len(" ".join(text.split())) * worth(words) // len(words) if words else 0


for _unit, _worth_of in {
    "words": _worthy_words,
    "sentences": lambda text: different(text_units.sentences(text), least=2),
    "paragraphs": lambda text: different(text_units.paragraphs(text)),
    "characters": _worthy_characters,
}.items():
    COMPOSED.kind(_unit, "length")(_counted(_unit, _worth_of))


def _check_phrases(phrases: tuple[str, ...] = (), phrase: str = "", **_: Limits) -> None:
    for one in (*phrases, *filter(None, (phrase,))):
        if "\n" in one or not one[:1].isalnum() or not unicodedata.category(one[-1:]).startswith(("L", "M", "N")):
            raise ValueError(f"one of its phrases is {one!r}; a phrase must begin and end with a letter or digit")


@COMPOSED.kind("keywords", check=_check_phrases)
def keywords(text: Text, phrases: tuple[str, ...]) -> Observation:
    """All phrases occur as words of their own; case aside."""
    missing = [phrase for phrase in phrases if not text_units.occurrences(phrase, text.read)]
    return Observation(not missing, {"missing": missing}, vacuous=not besides(text.read, phrases))


@COMPOSED.kind("forbidden", check=_check_phrases)
def forbidden(text: Text, phrases: tuple[str, ...]) -> Observation:
    """None of the phrases occurs as words of its own, not even in disguise; case aside."""
    there = [phrase for phrase in phrases if _times(phrase, text)]
    return Observation(not there, {"found": there})


@COMPOSED.kind("keyword_count", check=_check_phrases)
def keyword_count(text: Text, limits: Limits, phrase: str) -> Observation:
    """A phrase occurs so often as words of its own; case aside."""
    times = text_units.occurrences(phrase, text.read) if limits.max is None else _times(phrase, text)
    asked = limits.least > 0
    filler = asked and (times_apart(phrase, text.read) < limits.least or not besides(text.read, [phrase]))
    return Observation(limits.holds(times), {"times": times}, vacuous=filler)


def _check_edge(text: str) -> None:
    if text != core(text) or not text or "\n" in text:
        raise ValueError(f"'text' is {text!r}; it must be one line without blanks and quotes around it")


@COMPOSED.kind("starts_with", check=_check_edge)
def starts_with(response: Text, text: str) -> Observation:
    """The response begins with a text in words of its own, quotation marks and emphasis aside."""
    seen = {"start": core(response.raw)[: len(text) + 20]}
    return Observation(text_units.begins(response.raw, text), seen, vacuous=not besides(response.read, [text]))


@COMPOSED.kind("ends_with", check=_check_edge)
def ends_with(response: Text, text: str) -> Observation:
    """The response ends with a text in words of its own, quotation marks and emphasis aside."""
    seen = {"end": core(response.raw)[-len(text) - 20 :]}
    return Observation(text_units.ends(response.raw, text), seen, vacuous=not besides(response.read, [text]))


@COMPOSED.kind("final_mark")
def final_mark(text: Text, mark: Mark) -> Observation:
    """The last character is a mark behind a word, quotation marks and emphasis aside."""
    last = text_units.last_sign(text.raw)
    return Observation(last == mark, {"last": last})


@COMPOSED.kind("no_commas")
def no_commas(text: Text) -> Observation:
    """No comma of any script, and no look-alike of one."""
    count = max(commas(text.raw), commas(text.read))
    return Observation(not count, {"commas": count})


@COMPOSED.kind("json", "format")
def json_alone(text: Text) -> Observation:
    """One JSON object or list and nothing else."""
    met = _depth(text.raw.strip()) > 0
    return Observation(met, vacuous=met and not has_values(json.loads(text.raw)))


@WRITTEN.kind("json_depth", "format")
def json_depth(text: Text, limits: Limits) -> Observation:
    """A JSON object or list, alone or in a code fence, so many levels deep; {"a": 1} has one level."""
    deepest = max(_depth(part.strip()) for part in _FENCED.findall(text.raw) or [text.raw])
    return Observation(deepest > 0 and limits.holds(deepest), {"levels": deepest})


@WRITTEN.kind("xml_attributes", "format")
def xml_attributes(text: Text, limits: Limits) -> Observation:
    """Each tag has so many attributes, where there is a tag; without one it is not met."""
    counts = [len(_ATTRIBUTE.findall(inside)) for inside in _TAG.findall(text.raw)]
    return Observation(
        bool(counts) and all(map(limits.holds, counts)), {"tags": len(counts), "most": max(counts, default=0)}
    )


@COMPOSED.kind("bullets", "format")
def bullets(text: Text, count: Annotated[int, Range(ge=1, le=MAX_COUNT)]) -> Observation:
    """Exactly so many items of lists."""
    items = text_units.bullets(text.outside_code)
    return Observation(len(items) == count, {"bullets": len(items)}, vacuous=different(items) < count)


@COMPOSED.kind("headings", "format")
def headings(
    text: Text, level: Annotated[int, Range(ge=1, le=6)], min: Annotated[int, Range(ge=0, le=MAX_COUNT)]
) -> Observation:
    """At least so many Markdown headings of a level."""
    titles = text_units.headings(text.outside_code, level)
    return Observation(len(titles) >= min, {"headings": len(titles)}, vacuous=different(titles) < min)


@WRITTEN.kind("heading_levels", "format")
def heading_levels(text: Text, limits: Limits) -> Observation:
    """Markdown headings of so many different levels."""
    titles = {level: text_units.headings(text.outside_code, level) for level in range(1, 7)}
    levels = [level for level in titles if titles[level]]
    full = [level for level in levels if any(map(holds_something, titles[level]))]
    return Observation(limits.holds(len(levels)), {"levels": levels}, vacuous=len(full) < len(levels))


@WRITTEN.kind("block_quotes", "format")
def block_quotes(text: Text, limits: Limits) -> Observation:
    """So many Markdown block quotes."""
    quoted = [line.startswith(">") for line in text.lines]
    count = sum(here and not before for before, here in zip([False, *quoted], quoted, strict=False))
    return Observation(limits.holds(count), {"block_quotes": count})


@COMPOSED.kind("table", "format")
def table(text: Text, limits: Limits) -> Observation:
    """A Markdown table, and each with so many rows below its head."""
    rows = text_units.table_rows(text.raw)
    met = bool(rows) and all(map(limits.holds, rows))
    return Observation(met, {"rows": rows[:50]}, vacuous=not text_units.tables_hold_something(text.raw))


@WRITTEN.kind("table_limit", "format")
def table_limit(text: Text, limits: Limits) -> Observation:
    """Each Markdown table has so many rows below its head; without a table it is met."""
    rows = text_units.table_rows(text.raw)
    return Observation(all(map(limits.holds, rows)), {"rows": rows[:50]})


@WRITTEN.kind("table_columns", "format")
def table_columns(text: Text, limits: Limits) -> Observation:
    """A Markdown table, and each with so many columns."""
    columns = text_units.table_columns(text.raw)
    met = bool(columns) and all(map(limits.holds, columns))
    return Observation(met, {"columns": columns[:50]}, vacuous=not text_units.tables_hold_something(text.raw))


@COMPOSED.kind("title", "format")
def title(text: Text) -> Observation:
    """A title in double angle brackets."""
    inside = next(filter(None, map(str.strip, _TITLE.findall(text.raw))), "")
    return Observation(bool(inside), {"title": inside[:200]}, vacuous=not holds_something(inside))


@COMPOSED.kind("quoted", "format")
def quoted(text: Text) -> Observation:
    """The whole response stands in quotation marks."""
    inside = text.raw.strip()
    met = len(inside) > 1 and inside[0] in _QUOTES and inside[-1] in _QUOTES
    return Observation(met, vacuous=not is_quoted_as_one(inside.replace("“", '"').replace("”", '"')))


@COMPOSED.kind("language", "language")
def in_language(text: Text, language: Language) -> Observation:
    """More than half of the letters are of the script of a language; those of code count where there are no others."""
    share = text_units.script_share(text.outside_code, language) or text_units.script_share(text.raw, language)
    return Observation(share > 0.5, {"share": round(share, 3)})


@COMPOSED.kind("upper_case", "language")
def upper_case(text: Text) -> Observation:
    """No small letter, and a capital one."""
    return Observation(text.read.isupper())


@COMPOSED.kind("lower_case", "language")
def lower_case(text: Text) -> Observation:
    """No capital letter, and a small one."""
    return Observation(text.read.islower())


@COMPOSED.kind("capitalized", "language")
def capitalized(text: Text) -> Observation:
    """Every word begins with a capital letter."""
    cased = [word for word in text_units.words(text.read) if word[0].lower() != word[0].upper()]
    wrong = [word for word in cased if word[0] != word[0].upper()]
    return Observation(bool(cased) and not wrong, {"wrong": len(wrong), "first": wrong[:10]})


def core(response: str) -> str:
    """Return a response without white space and quotation marks around it: where it begins and ends for people."""
    return response.strip().strip(_QUOTES).strip()


def _times(phrase: str, text: Text) -> int:
    plain = max(text_units.occurrences(phrase, one, banned=True) for one in (text.raw, text.read))
    return max(plain, text.disguised(phrase))


def _depth(text: str) -> int:
    """Return how deep a JSON object or list is; 0 for what is none."""
    if not text.startswith(("{", "[")):
        return 0
    try:
        return _levels(json.loads(text, parse_constant=no_constant))
    except (ValueError, RecursionError):
        return 0


def _levels(data: Any) -> int:
    """Return how many objects and lists lie in each other at most, counted without recursion."""
    deepest, todo = 0, [(data, 1)]
    while todo:
        node, level = todo.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, level)
            todo += [(inner, level + 1) for inner in (node.values() if isinstance(node, dict) else node)]
    return deepest
