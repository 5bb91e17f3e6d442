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
    found = list(_FENCE.finditer(text))
    longest = {"`": [0] * (len(found) + 1), "~": [0] * (len(found) + 1)}  # of the closing fences from here on
    for at in range(len(found) - 1, -1, -1):
        for sign, lengths in longest.items():
            closes = found[at]["sign"][0] == sign and not found[at]["info"].strip()
            lengths[at] = max(lengths[at + 1], len(found[at]["sign"]) if closes else 0)
    regions, at = [], 0
    while at < len(found):
        opened, sign = found[at], found[at]["sign"][0]
        at += 1
        if (sign == "`" and "`" in opened["info"]) or longest[sign][at] < len(opened["sign"]):
            continue
        while not _closes(found[at], opened):
            at += 1
        regions.append((opened.start(), found[at].end()))
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
    for found in _outside_of(_MATH.finditer(text), fences):
        match found.lastgroup:
            case "open":
                bracket = found.start() if bracket < 0 else bracket
            case "close" if bracket >= 0:
                regions.append((bracket, found.end()))
                bracket = -1
            case "both" if dollars < 0:
                dollars = found.start()
            case "both":
                regions.append((dollars, found.end()))
                dollars = -1
            case "begin":
                environments.append((found["begin"], found.start()))
                waiting[found["begin"]] += 1
            case "end" if waiting[found["end"]]:
                name = ""
                while name != found["end"]:
                    name, start = environments.pop()
                    waiting[name] -= 1
                regions.append((start, found.end()))
            case _:
                pass
    return regions


def _inlines(text: str, displays: Sequence[Region]) -> list[Region]:
    regions: list[Region] = []
    opened = {"both": -1, "open": -1}
    for found in _outside_of(_INLINE.finditer(text), displays):
        match found.lastgroup:
            case "blank":  # mathematics in a line ends with its paragraph, closed or not
                opened = {"both": -1, "open": -1}
            case "open":
                opened["open"] = found.start()
            case "close" if opened["open"] >= 0:
                regions.append((opened["open"], found.end()))
                opened["open"] = -1
            case "both" if opened["both"] < 0:
                opened["both"] = found.start()
            case "both":
                regions.append((opened["both"], found.end()))
                opened["both"] = -1
            case _:
                pass
    return regions


def _outside_of(found: Iterable[re.Match[str]], regions: Sequence[Region]) -> Iterable[re.Match[str]]:
    starts = [start for start, _ in regions]
    for mark in found:
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
