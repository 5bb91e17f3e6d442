"""Easy tasks first, in chunks whose difficulties are estimated anew when their turn comes (ADCL, the paper of EGSR).

A pass over the tasks goes by their pass rates before training, highest first, in chunks.  When a chunk begins, its
tasks are sorted again by what the policy is now expected to solve.  The paper lets the policy answer the chunk for
that; here it is the value of a prompt that PCL learns beside the policy (`PromptValue`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from adjudge.options import Count, Declared, Options, Range, Share
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting
from adjudge.rl_integration.trainer.rollouts.curricula.sources import PromptValue, RatedSource, choose_failed


@dataclass(frozen=True, kw_only=True)
class Adcl(Options):
    """ADCL: chunks from easy to hard, each sorted anew when it begins; see the module.

    Attributes:
        chunks: of a pass over the tasks (ours).
        column: the field of a task's `extra` with its pass rate before training (`adjudge data difficulty`).
        rate: the share of its error that the value of prompts loses with one observation.
        right_above: a score above it is right; None takes scores in [0, 1] as they are.
    """

    parts: ClassVar[frozenset[str]] = frozenset({"source"})

    chunks: Count = 4
    column: str = "pass_rate"
    rate: Share = 0.5
    right_above: float | None = None

    def made(self, setting: Setting) -> Curriculum:
        """Return the source.

        Raises:
            ValueError: a task has no pass rate.
        """
        return Curriculum(source=ChunkedSource(self, setting))


class ChunkedSource(RatedSource):
    """Draws tasks in chunks; see the module."""

    def __init__(self, rule: Adcl, setting: Setting) -> None:
        value = PromptValue(setting.states, rate=rule.rate)
        super().__init__(setting, value, choose_failed, right_above=rule.right_above)
        known = Declared(kind=float, range=Range(ge=0, le=1))
        for task in setting.tasks:
            if not known.allows(task.extra.get(rule.column)):
                raise ValueError(
                    f"the task {task.id!r} has the pass rate {task.extra.get(rule.column)!r} in its extra field "
                    f"{rule.column!r}; write it with adjudge data difficulty, and name it in data.extra"
                )
        easy_first = sorted(setting.tasks, key=lambda task: -task.extra[rule.column])
        cuts = np.array_split(np.arange(len(easy_first)), min(rule.chunks, len(easy_first)))
        self._chunks = [[easy_first[place] for place in cut] for cut in cuts]
        self._by_id = {task.id: task for task in easy_first}
        self._begun = 0
        self._waiting: list[Task] = []

    def draw(self, count: int) -> list[Task]:
        """Return the next tasks; one that a new pass brings again within a batch waits for the next one."""
        chosen: list[Task] = []
        late: list[Task] = []
        while len(chosen) < count:
            if not self._waiting:
                chunk = self._chunks[self._begun % len(self._chunks)]
                order = np.argsort(-self._expectation.mean(chunk), kind="stable")
                self._begun, self._waiting = self._begun + 1, [chunk[place] for place in order]
            task = self._waiting.pop(0)
            (late if task in chosen and count <= len(self._tasks) else chosen).append(task)
        self._waiting = late + self._waiting
        return chosen

    def state(self) -> dict[str, Any]:
        """Return the place in the pass, and the value of prompts."""
        return {**super().state(), "begun": self._begun, "waiting": [task.id for task in self._waiting]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        super().restore(state)
        self._begun = state["begun"]
        self._waiting = [self._by_id[name] for name in state["waiting"]]
