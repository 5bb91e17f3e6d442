"""Options of the `vllm` engine.

Not covered: what else vLLM can be told; start its server with the flags you need, and use the `openai` engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from adjudge.options import Options, Range

Runner = Literal["generate", "classify", "classify_tokens"]


@dataclass(frozen=True, kw_only=True)
class VllmConfig(Options, what="engine option"):
    """Which model vLLM runs in this process, and how.

    Attributes:
        model: the model's folder or published name.
        revision: commit, tag or branch of a published model; "" for the newest.
        runner: what the model is loaded for: text and log-probabilities of it ("generate"), a sequence classifier's
            outputs ("classify"), or a token classifier's ("classify_tokens").  "auto" lets the first call decide.
        dtype: of the weights, by vLLM's names ("float32", "bfloat16", ...); "auto" is "float32" on a CPU, and
            vLLM's choice on a GPU.
        max_model_len: most tokens of a prompt and what follows it; 0 for all the model can.
        kv_cache_gib: GiB for the cache of keys and values; 0 leaves it to vLLM on a GPU, and takes 1 on a CPU, unless
            the environment has VLLM_CPU_KVCACHE_SPACE.
        gpu_memory_utilization: share of a GPU's memory that vLLM may fill.
        enforce_eager: no CUDA graphs: starts sooner, runs slower.
        tensor_parallel_size: over how many GPUs the model is spread.
        seed: of vLLM itself; what is sampled depends on `Sampling.seed` alone.
        trust_remote_code: run Python code that comes with the model.
        chat_template_kwargs: for the chat template, such as `{"enable_thinking": false}`.
    """

    model: str
    revision: str = ""
    runner: Literal["auto", "generate", "classify", "classify_tokens"] = "auto"
    dtype: str = "auto"
    max_model_len: Annotated[int, Range(ge=0, unit="tokens")] = 0
    kv_cache_gib: Annotated[float, Range(ge=0, unit="GiB")] = 0.0
    gpu_memory_utilization: Annotated[float, Range(gt=0, le=1)] = 0.9
    enforce_eager: bool = False
    tensor_parallel_size: Annotated[int, Range(ge=1)] = 1
    seed: int = 0
    trust_remote_code: bool = False
    chat_template_kwargs: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise ValueError("engine option model=''; give a model's folder or published name")
