"""Judged samples per second of the engines, beside loops that ask one prompt at a time.

Prompts are a rubric that all share, a question and an answer of mixed length; the judge's verdict is read from the
probabilities of "Yes" and "No", or written out.  The model is random, 4 layers of 256: small enough for a CPU, large
enough that its arithmetic is what takes the time.  All rates are of one run of this program, in which all ways but
vLLM's have their turn in each round; the best round counts.  In brackets stand samples per CPU second, which say more
on a busy machine.  vLLM behind HTTP and in this process is measured where it is installed.

Not covered: real models, and long texts.

    python benchmarks/engines.py
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge.engines.interface import Engine, Fault, Sampling
from adjudge.engines.loading import engine_of

LABELS = {"yes": ("Yes", " Yes"), "no": ("No", " No")}
WINDOW = 1024
LOOP = "a loop, one prompt at a time"
COLUMNS = ALONE, TOGETHER, TWICE, WRITTEN = "one at a time", "together", "together, each asked twice", "written"
Ask = Callable[[Sequence[str]], object]
Rates = dict[tuple[str, str], tuple[float, float]]  # by way and column: samples per second, and per CPU second


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure."""

    prompts: int = 64
    """how many samples are judged"""
    rounds: int = 3
    """how often each measurement is repeated; the best counts"""
    tokens: int = 16
    """how long written verdicts are"""
    vllm: bool = True
    """measure vLLM too, in this process and as a server, if it is installed"""


def write_model(folder: Path) -> Path:
    """Make the model with what the tests make theirs with."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.engines.tiny_models import write_model as write

    sizes: dict[str, Any] = {
        "hidden_size": 256,
        "intermediate_size": 768,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "max_position_embeddings": WINDOW,
        "initializer_range": 0.02,
    }
    return write(folder, **sizes)


def judged(count: int) -> list[str]:
    """Prompts of about 140 to 290 tokens, of which the first 120 or so are the same."""
    chance = random.Random(0)
    rubric = "You are a careful judge. Read the question and the answer, then say whether the answer is correct. " * 4
    words = "question answer response correct wrong good bad supported reference score yes no".split()
    return [
        f"{rubric}Question {at}: {' '.join(chance.choices(words, k=10))}\n"
        f"Answer: {' '.join(chance.choices(words, k=chance.randint(5, 120)))}\nIs the answer right?"
        for at in range(count)
    ]


def loops(folder: Path) -> dict[str, dict[str, Ask]]:
    """What people write by hand: a forward pass for each prompt, and padded batches in the order given."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    model.eval()
    chosen = [tokenizer(text)["input_ids"][0] for texts in LABELS.values() for text in texts]

    def batches_of(size: int) -> Ask:
        def ask(prompts: Sequence[str]) -> list[Any]:
            found = []
            for start in range(0, len(prompts), size):
                inputs = tokenizer(list(prompts[start : start + size]), padding=True, return_tensors="pt")
                with torch.inference_mode():
                    found.append(model(**inputs).logits[:, -1].log_softmax(-1)[:, chosen])
            return found

        return ask

    return {LOOP: {ALONE: batches_of(1)}, "a loop, padded batches of 8": {TOGETHER: batches_of(8)}}


def calls(engine: Engine, tokens: int) -> dict[str, Ask]:
    """What is measured of an engine, by column."""

    async def checked(results: Sequence[object]) -> None:
        faults = [result for result in results if isinstance(result, Fault)]
        assert not faults, faults[0]

    async def one_by_one(prompts: Sequence[str]) -> None:
        for prompt in prompts:
            await checked(await engine.label_logprobs([prompt], LABELS))

    async def together(prompts: Sequence[str]) -> None:
        await checked(await engine.label_logprobs(list(prompts), LABELS))

    async def twice(prompts: Sequence[str]) -> None:
        await together([*prompts, *prompts])

    async def written(prompts: Sequence[str]) -> None:
        await checked(await engine.generate(list(prompts), Sampling(max_tokens=tokens)))

    return {
        ALONE: lambda prompts: asyncio.run(one_by_one(prompts)),
        TOGETHER: lambda prompts: asyncio.run(together(prompts)),
        TWICE: lambda prompts: asyncio.run(twice(prompts)),
        WRITTEN: lambda prompts: asyncio.run(written(prompts)),
    }


@contextmanager
def opened(specs: Mapping[str, Any], tokens: int) -> Iterator[dict[str, dict[str, Ask]]]:
    """Yield what is measured of engines, by name; close them afterwards."""
    engines = {name: engine_of(spec) for name, spec in specs.items()}
    try:
        yield {name: calls(engine, tokens) for name, engine in engines.items()}
    finally:
        for engine in engines.values():
            asyncio.run(engine.close())


@contextmanager
def served(folder: Path, *more: str) -> Iterator[str]:
    """Run `vllm serve` on the model, with more options; yield where it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--port", str(port), "--dtype", "float32", "--enforce-eager", "--max-model-len", str(WINDOW), *more]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", **os.environ}
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        for _ in range(900):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            except (urllib.error.URLError, OSError):
                if server.poll() is not None:
                    raise RuntimeError("vllm serve ended before it answered") from None
                time.sleep(1)  # between two looks; vLLM takes half a minute to start
            else:
                break
        else:
            raise RuntimeError("vllm serve did not answer within minutes")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def measured(ways: Mapping[str, Mapping[str, Ask]], prompts: Sequence[str], rounds: int) -> Rates:
    """Return rates by way and column, the best of several rounds after one that is not counted."""
    best: Rates = {}
    for number in range(rounds + 1):
        for way, asks in ways.items():
            for column, ask in asks.items():
                start, used = time.perf_counter(), time.process_time()
                ask(prompts)
                count = len(prompts) * (2 if column == TWICE else 1)
                rate = count / (time.perf_counter() - start), count / (time.process_time() - used)
                if number:
                    before = best.get((way, column), (0.0, 0.0))
                    best[way, column] = max(rate[0], before[0]), max(rate[1], before[1])
    return best


def shown(rates: Rates, ways: Sequence[str], options: Options) -> Table:
    title = (
        f"judged samples per second (in brackets: per CPU second), {options.prompts} samples, best of {options.rounds}"
    )
    table = Table(title=title)
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column if column != WRITTEN else f"{options.tokens} tokens {column}", justify="right")
    for way in ways:
        cells = []
        for column in COLUMNS:
            wall, cpu = rates.get((way, column), (0.0, 0.0))
            here = "" if "vllm" in way else f" ({cpu:.1f})"  # vLLM computes in processes of its own
            cells.append(f"{wall:.1f}{here}" if wall else "-")
        table.add_row(way, *cells)
    return table


def measure(options: Options, folder: Path) -> Table:
    model = {"model": str(folder), "dtype": "float32"}
    prompts = judged(options.prompts)
    specs: dict[str, Any] = {
        "transformers": {"transformers": model},
        "transformers, no shared prefixes": {"transformers": {**model, "share_prefixes": False}},
    }
    with opened(specs, options.tokens) as ways:
        rates = measured(loops(folder) | ways, prompts, options.rounds)
    # One after the other: idle or not, the workers of two vLLMs would sit on the same core.
    if options.vllm and importlib.util.find_spec("vllm") is not None:
        with served(folder) as url:
            server = {"openai: vllm serve": {"openai": {"model": str(folder), "base_url": url}}}
            with opened(server, options.tokens) as ways:
                rates |= measured(ways, prompts, options.rounds)
        with opened(
            {"vllm": {"vllm": {**model, "max_model_len": WINDOW, "enforce_eager": True}}}, options.tokens
        ) as ways:
            rates |= measured(ways, prompts, options.rounds)
    return shown(rates, list(dict.fromkeys(way for way, _ in rates)), options)


def main() -> None:
    options = tyro.cli(Options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the server must not outlive this program
    with tempfile.TemporaryDirectory() as folder:
        table = measure(options, write_model(Path(folder) / "model"))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
