"""Does it hold on a GPU?  Checks and measures what runs on one, in parts, each in a process of its own.

    python -m benchmarks.gpu                      # all parts; CONTRIBUTING.md: without network
    python -m benchmarks.gpu --parts scoring steps
    python -m benchmarks.gpu --tiny               # on a CPU, small: what CI runs

It writes report.json and report.md, and ends with 1 where a part failed or a number does not keep its bound.  Models
are random, in the shapes of Qwen2.5; nothing is fetched.

Not covered: several GPUs, vLLM, trained weights.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import tyro
from benchmarks.gpu import correctness, learning, report, scoring
from benchmarks.gpu.report import Part

LIMIT = 540  # seconds of a part


def environment(part: Part, device: str) -> None:
    """The machine, and what its matrix products and copies reach."""
    import torch

    names = (
        "torch",
        "transformers",
        "accelerate",
        "peft",
        "triton",
        "trl",
        "vllm",
        "flash-attn",
        "datasets",
        "fastapi",
    )
    versions = []
    for name in names:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    part.note(f"Python {sys.version.split()[0]}; {', '.join(versions)}")
    if device == "cpu":
        part.note("no GPU: everything is small, and no bound of speed or memory holds")
        return
    card = torch.cuda.get_device_properties(0)
    part.note(f"{card.name}, {card.total_memory / 2**30:.1f} GiB, CUDA {torch.version.cuda}")
    part.add("matrix product in bfloat16", scoring.matrix_product() / 1e12, "TFLOP/s")
    big = torch.empty(2**30, device=device)
    part.add("copy on the card", 2 * big.nbytes / scoring.timed(lambda: big.clone(), 5) / 1e12, "TB/s")


def service(part: Part, device: str) -> None:
    """The reward server with a model on the card, beside endpoints that take one request at a time."""
    layers, width, seconds, rounds = (24, 896, 3, 2) if device == "cuda" else (2, 64, 0.5, 1)
    command = [sys.executable, "-m", "benchmarks.reward_server", "--workloads", "model", "--as-json"]
    sizes = {"layers": layers, "width": width, "seconds": seconds, "rounds": rounds}
    command += [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:] or done.stdout[-3000:])
    rows = json.loads(done.stdout.strip().splitlines()[-1])["model"]
    for name, (many, single) in rows.items():
        part.add(f"{name}, 64 requests under way", many["samples/s"], "samples/s")
        part.add(f"{name}, one at a time: median", single["p50 ms"], "ms")
    best = max(many["samples/s"] for name, (many, _) in rows.items() if name != "adjudge")
    least = 5.0 if device == "cuda" else None
    part.add("adjudge beside the quicker endpoint", rows["adjudge"][0]["samples/s"] / best, "x", at_least=least)


PARTS: Mapping[str, Callable[[Part, str], None]] = {
    "environment": environment,
    "correctness": correctness.main,
    "scoring": scoring.main,
    "logits": learning.logits,
    "generate": learning.generate,
    "steps": learning.steps,
    "service": service,
    "learns": learning.learns,
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is run.

    Attributes:
        parts: names of parts; all when empty.
        tiny: on the CPU, small.
        output: folder of the report.
    """

    parts: tuple[str, ...] = ()
    tiny: bool = False
    output: Path = Path("gpu-report")

    def __post_init__(self) -> None:
        if unknown := set(self.parts) - set(PARTS):
            raise SystemExit(f"--parts {' '.join(sorted(unknown))}: there are {', '.join(PARTS)}")


def measured(name: str, device: str, to: Path) -> None:
    """Run a part in this process, and write what it said."""
    part = Part(name=name)
    began = time.monotonic()
    try:
        PARTS[name](part, device)
    except Exception:  # noqa: BLE001 the report says what it was
        part.error = traceback.format_exc()[-6000:]
        print(part.error, flush=True)
    part.seconds = time.monotonic() - began
    to.write_text(json.dumps(part.record()), encoding="utf-8")
    print(f"{name}: {part.seconds:.1f} s", flush=True)


def main(options: Options) -> int:
    """Run parts, and write the report behind each of them."""
    import torch  # noqa: F401 the parts are forks of this process, and need not read it again
    import transformers

    if options.tiny:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    options.output.mkdir(parents=True, exist_ok=True)
    device = "cpu" if options.tiny else "cuda"
    fork = multiprocessing.get_context("fork")
    parts: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as home:
        for name in options.parts or PARTS:
            to = Path(home) / name
            # A fork, before anything has touched the card.
            process = fork.Process(target=measured, args=(name, device, to))
            began = time.monotonic()
            process.start()
            process.join(LIMIT)
            if process.is_alive():
                process.kill()
                process.join()
            ended = f"it took longer than {LIMIT} s, or was killed (exit code {process.exitcode})"
            lost = Part(name=name, seconds=time.monotonic() - began, error=ended)
            parts.append(json.loads(to.read_text(encoding="utf-8")) if to.is_file() else lost.record())
            report.write(options.output, parts)
    print((options.output / "report.md").read_text(encoding="utf-8"))
    return int(any(part["failed"] for part in parts))


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options, description=__doc__)))
