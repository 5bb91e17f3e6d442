"""Whether responses changed their form: which outer marks they bear now, against those at the start.

A reward that is gamed often shows in the form first: answers lose their box, code leaves its fence, everything becomes
a list, or the text runs in circles.  No scorer is asked; the marks are there or not.

Not covered: what the text says, marks that nobody listed, and anything in the middle of a long text.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_REPEATED = 12  # characters at the very end of a text
_AGAIN = 160  # characters in which they come three times, where it runs in circles


def _in_circles(text: str) -> bool:
    end = text[-_REPEATED:]
    return len(end) == _REPEATED and text[-_AGAIN:].count(end) >= 3


MARKS: Mapping[str, Callable[[str], object]] = {
    "an answer in a box": re.compile(r"\\boxed").search,
    "a block of code": re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE).search,
    "a list": re.compile(r"^ {0,8}(?:[-*•+]|\d{1,3}[.)]) ", re.MULTILINE).search,
    "a heading": re.compile(r"^ {0,3}#{1,6} ", re.MULTILINE).search,
    "bold text": re.compile(r"\*\*[^\s*]").search,
    "a tag": re.compile(r"</?[A-Za-z][\w-]{0,40}>").search,
    "several lines": re.compile(r"\S\s*\n\s*\S").search,
    "an end that repeats itself": _in_circles,
}
"""What is looked for, as a sentence names it, and what finds it."""

_NAMES = tuple(MARKS)
_END = 1_000
"""Characters of each end of a response that are looked at."""


def form_of(texts: Sequence[str]) -> int:
    """Return the marks that any of the texts bears, a bit for each of `MARKS`; the same time for a giant."""
    found = 0
    for text in texts:
        for shown in (text,) if len(text) <= 2 * _END else (text[:_END], text[-_END:]):
            for bit, search in enumerate(MARKS.values()):
                if not found >> bit & 1 and search(shown):
                    found |= 1 << bit
    return found


@dataclass(frozen=True, kw_only=True)
class FormChange:
    """The mark whose share changed most.

    Attributes:
        mark: its name.
        then: share of the responses that bore it at the start.
        now: share that bears it now.
        errors: how many standard errors of the blocks' shares lie between; signed.
    """

    mark: str
    then: float
    now: float
    errors: float


def form_change(then: Sequence[int], now: Sequence[int], block: int) -> FormChange | None:
    """Return the mark whose share changed most; None unless both sides hold two blocks.

    Shares of blocks of samples in a row are compared, as lengths are (`lengths.drift`).

    Args:
        then: forms at the start, in the order they came.
        now: forms now, in the order they came.
        block: samples of a block.
    """
    if min(len(then), len(now)) < 2 * block:
        return None
    changes = [_change(name, bit, then, now, block) for bit, name in enumerate(_NAMES)]
    return max(changes, key=lambda change: abs(change.now - change.then))


def _change(name: str, bit: int, then: Sequence[int], now: Sequence[int], block: int) -> FormChange:
    first, second = ([form >> bit & 1 for form in forms] for forms in (then, now))
    shares = [
        [statistics.fmean(side[at : at + block]) for at in range(0, len(side) - block + 1, block)]
        for side in (first, second)
    ]
    error = math.sqrt(sum(statistics.variance(side) / len(side) for side in shares))
    between = statistics.fmean(shares[1]) - statistics.fmean(shares[0])
    return FormChange(
        mark=name,
        then=statistics.fmean(first),
        now=statistics.fmean(second),
        errors=between / max(error, 1e-6),  # shares that never vary have no error
    )
