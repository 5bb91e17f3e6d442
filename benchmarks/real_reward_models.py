"""Reward models from SmolLM2-135M-Instruct, on two cores: what training makes of them beside simple rules.

- *scalar*: a preference model from pairs: right against wrong solutions of GSM8K's problems by language models, or
  people's preferences (`hh_rlhf`).
- *process*: a value for each step, from ProcessBench's GSM8K part, whose first errors people marked.

Prompts are held out whole.  Each training is `adjudge train rm` or `adjudge train prm` with low-rank factors or, with
`--full`, all weights; its report has the baselines of the same held-out examples: longer wins, and n-grams fitted to
the same training examples.  An untrained head on the same body is a training at a rate that changes nothing.

Then the folder is served by three engines, which must agree: the largest difference of a reward, and how many pairs
change their order.  A model whose folder is there is not trained again.

    ADJUDGE_DATA=... python -m benchmarks.real_reward_models --jobs gsm8k hh_rlhf process --output models
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from benchmarks import engines
from benchmarks.preference_sets import load

from adjudge import score_batch
from adjudge.engines import smollm2
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_training import train_process
from adjudge.reward_models.training.report import TrainingReport
from adjudge.reward_models.training.scalar_config import ScalarTraining
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.config_file import config_of

_LORA = {"learning_rate": 3e-4, "lora": {"rank": 16}}
_FULL = {"learning_rate": 2e-5}
_NOTHING = {"learning_rate": 1e-12, "lora": {"rank": 1}}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is trained.

    Attributes:
        jobs: of "gsm8k", "hh_rlhf", "rmb" (pairs) and "process".
        pairs: at most, held-out ones included; 0 for all.
        epochs: of each.
        full: train all weights, and not low-rank factors.
        untrained: leave the head as it is drawn.
        served: pairs whose order is compared between engines; 0 for none.
        output: folder for the models.
    """

    jobs: tuple[str, ...] = ("gsm8k", "hh_rlhf", "process")
    pairs: int = 250
    epochs: int = 1
    full: bool = False
    untrained: bool = False
    served: int = 0
    output: Path = Path("real_reward_models")


def common(options: Options, name: str) -> dict[str, Any]:
    """What the trainings have in common."""
    schedule = _NOTHING if options.untrained else _FULL if options.full else _LORA
    return {
        "model": smollm2.NAME,
        "output": str(options.output / name),
        "max_length": 512,
        "schedule": {**schedule, "epochs": options.epochs, "batch_size": 16, "micro_tokens": 2048, "log_steps": 5},
    }


def scalar(options: Options, name: str) -> TrainingReport:
    """Train a preference model."""
    file = options.output / f"{name}.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for pair in load(name).pairs[: options.pairs or None]:
            row = {"prompt": pair.prompt, "chosen": pair.chosen, "rejected": pair.rejected, "group": pair.group}
            print(json.dumps(row), file=out)
    config = {**common(options, name), "data": {"path": str(file), "held_out": 0.3}}
    return train_scalar(config_of(ScalarTraining, config))


def process(options: Options) -> TrainingReport:
    """Train a process model."""
    path = str(Path(os.environ["ADJUDGE_DATA"]) / "processbench" / "gsm8k.json")
    config = {
        **common(options, "process"),
        "data": {"path": path, "held_out": 0.3},
        "layout": {"marker": ""},  # with LoRA, the embedding of a new marker would not be trained
    }
    return train_process(config_of(ProcessTraining, config))


def served(options: Options, name: str) -> None:
    """Compare what the engines say of one folder, in 32 bits: in this process, by vLLM here, and by its server."""
    folder = options.output / name
    pairs = load(name).pairs[: options.served]
    samples = [{"prompt": pair.prompt, "response": answer} for pair in pairs for answer in (pair.chosen, pair.rejected)]

    def rewards(engine: Any) -> list[float | None]:
        return [one.value for one in score_batch(samples, scorer={"reward_model": {"engine": engine}})]

    first = rewards({"transformers": {"model": str(folder), "dtype": "float32"}})
    with engines.served(folder, "--runner", "pooling", "--max-model-len", "2048") as address:
        by_server = rewards({"openai": {"model": str(folder), "base_url": address}})
    found = {"vllm": rewards({"vllm": {"model": str(folder), "dtype": "float32"}}), "its server": by_server}
    for engine, second in found.items():
        both = [(one, other) for one, other in zip(first, second, strict=True) if one is not None and other is not None]
        known = [
            ((one, two), (other, another))
            for one, two, other, another in zip(first[::2], first[1::2], second[::2], second[1::2], strict=True)
            if None not in (one, two, other, another)
        ]
        flips = sum((one[0] > one[1]) != (other[0] > other[1]) for one, other in known)  # type: ignore[operator]
        gap = max(abs(one - other) for one, other in both)
        said = f"{flips} of {len(known)} pairs in another order, {len(both)} rewards differ by at most {gap:.2g}"
        unlike = sum((one is None) != (other is None) for one, other in zip(first, second, strict=True))
        print(f"{name}, transformers and {engine}: {said}; {unlike} have one by one of them alone", flush=True)


def told(report: TrainingReport, seconds: float) -> None:
    """Print what a training reached."""
    parts: tuple[Mapping[str, Any], ...] = (report.metrics, report.baselines)
    print(f"{Path(report.output).name}: {report.steps} steps, {seconds:.0f} s", flush=True)
    for measures in parts:
        for name, measure in measures.items():
            print(f"    {name:32} {measure} (n = {measure.n})", flush=True)


def main(options: Options) -> None:
    """Train, and tell."""
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.jobs:
        if not (options.output / name).exists():
            began = time.perf_counter()
            report = process(options) if name == "process" else scalar(options, name)
            told(report, time.perf_counter() - began)
        if options.served and name != "process":
            served(options, name)


if __name__ == "__main__":
    main(tyro.cli(Options))
