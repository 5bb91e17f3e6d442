"""The prompts a policy is trained on, in an order that a resumed run goes on with.

Not covered: which prompts are worth training on (`adjudge.rl_integration.trainer.prompts`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from adjudge.protocol import Message, Sample, Score

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.rollouts.rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prompt, and what its answers are checked against.

    Attributes:
        id: unique in the data.
        prompt: text, or the turns of a chat.
        reference: for the scorer.
        extra: further fields for the scorer.
    """

    id: str
    prompt: str | Sequence[Message]
    reference: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def sample(self, response: str | Sequence[Message], *, id: str, finish_reason: str | None) -> Sample:
        """Return an answer to it as a sample; answers of one task are a group."""
        return Sample(
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            id=id,
            group=self.id,
            finish_reason=finish_reason,
            extra=self.extra,
        )


class TaskSource(Protocol):
    """Says which tasks come next."""

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; none twice in one call, if there are enough."""
        ...

    def told(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Hear how a batch went, whole groups; return numbers for the log.

        Batches are told in the order they were drawn, with those that were dropped; by then later ones may be drawn.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Return all that the next call depends on, as plain JSON data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        ...


class TaskOrder:
    """An endless order of tasks: each pass over them shuffled anew, whatever their scores.

    Args:
        tasks: what there is.
        seed: of the order.

    Raises:
        ValueError: there are no tasks, or two have one id.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int) -> None:
        if not tasks:
            raise ValueError("there are no tasks to train on; give at least one prompt")
        seen: set[str] = set()
        for task in tasks:
            if task.id in seen:
                raise ValueError(f"two tasks have the id {task.id!r}; ids must be unique")
            seen.add(task.id)
        self._tasks = tasks
        self._seed = seed
        self._next = 0
        self._pass: tuple[int, list[int]] = (-1, [])

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks."""
        begin = self._next
        self._next += count
        return [self._tasks[self._place(place)] for place in range(begin, self._next)]

    def told(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Take no notice."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the place in the order."""
        return {"next": self._next}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a place."""
        self._next = state["next"]

    def _place(self, place: int) -> int:
        number, rest = divmod(place, len(self._tasks))
        if self._pass[0] != number:
            order = list(range(len(self._tasks)))
            random.Random(f"{self._seed}:{number}").shuffle(order)
            self._pass = (number, order)
        return self._pass[1][rest]
