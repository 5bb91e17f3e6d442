"""What the reward server costs and gains, beside the two servers people write themselves.

One client keeps 64 requests of one sample each under way over kept-alive connections, in turns, against

- `adjudge serve` as it is: queue, dynamic batches, limits, metrics;
- `plain`: a FastAPI endpoint that calls the same adjudge scorer for one request at a time;
- `blocking` (`model` and `device`): an `async def` endpoint that runs its own request's batch in the event loop, the
  pattern of OpenRLHF's `serve_rm`.

All three run under uvicorn with the same settings.  What they score:

- `exact` and `math`: the verifiers of those names;
- `model`: a random reward model (2 layers of 64 by default, in 32 bits on a CPU), answers of about 400 characters.  A
  CPU computes a batch hardly quicker than its samples one by one, so batching gains little;
- `device`: a stand-in for a GPU that one answer does not fill: a call takes 10 ms and 0.1 ms for each sample, and the
  CPU is idle meanwhile.

Printed are medians of the rounds: samples per second, the median and 99th percentile of what a request took, and the
CPU time of the server and its worker processes for a sample; then, with one request at a time, what the server adds to
the plain endpoint.

With `--busy 4` each round is repeated beside so many busy loops.

Not covered: large models, networks, several machines.

    python benchmarks/reward_server.py
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console
from rich.table import Table

from adjudge import Sample, Score

SPECIAL = ("<|pad|>", "<|end|>", "<|turn|>")
TEMPLATE = "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
PEER = "ADJUDGE_BENCHMARK_PEER"
WORKLOADS = ("exact", "math", "model", "device")
BLOCKING = ("model", "device")
CALL, EACH = 0.010, 0.0001  # seconds that the stand-in takes for a call, and for each sample in it


class Device:
    """A scorer that waits for a device, one call at a time."""

    name = "device"
    fingerprint = "device:1"

    def __init__(self) -> None:
        self._free = asyncio.Lock()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Score by length."""
        async with self._free:
            await asyncio.to_thread(time.sleep, CALL + EACH * len(samples))
        return [Score.scored(float(len(sample.response))) for sample in samples]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure."""

    seconds: float = 3.0
    """how long each round of each server lasts"""
    rounds: int = 5
    """how often each server has its turn; medians count"""
    in_flight: int = 64
    """requests under way at once"""
    layers: int = 2
    """of the model"""
    width: int = 64
    """of the model; a multiple of 64"""
    characters: int = 400
    """of an answer, about"""
    workloads: tuple[str, ...] = WORKLOADS
    """which are measured"""
    busy: int = 0
    """busy loops that each round is repeated beside"""
    as_json: bool = False
    """print the numbers as JSON"""


@dataclass(kw_only=True)
class Tally:
    """What the requests of some rounds took, in seconds, and how many there were in a second."""

    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    tails: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, latencies: list[float], seconds: float, cpu: float) -> None:
        """Count a round."""
        ordered = sorted(latencies)
        self.cpu.append(cpu / len(ordered))
        self.rates.append(len(ordered) / seconds)
        self.medians.append(ordered[len(ordered) // 2])
        self.tails.append(ordered[int(len(ordered) * 0.99)])

    def row(self) -> dict[str, float]:
        """Return the medians of the rounds."""
        return {
            "samples/s": statistics.median(self.rates),
            "p50 ms": 1e3 * statistics.median(self.medians),
            "p99 ms": 1e3 * statistics.median(self.tails),
            "CPU ms": 1e3 * statistics.median(self.cpu),
        }


def samples(workload: str, options: Options, count: int = 2000) -> list[dict[str, Any]]:
    """Distinct samples, or equal ones under way together would be scored once."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvwy", k=chance.randint(2, 9))) for _ in range(1500)]

    def text(characters: int) -> str:
        return " ".join(chance.choices(words, k=max(1, characters // 6)))

    rows = []
    for n in range(count):
        if workload == "exact":
            row = {"prompt": "Which word?", "response": f"word {n}", "reference": f"word {n + n % 2}"}
        elif workload == "math":
            steps = text(options.characters)
            row = {"prompt": "How many?", "response": f"{steps} so it is $\\boxed{{{n}/7}}$", "reference": f"{n}/7"}
        else:
            spread = chance.lognormvariate(0, 0.5)
            row = {"prompt": text(80), "response": f"{text(int(options.characters * spread))} {n}"}
        rows.append(row)
    return rows


def write_model(folder: Path, options: Options) -> Path:
    """Write a random reward model with a tokenizer made of its own texts."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast, Qwen2Config

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=4096, special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([row["response"] for row in samples("model", options)], trainer)
    kind: Any = PreTrainedTokenizerFast
    tokenizer = kind(tokenizer_object=made, pad_token="<|pad|>", eos_token="<|end|>", model_max_length=8192)
    tokenizer.chat_template = TEMPLATE
    sizes: dict[str, Any] = {"num_labels": 1}  # which its signature does not name
    config = Qwen2Config(
        **sizes,
        vocab_size=4096,
        hidden_size=options.width,
        intermediate_size=2 * options.width,
        num_hidden_layers=options.layers,
        num_attention_heads=options.width // 64,
        num_key_value_heads=options.width // 64,
        max_position_embeddings=8192,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    build: Any = AutoModelForSequenceClassification
    build.from_config(config, dtype=torch.bfloat16 if torch.cuda.is_available() else torch.float32).save_pretrained(
        folder
    )
    tokenizer.save_pretrained(folder)
    return folder


def spec(workload: str, model: str) -> Any:
    if workload == "device":
        return "reward_server:Device"
    return {"reward_model": {"engine": {"transformers": {"model": model}}}} if workload == "model" else workload


def plain_app(workload: str, model: str) -> Any:
    """An endpoint that calls the scorer for one request at a time."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    from adjudge import load as loaded

    class Asked(BaseModel):
        prompt: str
        response: str
        reference: str | None = None

    scorer = loaded(spec(workload, model))
    app = FastAPI()
    turn = asyncio.Lock()

    async def score(asked: Asked) -> dict[str, Any]:
        async with turn:
            found = await scorer.score([Sample(**asked.model_dump())])
        return found[0].to_dict()

    score.__annotations__["asked"] = Asked  # FastAPI looks names up in the module, and this class is not there
    app.post("/score")(score)
    return app


def blocking_app(workload: str, model: str) -> Any:
    """An endpoint that computes in the event loop, for its own request alone."""
    from fastapi import FastAPI, Request

    compute = waiting if workload == "device" else rewarding(model)
    app = FastAPI()

    async def score(request: Request) -> dict[str, Any]:
        return {"rewards": compute(await request.json())}

    score.__annotations__["request"] = Request
    app.post("/score")(score)
    return app


def waiting(row: dict[str, str]) -> list[float]:
    time.sleep(CALL + EACH)
    return [float(len(row["response"]))]


def rewarding(model: str) -> Callable[[dict[str, str]], list[float]]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(model)
    kind: Any = AutoModelForSequenceClassification
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = kind.from_pretrained(model).to(device).eval()

    def compute(row: dict[str, str]) -> list[float]:
        turns = [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": row["response"]}]
        text = tokenizer.apply_chat_template(turns, tokenize=False)
        inputs = tokenizer([text], padding=True, add_special_tokens=False, return_tensors="pt").to(device)
        with torch.no_grad():
            found: list[float] = network(**inputs).logits.squeeze(-1).tolist()
        return found

    return compute


def serve_peer() -> None:
    """Run one of the peers, as the environment says."""
    import uvicorn

    asked = json.loads(os.environ[PEER])
    blocking = asked["server"] == "blocking"
    app = blocking_app(asked["workload"], asked["model"]) if blocking else plain_app(asked["workload"], asked["model"])
    uvicorn.run(app, port=asked["port"], log_level="warning", access_log=False)


def python_path() -> str:
    """Where servers find this file, besides what this process was told."""
    return os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))


@contextmanager
def running(server: str, workload: str, model: str, folder: Path) -> Iterator[tuple[int, int]]:
    """Start a server, wait until it answers, and yield its port and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    # One thread for each model, or they would wait for each other on few cores; and this file can be imported.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": python_path()}
    if server == "adjudge":
        config = folder / f"{workload}.json"  # YAML too
        # One call of a model at a time: two would share what waits, and the device.
        lane = {"scorer": spec(workload, model)} | ({"concurrency": 1} if workload in BLOCKING else {})
        config.write_text(json.dumps({"port": port, "scorers": {workload: lane}}))
        command = [sys.executable, "-m", "adjudge.cli.main", "serve", "--config", str(config)]
    else:
        asked = {"server": server, "workload": workload, "model": model, "port": port}
        environment[PEER] = json.dumps(asked)
        command = [sys.executable, __file__]
    with (folder / f"{server}-{workload}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json", timeout=1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit((folder / f"{server}-{workload}.log").read_text()) from None
                time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


class Connection:
    """A kept-alive connection; httpx would take longer for a request than the servers do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def post(self, raw: bytes) -> None:
        """Send a request and read its answer."""
        self._writer.write(raw)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(head.decode())
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        await self._reader.readexactly(int(length))

    def close(self) -> None:
        """Close it."""
        self._writer.close()


def cpu_seconds(process: int) -> float:
    """CPU time of a process and those it started; 0 where /proc does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + sum(cpu_seconds(int(child)) for child in children)


def request(server: str, workload: str, row: dict[str, Any]) -> bytes:
    asked = {"scorer": workload, "sample": row} if server == "adjudge" else row
    path = "/v1/score" if server == "adjudge" else "/score"
    body = json.dumps(asked).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def load(
    server: tuple[int, int], requests: list[bytes], in_flight: int, seconds: float, tally: Tally | None
) -> None:
    """Keep so many requests under way for a while."""
    port, process = server
    cpu = cpu_seconds(process)
    connections = [Connection(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(in_flight)]
    latencies: list[float] = []
    begun = time.perf_counter()
    following = iter(range(10**9))

    async def one(connection: Connection) -> None:
        while time.perf_counter() - begun < seconds:
            sent = time.perf_counter()
            await connection.post(requests[next(following) % len(requests)])
            latencies.append(time.perf_counter() - sent)

    await asyncio.gather(*map(one, connections))
    if tally is not None:
        tally.add(latencies, time.perf_counter() - begun, cpu_seconds(process) - cpu)
    for connection in connections:
        connection.close()


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Have processes compete for the processors."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


Tallies = dict[str, Tally]


def measured(workload: str, options: Options, folder: Path, model: str) -> dict[int, tuple[Tallies, Tallies]]:
    """Return what each server did with many requests under way, and with one, by the busy loops beside it."""
    servers = ("adjudge", "plain", "blocking") if workload in BLOCKING else ("adjudge", "plain")
    found = {
        loops: ({server: Tally() for server in servers}, {server: Tally() for server in servers})
        for loops in sorted({0, options.busy})
    }
    requests = {server: [request(server, workload, row) for row in samples(workload, options)] for server in servers}
    with ExitStack() as stack:
        started = {server: stack.enter_context(running(server, workload, model, folder)) for server in servers}
        for server in servers:
            asyncio.run(load(started[server], requests[server], options.in_flight, 1.0, None))
        for _ in range(options.rounds):
            for loops, (many, single) in found.items():
                with busy_loops(loops):
                    for server in servers:
                        given = started[server], requests[server]
                        asyncio.run(load(*given, options.in_flight, options.seconds, many[server]))
                        asyncio.run(load(*given, 1, options.seconds / 2, single[server]))
    return found


def shown(workload: str, loops: int, many: Tallies, single: Tallies, options: Options) -> Table:
    beside = f" beside {loops} busy loops" if loops else ""
    table = Table(title=f"{workload}{beside}, medians of {options.rounds} rounds of {options.seconds:g} s")
    numbers = "samples/s", "p50 ms", "p99 ms", "CPU ms", "adjudge is", "alone: p50 ms", "adds ms"
    heads = (f"{options.in_flight} under way", *numbers)
    for head in heads:
        table.add_column(head, justify="left" if head == heads[0] else "right")
    base = many["adjudge"].row()["samples/s"]
    alone = single["adjudge"].row()["p50 ms"]
    for server in many:
        row, one = many[server].row(), single[server].row()
        cells = [f"{row['samples/s']:,.0f}", *(f"{row[name]:.2f}" for name in ("p50 ms", "p99 ms", "CPU ms"))]
        ratios = ["", f"{one['p50 ms']:.3f}", ""]
        if server != "adjudge":
            ratios = [f"{base / row['samples/s']:.2f} x", f"{one['p50 ms']:.3f}", f"{alone - one['p50 ms']:+.3f}"]
        table.add_row(server, *cells, *ratios)
    return table


def main() -> None:
    options = tyro.cli(Options)
    console = Console(width=140)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        model = str(write_model(folder / "model", options)) if "model" in options.workloads else ""
        for workload in options.workloads:
            for loops, (many, single) in measured(workload, options, folder, model).items():
                if options.as_json:
                    rows = {name: [many[name].row(), single[name].row()] for name in many}
                    print(json.dumps({"busy": loops, workload: rows}))
                else:
                    console.print(shown(workload, loops, many, single, options))


if __name__ == "__main__":
    if PEER in os.environ:
        serve_peer()
    else:
        main()
