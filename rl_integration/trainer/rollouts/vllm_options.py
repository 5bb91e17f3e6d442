"""Options of rollouts by vLLM.

Not covered: models that are spread over several GPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class VllmOptions:
    """How vLLM runs the policy, in the process that trains it.

    Attributes:
        dtype: of vLLM's copy of the weights; "auto" takes what the policy computes in, so that least is to be corrected
            for: float32 or bfloat16.
        max_model_len: most tokens of a prompt and its answer; 0 for all that the policy reads.
        gpu_memory_utilization: share of a GPU's memory that vLLM may fill; the rest is for learning.
        kv_cache_gib: GiB for the cache of keys and values; 0 takes what the share leaves on a GPU, and 1 on a CPU.
        enforce_eager: no CUDA graphs: starts sooner, writes slower; on a CPU it is always so.
        sleep: give the GPU's memory back between rollouts; the weights then wait in the host's memory.
    """

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_model_len: int = 0
    gpu_memory_utilization: float = 0.3
    kv_cache_gib: float = 0.0
    enforce_eager: bool = False
    sleep: bool = False

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if self.dtype not in ("auto", "float32", "bfloat16", "float16"):
            raise ValueError(f"rollouts.vllm.dtype is {self.dtype!r}; give auto, float32, bfloat16 or float16")
        if self.max_model_len < 0:
            raise ValueError(f"rollouts.vllm.max_model_len is {self.max_model_len!r}; it must be 0 or more tokens")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ValueError(
                f"rollouts.vllm.gpu_memory_utilization is {self.gpu_memory_utilization!r}; it must be above 0 and at "
                "most 1"
            )
        if not 0 <= self.kv_cache_gib < math.inf:
            raise ValueError(f"rollouts.vllm.kv_cache_gib is {self.kv_cache_gib!r}; it must be 0 or more GiB")
