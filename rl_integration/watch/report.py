"""What a watch has to say: numbers, bars, alarms, and the outer marks of responses now and at the start."""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

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

_END = 1_000
"""Characters of each end of a response that are looked at."""


def form_of(texts: Sequence[str]) -> int:
    """Return the marks that any of the texts bears, a bit for each of `MARKS`; the same time for a giant."""
    form = 0
    for text in texts:
        for shown in (text,) if len(text) <= 2 * _END else (text[:_END], text[-_END:]):
            for bit, search in enumerate(MARKS.values()):
                if not form >> bit & 1 and search(shown):
                    form |= 1 << bit
    return form


def apart(
    then: Sequence[float], now: Sequence[float], block: int, middle: Callable[[Sequence[float]], float]
) -> float | None:
    """Return how many standard errors lie between two series, signed; None unless both hold two blocks.

    Samples of a group resemble each other, so single samples would claim more certainty than there is: the middles of
    blocks of samples in a row are compared (Welch's statistic).
    """
    if min(len(then), len(now)) < 2 * block:
        return None
    first, second = (
        [middle(side[at : at + block]) for at in range(0, len(side) - block + 1, block)] for side in (then, now)
    )
    error = math.sqrt(statistics.variance(first) / len(first) + statistics.variance(second) / len(second))
    return (statistics.fmean(second) - statistics.fmean(first)) / max(error, 1e-6)  # what never varies has no error


@dataclass(frozen=True, kw_only=True)
class FormChange:
    """The mark whose share of responses changed most, with its shares at the start and now.

    Attributes:
        errors: how many standard errors of the blocks' shares lie between; signed.
    """

    mark: str
    then: float
    now: float
    errors: float


def form_change(then: Sequence[int], now: Sequence[int], block: int) -> FormChange | None:
    """Return the mark whose share changed most; None unless both sides hold two blocks."""
    changes = []
    for bit, mark in enumerate(MARKS):
        first, second = ([form >> bit & 1 for form in forms] for forms in (then, now))
        errors = apart(first, second, block, statistics.fmean)
        if errors is None:
            return None
        changes.append(FormChange(mark=mark, then=statistics.fmean(first), now=statistics.fmean(second), errors=errors))
    return max(changes, key=lambda change: abs(change.now - change.then))


_DISTINCT = 12
"""So many different values, at most, get a bar each."""

_BARS = 20
"""About so many bars are made of more."""

_OUTSIDE = 0.005
"""The share at each end that does not decide how wide the bars are: one giant would hide all others."""

_LARGEST = sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class Bar:
    """How many values lie from `low` to `high`; a bar of a single value has both alike.

    The first and the last bar reach out to the smallest and the largest value.
    """

    low: float
    high: float
    count: int


def histogram(values: Sequence[float]) -> tuple[Bar, ...]:
    """Return the bars of finite values in ascending order: one a value if these are few, else of equal, round width."""
    if not values:
        return ()
    distinct = Counter(values)
    if len(distinct) <= _DISTINCT:
        return tuple(Bar(low=value, high=value, count=distinct[value]) for value in sorted(distinct))
    ordered = sorted(values)
    lowest, highest = ordered[0], ordered[-1]
    outside = int(_OUTSIDE * len(ordered))
    low, high = ordered[outside], ordered[-1 - outside]
    step = _round_step(low, high)
    if step is None:
        return (Bar(low=lowest, high=highest, count=len(ordered)),)
    start = math.floor(low / step) * step
    count = math.floor((high - start) / step) + 1
    counts = [0] * count
    for value in ordered:
        counts[max(0, math.floor((min(high, max(low, value)) - start) / step))] += 1
    edges = [start + place * step for place in range(count + 1)]
    edges[0], edges[-1] = min(start, lowest), highest if highest > edges[-1] else min(edges[-1], _LARGEST)
    return tuple(Bar(low=edges[place], high=edges[place + 1], count=counts[place]) for place in range(count))


def _round_step(low: float, high: float) -> float | None:
    """Return 1, 2 or 5 times a power of ten, about a twentieth of the way; None where floats cannot hold the edges."""
    raw = (high - low) / _BARS
    if not math.isfinite(raw) or raw <= max(abs(low), abs(high)) * 1e-13 or raw < 1e-300:
        return None
    power = 10.0 ** math.floor(math.log10(raw))
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= raw), 10 * power)


Kind: TypeAlias = Literal[
    "failed",
    "constant",
    "at_maximum",
    "one_response",
    "repeated",
    "longer",
    "shorter",
    "follows_length",
    "frac_reward_zero_std",
    "clipped_ratio",
    "form",
]


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Something a person should look at.

    Attributes:
        threshold: what `number`, which was measured, reached.
        sentence: the same, for a person.
    """

    kind: Kind
    number: float
    threshold: float
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The newest samples in numbers; None is what cannot be told yet, or at all.

    Attributes:
        samples: how many were seen since the start, of which the other numbers are about the newest, `window`.
        outcomes: how many of these had each status and reason, as "failed engine_timeout"; "scored" without one.
        mean_then: mean of the first values, as many as the baseline holds.
        maximum: the highest value the scorer can give, if it is known; else the highest one.
        at_maximum: the share of the values that are no less.
        length_then: median length of the responses at the start, in characters; `length`, of those now.
        length_ratio: of the two, one added to each, with as many standard errors between them, signed.
        follows_length: rank correlation of value and length.
        frac_reward_zero_std: of the `groups` with two values or more, the share with one value alone.
        prompts: how many different ones there were.
        repeated: the share of long responses that came for another prompt too.
        one_response: the share of the commonest response that came for several prompts.
        clipped_ratio: the share of responses that reached the token limit, of those where this is known.
        form: the mark of form whose share changed most since the start, and how.
    """

    samples: int
    window: int
    outcomes: Mapping[str, int]
    failed: float | None
    values: int
    mean: float | None
    mean_then: float | None
    lowest: float | None
    highest: float | None
    maximum: float | None
    at_maximum: float | None
    length_then: float | None
    length: float | None
    length_ratio: float | None
    length_errors: float | None
    follows_length: float | None
    groups: int
    frac_reward_zero_std: float | None
    prompts: int
    repeated: float | None
    one_response: float | None
    clipped_ratio: float | None
    form: FormChange | None


@dataclass(frozen=True, kw_only=True)
class HackingReport:
    """A moment of a watch.

    Attributes:
        bars: the values' histogram.
        alarms: the gravest first.
        missing: how many samples are missing before anything is said; 0 if none.
    """

    measures: Measures
    bars: tuple[Bar, ...]
    alarms: tuple[Alarm, ...]
    missing: int
