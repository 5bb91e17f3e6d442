"""A run's curriculum, from its configuration.

Not covered: the configuration (`choice`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adjudge.rl_integration.trainer.algorithms.objectives.advantages.group_relative import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.contract.task import Task, TaskSource
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.prompt_states import PromptStates
from adjudge.rl_integration.trainer.rewards.resampling import informative
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting
from adjudge.rl_integration.trainer.rollouts.curricula.filters import GroupFilter, both
from adjudge.rl_integration.trainer.rollouts.policy import Policy


def open_curriculum(
    config: RunConfig,
    objective: Objective,
    policy: Policy,
    tasks: Sequence[Task],
    *,
    processes: Processes,
    source: TaskSource | None,
) -> Curriculum:
    """Return the curriculum of a run.

    Args:
        config: of the run.
        objective: whose advantages say how much is learnt; one that draws groups anew brings its own filter.
        policy: whose states prompts are told by.
        tasks: what there is.
        processes: of the run.
        source: that was given beside the configuration.

    Raises:
        ValueError: the curriculum or the improver cannot be used with these tasks, groups, or this source.
    """
    setting = Setting(
        tasks=tasks,
        seed=config.seed,
        num_generations=config.rollouts.num_generations,
        advantages=objective.rule or GroupRelative(),  # with a critic there is none before it has read the batch
        states=PromptStates(policy, processes),
    )
    made = config.curriculum.made(setting)
    names = ", ".join(config.curriculum.names)
    if made.source is not None and source is not None:
        raise ValueError(f"the curriculum ({names}) draws tasks, and a source was given besides; give one of them")
    if (made.source is not None or made.rounds is not None) and any(task.cohort for task in tasks):
        raise ValueError(f"the curriculum ({names}) would part tasks that are scored together; take one that filters")
    if config.rollouts.tree is not None and (made.rounds is not None or config.improver.name):
        raise ValueError(
            f"the answers to a task share their beginnings (rollouts.tree) and are written at once, and "
            f"{names or config.improver.name} adds some later; take one of the two"
        )
    own = GroupFilter(informative, refills=True) if objective.resample else None
    return replace(made, source=made.source or source, filter=both(made.filter, own))
