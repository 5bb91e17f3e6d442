"""Opening the policy that a run starts from, and the copy of it that divergences are measured from.

Not covered: several modalities, encoder-decoder models, and quantised weights.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from adjudge.rl_integration.trainer.loop.learning_config import LearningConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.training.backbones import ModelChoice, libraries, open_backbone


def open_policy(
    choice: ModelChoice,
    *,
    texts: Iterable[str],
    folder: Path,
    seed: int,
    learning: LearningConfig,
    processes: Processes,
) -> Policy:
    """Return the policy that a choice names, where this process computes.

    Args:
        choice: which model.
        texts: what the tokenizer of a new model learns from; best prompts and references that are trained on.
        folder: where a new model is kept; one that is there is used as it is.
        seed: of a new model's weights.
        learning: weights that low-rank factors leave as they are may be in 16 bits.
        processes: those that open it at the same time.

    Raises:
        ValueError: there is no such model, or it is of a kind that is not trained here.
    """
    libraries()
    from accelerate import PartialState

    state: Any = PartialState()
    device = torch.device(processes.device or state.device)
    frozen = learning.lora is not None and learning.bf16(device.type)
    if not processes.is_main_process:
        processes.broadcast(None)  # the first one makes a new model, or gets one from the hub
    opened = open_backbone(
        choice, kind="causal", texts=texts, folder=folder, seed=seed, dtype="bfloat16" if frozen else "float32"
    )
    if processes.is_main_process:
        processes.broadcast(None)
    model = opened.language_model.to(device)
    model.config.use_cache = True  # an answer is written token by token
    return Policy(model, opened.tokenizer, name=opened.name)


def frozen_copy(policy: Policy) -> Policy:
    """Return a policy that stays as this one is now."""
    model = copy.deepcopy(policy.model).eval().requires_grad_(False)
    return Policy(model, policy.tokenizer, name=f"the start of {policy.name}")
