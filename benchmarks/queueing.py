"""How many servers, cores and GPUs a rate of scores takes, and how long a score waits for them.

A simulation of the reward service's queue: samples come in groups (Poisson), as a trainer sends them; calls take up to
a batch from the front of the queue; a call takes a fixed time and a time for each sample; what does not fit into the
queue is refused.  It is checked against the Erlang C formula, where calls take one sample and exponential time.

- `check`: mean waits of the simulation beside the formula;
- `load`: 99th percentile of the time to a score at 70, 85 and 95 % of the capacity, by batch size;
- `routing`: groups that stay together, beside groups spread over the servers, where members share their prompt;
- `layouts`: what 10,000, 100,000 and 1,000,000 scores a second take.

Service times are options; the defaults are those that docs/ray.md explains.  Not covered: networks, failures.

    python benchmarks/queueing.py
"""

from __future__ import annotations

import heapq
import json
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import tyro
from rich.console import Console
from rich.table import Table

LOADS = (0.70, 0.85, 0.95)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Service times, and how much is simulated."""

    call: float = 0.010
    """seconds that a call of the model takes"""
    each: float = 0.0001
    """and for each sample in it"""
    batch: int = 64
    """most samples of a call"""
    group: int = 8
    """samples that come together"""
    http_one: float = 0.00059
    """CPU seconds of the server for a sample that is a request by itself"""
    http_many: float = 0.000065
    """and for one of a request of 64"""
    check: float = 0.0001
    """CPU seconds of a worker for a check of an answer"""
    prompt: float = 0.5
    """the share of a sample's tokens that is its prompt"""
    samples: int = 200_000
    """simulated for each number"""
    seed: int = 0
    """of the arrivals"""
    as_json: bool = False
    """print the numbers as JSON"""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A queue and who serves it.

    Attributes:
        calls: calls under way at once.
        batch: most samples of a call.
        seconds: what a call of so many samples takes; random where it says so.
        room: most samples that wait; what comes beyond is refused.
    """

    calls: int
    batch: int
    seconds: Callable[[int], float]
    room: float = math.inf


@dataclass(frozen=True, kw_only=True)
class Waits:
    """What samples met with, in seconds."""

    wait: float
    p50: float
    p99: float
    refused: float
    batch: float


def simulated(line: Line, rate: float, group: int, samples: int, seed: int) -> Waits:
    """Let samples come at a rate, in groups, and be served."""
    chance = random.Random(seed)
    ends: list[float] = []  # of calls under way
    queue: deque[float] = deque()  # when those that wait came
    waits: list[float] = []
    times: list[float] = []
    now = 0.0
    refused = calls = 0

    def begin(when: float) -> None:
        nonlocal calls
        taken = [queue.popleft() for _ in range(min(line.batch, len(queue)))]
        end = when + line.seconds(len(taken))
        heapq.heappush(ends, end)
        calls += 1
        waits.extend(when - came for came in taken)
        times.extend(end - came for came in taken)

    for _ in range(samples // group):
        now += chance.expovariate(rate / group)
        while ends and ends[0] <= now:
            end = heapq.heappop(ends)
            if queue:
                begin(end)
        if len(queue) + group > line.room:
            refused += group
            continue
        queue.extend([now] * group)
        while queue and len(ends) < line.calls:
            begin(now)
    times.sort()
    served = len(times)
    return Waits(
        wait=sum(waits) / served,
        p50=times[served // 2],
        p99=times[int(served * 0.99)],
        refused=refused / samples,
        batch=served / calls,
    )


def erlang_wait(servers: int, load: float) -> float:
    """Mean wait in units of the mean service time, for Poisson arrivals and exponential service (Erlang C)."""
    offered = servers * load
    term, total = 1.0, 1.0
    for n in range(1, servers):
        term *= offered / n
        total += term
    term *= offered / servers
    waiting = term / (1 - load)
    return waiting / (total + waiting) / (servers * (1 - load))


def capacity(line: Line) -> float:
    """Samples per second that full batches give."""
    return line.calls * line.batch / line.seconds(line.batch)


def check(options: Options) -> Table:
    table = Table(title="mean wait, in service times")
    for head in ("servers", "load", "simulated", "Erlang C"):
        table.add_column(head, justify="right")
    for servers in (1, 4, 16):
        for load in LOADS:
            chance = random.Random(options.seed + 1)
            line = Line(calls=servers, batch=1, seconds=lambda _, chance=chance: chance.expovariate(1.0))  # type: ignore[misc]
            found = simulated(line, load * servers, 1, 5 * options.samples, options.seed)
            table.add_row(f"{servers}", f"{load:.0%}", f"{found.wait:.3f}", f"{erlang_wait(servers, load):.3f}")
    return table


def model(options: Options, gpus: int = 1) -> Line:
    """The queue of one server with some GPUs."""
    return Line(calls=gpus, batch=options.batch, seconds=lambda count: options.call + options.each * count)


def load_table(options: Options) -> Table:
    table = Table(title=f"one GPU, a call {1e3 * options.call:g} ms and {1e3 * options.each:g} ms a sample")
    for head in ("batch", "capacity/s", *(f"p99 ms at {load:.0%}" for load in LOADS), "queue bound", "at 200 %"):
        table.add_column(head, justify="right")
    for batch in (1, 8, 64, 256):
        line = replace(model(options), batch=batch)
        most = capacity(line)
        found = [simulated(line, load * most, options.group, options.samples, options.seed) for load in LOADS]
        room = max(options.group, round(most * 0.5))
        over = simulated(replace(line, room=room), 2 * most, options.group, options.samples, options.seed)
        p99 = [f"{1e3 * one.p99:,.0f}" for one in found]
        table.add_row(
            f"{batch}", f"{most:,.0f}", *p99, f"{room:,}", f"{1e3 * over.p99:,.0f} ms, {over.refused:.0%} refused"
        )
    return table


def routing(options: Options, servers: int = 8) -> Table:
    """Members of a group in one call read their prompt once; on several servers each reads it again."""
    table = Table(title=f"{servers} GPUs, groups of {options.group}, prompts {options.prompt:.0%} of the tokens")
    for head in ("routing", "capacity/s", *(f"p99 ms at {load:.0%}" for load in LOADS)):
        table.add_column(head, justify="left" if head == "routing" else "right")
    shared = options.each * (1 - options.prompt + options.prompt / options.group)

    def one(each: float) -> Line:
        return Line(calls=1, batch=options.batch, seconds=lambda count: options.call + each * count)

    spread, together = one(options.each), one(shared)
    pooled = replace(together, calls=servers)
    base = servers * capacity(spread)
    ways = {
        "samples by themselves, each to a random server": (spread, 1, 1),
        "whole groups, each to a random server": (together, options.group, 1),
        "whole groups, to the server with the least to do": (pooled, options.group, servers),
    }
    for name, (line, group, of) in ways.items():
        rates = [load * base * of / servers for load in LOADS]
        found = [simulated(line, rate, group, options.samples, options.seed) for rate in rates]
        most = capacity(line) * servers / of
        table.add_row(name, f"{most:,.0f}", *(f"{1e3 * waits.p99:,.0f}" for waits in found))
    return table


def layouts(options: Options) -> Table:
    """What rates take at 70 % load, and what happens where more of the load comes."""
    table = Table(title="layouts at 70 % load")
    heads = "server processes", "with one sample a request", "checks: cores", "model: GPUs", "queue of each server"
    for head in ("scores/s", *heads, *(f"model: p99 ms at {load:.0%}" for load in LOADS)):
        table.add_column(head, justify="right")
    most = capacity(model(options))
    for rate in (10_000, 100_000, 1_000_000):
        processes = math.ceil(rate * options.http_many / LOADS[0])
        single = math.ceil(rate * options.http_one / LOADS[0])
        gpus = math.ceil(rate / most / LOADS[0])
        each = math.ceil(gpus / processes)  # GPUs behind one queue
        line = model(options, each)
        p99 = [
            1e3 * simulated(line, load * capacity(line), options.group, options.samples, options.seed).p99
            for load in LOADS
        ]
        room = round(0.5 * capacity(line))
        cores = math.ceil(rate * options.check / LOADS[0])
        counts = (rate, processes, single, cores, gpus, room)
        table.add_row(*(f"{count:,}" for count in counts), *(f"{one:,.0f}" for one in p99))
    return table


def main() -> None:
    options = tyro.cli(Options)
    for table in (check(options), load_table(options), routing(options), layouts(options)):
        if options.as_json:
            cells = zip(*(column.cells for column in table.columns), strict=True)
            heads = [str(column.header) for column in table.columns]
            print(json.dumps({str(table.title): [dict(zip(heads, map(str, row), strict=True)) for row in cells]}))
        else:
            Console(width=160).print(table)


if __name__ == "__main__":
    main()
