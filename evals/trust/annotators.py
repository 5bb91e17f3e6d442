"""AlpacaEval's numbers of an annotator: agreement with people, bias, variance, and preference for the first output.

An annotation is a preference of 1 (the first output) or 2 (the second), or between; 0 is a draw, None is missing.  Of
several annotations of one pair the majority is taken; where they are split evenly, both answers are it with a chance of
one half, and agreement is the expectation over that.  The released code draws one of the two instead, so its numbers
differ from these by that draw.

    agreement with people   1 - mean |annotation - majority of the people|
    variance                1 - mean |annotation - majority of the annotator's others|, from 1
    bias                    the same between the annotator's majority and the people's

Not covered: prices, times and correlations of leaderboards; what a judge prefers beside the first output is measured by
`adjudge.evals.trust.bias`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from adjudge.evals.benchmarks.alpaca_eval import share_of

Annotations: TypeAlias = Sequence[float | None]
"""The annotations of one pair, each by another person or from another call."""


def human_agreement(annotator: Sequence[Annotations], people: Sequence[Annotations]) -> float | None:
    """Return how far single annotations agree with the majority of people; in [0, 1], None where no pair has both.

    Raises:
        ValueError: the lists differ in length, or an annotation is not a preference.
    """
    _check(annotator, people)
    return _mean(
        _agreement(share, _majority(shares))
        for one, shares in ((_shares(one), _shares(other)) for one, other in zip(annotator, people, strict=True))
        for share in one
        if shares
    )


def leave_one_out_agreement(annotations: Sequence[Annotations]) -> float | None:
    """Return how far each annotation agrees with the majority of the others of its pair: that of people among people.

    Pairs with one annotation say nothing; None where all are so.
    """
    return _mean(
        _agreement(share, _majority([*shares[:at], *shares[at + 1 :]]))
        for shares in map(_shares, annotations)
        for at, share in enumerate(shares)
        if len(shares) > 1
    )


def variance(annotations: Sequence[Annotations]) -> float | None:
    """Return how far an annotator disagrees with itself: 1 minus `leave_one_out_agreement`."""
    agreement = leave_one_out_agreement(annotations)
    return None if agreement is None else 1 - agreement


def bias(annotator: Sequence[Annotations], people: Sequence[Annotations]) -> float | None:
    """Return how far an annotator's majority disagrees with that of people; None where no pair has both.

    Raises:
        ValueError: the lists differ in length, or an annotation is not a preference.
    """
    _check(annotator, people)
    agreement = _mean(
        math.fsum(_agreement(one, _majority(theirs)) for one in _majority(own)) / len(_majority(own))
        for own, theirs in ((_shares(one), _shares(other)) for one, other in zip(annotator, people, strict=True))
        if own and theirs
    )
    return None if agreement is None else 1 - agreement


def prefers_first(preferences: Annotations) -> float | None:
    """Return the mean share of the first output, which ties halve; None without a preference."""
    second = _mean(_shares(preferences))
    return None if second is None else 1 - second


def _shares(annotations: Annotations) -> list[float]:
    """The second output's shares, of annotations that are there."""
    return [share for annotation in annotations if (share := share_of(annotation)) is not None]


def _majority(shares: Sequence[float]) -> tuple[float, ...]:
    """The middle share, or the two that are equally often chosen where there is no single one."""
    ordered = sorted(shares)
    half = len(ordered) // 2
    return (ordered[half],) if len(ordered) % 2 else (ordered[half - 1], ordered[half])


def _agreement(share: float, majority: Sequence[float]) -> float:
    return 1 - math.fsum(abs(share - one) for one in majority) / len(majority)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None


def _check(annotator: Sequence[Annotations], people: Sequence[Annotations]) -> None:
    if len(annotator) != len(people):
        raise ValueError(f"{len(annotator)} and {len(people)} pairs; give the annotations of the same ones, in order")
