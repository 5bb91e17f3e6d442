"""Which engine writes rollouts.

Not covered: what is made of what it writes (`writer`, `dialogue`).
"""

from __future__ import annotations

from adjudge.rl_integration.trainer.rollouts.generator import Generator
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator


def window(policy: Policy, config: RolloutsConfig) -> int:
    """Return the most tokens of a prompt and its answer together."""
    own = policy.tokens.window
    return min(own, config.vllm.max_model_len or own) if config.engine == "vllm" else own


def open_generator(policy: Policy, config: RolloutsConfig) -> Generator:
    """Return what writes a policy's answers; a heavy engine starts with the first of them.

    Args:
        policy: whose.
        config: names the engine.

    Raises:
        ValueError: the engine is not installed, or cannot draw as it is told to.
    """
    if config.engine == "vllm":
        from adjudge.rl_integration.trainer.rollouts.vllm_generator import VllmGenerator

        return VllmGenerator(policy, config.vllm, config.sampling)
    return TransformersGenerator(policy)
