"""What a run tells its scorers of itself: fields of `Sample.extra`, those that `rollouts.facts` names.

| name | is |
|---|---|
| `step` | steps that were done when the answer's batch was begun |
| `progress` | `step` by the run's steps, in [0, 1] |
| `abstention_rate` | share of the latest batch with scores whose `evidence["abstains"]` is true, in [0, 1]; first 0 |
| `stale_evals` | the longest row of measurements on held-out tasks so far that brought no better mean |
| `direct` | what the policy answers without tools, by its likeliest tokens, when the batch is begun: `unaided` |
| `confidence` | mean probability of the answer's own tokens, as they were drawn, in [0, 1] |

Only what is asked for is told: a cached score is found again by the whole sample, and `direct` costs an answer a task.
Facts are those of the batch's number: the same after a resumption, with old answers, and in all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import CONFIDENCE, Task

Fact: TypeAlias = Literal["step", "progress", "abstention_rate", "stale_evals", "direct", "confidence"]

TRIAL: Final[Mapping[str, Any]] = {
    "step": 0, "progress": 0.0, "abstention_rate": 0.0, "stale_evals": 0, "direct": "", CONFIDENCE: 1.0
}  # fmt: skip
"""A value of each, for a sample that a scorer is tried with."""

UNAIDED: Final = "Answer from what you know. Give the answer, and nothing else, in <answer></answer>."
"""What stands in the place of the system's text, which may offer tools, or ask whether one is wanted."""


def unaided(task: Task) -> Task:
    """Return a task of a chat as it is asked without tools; a text stays as it is."""
    if isinstance(task.prompt, str):
        return task
    asked = [turn for turn in task.prompt if turn["role"] != "system"]
    return replace(task, prompt=[{"role": "system", "content": UNAIDED}, *asked])


Direct: TypeAlias = Callable[[Sequence[Task]], Sequence[str]]


class Facts:
    """The facts of a run, as they are now.

    Args:
        names: those that are told.
        steps: of the run.
        direct: writes an answer without tools to each task; for `direct` alone.
    """

    def __init__(self, names: Sequence[Fact], steps: int, direct: Direct) -> None:
        self._names = names
        self._steps = steps
        self._direct = direct
        self._abstention_rate = 0.0
        self._best: float | None = None
        self._row = self._stale = 0

    def told(self, tasks: Sequence[Task], step: int) -> list[Task]:
        """Return the tasks with the facts of their batch, of which `Rollout.sample` fills in the answer's."""
        if not self._names:
            return list(tasks)
        every: dict[str, Any] = {
            "step": step,
            "progress": min(1.0, step / self._steps),
            "abstention_rate": self._abstention_rate,
            "stale_evals": self._stale,
            CONFIDENCE: None,
        }
        shared: dict[str, Any] = {name: every[name] for name in self._names if name != "direct"}
        direct = self._direct([unaided(task) for task in tasks]) if "direct" in self._names else [None] * len(tasks)
        own = [shared if one is None else {**shared, "direct": one} for one in direct]
        return [replace(task, extra={**task.extra, **extra}) for task, extra in zip(tasks, own, strict=True)]

    def scored(self, scores: Sequence[Score]) -> None:
        """Hear the scores of a batch, those of all processes."""
        self._abstention_rate = sum(score.evidence.get("abstains") is True for score in scores) / max(1, len(scores))

    def measured(self, held_out: float) -> None:
        """Hear the mean score on held-out tasks."""
        better = self._best is None or held_out > self._best
        self._best = held_out if better else self._best
        self._row = 0 if better else self._row + 1
        self._stale = max(self._stale, self._row)

    def judged_anew(self) -> None:
        """Compare what will be measured with nothing that was: another judge measures."""
        self._best, self._row = None, 0

    def state(self) -> dict[str, Any]:
        """Return them as plain JSON data."""
        return {"abstention_rate": self._abstention_rate, "best": self._best, "row": self._row, "stale": self._stale}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._abstention_rate = state["abstention_rate"]
        self._best, self._row, self._stale = state["best"], state["row"], state["stale"]
