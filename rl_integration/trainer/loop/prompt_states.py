"""What the policy makes of prompts: the last hidden state of each prompt's last token.

Not covered: what is read from them (`prompts.prompt_value`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from adjudge.rl_integration.trainer.contract.arrays import Floats
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.loop.processes import Processes
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
