"""What the order of a pair does to a judge's verdicts, as numbers for the log.

| number | |
|---|---|
| `right_first` | share of right verdicts where the better response is shown first |
| `right_second` | the same where it is shown second; far below `right_first`, the judge prefers what it reads first |
| `first_preferred` | share of the verdicts that prefer the response shown first |
| `consistent` | share of the pairs judged in both orders in which the same response wins both times |
| `consistently_right` | share of those pairs in which the better one wins both times |
| `no_verdict` | share of the answers without a verdict; they are in the denominator of `right_*` and of pairs |

Answers are paired by their rank: the third to one order with the third to the other.

Not covered: intervals, and what else may bias a judge (`adjudge.evals.bias` measures finished judges).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.rollout import Rollout

GIVEN, SWAPPED = "given", "swapped"
LABELS: Final = ("A", "B")
"""The verdicts for the response shown first and for the one shown second."""


def order_effects(
    rollouts: Sequence[Rollout], scores: Sequence[Score], labels: tuple[str, str] = LABELS
) -> dict[str, float]:
    """Return the numbers of a batch; those that nothing is known for are left out.

    Args:
        rollouts: answers to tasks of `pairs.in_both_orders` or `pairs.in_one_order`; others are not looked at.
        scores: one for each, with the verdict in the evidence.
        labels: the verdicts for the response shown first and for the one shown second.
    """
    verdicts: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for rollout, score in zip(rollouts, scores, strict=True):
        order = rollout.task.extra.get("order")
        if order in (GIVEN, SWAPPED) and score.status == "scored":
            read = (str(score.evidence.get("verdict", "")), _right(rollout.task.reference))
            verdicts.setdefault(rollout.task.cohort, {}).setdefault(order, []).append(read)
    every = [read for orders in verdicts.values() for members in orders.values() for read in members]
    both = [
        (one, other)
        for orders in verdicts.values()
        for one, other in zip(orders.get(GIVEN, []), orders.get(SWAPPED, []), strict=False)
    ]
    first, second = labels
    found = {
        "right_first": _share(verdict == right for verdict, right in every if right == first),
        "right_second": _share(verdict == right for verdict, right in every if right == second),
        "first_preferred": _share(verdict == first for verdict, _ in every if verdict in labels),
        "no_verdict": _share(verdict not in labels for verdict, _ in every),
        "consistent": _share(
            one[0] in labels and other[0] in labels and (one[0] == one[1]) == (other[0] == other[1])
            for one, other in both
        ),
        "consistently_right": _share(one[0] == one[1] and other[0] == other[1] for one, other in both),
    }
    return {name: share for name, share in found.items() if share is not None}


def _right(reference: Any) -> str:
    return str(reference["verdict"] if isinstance(reference, Mapping) else reference)


def _share(facts: Iterable[bool]) -> float | None:
    """The share of facts that hold; None of none."""
    known = list(facts)
    return sum(known) / len(known) if known else None
