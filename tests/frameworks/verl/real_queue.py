"""What verl's default trainer does with answers that adjudge cannot judge: its own agent loop, queue and sampler.

verl's `AgentLoopWorkerTQ` generates (here, not in an actor, and a scripted model answers in place of vLLM), has each
answer scored by a reward worker, and puts it into TransferQueue, from which verl's `ReplayBuffer` samples a step.
`under_ray.py` runs it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

real_verl: Any = import_module("real_verl")  # beside this file
tq: Any = import_module("transfer_queue")
tu: Any = import_module("verl.utils.tensordict_utils")
base: Any = import_module("verl.trainer.ppo.v1.trainer_sync")
Worker: Any = import_module("verl.trainer.ppo.v1.agent_loop_tq").AgentLoopWorkerTQ.__ray_metadata__.modified_class
TokenOutput: Any = import_module("verl.workers.rollout.replica").TokenOutput

GROUP = 2
FUNCTION = real_verl.FUNCTION
BY_NAME = real_verl.BY_NAME
SAMPLER = (
    "trainer.v1.sampler.custom_sampler.path=pkg://adjudge.verl",
    "trainer.v1.sampler.custom_sampler.name=sampler",
)
KWARGS = f"{FUNCTION}.reward_kwargs"
FILTER = ("algorithm.filter_groups.enable=True", "algorithm.filter_groups.metric=acc", "data.gen_batch_size=1")


class Scripted:
    """Answers each prompt with what it asks for: the first of its answers, then the second, and so on."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._times: Counter[str] = Counter()

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        """Return the ids of the next answer, with the end token."""
        prompt = self._tokenizer.decode(prompt_ids)
        answers = prompt.split("give ")[1].split(" !")[0].split(" or ")
        ids = self._tokenizer.encode(answers[self._times[prompt] % len(answers)], add_special_tokens=False)
        self._times[prompt] += 1
        return TokenOutput(token_ids=[*ids, self._tokenizer.eos_token_id])


class Agents:
    """verl's agent loop worker; all steps share it."""

    def __init__(self, config: Any, tokenizer: Any, workers: Any) -> None:
        workers.begin(config)
        self._worker = Worker(config, Scripted(tokenizer), None, workers.handles)
        self._loop = asyncio.new_event_loop()

    def generate(self, batch: Any) -> None:
        """Have a batch answered and scored, into the queue."""
        self._loop.run_until_complete(self._generated(batch))

    async def _generated(self, batch: Any) -> None:
        await self._worker.generate_sequences(batch)
        await asyncio.gather(*self._worker.background_tasks)


class Trainer(base.PPOTrainerSync):  # type: ignore[misc]
    """verl's trainer, of which only the sampler is made and asked."""

    def __init__(self, config: Any, tokenizer: Any, agents: Agents, rows: list[dict[str, Any]]) -> None:
        self.config, self.tokenizer, self.agents, self.rows = config, tokenizer, agents, rows
        self.trainer_mode = config.trainer.v1.trainer_mode
        self.replay_buffer = self._build_replay_buffer()
        self.replay_buffer.poll_interval = 0.2

    def step(self, sampled: int) -> dict[str, Any]:
        """Generate for all rows, and return what a step of some groups trains on, by question."""
        names = [f"{id(self)}-{place}" for place in range(len(self.rows))]
        columns: dict[str, list[Any]] = {
            "uid": names,
            "index": list(range(len(names))),
            "raw_prompt": [
                [{"role": "user", "content": f"question {place} ? give {' or '.join(row['answers'])} !"}]
                for place, row in enumerate(self.rows)
            ],
            "data_source": ["gsm8k"] * len(names),
            "reward_model": [{"ground_truth": row["gold"], "style": "rule"} for row in self.rows],
            "extra_info": [{}] * len(names),
            **({"agent_name": ["with_tools"] * len(names)} if self.rows[0].get("tools") else {}),
        }
        batch = tu.get_tensordict({name: _objects(values) for name, values in columns.items()})
        tu.assign_non_tensor_data(batch, "global_steps", 1)
        tags = [{"is_prompt": True, "status": "pending", "global_steps": 1} for _ in names]
        tq.kv_batch_put(keys=names, partition_id="train", tags=tags)
        self.agents.generate(batch)
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


def configured(model: str, *settings: str) -> Any:
    """Return verl's configuration for a group of answers to each prompt."""
    return real_verl.configured(
        model,
        f"actor_rollout_ref.rollout.n={GROUP}",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
        f"actor_rollout_ref.rollout.agent.agent_loop_config_path={Path(__file__).parent / 'agent_loops.yaml'}",
        *settings,
    )


def steps(model: str, tokenizer: Any, workers: Any) -> dict[str, Any]:
    """What steps train on, or what ended them; and what is said of settings before anything is generated."""
    scorer = f"+{KWARGS}.scorer=math"
    config = configured(model, BY_NAME, scorer)
    tq.init(config.transfer_queue)
    agents = Agents(config, tokenizer, workers)

    def step(rows: list[dict[str, Any]], *settings: str, sampled: int = 0) -> Any:
        trainer = Trainer(configured(model, BY_NAME, *settings), tokenizer, agents, rows)
        try:
            return trainer.step(sampled or len(rows))
        finally:
            tq.kv_clear(partition_id="train", keys=list((tq.kv_list() or {}).get("train", {})))

    right, wrong, broken = "\\boxed{2}", "\\boxed{3}", "\\frac{1}{"
    plain = [{"answers": [right, wrong], "gold": "2"}, {"answers": [right, right], "gold": broken}]
    many = [{"answers": [wrong, wrong], "gold": broken} for _ in range(17)] + [plain[0]]
    same = [{"answers": [right, right], "gold": "2"}, plain[0]]
    tools = [{"answers": [right, right], "gold": "2", "tools": True}, {**plain[0], "tools": True}] * 9
    return {
        "without the sampler": step(many, scorer),
        "few fail": step(plain, *SAMPLER, scorer),
        "most fail": real_verl.message_of(lambda: step(many, *SAMPLER, scorer)),
        "filtered": step(same, *SAMPLER, scorer, *FILTER, sampled=1),
        "tools": real_verl.message_of(lambda: step(tools, *SAMPLER, scorer)),
        "tools graded": graded(model, tokenizer, scorer, f"+{KWARGS}.tool_text=grade"),
        "misspelt": [
            real_verl.message_of(lambda: step(plain, *SAMPLER, f"+{KWARGS}.{option}"))  # noqa: B023
            for option in ("scorrer=math", "scorer=maths")
        ],
        "sampler": real_verl.message_of(
            lambda: step(plain, *SAMPLER, scorer, "+trainer.v1.sampler.sampler_kwargs.max_failed=2")
        ),
    }


def graded(model: str, tokenizer: Any, *settings: str) -> list[float]:
    """Return the rewards of a right and a wrong answer after four turns, from the manager that verl's workers load."""
    config = configured(model, BY_NAME, *settings)
    rewards = []
    for row in real_verl.ROWS[:2]:
        data = real_verl.batch(tokenizer, [row])
        data.non_tensor_batch["__num_turns__"] = np.array([4])
        rewards.append(asyncio.run(real_verl.asked(config, tokenizer, data))["reward_score"])
    return rewards
