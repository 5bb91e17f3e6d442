"""An endless order of tasks that keeps cohorts together, and what the order of a pair does to verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskOrder, check_tasks

GIVEN, SWAPPED = "given", "swapped"
LABELS: Final = ("A", "B")
"""The verdicts for the response shown first and for the one shown second."""


def order_effects(
    rollouts: Sequence[Rollout], scores: Sequence[Score], labels: tuple[str, str] = LABELS
) -> dict[str, float]:
    """Return the numbers of a batch; those that nothing is known for are left out.

    | number | |
    |---|---|
    | `right_first` | share of right verdicts where the better response is shown first |
    | `right_second` | the same where it is shown second; far below, the judge prefers what it reads first |
    | `first_preferred` | share of the verdicts that prefer the response shown first |
    | `consistent` | share of the pairs judged in both orders in which the same response wins both times |
    | `consistently_right` | share of those pairs in which the better one wins both times |
    | `no_verdict` | share of the answers without a verdict; they are in the denominator of `right_*` and of pairs |

    Answers are paired by their rank: the third to one order with the third to the other.
    """
    verdicts: dict[str, dict[str, list[tuple[str, str]]]] = {}
    for rollout, score in zip(rollouts, scores, strict=True):
        order = rollout.task.extra.get("order")
        if order in (GIVEN, SWAPPED) and score.status == "scored":
            reference = rollout.task.reference
            right = reference["verdict"] if isinstance(reference, Mapping) else reference
            read = (str(score.evidence.get("verdict", "")), str(right))
            verdicts.setdefault(rollout.task.cohort, {}).setdefault(order, []).append(read)
    every = [read for orders in verdicts.values() for members in orders.values() for read in members]
    both = [
        (one, other)
        for orders in verdicts.values()
        for one, other in zip(orders.get(GIVEN, []), orders.get(SWAPPED, []), strict=False)
    ]
    first, second = labels
    shares = {
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
    return {name: share for name, share in shares.items() if share is not None}


def _share(facts: Iterable[bool]) -> float | None:
    """The share of facts that hold; None of none."""
    known = list(facts)
    return sum(known) / len(known) if known else None


class CohortOrder(TaskOrder):
    """Draws whole cohorts in a shuffled order, and reports how order-dependent the verdicts are.

    Raises:
        ValueError: there are no tasks, two have one id, or cohorts have different sizes.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int) -> None:
        cohorts: dict[str, list[Task]] = {}
        for task in tasks:
            cohorts.setdefault(task.cohort or f"\0{task.id}", []).append(task)
        sizes = {len(members): name for name, members in cohorts.items()}
        if len(sizes) > 1:
            told = ", ".join(f"{name.removeprefix(chr(0))!r} has {size}" for size, name in sorted(sizes.items()))
            raise ValueError(f"cohorts have different numbers of tasks ({told}); keep them apart, or complete them")
        check_tasks(tasks)
        super().__init__([members[0] for members in cohorts.values()], seed=seed)
        self._members = {members[0].id: members for members in cohorts.values()}
        self._size = max(sizes, default=1)

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, those of a cohort side by side.

        Raises:
            ValueError: the count is not a multiple of a cohort's size.
        """
        if count % self._size:
            raise ValueError(
                f"rollouts.tasks is {count}, and {self._size} tasks each are scored together; give a multiple of "
                f"{self._size} for each process"
            )
        return [task for first in super().draw(count // self._size) for task in self._members[first.id]]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Return the effects of order in a batch."""
        return order_effects(rollouts, scores)
