"""What a policy makes of prompts, for curricula that compare them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from adjudge.rl_integration.trainer.data.arrays import Floats
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rollouts.policy import Policy

_TOKENS = 4_096  # of one forward pass, padding included: the states of all layers are held for a moment


def prompt_states(policy: Policy, processes: Processes, tasks: Sequence[Task]) -> Floats:
    """Return (n, d) states of prompts in a policy as it is; processes share the reading, and all get the very same.

    Raises:
        ValueError: a prompt cannot be written.
    """
    prompts = [policy.encode(task) for task in processes.share(tasks)]
    order = sorted(range(len(prompts)), key=lambda place: (len(prompts[place]), place))
    states: dict[int, list[float]] = {}
    with policy.reading(), policy.gathered():
        while order:
            width = max(1, _TOKENS // len(prompts[order[0]]))
            part = [place for place in order[:width] if len(prompts[place]) * width <= 2 * _TOKENS] or order[:1]
            order = order[len(part) :]
            states.update(zip(part, _states(policy, [prompts[place] for place in part]), strict=True))
        rows = processes.all_gather([states[place] for place in range(len(prompts))])
    return np.array(rows, dtype=np.float64)


@torch.inference_mode()
def _states(policy: Policy, prompts: Sequence[Sequence[int]]) -> list[list[float]]:
    longest, device = max(map(len, prompts)), policy.device
    ids = torch.tensor([[policy.pad] * (longest - len(row)) + list(row) for row in prompts], device=device)
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts], device=device)
    outputs = policy.model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        use_cache=False,
        output_hidden_states=True,
        logits_to_keep=1,
    )
    states: list[list[float]] = outputs.hidden_states[-1][:, -1].double().cpu().tolist()
    return states
