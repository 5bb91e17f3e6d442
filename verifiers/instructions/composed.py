"""The kinds that `adjudge data constraints` composes and MulDimIF's prompts ask for, in its four classes.

Each says what it means without a published checker behind it: a word is a word of its own, case aside, and a length is
a range.

Not covered: what only a model can judge ("be polite"), and parts of a response ("each slide").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from adjudge.verifiers.instructions import text_units
from adjudge.verifiers.instructions.check import Check, Finding
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

Mark = Literal[".", "!", "?"]
Language = Literal["en", "zh", "ru", "ar", "ko"]
MARKS: Final[tuple[Mark, ...]] = (".", "!", "?")

_MOST: Final = 100_000
_QUOTES: Final = '"“”'
_TITLE = re.compile(r"<<([^<>\n]+)>>")
_TAG = re.compile(r"<[A-Za-z_]([^<>]*)>")
_ATTRIBUTE = re.compile(r"=\s*[\"']")
_FENCED = re.compile(r"```(?:json|JSON)?[ \t]*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Range(Check):
    """A count in a range, of which one end may be open."""

    min: int | None = None
    max: int | None = None

    def __post_init__(self) -> None:
        """Reject a range without ends, an empty one, and one that no response reaches."""
        ends = [end for end in (self.min, self.max) if end is not None]
        if not ends or max(ends) > _MOST:
            raise ValueError(f"it needs 'min' or 'max', whole numbers from 0 to {_MOST}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"its 'min', {self.min}, is above its 'max', {self.max}")

    def holds(self, count: int) -> bool:
        """Return whether a count lies in the range."""
        return (self.min or 0) <= count and (self.max is None or count <= self.max)


@dataclass(frozen=True, kw_only=True)
class Counted(Range):
    """A range of a unit; each subclass says which."""

    unit: ClassVar[str]

    def look(self, text: Text) -> Finding:
        """Count the unit."""
        found = text_units.COUNTS[self.unit](text.read)
        return Finding(self.holds(found), {self.unit: found}, vacuous=self._worth(text.read) < (self.min or 0))

    def _worth(self, text: str) -> int:
        """Return the count without filler."""
        if self.unit in ("sentences", "paragraphs"):
            return different((text_units.sentences if self.unit == "sentences" else text_units.paragraphs)(text))
        words = text_units.words(text)
        if self.unit == "words":
            return worth(words)
        return len(" ".join(text.split())) * worth(words) // len(words) if words else 0


@dataclass(frozen=True, kw_only=True)
class Words(Counted):
    """So many words."""

    group = "length"
    unit = "words"


@dataclass(frozen=True, kw_only=True)
class Sentences(Counted):
    """So many sentences; a line break ends one too."""

    group = "length"
    unit = "sentences"


@dataclass(frozen=True, kw_only=True)
class Paragraphs(Counted):
    """So many paragraphs, set apart by blank lines."""

    group = "length"
    unit = "paragraphs"


@dataclass(frozen=True, kw_only=True)
class Characters(Counted):
    """So many characters."""

    group = "length"
    unit = "characters"


@dataclass(frozen=True, kw_only=True)
class Keywords(Check):
    """All phrases occur as words of their own; case aside."""

    phrases: tuple[str, ...]

    def __post_init__(self) -> None:
        """Reject phrases with marks at an end."""
        _check_phrases("phrases", self.phrases)

    def look(self, text: Text) -> Finding:
        """Look for each."""
        missing = [phrase for phrase in self.phrases if not text_units.occurrences(phrase, text.read)]
        return Finding(not missing, {"missing": missing}, vacuous=not besides(text.read, self.phrases))


@dataclass(frozen=True, kw_only=True)
class Forbidden(Keywords):
    """None of the phrases occurs as words of its own, not even in disguise; case aside."""

    def look(self, text: Text) -> Finding:
        """Look for each."""
        found = [phrase for phrase in self.phrases if _times(phrase, text)]
        return Finding(not found, {"found": found})


@dataclass(frozen=True, kw_only=True)
class KeywordCount(Range):
    """A phrase occurs so often as words of its own; case aside."""

    phrase: str

    def __post_init__(self) -> None:
        """Reject a phrase with marks at an end."""
        super().__post_init__()
        _check_phrases("phrase", (self.phrase,))

    def look(self, text: Text) -> Finding:
        """Count the phrase."""
        times = text_units.occurrences(self.phrase, text.read) if self.max is None else _times(self.phrase, text)
        filler = times_apart(self.phrase, text.read) < (self.min or 0)
        return Finding(self.holds(times), {"times": times}, vacuous=filler)


@dataclass(frozen=True, kw_only=True)
class StartsWith(Check):
    """The response begins with a text in words of its own, quotation marks and emphasis aside."""

    text: str

    def __post_init__(self) -> None:
        """Reject texts that no beginning or end can equal."""
        if self.text != core(self.text) or not self.text or "\n" in self.text:
            raise ValueError(f"'text' is {self.text!r}; it must be one line without blanks and quotes around it")

    def look(self, text: Text) -> Finding:
        """Compare the beginning."""
        return Finding(text_units.begins(text.raw, self.text), {"start": core(text.raw)[: len(self.text) + 20]})


@dataclass(frozen=True, kw_only=True)
class EndsWith(StartsWith):
    """The response ends with a text in words of its own, quotation marks and emphasis aside."""

    def look(self, text: Text) -> Finding:
        """Compare the end."""
        return Finding(text_units.ends(text.raw, self.text), {"end": core(text.raw)[-len(self.text) - 20 :]})


@dataclass(frozen=True, kw_only=True)
class FinalMark(Check):
    """The last character is a mark behind a word, quotation marks and emphasis aside."""

    mark: Mark

    def look(self, text: Text) -> Finding:
        """Compare the last character."""
        last = text_units.last_sign(text.raw)
        return Finding(last == self.mark, {"last": last})


@dataclass(frozen=True, kw_only=True)
class NoCommas(Check):
    """No comma."""

    def look(self, text: Text) -> Finding:
        """Count the commas."""
        found = max(text.raw.count(","), text.read.count(","))
        return Finding(not found, {"commas": found}, vacuous=bool(commas(text.read)))


@dataclass(frozen=True, kw_only=True)
class Json(Check):
    """One JSON object or list and nothing else."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Parse it."""
        return Finding(is_json(text.raw), vacuous=is_json(text.raw) and not has_values(json.loads(text.raw)))


@dataclass(frozen=True, kw_only=True)
class JsonDepth(Range):
    """A JSON object or list, alone or in a code fence, so many levels deep; {"a": 1} has one level."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Parse what there is, and measure the deepest."""
        fenced = [found.strip() for found in _FENCED.findall(text.raw)]
        depths = [_depth(one) for one in (fenced or [text.raw.strip()])]
        deepest = max(depths, default=0)
        return Finding(deepest > 0 and self.holds(deepest), {"levels": deepest})


@dataclass(frozen=True, kw_only=True)
class XmlAttributes(Range):
    """Each tag has so many attributes, where there is a tag; without one it is not met."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count the attributes of each opening tag."""
        counts = [len(_ATTRIBUTE.findall(found)) for found in _TAG.findall(text.raw)]
        return Finding(
            bool(counts) and all(map(self.holds, counts)), {"tags": len(counts), "most": max(counts, default=0)}
        )


@dataclass(frozen=True, kw_only=True)
class Bullets(Check):
    """Exactly so many items of lists."""

    group = "format"
    count: int

    def __post_init__(self) -> None:
        """Reject none."""
        if not 1 <= self.count <= _MOST:
            raise ValueError(f"'count' is {self.count}; it must be 1 to {_MOST}")

    def look(self, text: Text) -> Finding:
        """Count the lines that are one."""
        items = text_units.bullets(text.outside_code)
        return Finding(len(items) == self.count, {"bullets": len(items)}, vacuous=different(items) < self.count)


@dataclass(frozen=True, kw_only=True)
class Headings(Check):
    """At least so many Markdown headings of a level."""

    group = "format"
    level: int
    min: int

    def __post_init__(self) -> None:
        """Reject levels that Markdown has not."""
        if not 1 <= self.level <= 6 or self.min > _MOST:
            raise ValueError(f"'level' is {self.level} and 'min' {self.min}; it needs level 1 to 6, and a count")

    def look(self, text: Text) -> Finding:
        """Count the headings of this level."""
        found = text_units.headings(text.outside_code, self.level)
        return Finding(len(found) >= self.min, {"headings": len(found)}, vacuous=different(found) < self.min)


@dataclass(frozen=True, kw_only=True)
class HeadingLevels(Range):
    """Markdown headings of so many different levels."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Collect the levels."""
        found = {level: text_units.headings(text.outside_code, level) for level in range(1, 7)}
        levels = [level for level in found if found[level]]
        full = [level for level in levels if any(map(holds_something, found[level]))]
        return Finding(self.holds(len(levels)), {"levels": levels}, vacuous=len(full) < len(levels))


@dataclass(frozen=True, kw_only=True)
class BlockQuotes(Range):
    """So many Markdown block quotes."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count the runs of quoted lines."""
        quoted = [line.startswith(">") for line in text.lines]
        count = sum(here and not before for before, here in zip([False, *quoted], quoted, strict=False))
        return Finding(self.holds(count), {"block_quotes": count})


@dataclass(frozen=True, kw_only=True)
class Table(Range):
    """A Markdown table, and each with so many rows below its head."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count the rows of each."""
        rows = text_units.table_rows(text.raw)
        met = bool(rows) and all(map(self.holds, rows))
        return Finding(met, {"rows": rows[:50]}, vacuous=not text_units.tables_hold_something(text.raw))


@dataclass(frozen=True, kw_only=True)
class TableLimit(Table):
    """Each Markdown table has so many rows below its head; without a table it is met."""

    def look(self, text: Text) -> Finding:
        """Count the rows of each."""
        rows = text_units.table_rows(text.raw)
        return Finding(all(map(self.holds, rows)), {"rows": rows[:50]})


@dataclass(frozen=True, kw_only=True)
class TableColumns(Range):
    """A Markdown table, and each with so many columns."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count the columns of each."""
        columns = text_units.table_columns(text.raw)
        met = bool(columns) and all(map(self.holds, columns))
        return Finding(met, {"columns": columns[:50]}, vacuous=not text_units.tables_hold_something(text.raw))


@dataclass(frozen=True, kw_only=True)
class Title(Check):
    """A title in double angle brackets."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look for one."""
        found = next((title for found in _TITLE.findall(text.raw) if (title := found.strip())), "")
        return Finding(bool(found), {"title": found[:200]}, vacuous=not holds_something(found))


@dataclass(frozen=True, kw_only=True)
class Quoted(Check):
    """The whole response stands in quotation marks."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look at both ends."""
        inside = text.raw.strip()
        met = len(inside) > 1 and inside[0] in _QUOTES and inside[-1] in _QUOTES
        return Finding(met, vacuous=not is_quoted_as_one(inside.replace("“", '"').replace("”", '"')))


@dataclass(frozen=True, kw_only=True)
class InLanguage(Check):
    """More than half of the letters are of the script of a language."""

    group = "language"
    language: Language

    def look(self, text: Text) -> Finding:
        """Count the letters."""
        share = text_units.script_share(text.raw, self.language)
        return Finding(share > 0.5, {"share": round(share, 3)})


@dataclass(frozen=True, kw_only=True)
class UpperCase(Check):
    """No small letter, and a capital one."""

    group = "language"

    def look(self, text: Text) -> Finding:
        """Look at the letters."""
        return Finding(text.raw.isupper())


@dataclass(frozen=True, kw_only=True)
class LowerCase(Check):
    """No capital letter, and a small one."""

    group = "language"

    def look(self, text: Text) -> Finding:
        """Look at the letters."""
        return Finding(text.raw.islower())


@dataclass(frozen=True, kw_only=True)
class Capitalized(Check):
    """Every word begins with a capital letter."""

    group = "language"

    def look(self, text: Text) -> Finding:
        """Look at the first letters of words whose letters have cases."""
        cased = [word for word in text_units.words(text.raw) if word[0].lower() != word[0].upper()]
        wrong = [word for word in cased if word[0] != word[0].upper()]
        return Finding(bool(cased) and not wrong, {"wrong": len(wrong), "first": wrong[:10]})


COMPOSED: Final[Mapping[str, type[Check]]] = {
    "keywords": Keywords,
    "forbidden": Forbidden,
    "keyword_count": KeywordCount,
    "starts_with": StartsWith,
    "ends_with": EndsWith,
    "final_mark": FinalMark,
    "no_commas": NoCommas,
    "json": Json,
    "bullets": Bullets,
    "headings": Headings,
    "table": Table,
    "title": Title,
    "quoted": Quoted,
    "language": InLanguage,
    "upper_case": UpperCase,
    "lower_case": LowerCase,
    "capitalized": Capitalized,
    "words": Words,
    "sentences": Sentences,
    "paragraphs": Paragraphs,
    "characters": Characters,
}
"""Kinds that constraints are composed of, by name."""

WRITTEN: Final[Mapping[str, type[Check]]] = {
    "json_depth": JsonDepth,
    "xml_attributes": XmlAttributes,
    "heading_levels": HeadingLevels,
    "block_quotes": BlockQuotes,
    "table_limit": TableLimit,
    "table_columns": TableColumns,
}
"""Kinds that MulDimIF's prompts ask for besides, by name."""


def core(response: str) -> str:
    """Return a response without white space and quotation marks around it: where it begins and ends for people."""
    return response.strip().strip(_QUOTES).strip()


def _times(phrase: str, text: Text) -> int:
    return max(*(text_units.occurrences(phrase, one) for one in (text.raw, text.read)), text.disguised(phrase))


def is_json(response: str) -> bool:
    """Return whether a response is one JSON object or list and nothing else."""
    return _depth(response.strip()) > 0


def _depth(text: str) -> int:
    """Return how deep a JSON object or list is; 0 for what is none."""
    if not text.startswith(("{", "[")):
        return 0
    try:
        return _levels(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        return 0


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _levels(data: Any) -> int:
    """Return how many objects and lists lie in each other at most, counted without recursion."""
    deepest, todo = 0, [(data, 1)]
    while todo:
        node, level = todo.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, level)
            todo += [(inner, level + 1) for inner in (node.values() if isinstance(node, dict) else node)]
    return deepest


def _check_phrases(name: str, phrases: tuple[str, ...]) -> None:
    for phrase in phrases:
        if "\n" in phrase or not phrase[:1].isalnum() or not phrase[-1:].isalnum():
            raise ValueError(f"{name!r} has {phrase!r}; a phrase must begin and end with a letter or digit")
