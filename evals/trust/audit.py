"""Does an aggregate judge the steps, or count them?  Numbers to print beside every aggregate of process rewards.

On RewardBench's mathematics part Math-Shepherd's product ranks 94.4 % of pairs right, and "fewer steps wins" 92.8 %
without any model: right solutions there have 4.0 steps on average, wrong ones 12.2.  On RewardMATH, whose solutions
have about as many, the product finds 17.2 % of the right ones out of ten.

Of the 20 pairs there whose better solution has not the fewest steps, the product ranks 9 right, the minimum 16.

So an aggregate is worth what it adds to the count: look at the accuracy on pairs whose better solution has more steps,
and at the rank correlation with the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adjudge.responses.aggregate import TEMPERATURE, Aggregate, aggregate
from adjudge.statistics.ranks import spearman

Values: TypeAlias = Sequence[float]
"""The values of a solution's steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAudit:
    """An aggregate beside the number of steps.

    Attributes:
        accuracy: share of the cases (pairs or groups) whose better solution has the highest aggregate; a tie is wrong.
        fewer_steps: the same for "fewer steps wins"; k solutions that tie for fewest share the point: 1/k, as the
            baseline has to guess.
        fewer_steps_strict: the same, where a tie is wrong.
        accuracy_harder: the accuracy on those (so many are `harder`) whose better solution has not the fewest steps.
        correlation: Spearman's rank correlation of the aggregate with the number of steps, over all solutions; None if
            either is the same for all.
        steps_better: mean number of steps of the better solutions; `steps_other`, of all others.
    """

    how: Aggregate
    cases: int
    accuracy: float
    fewer_steps: float
    fewer_steps_strict: float
    harder: int
    accuracy_harder: float | None
    correlation: float | None
    steps_better: float
    steps_other: float

    def __str__(self) -> str:
        harder = "none" if self.accuracy_harder is None else f"{self.accuracy_harder:.1%} of {self.harder}"
        correlation = "none" if self.correlation is None else f"{self.correlation:+.2f}"
        return (
            f"{self.how}: {self.accuracy:.1%} of {self.cases} (fewer steps wins: {self.fewer_steps:.1%}; where that is "
            f"wrong: {harder}; rank correlation with the number of steps: {correlation}; mean steps "
            f"{self.steps_better:.1f} and {self.steps_other:.1f})"
        )


def audit_pairs(
    pairs: Sequence[tuple[Values, Values]], how: Aggregate, *, temperature: float = TEMPERATURE
) -> StepAudit:
    """Return the audit of an aggregate on pairs: the values of the better solution's steps, then of the other's.

    Raises:
        ValueError: there is no pair, or a solution has no step.
    """
    return audit_groups([list(pair) for pair in pairs], how, temperature=temperature)


def audit_groups(groups: Sequence[Sequence[Values]], how: Aggregate, *, temperature: float = TEMPERATURE) -> StepAudit:
    """Return the audit of an aggregate on groups of solutions to one problem; the first of each is the better one.

    Raises:
        ValueError: there is no group, a group has fewer than two solutions, or a solution has no step.
    """
    if not groups or any(len(group) < 2 for group in groups):
        raise ValueError("an audit needs groups of at least two solutions, the better one first")
    worth = [[aggregate(values, how, temperature=temperature) for values in group] for group in groups]
    lengths = [[len(values) for values in group] for group in groups]
    right = [one[0] > max(one[1:]) for one in worth]
    credit = [1 / one.count(one[0]) if one[0] == min(one) else 0.0 for one in lengths]
    harder = [best for best, share in zip(right, credit, strict=True) if not share]
    others = [length for one in lengths for length in one[1:]]
    return StepAudit(
        how=how,
        cases=len(groups),
        accuracy=sum(right) / len(groups),
        fewer_steps=sum(credit) / len(groups),
        fewer_steps_strict=credit.count(1) / len(groups),
        harder=len(harder),
        accuracy_harder=sum(harder) / len(harder) if harder else None,
        correlation=spearman(
            [number for one in worth for number in one], [number for one in lengths for number in one]
        ),
        steps_better=math.fsum(one[0] for one in lengths) / len(groups),
        steps_other=math.fsum(others) / len(others),
    )
