"""Values of items made into one number by a named formula, gates first.

| name | formula | range |
|---|---|---|
| mean | sum w v / sum w; Rubrics as Rewards explicit, RLCF; weights > 0 | [0, 1] |
| absolute | sum w v / sum of abs(w) | [-1, 1] |
| points | sum w v / sum of the positive w; HealthBench | up to 1, may be negative |
| verif | 1 if all checks and programs are met, times the mean of the judged items; VerIF | [0, 1] |
| count | number of items met in full; MulDimIF in training | 0 to their number |
| all | 1 if all items are met in full; MulDimIF's test | 0 or 1 |

A gate that is not met in full makes the whole worth nothing: 0, or what it is if that is below 0.

Sources: Rubrics as Rewards (2507.17746; a re-implementation divides by the sum of |w|, which differs for negative
weights alone); RLCF (2507.18624), where an item that has a verifier program counts the mean of program and judge;
HealthBench (2505.08775; simple-evals, healthbench_eval.py), whose score is at most 1 and may be negative; VerIF
(2506.09942); MulDimIF (2505.07591), whose count pays prompts with more constraints more: normalize it where prompts are
mixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

from adjudge.judges.items.item import JUDGED, Item
from adjudge.scoring.bad_reference import BadReferenceError


def rules_times_judge(rules: Sequence[float], judged: Sequence[float]) -> float:
    """Return VerIF's reward, in [0, 1]: 0 unless every rule is met in full, else the mean of what a judge says.

    Without rules the judge decides alone, without judged constraints the rules do.

    Raises:
        ValueError: there is neither.
    """
    if not rules and not judged:
        raise ValueError("VerIF's reward needs at least one constraint")
    if any(rule < 1.0 for rule in rules):
        return 0.0
    return math.fsum(judged) / len(judged) if judged else 1.0


def met_count(values: Sequence[float]) -> float:
    """Return how many constraints are met in full: MulDimIF's training reward, from 0 to their number."""
    return float(sum(value >= 1.0 for value in values))


def all_met(values: Sequence[float]) -> float:
    """Return 1 when all constraints are met in full, else 0: MulDimIF's test.

    Raises:
        ValueError: there are none; all of nothing would be 1.
    """
    if not values:
        raise ValueError("there is no constraint, so nothing can be met")
    return float(all(value >= 1.0 for value in values))


def signed_points(points: Sequence[float], met: Sequence[float]) -> float:
    """Return the share of the positive points that was reached, minus what was lost.

    Args:
        points: the points of each criterion, negative for what must not be there.
        met: how far each is met, in [0, 1]; the published judge says 0 or 1.

    Raises:
        ValueError: the lists differ in length, a value is outside [0, 1], or no points are positive.
    """
    check_marks(points, met)
    possible = math.fsum(value for value in points if value > 0)
    if possible <= 0:
        raise ValueError(f"no criterion has positive points ({list(points)}); there is nothing to reach")
    return math.fsum(value * share for value, share in zip(points, met, strict=True)) / possible


def check_marks(weights: Sequence[float], values: Sequence[float]) -> None:
    """Raise `ValueError` unless there is one value in [0, 1] for each weight, and at least one."""
    if not weights or len(weights) != len(values):
        raise ValueError(f"{len(values)} values for {len(weights)} weights; give one for each, and at least one")
    for value in values:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"the value {value!r} is outside [0, 1]")


def weighted_mean(weights: Sequence[float], values: Sequence[float]) -> float:
    """Return sum of w v / sum of w, in [0, 1]; weights must be positive.

    Raises:
        ValueError: a weight is not positive (with negative ones the sum of w can be 0 or less, and the ratio grows
            without bound or turns its sign), or the lists do not fit.
    """
    check_marks(weights, values)
    if min(weights) <= 0:
        raise ValueError(
            f"the weight {min(weights)!r} is not positive; use signed_points or absolute_mean for criteria that "
            "should not be met"
        )
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / math.fsum(weights)


def absolute_mean(weights: Sequence[float], values: Sequence[float]) -> float:
    """Return sum of w v / sum of |w|, in [-1, 1]."""
    check_marks(weights, values)
    total = math.fsum(map(abs, weights))
    if total == 0:
        raise ValueError("all weights are 0; there is nothing to weigh")
    return math.fsum(weight * value for weight, value in zip(weights, values, strict=True)) / total


Combine: TypeAlias = Literal["mean", "absolute", "points", "verif", "count", "all"]
COMBINES: tuple[Combine, ...] = get_args(Combine)


def tally(items: Sequence[Item], values: Sequence[float], combine: Combine) -> tuple[float, bool]:
    """Return the number for a response, and whether a gate closed it.

    Args:
        items: the rubric.
        values: how far each item is met, in [0, 1].
        combine: the formula.
    """
    value = _FORMULAS[combine](items, values)
    shut = any(item.gate and met < 1.0 for item, met in zip(items, values, strict=True))
    return (min(0.0, value), True) if shut else (value, False)


def worst_value(item: Item) -> float:
    """Return the value of an item that is worst for the whole: what an open verdict counts as."""
    return 0.0 if item.weight > 0 else 1.0


def check_combine(items: Sequence[Item], combine: Combine) -> None:
    """Raise `BadReferenceError` where the formula and the weights of a rubric do not go together."""
    negative = [item.name for item in items if item.weight < 0]
    if combine == "points" and len(negative) == len(items):
        raise BadReferenceError("no item has positive points, so there is nothing to reach")
    if combine in ("mean", "verif", "count", "all") and negative:
        raise BadReferenceError(
            f"the item {negative[0]!r} has a negative weight, which combine={combine!r} cannot use; "
            'word it as something to be avoided and weigh it positively, or use combine="points" or "absolute"'
        )
    gates = [item.name for item in items if item.gate and item.weight < 0]
    if gates:
        raise BadReferenceError(f"the gate {gates[0]!r} has a negative weight; a gate is something to be met")


def _verif(items: Sequence[Item], values: Sequence[float]) -> float:
    pairs = list(zip(items, values, strict=True))
    rules = [value for item, value in pairs if item.kind not in JUDGED]
    return rules_times_judge(rules, [value for item, value in pairs if item.kind in JUDGED])


_FORMULAS: dict[Combine, Callable[[Sequence[Item], Sequence[float]], float]] = {
    "mean": lambda items, values: weighted_mean([item.weight for item in items], values),
    "absolute": lambda items, values: absolute_mean([item.weight for item in items], values),
    "points": lambda items, values: signed_points([item.weight for item in items], values),
    "verif": _verif,
    "count": lambda _, values: met_count(values),
    "all": lambda _, values: all_met(values),
}
