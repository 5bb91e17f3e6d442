"""Where a quotation stands in a text, and how much of it is right.

`1 - edits / length`: edits are the fewest insertions, deletions and changes of characters that make the quotation of
some part of the text (Myers 1999, bit-parallel: a passage of 50,000 characters and a quotation of 300 take 0.2 s
whatever they hold).  Case, kinds of quotation marks and runs of white space make no difference.

RapidFuzz's `partial_ratio`, which RLBFF asks to be above 60, counts a change as two edits and divides by both lengths,
so a loose quotation has more there than here; an exact one has everything in both.

Not covered: quotations with an ellipsis in the middle; they lose what they leave out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

SHORTEST = 4
"""Characters that are no blanks: fewer stand in nearly every text, and so prove nothing."""

_MARKS = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})


class Found(NamedTuple):
    """The best place of a quotation.

    Attributes:
        share: how much of it is right there, from 0 to 1.
        start: where the place begins, in characters of the text.
        end: behind its last character.
    """

    share: float
    start: int
    end: int


def best_place(quote: str, text: str) -> Found | None:
    """Return the first of the places that hold most of a quotation; None if it is too short to prove anything."""
    pattern, _ = _plain(quote)
    if len(pattern.replace(" ", "")) < SHORTEST:
        return None
    plain, offsets = _plain(text)
    at = plain.find(pattern)
    if at >= 0:
        return Found(1.0, offsets[at], offsets[at + len(pattern) - 1] + 1)
    edits, end = _search(pattern, plain)
    if edits >= len(pattern):
        return Found(0.0, 0, 0)
    window = plain[max(0, end - 2 * len(pattern)) : end]
    _, length = _search(pattern[::-1], window[::-1])
    return Found(1 - edits / len(pattern), offsets[end - length], offsets[end - 1] + 1)


def _plain(text: str) -> tuple[str, list[int]]:
    """A text in small letters with plain marks and single blanks, and where each of its characters stood."""
    chars: list[str] = []
    offsets: list[int] = []
    for found in re.finditer(r"\s+|\S+", text):
        if found[0].isspace():
            chars.append(" ")
            offsets.append(found.start())
            continue
        for at, char in enumerate(found[0].translate(_MARKS), start=found.start()):
            small = char.lower()
            chars.append(small if len(small) == 1 else char)
            offsets.append(at)
    start = 1 if chars[:1] == [" "] else 0
    end = len(chars) - 1 if len(chars) > start and chars[-1] == " " else len(chars)
    return "".join(chars[start:end]), offsets[start:end]


def _search(pattern: str, text: str) -> tuple[int, int]:
    """Return the fewest edits between the pattern and a part of the text, and where the first such part ends."""
    full, high = (1 << len(pattern)) - 1, 1 << (len(pattern) - 1)
    where: dict[str, int] = {}
    for at, char in enumerate(pattern):
        where[char] = where.get(char, 0) | 1 << at
    up, down, edits = full, 0, len(pattern)
    best, end = edits, 0
    for at, char in enumerate(text, start=1):
        equal = where.get(char, 0)
        vertical = equal | down
        equal = (((equal & up) + up) ^ up) | equal
        rise = down | (~(equal | up) & full)
        fall = up & equal
        edits += (rise & high != 0) - (fall & high != 0)
        rise, fall = rise << 1, fall << 1
        up = (fall | ~(vertical | rise)) & full
        down = rise & vertical & full
        if edits < best:
            best, end = edits, at
    return best, end
