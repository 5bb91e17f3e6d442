"""Two scorers on the same cases: how far apart they are, as a whole and in each part, and whether that may be chance.

A case earns a credit from 0 to 1; one without a verdict earns nothing, because it is never right, and one that the
benchmark gives no credit for (a tie in the gold) does not count.  Where credits are 0
or 1 and no two cases share a cluster, McNemar's exact test compares them; elsewhere the signs of whole clusters'
differences are flipped.

A benchmark's published number need not be a mean of credits (a mean of sections, an F1, a rank correlation).  It is
tested by exchanging the two scorers in whole clusters, and bounded by a jackknife that leaves out a group of clusters
at a time (Kott 2001): a benchmark takes a set of cases, in which a bootstrap would put one case twice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

from adjudge.evals.benchmarks.benchmark import Benchmark
from adjudge.evals.benchmarks.case import Outcome
from adjudge.evals.reports.result import Comparison, Measure, adjusted
from adjudge.statistics.bootstrap import difference_interval
from adjudge.statistics.intervals import NO_DRAWS, Draws, Interval
from adjudge.statistics.significance import mcnemar, permutation_test

CREDIT: Final = "credit"
MCNEMAR: Final = "McNemar, exact"
PERMUTATION: Final = "permutation of clusters"
EXCHANGE: Final = "exchange of clusters"

_GROUPS: Final = 50  # of the jackknife
_MAX_WORK: Final = 2_000_000  # cases that the exchange test looks at, twice
_FEWEST_EXCHANGES: Final = 199
_SAME: Final = 1e-9  # a headline number that is this near to the mean credit is the mean credit


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The same cases, in the same order, as two scorers judged them."""

    benchmark: Benchmark
    first: Sequence[Outcome]
    second: Sequence[Outcome]
    other: str

    @property
    def clusters(self) -> list[str]:
        """The cluster of each case."""
        return [outcome.cluster for outcome in self.first]


def compared(sides: Sides, measures: Sequence[Measure], draws: Draws) -> tuple[Comparison, ...]:
    """Return the tests, corrected for all of them: of the first measure, and of credits as a whole and in parts."""
    of_credits = _of_credits(sides, draws)
    headline = _headline(sides, measures, draws, of_credits[0] if of_credits else None)
    return tuple(adjusted([*([] if headline is None else [headline]), *of_credits]))


def _of_credits(sides: Sides, draws: Draws) -> list[Comparison]:
    credit = sides.benchmark.credit
    kept = [
        pair
        for pair in zip(sides.first, sides.second, strict=True)
        if not all(one.judged and credit(one) is None for one in pair)  # where both gave all numbers, none is earned
    ]
    sides = replace(sides, first=[one for one, _ in kept], second=[other for _, other in kept])
    first, second = ([sides.benchmark.credit(one) or 0.0 for one in side] for side in (sides.first, sides.second))
    if not first:
        return []
    places: dict[str, list[int]] = {}
    for place, part in enumerate(outcome.part for outcome in sides.first):
        places.setdefault(part, []).append(place)
    tests = [_test(sides, "", range(len(first)), (first, second), draws)]
    if len(places) > 1:
        tests += [_test(sides, part, some, (first, second), draws) for part, some in places.items()]
    return tests


def _test(
    sides: Sides,
    part: str,
    places: Sequence[int],
    credits: tuple[Sequence[float], Sequence[float]],
    draws: Draws,
) -> Comparison:
    first, second = ([side[place] for place in places] for side in credits)
    clusters = [sides.first[place].cluster for place in places]
    whole = all(credit in (0.0, 1.0) for side in (first, second) for credit in side)
    alone = len(set(clusters)) == len(clusters)
    if whole and alone:
        test, p = MCNEMAR, mcnemar(first, second)
    else:
        differences = [one - other for one, other in zip(first, second, strict=True)]
        test, p = PERMUTATION, permutation_test(differences, clusters, draws)
    return Comparison(
        name=CREDIT,
        part=part,
        test=test,
        first=math.fsum(first) / len(first),
        second=math.fsum(second) / len(second),
        difference=difference_interval(first, second, clusters, draws),
        p=p,
        other=sides.other,
    )


def _headline(sides: Sides, measures: Sequence[Measure], draws: Draws, whole: Comparison | None) -> Comparison | None:
    """Return the test of the first measure; None where there is none, or where it is the mean credit."""
    if not measures:
        return None
    first, second = (_value(sides.benchmark, outcomes) for outcomes in (sides.first, sides.second))
    if first is None or second is None:
        return None
    means = [] if whole is None or whole.first is None or whole.second is None else [whole.first, whole.second]
    if means and all(abs(one - mean) <= _SAME for one, mean in zip((first, second), means, strict=True)):
        return None
    seen = first - second
    return Comparison(
        name=measures[0].name,
        part=measures[0].part,
        test=EXCHANGE,
        first=first,
        second=second,
        difference=_jackknife(sides, seen, draws),
        p=_exchange(sides, seen, draws),
        other=sides.other,
    )


def _value(benchmark: Benchmark, outcomes: Sequence[Outcome]) -> float | None:
    measures = benchmark.measures(outcomes, NO_DRAWS)
    return measures[0].interval.value if measures else None


def _difference(benchmark: Benchmark, first: Sequence[Outcome], second: Sequence[Outcome]) -> float | None:
    one, other = _value(benchmark, first), _value(benchmark, second)
    return None if one is None or other is None else one - other


def _exchange(sides: Sides, seen: float, draws: Draws) -> float | None:
    """The share of exchanges of whole clusters that leave the two as far apart as they are, which is one of them."""
    if not draws.rounds:
        return None
    rounds = min(draws.rounds, max(_FEWEST_EXCHANGES, _MAX_WORK // len(sides.first)))
    draw, clusters = random.Random(draws.seed), sides.clusters
    names = list(dict.fromkeys(clusters))
    pairs = list(zip(sides.first, sides.second, strict=True))
    hits = known = 0
    for _ in range(rounds):
        kept = dict(zip(names, draw.choices((True, False), k=len(names)), strict=True))
        sorted_out = [
            pair if kept[cluster] else (pair[1], pair[0]) for pair, cluster in zip(pairs, clusters, strict=True)
        ]
        apart = _difference(sides.benchmark, [one for one, _ in sorted_out], [other for _, other in sorted_out])
        known += apart is not None
        hits += apart is not None and abs(apart) >= abs(seen) - _SAME
    return (1 + hits) / (1 + known) if 2 * known >= rounds else None


def _jackknife(sides: Sides, seen: float, draws: Draws) -> Interval:
    n = len(sides.first)
    names = list(dict.fromkeys(sides.clusters))
    groups = min(_GROUPS, len(names))
    if not draws.rounds or groups < 2:
        return Interval(value=seen, n=n)
    random.Random(draws.seed).shuffle(names)
    group = {name: place % groups for place, name in enumerate(names)}
    owners = [group[cluster] for cluster in sides.clusters]
    without = []
    for left_out in range(groups):
        kept = [place for place, owner in enumerate(owners) if owner != left_out]
        first, second = ([side[place] for place in kept] for side in (sides.first, sides.second))
        difference = _difference(sides.benchmark, first, second)
        if difference is not None:
            without.append(difference)
    if 2 * len(without) < groups:
        return Interval(value=seen, n=n)
    mean = math.fsum(without) / len(without)
    spread = math.sqrt((len(without) - 1) / len(without) * math.fsum((one - mean) ** 2 for one in without))
    half = NormalDist().inv_cdf(0.5 + draws.level / 2) * spread
    return Interval(value=seen, low=seen - half, high=seen + half, n=n)
