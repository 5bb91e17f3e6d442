"""Tasks whose difficulty is known, and answers to them that no model wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CurriculumChoice
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Setting, States

Told = tuple[list[Rollout], list[Score]]


def task(name: str, *, rate: float = 0.5, source: str = "all", **more: Any) -> Task:
    """A task that is answered right with this chance."""
    return Task(
        id=name, prompt=f"{name}=", reference="1", extra={"rate": rate, "pass_rate": rate, "source": source, **more}
    )


def graded_tasks(count: int) -> list[Task]:
    """Tasks from impossible to sure."""
    return [task(f"t{place}", rate=place / (count - 1)) for place in range(count)]


def rate(one: Task) -> float:
    return float(one.extra["rate"])


def rollout(of: Task, name: str, *, text: str = "1") -> Rollout:
    return Rollout(
        id=name,
        task=of,
        prompt_ids=(2, 3),
        ids=(4, 1),
        logprobs=np.array([-1.0, -0.5], dtype=np.float32),
        own=np.ones(2, dtype=np.bool_),
        text=text,
        finish_reason="stop",
        version=0,
    )


def answers(tasks: Sequence[Task], group: int, random: np.random.Generator) -> Told:
    """Groups of answers, right by chance."""
    rollouts = [rollout(one, f"{one.id}:{place}") for one in tasks for place in range(group)]
    scores = [Score.scored(float(random.random() < rate(one.task))) for one in rollouts]
    return rollouts, scores


def chosen(name: str, **options: object) -> CurriculumChoice:
    """One curriculum with other options than the published ones."""
    return CurriculumChoice(names=(name,), set={f"{name}.{option}": value for option, value in options.items()})


def setting(tasks: Sequence[Task], *, group: int = 8, states: States | None = None) -> Setting:
    return Setting(
        tasks=tasks,
        seed=5,
        num_generations=group,
        advantages=GroupRelative(),
        states=states or (lambda some: np.array([[rate(one), 1.0] for one in some])),
    )
