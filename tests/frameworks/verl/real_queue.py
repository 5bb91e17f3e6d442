"""What verl's default trainer does with answers that adjudge cannot judge: its own agent loop, queue and sampler.

verl's `AgentLoopWorkerTQ` generates (a scripted model answers in place of vLLM), has each answer scored by its reward
workers, and puts it into TransferQueue, from which its `ReplayBuffer` samples a step.  Prints one line of JSON.

Usage: python real_queue.py MODEL
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import ray
from transformers import AutoTokenizer

real_verl: Any = import_module("real_verl")  # beside this file
tq: Any = import_module("transfer_queue")
tu: Any = import_module("verl.utils.tensordict_utils")
base: Any = import_module("verl.trainer.ppo.v1.trainer_sync")
loops: Any = import_module("verl.experimental.reward_loop")
Worker: Any = import_module("verl.trainer.ppo.v1.agent_loop_tq").AgentLoopWorkerTQ
TokenOutput: Any = import_module("verl.workers.rollout.replica").TokenOutput

GROUP = 2
FUNCTION = real_verl.FUNCTION
BY_NAME = f"{FUNCTION}.path=pkg://adjudge.verl"
SAMPLER = (
    "trainer.v1.sampler.custom_sampler.path=pkg://adjudge.verl",
    "trainer.v1.sampler.custom_sampler.name=sampler",
)
KWARGS = f"{FUNCTION}.reward_kwargs"
FILTER = ("algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc", "data.gen_batch_size=1")


class Scripted:
    """Answers each prompt with what is written down for the number in it, a new one each time."""

    def __init__(self, tokenizer: Any, answers: list[list[str]]) -> None:
        self._tokenizer = tokenizer
        self._answers = [list(some) for some in answers]

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        """Return the ids of the next answer, with the end token."""
        number = int(self._tokenizer.decode(prompt_ids).split("question ")[1].split("?")[0].replace(" ", ""))
        ids = self._tokenizer.encode(self._answers[number].pop(0), add_special_tokens=False)
        return TokenOutput(token_ids=[*ids, self._tokenizer.eos_token_id])


class Trainer(base.PPOTrainerSync):  # type: ignore[misc]
    """verl's trainer, of which only the sampler is made and asked."""

    def __init__(self, config: Any, tokenizer: Any, rows: list[dict[str, Any]]) -> None:
        self.config, self.tokenizer, self.rows = config, tokenizer, rows
        self.trainer_mode = config.trainer.v1.trainer_mode
        self.replay_buffer = self._build_replay_buffer()
        self.replay_buffer.poll_interval = 0.2
        self.loop = loops.RewardLoopManager(config)
        answers = [row["answers"] for row in rows]
        self.worker = Worker.remote(config, Scripted(tokenizer, answers), None, self.loop.reward_loop_worker_handles)

    def step(self, sampled: int) -> dict[str, Any]:
        """Generate for all rows, and return what a step of some groups trains on, by question."""
        names = [f"{id(self)}-{place}" for place in range(len(self.rows))]
        columns: dict[str, list[Any]] = {
            "uid": names,
            "index": list(range(len(names))),
            "raw_prompt": [[{"role": "user", "content": f"question {place} ?"}] for place in range(len(names))],
            "data_source": ["gsm8k"] * len(names),
            "reward_model": [{"ground_truth": row["gold"], "style": "rule"} for row in self.rows],
            "extra_info": [{}] * len(names),
            **({"agent_name": ["with_tools"] * len(names)} if self.rows[0].get("tools") else {}),
        }
        batch = tu.get_tensordict({name: _objects(values) for name, values in columns.items()})
        tu.assign_non_tensor_data(batch, "global_steps", 1)
        tags = [{"is_prompt": True, "status": "pending", "global_steps": 1} for _ in names]
        tq.kv_batch_put(keys=names, partition_id="train", tags=tags)
        ray.get(self.worker.generate_sequences.remote(batch))
        batch, metrics = self.replay_buffer.sample(1, "train", sampled)
        data = tq.kv_batch_get(keys=batch.keys, partition_id="train", select_fields=["rm_scores", "extra_fields"])
        scores: dict[int, list[float]] = {}
        extra: dict[int, Any] = {}
        for key, score, fields in zip(batch.keys, data["rm_scores"], data["extra_fields"], strict=True):
            place = names.index(key.split("_")[0])
            scores.setdefault(place, []).append(float(score.sum()))
            extra[place] = getattr(fields, "data", fields)["reward_extra_info"]
        return {"scores": scores, "extra": extra, "metrics": {name: str(value) for name, value in metrics.items()}}

    def _add_prompts_to_generate(self, num_prompts: int) -> int:
        return num_prompts  # nothing is refilled: what is left has to do


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def step(model: str, rows: list[dict[str, Any]], *settings: str, sampled: int = 0) -> Any:
    """Return what a step trains on, or what ended it."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    config = real_verl.configured(
        model,
        f"actor_rollout_ref.rollout.n={GROUP}",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={Path(__file__).parent / 'agent_loops.yaml'}",
        *settings,
    )
    trainer = Trainer(config, tokenizer, rows)
    try:
        return trainer.step(sampled or len(rows))
    finally:
        tq.kv_clear(partition_id="train", keys=list((tq.kv_list() or {}).get("train", {})))
        for worker in (trainer.worker, *trainer.loop.reward_loop_workers):
            ray.kill(worker)


def main() -> None:
    """Run all of it."""
    model = sys.argv[1]
    right, wrong, broken = "\\boxed{2}", "\\boxed{3}", "\\frac{1}{"
    plain = [{"answers": [right, wrong], "gold": "2"}, {"answers": [right, right], "gold": broken}]
    many = [{"answers": [wrong, wrong], "gold": broken} for _ in range(17)] + [plain[0]]
    same = [{"answers": [right, right], "gold": "2"}, plain[0]]
    tools = [{"answers": [right, right], "gold": "2", "tools": True}, {**plain[0], "tools": True}]
    ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)  # not a cluster that is up here
    try:
        tq.init(
            real_verl.configured(model, "transfer_queue.backend.SimpleStorage.num_data_storage_units=1").transfer_queue
        )
        ours = (BY_NAME, *SAMPLER)
        scorer, graded = f"+{KWARGS}.scorer=math", f"+{KWARGS}.tool_text=grade"
        found = {
            "without the sampler": step(model, many, BY_NAME, scorer),
            "few fail": step(model, plain, *ours, scorer),
            "most fail": real_verl.message_of(lambda: step(model, many, *ours, scorer)),
            "filtered": step(model, same, *ours, scorer, *FILTER, sampled=1),
            "tools": real_verl.message_of(lambda: step(model, tools * 9, *ours, scorer)),
            "tools graded": step(model, tools, *ours, scorer, graded),
            "misspelt": [
                real_verl.message_of(lambda: step(model, plain, *ours, f"+{KWARGS}.{option}"))  # noqa: B023
                for option in ("scorrer=math", "scorer=maths")
            ],
            "sampler": real_verl.message_of(
                lambda: step(model, plain, *ours, scorer, "+trainer.v1.sampler.sampler_kwargs.max_failed=2")
            ),
        }
    finally:
        ray.shutdown()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
