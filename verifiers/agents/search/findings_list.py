"""The findings that an answer lists: one on each line behind a bullet, `- ..`, `* ..` or `1. ..`.

A hyphen inside a line parts nothing: "self-report" is one word.  (The released code of O2-Searcher splits the answer at
every hyphen for its F1, and by lines for its format.)

Not covered: lists inside lists; a line that is indented counts like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BULLET = re.compile(r"[ \t]{0,16}(?:[-*•]|\d{1,3}[.)])[ \t]+")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: its text without the bullet, and the place of its line in the graded text."""

    text: str
    start: int
    end: int


def findings_of(text: str, offset: int = 0) -> tuple[list[Finding], int]:
    """Return the findings of an answer in order, and how many of its lines are none; blank lines do not count.

    Args:
        text: the answer.
        offset: where it begins in the graded text.
    """
    found: list[Finding] = []
    others = 0
    at = offset
    for line in text.splitlines(keepends=True):
        bullet = _BULLET.match(line)
        rest = line[bullet.end() :].strip() if bullet else ""
        if _WORD.search(rest):
            found.append(Finding(text=rest, start=at, end=at + len(line.rstrip())))
        else:
            others += bool(line.strip())
        at += len(line)
    return found, others
