r"""The words of a response that are neither its answer nor mathematics, code or markup: what may be misspelled.

A probe that changes words must leave the answer right.  So accepted answers are never touched where they stand in the
text, nor is anything inside `<answer>` elements, code, mathematics, LaTeX commands, tags or links, nor a word with a
digit in it.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from adjudge.responses.whole_regions import Region, display_regions, inline_regions

_KEPT: Final = re.compile(
    r"`[^`\n]{1,400}`|\\[A-Za-z]+(?:\{[^{}]{0,400}\}){0,2}|<[^<>\n]{1,200}>|https?://\S+|\[\[[^\[\]\n]{0,100}\]\]"
)
_MARKED: Final = re.compile(r"<answer>(?:(?!<answer>).)*?</answer>", re.DOTALL)
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_BOUND: Final = re.compile(r"[\w\\]")


def kept_regions(text: str, golds: Sequence[str]) -> list[Region]:
    """Return what must not be changed, ascending."""
    regions = [*inline_regions(text), *(one.span() for kept in (_KEPT, _MARKED) for one in kept.finditer(text))]
    for gold in golds:
        whole = rf"(?<!\w){re.escape(gold.strip())}(?!\w)"
        regions += [one.span() for one in re.finditer(whole, text, re.IGNORECASE)]
    return sorted(regions)


def words_of(text: str, golds: Sequence[str] = ()) -> list[Region]:
    """Return the places of the words that may be changed, in order."""
    outside = outside_of(kept_regions(text, golds))
    return [one.span() for one in _WORD.finditer(text) if _is_whole(one.span(), text) and outside(one.span())]


def _is_whole(word: Region, text: str) -> bool:
    start, stop = word
    return not (_BOUND.match(text[start - 1 : start]) or _BOUND.match(text[stop : stop + 1]))


def outside_of(regions: Sequence[Region]) -> Callable[[Region], bool]:
    """Return what says of a place, which is not empty, whether it shares no character with any region.

    Regions are ascending by their starts, and may overlap; each answer takes the logarithm of their number.
    """
    starts = [start for start, _ in regions]
    ends = list(itertools.accumulate((end for _, end in regions), max))  # the furthest end so far

    def holds(place: Region) -> bool:
        before = bisect_right(starts, place[1] - 1)
        return not before or ends[before - 1] <= place[0]

    return holds


def with_words(text: str, places: Sequence[Region], change: Callable[[str], str]) -> str:
    """Return the text with the words at these places, ascending, changed."""
    pieces, at = [], 0
    for start, end in places:
        pieces += [text[at:start], change(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def some_words(text: str, golds: Sequence[str], rng: Random, share: float, change: Callable[[str], str]) -> str:
    """Return the text with a share of its free words changed, at least one if there are any."""
    places = words_of(text, golds)
    if not places:
        return text
    count = max(1, round(share * len(places)))
    return with_words(text, sorted(rng.sample(places, count)), change)


def free_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of the lines that hold something and lie outside answers, code and displayed mathematics."""
    outside = outside_of(sorted([*display_regions(text), *(one.span() for one in _MARKED.finditer(text))]))
    at = 0
    for line in text.splitlines(keepends=True):
        start, end = at, at + len(line.rstrip("\r\n"))
        at += len(line)
        if line.strip() and outside((start, end)):
            yield start, end
