"""SWE-RL's likeness of two changes: the mean, over the files that either changes, of how alike their diffs are.

    value = mean over files of SequenceMatcher(None, diff, gold diff, autojunk=False).ratio()

A diff is unified, with three lines of context and without the two lines that name the file.  A file that only one side
changes counts 0; one that neither changes does not count.  Two empty diffs are alike (1), as difflib has it.

Source: `generate_unified_diff` and `compute_change_similarities` of facebookresearch/swe-rl,
src/swerl/core/reward.py; the ratios are difflib's, computed by `LinearMatcher`.

difflib's matching blocks, exactly, in time that hostile text cannot make quadratic for every block.

`difflib.SequenceMatcher` looks for the longest block that two ranges share by walking over all pairs of equal elements:
two texts of 10,000 characters have millions of them.  Without junk, which is how it is used here, that block is the
longest common substring whose elements are all "not popular", the earliest in `a` and then in `b` where several are
that long, grown at both ends over equal elements.  `LinearMatcher` overrides this one step with whichever of three
ways is cheapest (difflib's own where few pairs are equal, substring search on short ranges, a suffix automaton) and
leaves everything else to difflib: matching blocks, opcodes, ratios.

How many blocks there are is still the texts' choice, so the characters looked at are counted, and there is a limit.

Not covered: whether the change does what it should; see `patch_tests`.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate

WORK = 4_000_000
"""Elements that may be looked at for one pair of texts: 3 to 8 s; patches of 8,000 characters take 60,000."""

MAX_ELEMENTS = 200_000
"""Characters or lines of a text; an automaton of so many holds 150 MiB."""

_SHORT = 512  # up to here, substring search takes at most 30 microseconds for each element
_PASSED = 8  # elements that difflib passes over, without a pair, in the time of one that is looked at
_FEW_PAIRS = 8  # pairs of equal elements for each element, above which difflib's own way is the slower one


class TooMuchWorkError(Exception):
    """Two texts whose comparison takes more than its limit."""


class LinearMatcher(difflib.SequenceMatcher[str]):
    """`difflib.SequenceMatcher(None, a, b, autojunk)` with the same results.

    Args:
        a: a text, or a list of lines.
        b: another one.
        autojunk: whether elements that make up more than 1 % of 200 or more are popular, as difflib has it.
        work: elements that may be looked at.

    Raises:
        TooMuchWorkError: from every method that compares, when the limit is passed.
    """

    def __init__(self, a: Sequence[str], b: Sequence[str], *, autojunk: bool, work: int = WORK) -> None:
        if max(len(a), len(b)) > MAX_ELEMENTS:
            raise TooMuchWorkError(f"more than {MAX_ELEMENTS} elements")
        super().__init__(None, a, b, autojunk)
        self._first, self._second = a, b
        self._left = work
        positions: dict[str, list[int]] = self.b2j  # type: ignore[attr-defined]
        self._pairs = [0, *accumulate(len(positions.get(item, ())) for item in a)]

    @cached_property
    def _as_texts(self) -> tuple[str, str]:
        return _texts(self._first, self._second, self.b2j)  # type: ignore[attr-defined]

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """Return the block that difflib would return."""
        ahi = len(self._first) if ahi is None else ahi
        bhi = len(self._second) if bhi is None else bhi
        size = ahi - alo + bhi - blo
        pairs = self._pairs[ahi] - self._pairs[alo]
        self._left -= max(min(size, pairs // _FEW_PAIRS), (ahi - alo) // _PASSED, 1)
        if self._left < 0:
            raise TooMuchWorkError("the texts have too many different blocks in common")
        if pairs <= _FEW_PAIRS * size:
            return super().find_longest_match(alo, ahi, blo, bhi)
        search = _by_search if ahi - alo <= _SHORT and bhi - blo <= _SHORT else _by_automaton
        a, b = self._as_texts
        start, other, length = search(a[alo:ahi], b[blo:bhi])
        return self._grown(alo + start, blo + other, length, (alo, ahi, blo, bhi))

    def _grown(self, i: int, j: int, length: int, bounds: tuple[int, int, int, int]) -> difflib.Match:
        alo, ahi, blo, bhi = bounds
        a, b = self._first, self._second
        while i > alo and j > blo and a[i - 1] == b[j - 1]:
            i, j, length = i - 1, j - 1, length + 1
        while i + length < ahi and j + length < bhi and a[i + length] == b[j + length]:
            length += 1
        return difflib.Match(i, j, length)


def _texts(a: Sequence[str], b: Sequence[str], known: dict[str, list[int]]) -> tuple[str, str]:
    """Return both as texts with a character for each element; what is not `known` gets one that the other has not."""
    codes = {item: chr(_code(number)) for number, item in enumerate(known)}
    absent_a, absent_b = chr(_code(len(codes))), chr(_code(len(codes) + 1))
    return "".join(codes.get(item, absent_a) for item in a), "".join(codes.get(item, absent_b) for item in b)


def _code(number: int) -> int:
    return number if number < 0xD800 else number + 0x800  # surrogates are left out


def _by_search(a: str, b: str) -> tuple[int, int, int]:
    """Return (start in a, start in b, length) of the longest common substring, the earliest in a and then in b."""
    best = (0, 0, 0)
    length = 0
    for start in range(len(a)):
        while start + length < len(a):
            place = b.find(a[start : start + length + 1])
            if place < 0:
                break
            length += 1
            best = (start, place, length)
    return best


def _by_automaton(a: str, b: str) -> tuple[int, int, int]:
    """Return what `_by_search` does, in linear time: a suffix automaton of b, and a walk over a."""
    lengths, links, edges, ends = _automaton(b)
    state = length = best = 0
    longest = (0, 0, 0)
    for index, item in enumerate(a):
        after = edges[state].get(item)
        while after is None and state:
            state = links[state]
            length = lengths[state]
            after = edges[state].get(item)
        if after is None:
            continue
        state = after
        length += 1
        if length > best:
            best = length
            longest = (index + 1 - length, ends[state] - length, length)
    return longest


def _automaton(text: str) -> tuple[list[int], list[int], list[dict[str, int]], list[int]]:
    """Return a text's suffix automaton: for each state its length, its suffix link, its edges and its first end."""
    lengths, links, ends = [0], [-1], [0]
    edges: list[dict[str, int]] = [{}]
    last = 0
    for index, item in enumerate(text):
        current = len(lengths)
        lengths.append(lengths[last] + 1)
        links.append(0)
        ends.append(index + 1)
        edges.append({})
        state = last
        while state >= 0 and item not in edges[state]:
            edges[state][item] = current
            state = links[state]
        last = current
        if state < 0:
            continue
        target = edges[state][item]
        if lengths[target] == lengths[state] + 1:
            links[current] = target
            continue
        clone = len(lengths)
        lengths.append(lengths[state] + 1)
        links.append(links[target])
        ends.append(ends[target])
        edges.append(edges[target].copy())
        while state >= 0 and edges[state].get(item) == target:
            edges[state][item] = clone
            state = links[state]
        links[target] = links[current] = clone
    return lengths, links, edges, ends


__all__ = ["TooMuchWorkError", "change_similarity", "diff_similarity", "gold_diffs", "unified_hunks"]

_CONTEXT = 3


def unified_hunks(before: str, after: str) -> str:
    """Return the lines of `difflib.unified_diff` behind its two header lines, joined by newlines; "" for no change.

    Lines are those of `str.splitlines`, as released: a changed newline at the end of a file is not a change.

    Raises:
        TooMuchWorkError: the comparison takes more than its limit.
    """
    if before == after:
        return ""
    old, new = before.splitlines(), after.splitlines()
    lines: list[str] = []
    for group in LinearMatcher(old, new, autojunk=True).get_grouped_opcodes(_CONTEXT):
        _, i1, _, j1, _ = group[0]
        _, _, i2, _, j2 = group[-1]
        lines.append(f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@")
        for kind, a1, a2, b1, b2 in group:
            if kind == "equal":
                lines += [f" {line}" for line in old[a1:a2]]
                continue
            lines += [f"-{line}" for line in old[a1:a2]]
            lines += [f"+{line}" for line in new[b1:b2]]
    return "\n".join(lines)


def _range(start: int, stop: int) -> str:
    """Return a range of lines as a hunk's header writes it: counted from 1, an empty one by the line before it."""
    if stop - start == 1:
        return str(start + 1)
    return f"{start + (stop > start)},{stop - start}"


def diff_similarity(diff: str, gold: str) -> float:
    """Return difflib's ratio of two diffs, in [0, 1]: 0 where one alone is empty, 1 where both are.

    Raises:
        TooMuchWorkError: the comparison takes more than its limit.
    """
    if diff == gold:
        return 1.0
    if not diff or not gold:
        return 0.0
    return LinearMatcher(diff, gold, autojunk=False).ratio()


@functools.lru_cache(maxsize=64)
def _gold_hunks(before: str, after: str) -> str:
    return unified_hunks(before, after)  # the samples of a group share them


def gold_diffs(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the diff of each file that the gold change changes.

    Raises:
        TooMuchWorkError: the comparison takes more than its limit.
    """
    diffs = {path: _gold_hunks(before.get(path, ""), text) for path, text in after.items()}
    for path, diff in diffs.items():
        if len(diff) > MAX_ELEMENTS:
            raise TooMuchWorkError(f"the diff of {path!r} has more than {MAX_ELEMENTS} characters")
    return {path: diff for path, diff in diffs.items() if diff}


def change_similarity(before: Mapping[str, str], after: Mapping[str, str], gold: Mapping[str, str]) -> dict[str, float]:
    """Return the similarity of each file that the change or the gold diffs change, sorted by path.

    All are by path: texts before, texts after of the files that the change touches, and the diffs of `gold_diffs`.

    Raises:
        TooMuchWorkError: the comparison takes more than its limit.
    """
    diffs = {path: unified_hunks(before.get(path, ""), text) for path, text in after.items()}
    changed = {path for path, diff in diffs.items() if diff}
    return {path: diff_similarity(diffs.get(path, ""), gold.get(path, "")) for path in sorted(changed | set(gold))}
