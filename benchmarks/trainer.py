"""Steps per second of GRPO, beside TRL's `GRPOTrainer`: same model, prompts, group size, answer length and rewards.

The model is new and tiny (2 layers, 64 wide), so what is compared is what the trainers add; with a large one both wait
for the same matrix products.  The reward is the share of digits in an answer, from a scorer that takes 0, 0.2 or 1 s
for each sample and any number of samples at once, as a judge behind a server does; TRL gets it as a coroutine.

Each way runs in a process of its own, in turn, so that peak memory is its own.  The first steps are not counted.
`staleness` writes that many batches before it waits for scores.

Not covered: several processes, and generation by vLLM.

    python benchmarks/trainer.py
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.demo.arithmetic import CHARACTERS, sums
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig

RATE = 1e-4
FIRST = 6  # steps that are not counted: caches fill, workers start, batches are written ahead
AHEAD = {"adjudge": 0, "adjudge, 1 ahead": 1, "adjudge, 4 ahead": 4}
"""Our ways, and how many batches each writes before it waits for scores."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is measured.

    Attributes:
        steps: of each run, after the first few.
        rounds: how often each way has its turn.
        tasks: prompts of a step.
        group: answers to each.
        tokens: most tokens of an answer.
        width: of the model's layers.
        layers: of the model.
        delays: seconds that the scorer takes for a sample.
    """

    steps: int = 30
    rounds: int = 3
    tasks: int = 8
    group: int = 8
    tokens: int = 16
    width: int = 64
    layers: int = 2
    delays: tuple[float, ...] = (0.0, 0.2, 1.0)


def digits(text: str) -> float:
    """The share of digits."""
    return sum(character.isdigit() for character in text) / max(1, len(text))


class Slow:
    """Scores the share of digits, after a while."""

    name = "slow"
    fingerprint = "slow:1"

    def __init__(self, delay: float) -> None:
        self._delay = delay

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score them all after one while."""
        await asyncio.sleep(self._delay)
        return [Score.scored(digits(str(sample.response))) for sample in samples]


def ours(options: Options, model: str, delay: float, ahead: int) -> dict[str, float]:
    """Train with adjudge."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    causal: Any = AutoModelForCausalLM
    policy = Policy(causal.from_pretrained(model), AutoTokenizer.from_pretrained(model), name=model)
    tasks, _ = sums(20, held_out=0.0, seed=0)
    config = RunConfig(
        reward=RewardConfig(scorer=Slow(delay)),
        objective=ObjectiveChoice(name="grpo"),
        rollouts=RolloutsConfig(
            tasks=options.tasks,
            num_generations=options.group,
            staleness=ahead,
            sampling=SamplingConfig(max_new_tokens=options.tokens),
        ),
        learning=LearningConfig(learning_rate=RATE),
        steps=options.steps + FIRST,
        save_steps=10**6,
    )
    with tempfile.TemporaryDirectory() as folder:
        result = Run(policy, tasks, config, Path(folder)).train()
    counted = result.history[FIRST:]
    seconds = sum(line["seconds"] for line in counted)
    tokens = sum(line["completion_length"] for line in counted) * options.tasks * options.group
    waited = sum(line["seconds_waiting"] for line in counted)
    return {"steps/s": len(counted) / seconds, "tokens/s": tokens / seconds, "waiting": waited / seconds}


def theirs(options: Options, model: str, delay: float) -> dict[str, float]:
    """Train with TRL."""
    import importlib

    from datasets import Dataset
    from transformers import TrainerCallback

    trl: Any = importlib.import_module("trl")
    waits: list[float] = []
    tokens: list[int] = []
    ends: list[float] = []

    async def reward(completions: Sequence[str], completion_ids: Sequence[Sequence[int]], **_: Any) -> list[float]:
        began = time.perf_counter()
        await asyncio.sleep(delay)
        waits.append(time.perf_counter() - began)
        tokens.append(sum(map(len, completion_ids)))
        return [digits(text) for text in completions]

    class Clock(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            ends.append(time.perf_counter())

    tasks, _ = sums(20, held_out=0.0, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        config = trl.GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=options.tasks * options.group,
            num_generations=options.group,
            max_completion_length=options.tokens,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type="grpo",
            max_steps=options.steps + FIRST,
            logging_steps=10**6,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            save_strategy="no",
            disable_tqdm=True,
            seed=1,
        )
        rows = Dataset.from_list([{"prompt": task.prompt} for task in tasks])
        trl.GRPOTrainer(
            model=model, reward_funcs=[reward], args=config, train_dataset=rows, callbacks=[Clock()]
        ).train()
    seconds = ends[-1] - ends[FIRST - 1]
    counted = options.steps
    return {
        "steps/s": counted / seconds,
        "tokens/s": sum(tokens[-counted:]) / seconds,
        "waiting": sum(waits[-counted:]) / seconds,
    }


def measured(way: str, options: Options, model: str, delay: float) -> dict[str, float]:
    """Train in a process of its own."""
    job = {"way": way, "options": options.__dict__, "model": model, "delay": delay}
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def work(job: Mapping[str, Any]) -> None:
    """Do one job, and print its numbers."""
    given = job["options"]
    options = Options(**{**given, "delays": tuple(given["delays"])})
    way = job["way"]
    if way == "TRL":
        found = theirs(options, job["model"], job["delay"])
    else:
        found = ours(options, job["model"], job["delay"], AHEAD[way])
    found["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


def main(options: Options) -> None:
    """Measure, and print a table of medians."""
    ways = ("TRL", *AHEAD)
    found: dict[tuple[float, str], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as model:
        tiny_policy(CHARACTERS, seed=0, width=options.width, layers=options.layers).save(Path(model))
        for _ in range(options.rounds):
            for delay in options.delays:
                for way in ways:
                    found.setdefault((delay, way), []).append(measured(way, options, model, delay))
    table = Table(title=f"{options.tasks} x {options.group} answers of at most {options.tokens} tokens")
    for column in ("seconds a sample", "trainer", "steps/s", "beside TRL", "tokens/s", "waiting", "peak MiB"):
        table.add_column(column, justify="left" if column == "trainer" else "right")
    for (delay, way), runs in found.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        peer = statistics.median(run["steps/s"] for run in found[delay, "TRL"])
        table.add_row(
            f"{delay:g}",
            way,
            f"{middle['steps/s']:.2f}",
            f"{middle['steps/s'] / peer:.2f}x",
            f"{middle['tokens/s']:.0f}",
            f"{middle['waiting']:.1%}",
            f"{middle['MiB']:.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        work(json.loads(sys.argv[2]))
    else:
        main(tyro.cli(Options))
