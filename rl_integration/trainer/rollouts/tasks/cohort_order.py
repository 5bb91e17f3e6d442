"""An endless order of tasks that keeps cohorts together: both orders of a pair come in one batch.

Not covered: curricula that draw tasks by themselves; they would part a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task, TaskOrder
from adjudge.rl_integration.trainer.rollouts.tasks.order_effects import order_effects


class CohortOrder:
    """Draws whole cohorts in a shuffled order, and reports how order-dependent the verdicts are.

    Args:
        tasks: what there is; those of one cohort anywhere in it, a task without one being its own.
        seed: of the order.

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
        self._order = TaskOrder([members[0] for members in cohorts.values()], seed=seed)
        self._members = {members[0].id: members for members in cohorts.values()}
        self._size = max(sizes, default=1)
        TaskOrder(tasks, seed=seed)  # no id stands twice, in a cohort either

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, those of a cohort side by side.

        Raises:
            ValueError: the count is no multiple of a cohort's size.
        """
        if count % self._size:
            raise ValueError(
                f"rollouts.tasks is {count}, and {self._size} tasks each are scored together; give a multiple of "
                f"{self._size} for each process"
            )
        return [task for first in self._order.draw(count // self._size) for task in self._members[first.id]]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Return the effects of order in a batch."""
        return order_effects(rollouts, scores)

    def state(self) -> dict[str, Any]:
        """Return the place in the order."""
        return self._order.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a place."""
        self._order.restore(state)
