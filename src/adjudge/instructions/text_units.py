"""Words, sentences, paragraphs and lines of a response, as constraints count them.

A paragraph is text between blank lines, a sentence ends in a mark before white space or the end of its line, and each
holds a word.  So there are at least as many words as sentences, and as sentences as paragraphs.

Not covered: abbreviations ("e.g. this" is two sentences), and words of languages that write without spaces: each
ideograph counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

_IDEOGRAPH = "\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_IDEOGRAPH}]|(?:(?![{_IDEOGRAPH}])[^\W_])+(?:['’-](?:(?![{_IDEOGRAPH}])[^\W_])+)*")
_ENDING = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|(?<=[。！？])|\n")
_HEADING = re.compile(r"^(#{1,6}) +(\S.*)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[*-] +(\S.*)", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[ \t]*\|.*\|[ \t]*$")
_TABLE_RULE = re.compile(r"^[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$")

SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = MappingProxyType(
    {
        "en": re.compile(r"[A-Za-z]"),
        "zh": re.compile(rf"[{_IDEOGRAPH}]"),
        "ru": re.compile(r"[\u0400-\u04ff]"),
        "ar": re.compile(r"[\u0600-\u06ff]"),
        "ko": re.compile(r"[\uac00-\ud7a3]"),
    }
)
"""Languages that are told apart, by the letters they are written in."""


def words(text: str) -> list[str]:
    """Return the words."""
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    """Return the sentences; a line break ends one too."""
    return [piece for piece in _ENDING.split(text) if piece and _WORD.search(piece)]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs."""
    return [piece for piece in re.split(r"\n[ \t]*\n", text) if _WORD.search(piece)]


COUNTS: Final[Mapping[str, Callable[[str], int]]] = MappingProxyType(
    {
        "characters": len,
        "words": lambda text: len(words(text)),
        "sentences": lambda text: len(sentences(text)),
        "paragraphs": lambda text: len(paragraphs(text)),
    }
)
"""What a length may be counted in."""


def occurrences(phrase: str, text: str) -> int:
    """Return how often a phrase stands in a text, as words of its own; case aside.

    In "cat-flap" there is no "cat", because that is one word.  Ideographs have no such bounds.
    """
    folded = phrase.casefold()
    before = r"(?<![^\W_])(?<![^\W_]['’-])" if _is_spaced(folded[:1]) else ""
    after = r"(?!['’-]?[^\W_])" if _is_spaced(folded[-1:]) else ""
    return len(re.findall(f"{before}{re.escape(folded)}{after}", text.casefold()))


def headings(text: str, level: int) -> list[str]:
    """Return the Markdown headings of a level."""
    return [found[2] for found in _HEADING.finditer(text) if len(found[1]) == level]


def bullets(text: str) -> list[str]:
    """Return the items of lists, each with the line it begins on."""
    return _BULLET.findall(text)


def table_rows(text: str) -> list[int]:
    """Return for each Markdown table its rows below the head."""
    found: list[int] = []
    lines = text.splitlines()
    for at, line in enumerate(lines[1:], 1):
        if _TABLE_RULE.match(line) and _TABLE_LINE.match(lines[at - 1]):
            rows = 0
            while at + rows + 1 < len(lines) and _TABLE_LINE.match(lines[at + rows + 1]):
                rows += 1
            found.append(rows)
    return found


def table_columns(text: str) -> list[int]:
    """Return for each Markdown table its columns."""
    lines = text.splitlines()
    return [
        line.strip().strip("|").count("|") + 1
        for at, line in enumerate(lines[1:], 1)
        if _TABLE_RULE.match(line) and _TABLE_LINE.match(lines[at - 1])
    ]


def tables_hold_something(text: str) -> bool:
    """Return whether half of the cells of all tables, or more, have a letter or a digit."""
    lines = (line for line in text.splitlines() if _TABLE_LINE.match(line) and not _TABLE_RULE.match(line))
    cells = [cell for line in lines for cell in line.strip().strip("|").split("|")]
    return 2 * sum(any(map(str.isalnum, cell)) for cell in cells) >= len(cells)


def script_share(text: str, language: str) -> float:
    """Return which share of the letters belongs to a language; 0 where there are none."""
    letters = sum(letter.isalpha() for letter in text)
    return len(SCRIPTS[language].findall(text)) / letters if letters else 0.0


def _is_spaced(letter: str) -> bool:
    return letter.isalnum() and not SCRIPTS["zh"].match(letter)
