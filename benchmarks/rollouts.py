"""Tokens per second of rollouts: vLLM in the process that trains, beside `transformers`, with the same policy.

The policy is new and random; it ends an answer now and then, so answers differ in length, as they do in training.  Both
engines draw the same number of answers to the same prompts, several to each.  What a new version of the policy costs
(`refresh`) is measured by itself.

Each engine runs in a process of its own, in turn.  The first call is not counted: kernels are chosen, memory is taken.

Not covered: learning, and several GPUs.

    python benchmarks/rollouts.py
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.opening import open_generator
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, VllmOptions
from adjudge.rl_integration.trainer.rollouts.writer import Piece

ENGINES = ("transformers", "vllm")
CHARACTERS = "".join(chr(0x4E00 + at) for at in range(500))  # a random policy ends an answer every 500 tokens


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is measured.

    Attributes:
        calls: of each process, after the first.
        rounds: how often each engine has its turn.
        prompts: of a call.
        group: answers to each.
        prompt_tokens: of each prompt.
        tokens: most of an answer.
        width: of the model's layers; a quarter of it must be a size of heads that vLLM takes.
        layers: of the model.
        window: most tokens that the model reads.
        memory: share of a GPU's memory for vLLM.
    """

    calls: int = 3
    rounds: int = 3
    prompts: int = 8
    group: int = 16
    prompt_tokens: int = 64
    tokens: int = 128
    width: int = 256
    layers: int = 4
    window: int = 256
    memory: float = 0.3


def work(engine: Any, options: Options) -> dict[str, float]:
    """Write with one engine, and return its numbers."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    policy = tiny_policy(CHARACTERS, seed=0, width=options.width, layers=options.layers, window=options.window)
    policy.model.to(device)
    config = RolloutsConfig(
        engine=engine,
        vllm=VllmOptions(gpu_memory_utilization=options.memory),
        sampling=SamplingConfig(max_new_tokens=options.tokens),
    )
    draw = torch.Generator().manual_seed(0)
    shape = (options.prompts, options.prompt_tokens)
    prompts = torch.randint(2, len(CHARACTERS), shape, generator=draw).tolist()
    generator = open_generator(policy, config)
    began = time.perf_counter()
    generator.refresh(0)
    starting = time.perf_counter() - began
    speeds: list[float] = []
    renewals: list[float] = []
    for call in range(options.calls + 1):
        with torch.no_grad():
            next(policy.model.parameters()).mul_(1.0)
        began = time.perf_counter()
        generator.refresh(call + 1)
        renewed = time.perf_counter()
        pieces: dict[int, Piece] = {}
        generator.generate(prompts, options.group, config.sampling, seed=call, on_piece=pieces.__setitem__)
        ended = time.perf_counter()
        if call:
            speeds.append(sum(len(piece.ids) for piece in pieces.values()) / (ended - renewed))
            renewals.append(renewed - began)
    generator.close()
    return {
        "tokens/s": statistics.median(speeds),
        "refresh": statistics.median(renewals),
        "start": starting,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measured(engine: str, options: Options) -> dict[str, float]:
    """Write in a process of its own."""
    environment = {**os.environ, "TRANSFORMERS_VERBOSITY": "error", "VLLM_LOGGING_LEVEL": "ERROR"}
    command = [sys.executable, __file__, "--job", json.dumps({"engine": engine, "options": asdict(options)})]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{engine} failed:\n{done.stderr[-3000:]}")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main(options: Options) -> None:
    """Measure, and print a table of medians."""
    found: dict[str, list[Mapping[str, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(options.rounds):
        for engine in ENGINES:
            found[engine].append(measured(engine, options))
    title = f"{options.prompts} x {options.group} answers of at most {options.tokens} tokens, {options.rounds} rounds"
    table = Table(title=title)
    for column in ("engine", "tokens/s", "from", "to", "beside transformers", "refresh s", "start s", "peak MiB"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    peer = statistics.median(run["tokens/s"] for run in found["transformers"])
    for engine, runs in found.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        speeds = [run["tokens/s"] for run in runs]
        table.add_row(
            engine,
            f"{middle['tokens/s']:.0f}",
            f"{min(speeds):.0f}",
            f"{max(speeds):.0f}",
            f"{middle['tokens/s'] / peer:.2f}x",
            f"{middle['refresh']:.3f}",
            f"{middle['start']:.1f}",
            f"{middle['MiB']:.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        job = json.loads(sys.argv[2])
        print(json.dumps(work(job["engine"], Options(**job["options"]))))
    else:
        main(tyro.cli(Options))
