"""Which answers of a run are drawn, and when.

Not covered: what is learnt from them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adjudge.rl_integration.trainer.rollouts.sampling import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.tools.tool_config import ToolUse
from adjudge.rl_integration.trainer.rollouts.tree_config import TreeConfig
from adjudge.rl_integration.trainer.rollouts.vllm_options import VllmOptions


@dataclass(frozen=True, kw_only=True)
class RolloutsConfig:
    """Which answers are drawn, and when.

    Attributes:
        tasks: prompts of a step.
        num_generations: answers to each.
        staleness: how many updates old answers are: so many batches are written before the scores of the one to learn
            from are waited for.  0 learns from the newest policy's answers alone; 1 hides scores that take as long as
            a batch takes to write, and learns from answers of the policy before, whose probabilities are corrected for.
        max_num_gen_batches: for objectives that draw groups anew: batches that one step may use up.
        tools: what the policy may call while it answers; None for answers of one turn.
        sampling: how answers are drawn.
        engine: what writes answers: "transformers", with the very model that learns, or "vllm", with a copy of it.
        vllm: how vLLM runs.
        tree: how the answers to a prompt share beginnings; None for answers that are written by themselves.
    """

    tasks: int = 8
    num_generations: int = 8
    staleness: int = 0
    max_num_gen_batches: int = 4
    tools: ToolUse | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    engine: Literal["transformers", "vllm"] = "transformers"
    vllm: VllmOptions = field(default_factory=VllmOptions)
    tree: TreeConfig | None = None

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        for option in ("tasks", "num_generations", "max_num_gen_batches"):
            if getattr(self, option) < 1:
                raise ValueError(f"rollouts.{option} is {getattr(self, option)!r}; it must be at least 1")
        if self.staleness < 0:
            raise ValueError(f"rollouts.staleness is {self.staleness!r}; it must be 0 or more")
        if self.engine not in ("transformers", "vllm"):
            raise ValueError(f"rollouts.engine is {self.engine!r}; give transformers or vllm")
        if self.tree is not None:
            self.tree.check(self.num_generations)
            if self.tools is not None:
                raise ValueError("rollouts.tree and rollouts.tools are both set; answers with tools do not branch yet")
