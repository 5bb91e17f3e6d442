"""verl's own trainer (`main_ppo`, as it runs by default), with the settings of the page for users who start with RL.

What a GPU would do, the processor does: see `cpu_platform`.  `under_ray.py` runs it.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

STEPS = 2
PROMPTS, GROUP = 4, 4
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
SMALL = (
    "algorithm.adv_estimator=grpo",
    f"data.train_batch_size={PROMPTS}",
    "data.max_prompt_length=256",
    "data.max_response_length=128",
    "data.dataloader_num_workers=0",
    f"{ACTOR}.ppo_mini_batch_size={PROMPTS}",
    f"{ACTOR}.ppo_micro_batch_size_per_gpu={PROMPTS * GROUP}",
    f"{ACTOR}.optim.lr=1e-3",
    f"{ACTOR}.checkpoint.save_contents=[hf_model]",
    f"{ROLLOUT}.n={GROUP}",
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu={PROMPTS * GROUP}",
    f"{ROLLOUT}.agent.num_workers=1",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    "trainer.n_gpus_per_node=1",
    f"trainer.total_training_steps={STEPS}",
    f"trainer.save_freq={STEPS}",
    "trainer.logger=[console,file]",
    "trainer.rollout_data_dir=rollouts",
    "trainer.validation_data_dir=validation",
    "trainer.default_local_dir=checkpoints",
)
ON_CPU = (
    "trainer.device=cpu",
    f"{ROLLOUT}.name=transformers",
    f"{ROLLOUT}.tensor_model_parallel_size=1",
    f"{ACTOR}.strategy=fsdp2",  # PyTorch's FSDP of the first version has no CPU
    f"{ACTOR}.use_torch_compile=False",
    "actor_rollout_ref.model.use_remove_padding=False",
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    "+ray_kwargs.ray_init.address=local",  # not a cluster that is up here
    "+ray_kwargs.ray_init.include_dashboard=False",
    "+ray_kwargs.ray_init.num_gpus=1",
    "ray_kwargs.ray_init.num_cpus=6",
)


def lines(path: Path) -> list[Any]:
    """The JSON values of a file, one a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def trained(model: str, settings: list[str]) -> dict[str, Any]:
    """Train in the current folder, which has the page's files, and leave Ray running.

    Returns:
        What verl logged at each step, the answers it validated and trained on with their scores, and the largest change
        of a weight.
    """
    sys.argv[1:] = [f"actor_rollout_ref.model.path={model}", *settings, *SMALL, *ON_CPU]
    runpy.run_module("verl.trainer.main_ppo", run_name="__main__", alter_sys=True)  # as `python -m` does
    before = load_file(Path(model) / "model.safetensors")
    after = load_file(f"checkpoints/global_step_{STEPS}/actor/huggingface/model.safetensors")
    return {
        "metrics": [line["data"] for line in lines(Path("metrics.jsonl"))],
        "validation": lines(Path("validation/0.jsonl")),
        "rollouts": [lines(Path(f"rollouts/{step}.jsonl")) for step in range(1, STEPS + 1)],
        "changed": max(float((after[name].float() - weight).abs().max()) for name, weight in before.items()),
    }
