"""A run's curriculum, from its configuration, and what the policy makes of prompts for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from adjudge.rl_integration.trainer.algorithms.objectives.group_advantages import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Objective
from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.task import Task, TaskSource
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum, Setting
from adjudge.rl_integration.trainer.rollouts.curricula.filters import ZeroVariance
from adjudge.rl_integration.trainer.rollouts.policy import Policy

_TOKENS = 4_096  # of one forward pass, padding included: the states of all layers are held for a moment


class PromptStates:
    """Reads prompts with a policy as it is.

    Args:
        policy: put into evaluation mode while it reads.
        processes: those that share the reading; all get all states, and so the very same ones.
    """

    def __init__(self, policy: Policy, processes: Processes) -> None:
        self._policy = policy
        self._processes = processes

    def __call__(self, tasks: Sequence[Task]) -> Floats:
        """Return (n, d) states.

        Raises:
            ValueError: a prompt cannot be written.
        """
        prompts = [self._policy.encode(task) for task in self._processes.share(tasks)]
        order = sorted(range(len(prompts)), key=lambda place: (len(prompts[place]), place))
        found: dict[int, list[float]] = {}
        training = self._policy.model.training
        self._policy.model.eval()
        try:
            while order:
                width = max(1, _TOKENS // len(prompts[order[0]]))
                part = [place for place in order[:width] if len(prompts[place]) * width <= 2 * _TOKENS] or order[:1]
                order = order[len(part) :]
                found.update(zip(part, self._states([prompts[place] for place in part]), strict=True))
        finally:
            self._policy.model.train(training)
        rows = self._processes.all_gather([found[place] for place in range(len(prompts))])
        return np.array(rows, dtype=np.float64)

    @torch.inference_mode()
    def _states(self, prompts: Sequence[Sequence[int]]) -> list[list[float]]:
        longest = max(map(len, prompts))
        device = self._policy.device
        ids = torch.tensor([[self._policy.pad] * (longest - len(row)) + list(row) for row in prompts], device=device)
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts], device=device)
        found = self._policy.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
            use_cache=False,
            output_hidden_states=True,
            logits_to_keep=1,
        )
        states: list[list[float]] = found.hidden_states[-1][:, -1].double().cpu().tolist()
        return states


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
    kept = made.filter
    if objective.resample:
        own = ZeroVariance().made(setting).filter
        kept = own if kept is None or own is None else kept.and_then(own)
    return replace(made, source=made.source or source, filter=kept)
