"""IFBench's kinds that look at the form of a response: its group `format`.

Where a checker of IFBench is looser than its words, so is this (see `docs/instructions.md`).
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adjudge.verifiers.instructions.check import Check, Finding
from adjudge.verifiers.instructions.english import is_emoji
from adjudge.verifiers.instructions.sentences import sentences
from adjudge.verifiers.instructions.substance import different, holds_something
from adjudge.verifiers.instructions.text import Text, without_marks

_EDGES: Final = string.punctuation + " "
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_TEMPLATE: Final = ("My Answer:", "My Conclusion:", "Future Outlook:")
_LETTERS = re.compile(r"\W*[aA]\W*[bB]\W*[cC]\W*")


@dataclass(frozen=True, kw_only=True)
class Parentheses(Check):
    """Brackets nested five deep that close again."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Follow the brackets; one that closes another kind begins anew."""
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
                    return Finding(True, {"depth": deepest})
        return Finding(False, {"depth": deepest})


@dataclass(frozen=True, kw_only=True)
class Quotes(Check):
    """Quotations nested three deep, double and single marks in turn."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Follow the straight marks; the same mark closes."""
        opened: list[str] = []
        deepest = 0
        for mark in text.raw:
            if opened and mark == opened[-1]:
                opened.pop()
                if deepest - len(opened) >= 3:
                    return Finding(True, {"depth": deepest})
            elif mark in "\"'":
                opened.append(mark)
                deepest = max(deepest, len(opened))
        return Finding(False, {"depth": deepest})


@dataclass(frozen=True, kw_only=True)
class Options(Check):
    """One of the options and nothing else; letters exactly as written, texts but for case and punctuation."""

    group = "format"
    options: str

    def look(self, text: Text) -> Finding:
        """Compare the whole."""
        separator = next((one for one in ("/", r"\bor\b") if re.search(one, self.options)), ",")
        options = [option.strip() for option in re.split(separator, self.options)]
        if _LETTERS.match(self.options):
            return Finding(text.raw in options, {"options": options})
        given = text.raw.strip(_EDGES).lower()
        return Finding(given in [option.strip(_EDGES).lower() for option in options], {"options": options})


@dataclass(frozen=True, kw_only=True)
class Newline(Check):
    """Each word on a line of its own."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count words and lines, punctuation left out."""
        lines, words = sum(map(bool, text.bare.strip().split("\n"))), len(text.bare.split())
        return Finding(lines == words, {"lines": lines, "words": words})


@dataclass(frozen=True, kw_only=True)
class Emoji(Check):
    """An emoji at the end of each sentence, before its mark or behind."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look at the last two characters, for a sign of style may follow an emoji, and into the next sentence."""
        bare = [without_marks(sentence).strip() for sentence in text.sentences]
        for at, sentence in enumerate(bare):
            ends = any(map(is_emoji, sentence[-2:]))
            following = bare[at + 1][:1] if at + 1 < len(bare) else ""
            if not sentence or not (ends or (following and is_emoji(following))):
                return Finding(False, {"at": at})
        return Finding(True)


@dataclass(frozen=True, kw_only=True)
class LineIndent(Check):
    """Each line is indented deeper than the one before."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Count the blanks before each line that is not blank."""
        depths = [len(line) - len(line.lstrip(" ")) for line in text.lines if line.strip()]
        deeper = all(one < other for one, other in itertools.pairwise(depths))
        return Finding(deeper, {"depths": depths[:50]}, vacuous=len(depths) < 2)


@dataclass(frozen=True, kw_only=True)
class QuoteUnquote(Check):
    """No quotation follows another at once, and none is the end."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look at the quotation marks with all white space left out."""
        packed = "".join(text.raw.replace("“", '"').replace("”", '"').replace("'\"'", "").split())
        rest = packed.strip(string.digits + string.punctuation.replace('"', ""))
        met = '""' not in packed and not rest.endswith('"')
        return Finding(met, {"adjacent": '""' in packed}, vacuous='"' not in packed)


@dataclass(frozen=True, kw_only=True)
class List(Check):
    """A sign of one's own in the place of bullet points, twice at least."""

    group = "format"
    sep: str

    def look(self, text: Text) -> Finding:
        """Count the sign."""
        items = text.raw.split(self.sep)[1:]
        return Finding(len(items) >= 2, {"signs": len(items)}, vacuous=different(items) < 2)


@dataclass(frozen=True, kw_only=True)
class Thesis(Check):
    """A text in HTML italics, and text behind it."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look from the first opening tag to the first closing one."""
        start = next((at for tag in ("<i>", "<em>") if (at := text.raw.find(tag)) >= 0), len(text.raw))
        rest = text.raw[start:]
        end = next((at for tag in ("</i>", "</em>") if (at := rest.find(tag)) >= 0), -1)
        thesis = rest[3:end].strip() if end >= 0 else ""
        return Finding(bool(thesis) and bool(rest[end + 4 :].strip()), {"italics": thesis[:200]})


@dataclass(frozen=True, kw_only=True)
class SubBullets(Check):
    """Behind each star, up to the next one, there is a dash."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look between the stars; without a star nothing is missing."""
        points = text.raw.split("*")[1:]
        return Finding(all("-" in point for point in points), {"bullets": len(points)}, vacuous=not points)


@dataclass(frozen=True, kw_only=True)
class NoBulletsBullets(Check):
    """Two sentences or more, then two lines or more that begin with a star, and nothing else."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Follow the lines."""
        lines = [line.strip() for line in text.lines]
        first = next((at for at, line in enumerate(lines) if line.startswith("*")), len(lines))
        running, points = lines[:first], lines[first:]
        count = sum(len(sentences(line)) for line in running)
        met = count >= 2 and len(points) >= 2 and all(point.startswith("*") for point in points)
        return Finding(met, {"sentences": count, "lines": len(points)}, vacuous=different(points) < len(points))


@dataclass(frozen=True, kw_only=True)
class TitleCase(Check):
    """No word in small letters, and none that begins small and goes on in capitals."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look at the tokens that begin with a letter."""
        small = [token for token in text.tokens if token[0].isalpha() and token[0].islower()]
        wrong = [token for token in small if len(token) == 1 or token[1:].islower() or token[1:].isupper()]
        cased = any(token[0].isalpha() for token in text.tokens)
        return Finding(not wrong, {"wrong": len(wrong), "first": wrong[:10]}, vacuous=not cased)


@dataclass(frozen=True, kw_only=True)
class OutputTemplate(Check):
    """The three headings of the template occur."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look for each."""
        missing = [heading for heading in _TEMPLATE if heading not in text.raw]
        parts = re.split("|".join(_TEMPLATE), text.raw)[1:]
        return Finding(not missing, {"missing": missing}, vacuous=not all(map(holds_something, parts)))


@dataclass(frozen=True, kw_only=True)
class NoWhitespace(Check):
    """No white space, at the ends neither."""

    group = "format"

    def look(self, text: Text) -> Finding:
        """Look for any."""
        return Finding(not any(map(str.isspace, text.raw)))


FORMATS: Final[Mapping[str, type[Check]]] = {
    "format:parentheses": Parentheses,
    "format:quotes": Quotes,
    "format:options": Options,
    "format:newline": Newline,
    "format:emoji": Emoji,
    "format:line_indent": LineIndent,
    "format:quote_unquote": QuoteUnquote,
    "format:list": List,
    "format:thesis": Thesis,
    "format:sub-bullets": SubBullets,
    "format:no_bullets_bullets": NoBulletsBullets,
    "format:title_case": TitleCase,
    "format:output_template": OutputTemplate,
    "format:no_whitespace": NoWhitespace,
}
"""Kinds by the names IFBench gives them."""
