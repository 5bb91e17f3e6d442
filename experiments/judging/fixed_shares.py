"""Tasks of several kinds in fixed shares, such as Critique-Coder's 20 % critiques among 80 % programs.

Every batch has each kind's share of it, rounded so that the shares hold over time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskSource

KIND = "kind"
"""The field of a task's `extra` that says its kind, which the scorer `by_kind` reads, too."""


def of_kind(tasks: Iterable[Task], kind: str) -> list[Task]:
    """Return the tasks, with the kind said in each; it begins their ids, too, so that kinds cannot clash."""
    return [
        replace(
            task,
            id=f"{kind}:{task.id}",
            cohort=f"{kind}:{task.cohort}" if task.cohort else "",
            extra={**task.extra, KIND: kind},
        )
        for task in tasks
    ]


class FixedShares:
    """Draws from several sources.

    Args:
        sources: each kind's source, whose tasks say the kind (`of_kind`), and its share; shares are divided by their
            sum.

    Raises:
        ValueError: there are none, or a share is not above 0.
    """

    def __init__(self, sources: Mapping[str, tuple[TaskSource, float]]) -> None:
        if not sources:
            raise ValueError("there are no kinds of tasks to draw from; give at least one")
        for name, (_, share) in sources.items():
            if not 0 < share < math.inf:
                raise ValueError(f"the share of {name!r} is {share!r}; it must be above 0")
        total = sum(share for _, share in sources.values())
        self._sources = {name: source for name, (source, _) in sources.items()}
        self._shares = {name: share / total for name, (_, share) in sources.items()}
        self._taken = dict.fromkeys(sources, 0)

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks, those of a kind side by side.

        Raises:
            ValueError: a source gave a task of another kind.
        """
        counts = dict.fromkeys(self._sources, 0)
        for _ in range(count):  # one at a time to the kind that is furthest behind its share
            total = sum(self._taken.values()) + 1
            behind = {name: share * total - self._taken[name] for name, share in self._shares.items()}
            chosen = max(behind, key=lambda name: behind[name])
            counts[chosen] += 1
            self._taken[chosen] += 1
        tasks: list[Task] = []
        for name, source in self._sources.items():
            drawn = source.draw(counts[name]) if counts[name] else []
            for task in drawn:
                if task.extra.get(KIND) != name:
                    raise ValueError(
                        f"the source of {name!r} gave the task {task.id!r}, whose kind is {task.extra.get(KIND)!r}; "
                        "make its tasks with of_kind"
                    )
            tasks += drawn
        return tasks

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Tell each kind's source how its tasks went; return its numbers, and each kind's mean reward."""
        means: dict[str, float] = {}
        for name, source in self._sources.items():
            own = [place for place, rollout in enumerate(rollouts) if rollout.task.extra.get(KIND) == name]
            values = [value for place in own if (value := scores[place].value) is not None]
            if own:
                numbers = source.observe([rollouts[place] for place in own], [scores[place] for place in own])
                means |= {f"{name}.{number}": value for number, value in numbers.items()}
            if values:
                means[f"{name}.reward"] = sum(values) / len(values)
        return means

    def state(self) -> dict[str, Any]:
        """Return the state of every source, and how often each was drawn from."""
        return {"sources": {name: source.state() for name, source in self._sources.items()}, "taken": dict(self._taken)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name, source in self._sources.items():
            source.restore(state["sources"][name])
        self._taken = dict(state["taken"])
