"""verl's own configuration, loaders, reward workers (as Ray actors) and agent loop, with adjudge's reward in them.

What a GPU would do is left out: a scripted model answers in place of vLLM.  verl installs a package called `tests`, so
nothing of ours can be imported from there.  `under_ray.py` runs it.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import ray
import torch

import adjudge.verl as adapter

hydra: Any = import_module("hydra")
Loader: Any = import_module("hydra._internal.config_loader_impl").ConfigLoaderImpl
Parser: Any = import_module("hydra.core.override_parser.overrides_parser").OverridesParser
agents: Any = import_module("verl.experimental.agent_loop.agent_loop")
loops: Any = import_module("verl.experimental.reward_loop")
rewards: Any = import_module("verl.trainer.ppo.reward")
old: Any = import_module("verl.workers.reward_manager.batch")
tensors: Any = import_module("tensordict")
TokenOutput: Any = import_module("verl.workers.rollout.replica").TokenOutput
DataProto: Any = import_module("verl").DataProto

FUNCTION = "reward.custom_reward_function"
BY_NAME = f"{FUNCTION}.path=pkg://adjudge.verl"
MATH = (f"+{FUNCTION}.reward_kwargs.scorers.gsm8k=math", f"+{FUNCTION}.reward_kwargs.scorer=repetition")
TELLING = "+reward.reward_kwargs.scorer='telling:Telling'"
PARTS = "+reward.reward_kwargs.parts=[prompt_turns,group,cut,level]"
LONGEST = 24


class Scripted:
    """Answers each prompt with what is written down for the number in it, in place of a model."""

    def __init__(self, tokenizer: Any, answers: list[str]) -> None:
        self._tokenizer = tokenizer
        self._answers = answers

    async def generate(self, request_id: str, *, prompt_ids: list[int], **more: Any) -> Any:
        """Return the ids of the answer, with the end token unless it is meant to be cut off."""
        number = int(self._tokenizer.decode(prompt_ids).split("question ")[1].split()[0])
        ids = self._tokenizer.encode(self._answers[number], add_special_tokens=False)
        return TokenOutput(token_ids=[*ids, self._tokenizer.eos_token_id])


def configured(model: str, *settings: str) -> Any:
    """Return verl's whole configuration with a few settings of ours, as its command line would."""
    config = deepcopy(_default())
    words = [
        f"actor_rollout_ref.model.path={model}",
        "actor_rollout_ref.rollout.name=vllm",
        "data.max_prompt_length=96",
        f"data.max_response_length={LONGEST}",
        "reward.num_workers=1",
        *settings,
    ]
    Loader._apply_overrides_to_config(Parser.create().parse_overrides(words), config)  # as `compose` does
    return loops.migrate_legacy_reward_impl(config)


@cache
def _default() -> Any:
    with hydra.initialize_config_module("verl.trainer.config", version_base=None):
        return hydra.compose("ppo_trainer")  # reads dozens of files


class Workers:
    """verl's reward worker under Ray, which takes seconds to come up: it begins anew with each configuration."""

    def __init__(self, model: str) -> None:
        self.manager = loops.RewardLoopManager(configured(model))
        self.handles = self.manager.reward_loop_worker_handles

    def begin(self, config: Any) -> None:
        """Have the worker be one of a configuration."""
        self.manager.config = config
        ray.get([handle.__ray_call__.remote(_begin, config) for handle in self.handles])


def _begin(worker: Any, config: Any) -> None:
    async def begin() -> None:
        worker.__init__(config)

    asyncio.run_coroutine_threadsafe(begin(), worker.loop).result()  # what it makes is bound to its event loop


def batch(tokenizer: Any, rows: list[dict[str, Any]]) -> Any:
    """Return rows as verl's trainer holds them: prompts padded on the left, responses on the right."""
    columns: dict[str, list[Any]] = {name: [] for name in ("prompts", "responses", "attention_mask")}
    for row in rows:
        prompt = tokenizer.encode(row["prompt"], add_special_tokens=False)
        ids = tokenizer.encode(row["answer"], add_special_tokens=False)
        left, right = 32 - len(prompt), LONGEST - len(ids)
        columns["prompts"].append([0] * left + prompt)
        columns["responses"].append(ids + [0] * right)
        columns["attention_mask"].append([0] * left + [1] * (len(prompt) + len(ids)) + [0] * right)
    padded = {name: torch.tensor(values) for name, values in columns.items()}
    plain = {
        "data_source": np.array([row.get("source", "gsm8k") for row in rows], dtype=object),
        "reward_model": np.array([{"ground_truth": row["gold"], "style": "rule"} for row in rows], dtype=object),
        "extra_info": np.array([dict(row.get("info", {})) for row in rows], dtype=object),
        "uid": np.array([str(row.get("uid", 0)) for row in rows], dtype=object),
    }
    return DataProto(batch=tensors.TensorDict(padded, batch_size=len(rows)), non_tensor_batch=plain)


def questions(rows: list[dict[str, Any]]) -> Any:
    """Return rows as verl's trainer hands them to the agent loop."""
    plain = {
        "raw_prompt": [[{"role": "user", "content": f"question {place} ?"}] for place in range(len(rows))],
        "data_source": [row.get("source", "gsm8k") for row in rows],
        "reward_model": [{"ground_truth": row["gold"], "style": "rule"} for row in rows],
        "extra_info": [dict(row.get("info", {})) for row in rows],
        "uid": [str(row.get("uid", 0)) for row in rows],
    }
    columns = {}
    for name, values in plain.items():
        columns[name] = np.empty(len(rows), dtype=object)
        columns[name][:] = values
    return DataProto(batch=tensors.TensorDict({}, batch_size=len(rows)), non_tensor_batch=columns)


def generated(config: Any, tokenizer: Any, rows: list[dict[str, Any]], workers: Any) -> dict[str, Any]:
    """Run verl's agent loop, which has each answer scored the moment it ends."""
    model = Scripted(tokenizer, [row["answer"] for row in rows])
    worker = agents.AgentLoopWorker(config, model, reward_loop_worker_handles=workers)
    return seen(asyncio.run(worker.generate_sequences(questions(rows))))


def seen(data: Any) -> dict[str, Any]:
    """Return what the trainer would find in a batch: sums over tokens, where they stand, and the extra numbers."""
    tensor, extra = rewards.extract_reward(data)
    return {
        "scores": [round(value, 6) for value in tensor.sum(-1).tolist()],
        "places": [row.nonzero().flatten().tolist() for row in tensor],
        "extra": {name: [None if value != value else value for value in map(float, extra[name])] for name in extra},
    }


async def asked(config: Any, tokenizer: Any, data: Any) -> Any:
    """Return what the manager that verl loads for a configuration says about one row; it keeps to one event loop."""
    return await rewards.load_reward_manager(config, tokenizer).run_single(data)


class Here:
    """A reward worker in this process."""

    def __init__(self, config: Any, tokenizer: Any) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self.compute_score = self

    def remote(self, data: Any) -> Any:
        """Return what verl awaits."""
        return asked(self._config, self._tokenizer, data)


def several(config: Any, tokenizer: Any) -> Any:
    """Score a trajectory of two sequences, as verl's agent loop pads them; the last one counts, and is the shorter."""
    outputs = [
        agents.AgentLoopOutput(
            prompt_ids=tokenizer.encode(prompt, add_special_tokens=False),
            response_ids=tokenizer.encode(text, add_special_tokens=False),
            response_mask=[],
            num_turns=2,
            metrics=agents.AgentLoopMetrics(),
        )
        for prompt, text in (("a long question, longer than the next", "no " * 9), ("short", "yes yes"))
    ]
    row = {"data_source": "talk", "reward_model": {"ground_truth": "x"}, "extra_info": {"level": 1}, "uid": "5"}
    worker = agents.AgentLoopWorker(config, None, reward_loop_worker_handles=[Here(config, tokenizer)])
    asyncio.run(worker._compute_score(outputs, row))
    return [outputs[0].reward_score, outputs[1].reward_score]


def message_of(run: Any) -> str:
    """Return what a call that should fail says, or else what it returned."""
    try:
        return f"returned {run()}"
    except Exception as error:  # noqa: BLE001  # whatever type verl and Ray make of it, its words are the result
        return f"{type(error).__name__}: {error}"


ROWS = [
    {"prompt": "1+1?", "answer": "\\boxed{2}", "gold": "2", "info": {"level": 1}},
    {"prompt": "1+1?", "answer": "\\boxed{3}", "gold": "2", "info": {"level": 2}},
    {"prompt": "1+1?", "answer": "\\boxed{3}", "gold": "\\frac{1}{", "info": {"level": 3}},
    {"prompt": "speak", "answer": "yes no", "gold": "", "source": "talk", "info": {"level": 4}},
]


def functions(model: str, tokenizer: Any, shown: list[str], workers: Workers) -> dict[str, Any]:
    """The reward function, in verl's naive manager behind Ray, in its agent loop, and in its old batch manager."""
    config = configured(model, BY_NAME, *MATH, f"+{FUNCTION}.reward_kwargs.fallback=-0.5")
    workers.begin(config)
    found: dict[str, Any] = {"colocated": seen(workers.manager.compute_rm_score(batch(tokenizer, ROWS)))}
    found["streaming"] = generated(config, tokenizer, ROWS, workers.handles)
    by_file = f"{FUNCTION}.path={adapter.__file__}"
    strict = configured(model, by_file, *MATH)
    found["by_file"] = asyncio.run(asked(strict, tokenizer, batch(tokenizer, ROWS)[0:1]))
    found["shown"] = asyncio.run(asked(configured(model, *shown), tokenizer, batch(tokenizer, ROWS)[0:1]))
    found["others"] = {}
    for name in ("dapo", "gdpo", "rate_limited"):
        other = configured(model, BY_NAME, *MATH, f"reward.reward_manager.name={name}")
        broken = batch(tokenizer, ROWS)[2:3]
        right = asyncio.run(asked(other, tokenizer, batch(tokenizer, ROWS)[0:1]))["reward_score"]
        found["others"][name] = [right, message_of(lambda: asyncio.run(asked(other, tokenizer, broken)))]  # noqa: B023
    found["no_fallback"] = message_of(lambda: asyncio.run(asked(strict, tokenizer, batch(tokenizer, ROWS)[2:3])))
    function = rewards.get_custom_reward_fn(
        configured(
            model, BY_NAME, *MATH, f"{FUNCTION}.name=compute_score_batch", f"+{FUNCTION}.reward_kwargs.fallback=-0.5"
        )
    )
    answer = old.BatchRewardManager(tokenizer, 0, function)(batch(tokenizer, ROWS), return_dict=True)
    found["batch"] = {
        "scores": answer["reward_tensor"].sum(-1).tolist(),
        "valid": answer["reward_extra_info"]["reward_valid"],
    }
    return found


def managers(model: str, tokenizer: Any, shown: list[str], workers: Workers) -> dict[str, Any]:
    """Our manager: behind Ray in verl's agent loop, and in this process with a mask."""
    manager = [setting for setting in shown if "reward_manager" in setting]
    config = configured(model, *manager, TELLING, PARTS, "+reward.reward_kwargs.columns=[level]")
    rows = [
        {"answer": "yes yes", "gold": "x", "uid": 7, "info": {"level": 5}},
        {"answer": "yes " * 40, "gold": "x", "uid": 8, "info": {"level": 6}},
    ]
    workers.begin(config)
    found: dict[str, Any] = {"streaming": generated(config, tokenizer, rows, workers.handles)}
    broken = [{**rows[0], "gold": "broken"}, rows[1]]
    found["no_fallback"] = message_of(lambda: generated(config, tokenizer, broken, workers.handles))
    found["several"] = several(config, tokenizer)
    row = {"prompt": "speak", "answer": "yes no yes", "gold": "x", "uid": 3, "info": {"level": 1}}
    data = batch(tokenizer, [row])
    length = int(data.batch["attention_mask"][0, 32:].sum())
    data.non_tensor_batch["__num_turns__"] = np.array([4])
    found["turns_unmasked"] = message_of(lambda: asyncio.run(asked(config, tokenizer, data)))
    mask = torch.zeros(1, LONGEST, dtype=torch.long)
    mask[0, : length // 2] = 1  # the second "yes" is a tool's
    data.batch["response_mask"] = mask
    found["turns_masked"] = asyncio.run(asked(config, tokenizer, data))
    return found
