r"""Steps of a solution and their places in it: the text is cut, never changed.

| way | a step begins |
|---|---|
| `blank_line` | after a line without anything to see |
| `line` | on every line |
| `numbered` | at a line that begins with "Step 3"; without any, the text is one step |
| `sentence` | after the end of a sentence, or a blank line |
| `list` | at an item of the outermost list, and at text that follows the list |
| `whole` | with the text: one step |

Code fences, displayed mathematics (`\[..\]`, `$$..$$`) and LaTeX environments are never cut; for sentences, neither is
mathematics in a line.  One that is opened and never closed protects nothing.  Line breaks are those of Unicode, with
CRLF as one.  The steps' texts and the gaps between them give back the text; gaps hold nothing that can be seen.

A policy that avoids the break gets one step, and with it one chance to be found wrong; so it does by writing everything
inside one fence.  No splitter can stop that: `step_audit` shows whether fewer steps score higher, and the scorer's
`longest_step` bounds one step's length.

Not covered: a model that rewrites solutions into steps, and abbreviations beyond a short English list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from adjudge.responses.whole_regions import display_regions, inline_regions

Splitting: TypeAlias = Literal["blank_line", "line", "numbered", "sentence", "list", "whole"]
SPLITTINGS: tuple[Splitting, ...] = get_args(Splitting)

# What ends a line (atomic: CRLF is never taken for two ends), and what may stand on a line without being seen: blanks,
# joiners, byte-order marks.
_BREAK = "(?>\r\n|[\n\r\x0b\x0c\x85\u2028\u2029])"
_UNSEEN = "[^\\S\n\r\x0b\x0c\x85\u2028\u2029]|[\u00ad\u200b-\u200f\u2060\ufeff]"
_BLANK = re.compile(rf"{_BREAK}(?:(?:{_UNSEEN})*{_BREAK})+")
_LINE = re.compile(rf"{_BREAK}(?:(?:{_UNSEEN})|{_BREAK})*")
_START = rf"(?:\A|(?<=[\n\r\x0b\x0c\x85\u2028\u2029]))(?:{_UNSEEN}){{0,3}}"
_NUMBERED = re.compile(rf"{_START}(?:[#>*_-]{{1,6}}[ \t]{{0,3}}){{0,2}}step[ \t]{{0,3}}#?\d{{1,4}}\b", re.IGNORECASE)
_ITEM = re.compile(
    r"(?:\A|(?<=[\n\r\x0b\x0c\x85\u2028\u2029]))(?P<indent>[ \t]{0,20})"
    r"(?:[-*+•‣◦]|\(?(?:\d{1,4}|[a-zA-Z])[.)])[ \t]+(?=\S)"
)
_END = re.compile(r"(?:[.!?…]|(?P<wide>[。！？]))[)\]}»”’\"'*]{0,4}(?P<gap>\s+|(?(wide)|$))")
_SHORT = frozenset(
    "approx cf dr e.g eg eq eqn eqs etc fig figs i.e ie mr mrs ms no nos prof resp sec st thm vs viz w.l.o.g".split()
)
_WORD = 16  # characters before a full stop that are looked at
_SEEN = re.compile("[^\\s\u00ad\u200b-\u200f\u2060\ufeff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its text, its first character in the solution (0-based), and one past its last."""

    text: str
    start: int
    end: int


def split_steps(text: str, how: Splitting = "blank_line", *, most: int = 1_000) -> tuple[Step, ...]:
    """Return the steps of a solution, in order; a text in which nothing can be seen has none.

    Of more than `most` steps the last one holds the rest.
    """
    if how not in SPLITTINGS:
        raise ValueError(f"unknown way to split {how!r}; it must be one of {', '.join(SPLITTINGS)}")
    if most < 1:
        raise ValueError(f"most is {most!r}; a solution has at least one step")
    pieces = _trimmed(text, _cuts(text, how))
    if len(pieces) > most:
        pieces = [*pieces[: most - 1], (pieces[most - 1][0], pieces[-1][1])]
    return tuple(Step(text=text[start:end], start=start, end=end) for start, end in pieces)


def given_steps(text: str, texts: Sequence[str]) -> tuple[Step, ...] | None:
    """Return steps that are given as texts, with their places; None unless they are the whole text, in this order.

    A given text without anything to see is not a step.
    """
    steps, at = [], 0
    for given in texts:
        pieces = _trimmed(given, ())
        if not pieces:
            continue
        wanted = given[slice(*pieces[0])]
        start = text.find(wanted, at)
        if start < 0 or _SEEN.search(text, at, start):
            return None
        at = start + len(wanted)
        steps.append(Step(text=wanted, start=start, end=at))
    return None if _SEEN.search(text, at) else tuple(steps)


def _trimmed(text: str, cuts: Iterable[int]) -> list[tuple[int, int]]:
    """The pieces between cuts without what cannot be seen at their ends; those with nothing to see are left out."""
    pieces, start = [], 0
    for end in [*cuts, len(text)]:
        first = _SEEN.search(text, start, end)
        if first is not None:
            pieces.append((first.start(), _last_seen(text, first.start(), end)))
        start = end
    return pieces


def _last_seen(text: str, start: int, end: int) -> int:
    while end > start and not _SEEN.match(text, end - 1):
        end -= 1
    return end


def _cuts(text: str, how: Splitting) -> Iterator[int]:
    cuts: Iterable[int]
    match how:
        case "blank_line":
            cuts = (mark.end() for mark in _BLANK.finditer(text))
        case "line":
            cuts = (mark.end() for mark in _LINE.finditer(text))
        case "numbered":
            cuts = (mark.start() for mark in _NUMBERED.finditer(text))
        case "sentence":
            cuts = sorted({*_sentence_ends(text), *(mark.end() for mark in _BLANK.finditer(text))})
        case "list":
            cuts = _item_starts(text)
        case "whole":
            cuts = ()
    regions = inline_regions(text) if how == "sentence" else display_regions(text)
    at = 0
    for cut in cuts:
        while at < len(regions) and regions[at][1] <= cut:
            at += 1
        if at == len(regions) or cut <= regions[at][0]:
            yield cut


def _sentence_ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        if match.start("gap") == match.end("gap") and not match["wide"]:
            continue
        following = text[match.end() : match.end() + 1]
        if following.islower() and not match["wide"]:
            continue
        if text[match.start()] == "." and _is_short(text, match.start()):
            continue
        yield match.end()


def _is_short(text: str, stop: int) -> bool:
    """Whether the word before a full stop is an abbreviation, an initial, or the number of an item."""
    before = text[max(0, stop - _WORD) : stop]
    words = before.split()
    if not words or before[-1].isspace():
        return False
    word = words[-1].lstrip("([{\"'*").lower()
    if word.isdigit():  # "1." begins an item where it begins a line, and ends a sentence elsewhere
        line = text[max(0, stop - _WORD) : stop].splitlines()[-1]
        return line.strip("*_# \t").isdigit()
    return word in _SHORT or (len(word) == 1 and word.isalpha() and word.isascii() and word not in "xyznkabcd")


def _item_starts(text: str) -> list[int]:
    """Where outermost items begin, and where text begins that no longer belongs to the last of them."""
    items = list(_ITEM.finditer(text))
    if not items:
        return []
    outermost = len(items[0]["indent"].expandtabs(4))
    starts = [item.start() for item in items if len(item["indent"].expandtabs(4)) <= outermost]
    inner = {item.start() for item in items}
    first = items[0].start()
    for blank in _BLANK.finditer(text, first):
        following = blank.end()
        indented = text[following : following + 1] in (" ", "\t")
        if not indented and following not in inner:
            starts.append(following)
    return sorted(set(starts))
