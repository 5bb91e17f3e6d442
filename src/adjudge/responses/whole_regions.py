r"""The parts of a text that stay whole: code fences, displayed mathematics, LaTeX environments, mathematics in a line.

Each kind is found in one pass, and one that is opened and never closed is none: else an open fence in the first line
would make any solution one step.  Time grows in proportion to the text, whatever it opens and closes.

Not covered: HTML, inline code, and fences inside quotations.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Region: TypeAlias = tuple[int, int]
"""First character, and one past the last."""

_FENCE = re.compile(r"^[ ]{0,3}(?P<sign>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
# Escaped signs come first, so that `\\[2pt]` and `\$` open nothing.
_MATH = re.compile(
    r"\\\\|\\\$|(?P<open>\\\[)|(?P<close>\\\])|(?P<both>\$\$)"
    r"|\\begin\{(?P<begin>[A-Za-z]{1,40}\*?)\}|\\end\{(?P<end>[A-Za-z]{1,40}\*?)\}"
)
_INLINE = re.compile(r"\\\\|\\\$|(?P<open>\\\()|(?P<close>\\\))|(?P<double>\$\$)|(?P<both>\$)|(?P<blank>\n[ \t]*\r?\n)")


def display_regions(text: str) -> list[Region]:
    """Return what no step may be cut in, ascending and apart from each other."""
    fences = _fences(text)
    return _merged([*fences, *_displays(text, fences)])


def inline_regions(text: str) -> list[Region]:
    """Return what no sentence may be cut in: the displays, and mathematics within a paragraph."""
    displays = display_regions(text)
    return _merged([*displays, *_inlines(text, displays)])


def _fences(text: str) -> list[Region]:
    """Fenced code: a fence is closed by one of its own sign, at least as long, with nothing behind it."""
    if "```" not in text and "~~~" not in text:
        return []
    marks = list(_FENCE.finditer(text))
    longest = {"`": [0] * (len(marks) + 1), "~": [0] * (len(marks) + 1)}  # of the closing fences from here on
    for at in range(len(marks) - 1, -1, -1):
        for sign, lengths in longest.items():
            closes = marks[at]["sign"][0] == sign and not marks[at]["info"].strip()
            lengths[at] = max(lengths[at + 1], len(marks[at]["sign"]) if closes else 0)
    regions, at = [], 0
    while at < len(marks):
        opened, sign = marks[at], marks[at]["sign"][0]
        at += 1
        if (sign == "`" and "`" in opened["info"]) or longest[sign][at] < len(opened["sign"]):
            continue
        while not _closes(marks[at], opened):
            at += 1
        regions.append((opened.start(), marks[at].end()))
        at += 1
    return regions


def _closes(fence: re.Match[str], opened: re.Match[str]) -> bool:
    same = fence["sign"][0] == opened["sign"][0] and len(fence["sign"]) >= len(opened["sign"])
    return same and not fence["info"].strip()


def _displays(text: str, fences: Sequence[Region]) -> list[Region]:
    if "\\" not in text and "$$" not in text:
        return []
    regions: list[Region] = []
    bracket = dollars = -1
    environments: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    for mark in _outside_of(_MATH.finditer(text), fences):
        match mark.lastgroup:
            case "open":
                bracket = mark.start() if bracket < 0 else bracket
            case "close" if bracket >= 0:
                regions.append((bracket, mark.end()))
                bracket = -1
            case "both" if dollars < 0:
                dollars = mark.start()
            case "both":
                regions.append((dollars, mark.end()))
                dollars = -1
            case "begin":
                environments.append((mark["begin"], mark.start()))
                waiting[mark["begin"]] += 1
            case "end" if waiting[mark["end"]]:
                name = ""
                while name != mark["end"]:
                    name, start = environments.pop()
                    waiting[name] -= 1
                regions.append((start, mark.end()))
            case _:
                pass
    return regions


def _inlines(text: str, displays: Sequence[Region]) -> list[Region]:
    regions: list[Region] = []
    opened = {"both": -1, "open": -1}
    for mark in _outside_of(_INLINE.finditer(text), displays):
        match mark.lastgroup:
            case "blank":  # mathematics in a line ends with its paragraph, closed or not
                opened = {"both": -1, "open": -1}
            case "open":
                opened["open"] = mark.start()
            case "close" if opened["open"] >= 0:
                regions.append((opened["open"], mark.end()))
                opened["open"] = -1
            case "both" if opened["both"] < 0:
                opened["both"] = mark.start()
            case "both":
                regions.append((opened["both"], mark.end()))
                opened["both"] = -1
            case _:
                pass
    return regions


def _outside_of(marks: Iterable[re.Match[str]], regions: Sequence[Region]) -> Iterable[re.Match[str]]:
    starts = [start for start, _ in regions]
    for mark in marks:
        before = bisect_right(starts, mark.start()) - 1
        if before < 0 or regions[before][1] <= mark.start():
            yield mark


def _merged(regions: Iterable[Region]) -> list[Region]:
    merged: list[Region] = []
    for start, end in sorted(regions):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
