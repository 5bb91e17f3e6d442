"""The prompts a policy is trained on, in an order that a resumed run goes on with."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from adjudge.protocol import Message, Sample, Score

if TYPE_CHECKING:
    from adjudge.rl_integration.trainer.contract.rollout import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prompt, and what its answers are checked against.

    Attributes:
        id: unique in the data.
        prompt: text, or the turns of a chat.
        reference: for the scorer.
        extra: further fields for the scorer.
        cohort: tasks that share it are scored together, by scorers that compare answers: a pair in both orders.  They
            must be drawn in one batch; "" for a task by itself.
    """

    id: str
    prompt: str | Sequence[Message]
    reference: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    cohort: str = ""

    def sample(
        self, response: str | Sequence[Message], *, id: str, finish_reason: str | None, tokens: int = 0
    ) -> Sample:
        """Return an answer to it as a sample; answers of one task, or one cohort, are a group."""
        return Sample(
            prompt=self.prompt,
            response=response,
            reference=self.reference,
            id=id,
            group=self.cohort or self.id,
            finish_reason=finish_reason,
            extra={**self.extra, "completion_tokens": tokens},
        )


class TaskSource(Protocol):
    """Says which tasks come next."""

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; none twice in one call, if there are enough."""
        ...

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Hear how a batch went, whole groups; return numbers for the log.

        Batches are told in the order they were drawn, with those that were dropped; by then later ones may be drawn.
        Answers that were written with help are not told: they say nothing about the task.
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

    Raises:
        ValueError: there are no tasks, or two have one id.
    """

    def __init__(self, tasks: Sequence[Task], *, seed: int) -> None:
        check_tasks(tasks)
        self._tasks = tasks
        self._seed = seed
        self._next = 0
        self._held: list[int] = []
        self._pass: tuple[int, list[int]] = (-1, [])

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; one that begins a pass and ended the one before waits for the next call."""
        chosen: list[int] = []
        held, self._held = deque(self._held), []
        while len(chosen) < count:
            place = held.popleft() if held else self._following()
            if place in chosen and count <= len(self._tasks):
                self._held.append(place)
            else:
                chosen.append(place)
        self._held.extend(held)
        return [self._tasks[place] for place in chosen]

    def observe(self, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> Mapping[str, float]:
        """Take no notice."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the place in the order."""
        return {"next": self._next, "held": list(self._held)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a place."""
        self._next = state["next"]
        self._held = list(state["held"])

    def _following(self) -> int:
        number, rest = divmod(self._next, len(self._tasks))
        self._next += 1
        if self._pass[0] != number:
            order = list(range(len(self._tasks)))
            random.Random(f"{self._seed}:{number}").shuffle(order)
            self._pass = (number, order)
        return self._pass[1][rest]


def check_tasks(tasks: Sequence[Task]) -> None:
    """Raise `ValueError` if there are no tasks, or if two have one id."""
    if not tasks:
        raise ValueError("there are no tasks to train on; give at least one prompt")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise ValueError(f"two tasks have the id {task.id!r}; ids must be unique")
        seen.add(task.id)
