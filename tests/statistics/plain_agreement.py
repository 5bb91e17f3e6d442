"""How far raters agree beyond chance: Cohen's and Fleiss' kappa, Krippendorff's alpha.

Each returns None where it is undefined: where chance alone would already agree on everything, so that there is nothing
to agree beyond.  1 is full agreement, 0 is chance, below 0 is worse than chance.

Sources: Cohen 1960 and 1968 (weights), Fleiss 1971, Krippendorff 2004.  Not covered: ratio and circular scales, and
bounds (`adjudge.evals.trust.panel` has them).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Literal, get_args

Weights = Literal["none", "linear", "quadratic"]
Metric = Literal["nominal", "ordinal", "interval"]


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights = "none",
    order: Sequence[Hashable] | None = None,
) -> float | None:
    """Return the agreement of two raters of the same items.

    Args:
        first: one label for each item.
        second: as many.
        weights: "linear" or "quadratic" make near misses cost less; they need an order.
        order: the labels from lowest to highest.

    Raises:
        ValueError: the lists differ in length or are empty, or weights come without an order that has all labels.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} labels; two raters need one label each for the same items")
    if weights not in get_args(Weights):
        raise ValueError(f"weights={weights!r}; it must be one of {', '.join(get_args(Weights))}")
    labels = list(dict.fromkeys([*first, *second])) if order is None else list(order)
    if weights != "none" and order is None:
        raise ValueError(f"weights={weights!r} need `order`, the labels from lowest to highest")
    if unknown := sorted(map(repr, {*first, *second} - set(labels))):
        raise ValueError(f"the label {unknown[0]} is not in the order {labels!r}")
    place = {label: index for index, label in enumerate(labels)}
    power = {"linear": 1, "quadratic": 2}.get(weights, 0)

    def cost(one: Hashable, other: Hashable) -> float:
        return float(abs(place[one] - place[other]) ** power) if one != other else 0.0

    rows, columns = Counter(first), Counter(second)
    observed = math.fsum(cost(a, b) for a, b in zip(first, second, strict=True)) / len(first)
    expected = math.fsum(n * m * cost(a, b) for a, n in rows.items() for b, m in columns.items()) / len(first) ** 2
    return None if expected == 0 else 1 - observed / expected


def fleiss_kappa(counts: Sequence[Mapping[Hashable, int]]) -> float | None:
    """Return the agreement of equally many raters for each item, who need not be the same ones.

    Args:
        counts: for each item, how many raters gave each label; every item has the same number n >= 2 of raters.

    Raises:
        ValueError: there are no items, or their numbers of raters differ or are below 2.
    """
    sizes = {sum(item.values()) for item in counts}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(
            f"the items have {sorted(sizes) or 'no'} raters; Fleiss' kappa needs the same number, 2 or more, for each "
            "(krippendorff_alpha allows gaps)"
        )
    (n,) = sizes
    totals: Counter[Hashable] = Counter()
    for item in counts:
        totals.update(item)
    chance = math.fsum((total / (n * len(counts))) ** 2 for total in totals.values())
    if any(total == n * len(counts) for total in totals.values()):
        return None
    seen = math.fsum(math.fsum(k * (k - 1) for k in item.values()) / (n * (n - 1)) for item in counts) / len(counts)
    return (seen - chance) / (1 - chance)


def krippendorff_alpha(items: Sequence[Sequence[float | str | None]], *, metric: Metric = "nominal") -> float | None:
    """Return the agreement of any number of raters, with gaps.

    Args:
        items: for each item, the raters' values; None where a rater gave none.  Items with fewer than two values say
            nothing and are left out.
        metric: "nominal" (equal or not), "ordinal" (ranks) or "interval" (squared distance); the last two need numbers.

    Raises:
        ValueError: the metric is unknown, or needs numbers and gets something else.
    """
    if metric not in get_args(Metric):
        raise ValueError(f"metric={metric!r}; it must be one of {', '.join(get_args(Metric))}")
    units = [[value for value in item if value is not None] for item in items]
    units = [unit for unit in units if len(unit) > 1]
    if not units:
        return None
    pairs: Counter[tuple[float | str, float | str]] = Counter()
    weights: dict[tuple[float | str, float | str], float] = {}
    for unit in units:
        for i, one in enumerate(unit):
            for j, other in enumerate(unit):
                if i != j:
                    pairs[one, other] += 1
                    weights[one, other] = weights.get((one, other), 0.0) + 1 / (len(unit) - 1)
    totals: dict[float | str, float] = {}
    for (one, _), weight in weights.items():
        totals[one] = totals.get(one, 0.0) + weight
    distance = _distance(metric, totals)
    n = math.fsum(totals.values())
    observed = math.fsum(weight * distance(a, b) for (a, b), weight in weights.items()) / n
    expected = math.fsum(x * y * distance(a, b) for a, x in totals.items() for b, y in totals.items()) / (n * (n - 1))
    return None if expected == 0 else 1 - observed / expected


def _distance(metric: Metric, totals: Mapping[float | str, float]) -> Callable[[float | str, float | str], float]:
    if metric == "nominal":
        return lambda one, other: float(one != other)
    numbers: dict[float | str, float] = {value: value for value in totals if isinstance(value, int | float)}
    if len(numbers) < len(totals):
        raise ValueError(
            f"metric={metric!r} needs numbers, and a rater gave {next(v for v in totals if v not in numbers)!r}"
        )
    if metric == "interval":
        return lambda one, other: (numbers[one] - numbers[other]) ** 2
    ranks: dict[float | str, float] = {}
    below = 0.0
    for value in sorted(numbers.values()):
        ranks[value] = below + totals[value] / 2  # the middle of the value's own ranks
        below += totals[value]
    return lambda one, other: (ranks[one] - ranks[other]) ** 2
