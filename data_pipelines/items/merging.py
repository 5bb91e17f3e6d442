"""Groups of texts that say the same, and the one that stands for each.

Two texts are tied when they are alike enough and have the same particulars: numbers, names and denials.  Wording alone
would merge "won in 1990" with "won in 1991".  A group is what ties connect; its middle, the text most like the others,
stands for it.  So groups depend neither on the order of the texts nor on repetition, and merging the merged changes
nothing.

Not covered: names in scripts without capital letters, and denials in other languages than English and Chinese.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from adjudge.data_pipelines.items.likeness import Matrix

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")
_DENIAL = re.compile(r"\b(?:not|no|never|without|neither|nor|cannot|lacks?|fails?)\b|n['’]t\b|[不没無无]")
_OPENING = frozenset(
    """a an the this that these those it its he she they his her their in on at by of for from with to as after before
    when while if and or but there who which what is are was were does do did has have each every all no not""".split()
)

Particulars = tuple[tuple[str, ...], tuple[str, ...], bool]


def particulars(text: str) -> Particulars:
    """Return the numbers of a text, its names (words with a capital), and whether it denies something."""
    names = {word.casefold() for word in _WORD.findall(text) if any(map(str.isupper, word))} - _OPENING
    return tuple(sorted(set(_NUMBER.findall(text)))), tuple(sorted(names)), denies(text)


def denies(text: str) -> bool:
    """Return whether a text denies something."""
    return _DENIAL.search(text.casefold()) is not None


def groups(texts: Sequence[str], alike: Matrix, least: float, *, names: bool = True) -> list[list[int]]:
    """Return the places of texts that say the same, the middle of each group first, groups in order of appearance.

    Args:
        texts: the texts.
        alike: likeness of each with each.
        least: likeness from which two are tied.
        names: whether numbers and names must be the same too; denials always must.
    """
    keys = [particulars(text) if names else ((), (), denies(text)) for text in texts]
    left = list(range(len(texts)))
    found = []
    while left:
        waiting, members = [left.pop(0)], []
        while waiting:
            one = waiting.pop()
            members.append(one)
            tied = {two for two in left if keys[two] == keys[one] and alike[one][two] >= least}
            left = [two for two in left if two not in tied]
            waiting += sorted(tied)
        found.append(_middle_first(sorted(members), texts, alike))
    return found


def _middle_first(members: list[int], texts: Sequence[str], alike: Matrix) -> list[int]:
    """Put the member that is most like the others first; of equals the shortest, then the first by alphabet."""
    distinct = {texts[one]: one for one in reversed(members)}

    def rank(one: int) -> tuple[float, int, str]:
        return -math.fsum(alike[one][two] for two in distinct.values()), len(texts[one]), texts[one]

    middle = min(distinct.values(), key=rank)
    return [middle, *(one for one in members if one != middle)]
