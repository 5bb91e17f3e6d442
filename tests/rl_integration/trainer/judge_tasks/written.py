"""Answers to tasks, for tests that look at scores alone."""

from __future__ import annotations

import numpy as np

from adjudge.rl_integration.trainer.data.task import Rollout, Task


def written(task: Task, text: str = "") -> Rollout:
    """An answer of one token."""
    return Rollout(
        id=task.id,
        task=task,
        prompt_ids=(1,),
        ids=(2,),
        logprobs=np.zeros(1, dtype=np.float32),
        own=np.ones(1, dtype=np.bool_),
        text=text,
        finish_reason="stop",
        version=0,
    )
