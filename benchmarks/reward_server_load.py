"""What the reward server does when it is asked too much, when its scorers misbehave, and when it is stopped or killed.

Each scenario runs `adjudge serve` in a process of its own, loads it over loopback, and counts what became of every
request.  A promise that does not hold is printed, and the program fails.

| scenario | promise |
|---|---|
| overload | arrivals at twice the measured capacity: accepted ones are answered within what the queue holds, the others get 503 or 429 with Retry-After |
| misbehaviour | a verifier whose process dies, hangs, eats memory, raises or gives NaN costs its own samples (a 0 or a failure with the reason), nobody else's |
| bodies | bodies of a million samples, of 57 MB of empty lists, of deep nesting, and large honest ones: others wait half a second at most |
| crowd | thousands of requests at once are all answered, none is lost |
| stop | SIGTERM under load: all that was accepted is answered, by the server's own log |
| kill | SIGKILL under load, and a new server at the same address: a `Client` gets every score |
| idle | thousands of open connections that say nothing: a request is answered as quickly as without them |
| slow | connections that send heads and bodies a byte at a time are ended; requests are answered meanwhile |
| clock | the wall clock is set on and back by hours and days: nothing is lost, late, refused, or scored twice under a key, and the chart of the whole run has every answer in its order |

Not covered: networks between machines, and models.

    python -m benchmarks.reward_server_load --minutes 5
"""  # noqa: E501 a table row is one line

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import signal
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tyro
from benchmarks.http_load import Answer, Http, closed_loop, milliseconds, open_loop, percentile
from benchmarks.served import BATCH, CALL, CLOCK, PATIENCE, Server, serving
from rich.console import Console
from rich.table import Table

from adjudge import Client, Sample, Score
from adjudge.rl_integration.client.client import ClientConfig

QUEUE = 100  # samples that may wait for it


@dataclass(frozen=True, kw_only=True)
class Options:
    """How long and how much."""

    minutes: float = 5.0
    """of all scenarios together, about"""
    idle: int = 10_000
    """open connections that say nothing"""
    slow: int = 200
    """connections that send a byte at a time"""
    times: bool = True
    """hold the promises about time too, which a busy machine breaks"""
    crowd: int = 5_000
    """requests that come at once"""
    scenarios: tuple[str, ...] = (
        "overload",
        "misbehaviour",
        "bodies",
        "crowd",
        "stop",
        "kill",
        "idle",
        "slow",
        "clock",
    )
    """which are run"""


@dataclass(kw_only=True)
class Report:
    """What a scenario counted, and the promises that did not hold."""

    name: str
    counts: dict[str, Any] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def promise(self, holds: bool, text: str) -> None:
        """Note a promise that does not hold."""
        if not holds:
            self.broken.append(text)


STEADY = {"scorer": "served:Steady", "batch": BATCH, "concurrency": 1, "waiting": QUEUE}


def overload(options: Options, seconds: float) -> Report:
    """Arrivals at twice the capacity."""
    report = Report(name="overload")

    async def run(port: int) -> tuple[list[Answer], float, list[Answer]]:
        http = Http(port)
        before = await closed_loop(http, 4 * BATCH, max(1.0, seconds / 5))
        capacity = len(before) / max(1.0, seconds / 5)
        answers = await open_loop(http, 2 * capacity, seconds)
        http.close()
        return before, capacity, answers

    with serving(STEADY) as server:
        before, capacity, answers = asyncio.run(run(server.port))
        accepted = int(server.metric("adjudge_accepted_total"))
        waiting = server.metric("adjudge_waiting")
    statuses = Counter(answer.status for answer in answers)
    good = [answer for answer in answers if answer.status == 200]
    bound = QUEUE / capacity + 2 * CALL
    report.counts = {
        "capacity/s": round(capacity),
        "sent": len(answers),
        "accepted": accepted - len(before),
        "answered": statuses[200],
        "refused": statuses[503] + statuses[429],
        "queue bound ms": round(1e3 * bound),
        **milliseconds(good),
    }
    report.promise(set(statuses) <= {200, 503, 429}, f"statuses {dict(statuses)}")
    report.promise(statuses[503] > 0 or not options.times, "nothing was refused at twice the capacity")
    told = all(answer.retry_after.isdigit() for answer in answers if answer.status in (503, 429))
    report.promise(told, "a refusal without Retry-After")
    report.promise(waiting == 0, f"{waiting} still wait")
    report.promise(accepted == len(before) + len(good), f"{accepted} accepted, {len(before) + len(good)} answered")
    late = percentile([answer.seconds for answer in good], 0.99) > 2 * bound
    report.promise(not (late and options.times), "accepted ones took twice the queue's bound")
    return report


def misbehaviour(options: Options, seconds: float) -> Report:
    """A verifier that dies, hangs and eats memory."""
    report = Report(name="misbehaviour")
    reasons = {
        "die": (0.0, "candidate_crash"),
        "hang": (0.0, "candidate_timeout"),
        "eat": (0.0, "candidate_memory"),
        "raise": (None, "verifier_error"),
        "nan": (None, "verifier_error"),
    }
    lane = {"scorer": "served:Moody", "concurrency": 4, "batch": 16}

    async def run(port: int) -> tuple[list[Answer], dict[str, list[Answer]]]:
        http = Http(port)
        good = asyncio.create_task(closed_loop(http, 16, seconds))
        bad: dict[str, list[Answer]] = {kind: [] for kind in reasons}
        ends = time.perf_counter() + 0.8 * seconds
        while time.perf_counter() < ends:
            for kind, found in bad.items():
                found.append(await http.score(kind))
        answers = await good
        http.close()
        return answers, bad

    with serving(lane) as server:
        good, bad = asyncio.run(run(server.port))
    report.counts = {"good": len(good), **{kind: len(found) for kind, found in bad.items()}, **milliseconds(good)}
    for answer in good:
        report.promise(answer.status == 200, f"a good sample got status {answer.status}")
        report.promise(answer.status != 200 or None not in answer.values, "a good sample got no score")
    for kind, found in bad.items():
        for answer in found:
            (score,) = json.loads(answer.body)["scores"]
            judged = (score["value"], score["reason"]) == reasons[kind]
            report.promise(judged, f"{kind}: {score['value']} {score['reason']}")
    report.promise(all(bad.values()), "nothing misbehaved")
    return report


HALF = 0.5  # seconds that one client may wait for another's request


def hostile_bodies() -> dict[str, bytes]:
    """Bodies that are costly to read, by what they are."""
    row = b'{"prompt":"q","response":"%d"}'
    return {
        "a million samples": b'{"scorer":"it","samples":[' + b",".join([row % 1] * 1_000_000) + b"]}",
        "57 MB of empty lists": b'{"scorer":"it","samples":[' + b",".join([b"[]"] * 19_000_000) + b"]}",
        "deep": b'{"scorer":"it","samples":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
        "nearly a million numbers": b'{"scorer":"it","samples":[' + b",".join([b"1.5"] * 990_000) + b"]}",
        "10,000 samples of 3 kB": b'{"scorer":"it","samples":['
        + b",".join(b'{"prompt":"q","response":"%d %s"}' % (n, b"x" * 3000) for n in range(10_000))
        + b"]}",
        "10,000 equal samples": b'{"scorer":"it","samples":[' + b",".join([row % 1] * 10_000) + b"]}",
    }


def bodies(options: Options, seconds: float) -> Report:
    """Large and hostile bodies beside small requests."""
    report = Report(name="bodies")

    async def send(port: int, body: bytes) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body))
        try:
            for start in range(0, len(body), 1 << 20):
                writer.write(body[start : start + (1 << 20)])
                await writer.drain()
        except OSError:  # refused by its length: it is answered, and the connection closed
            pass
        try:
            line = await reader.readline()
        except OSError:
            return 0
        writer.close()
        return int(line.split()[1]) if line else 0

    async def run(port: int) -> tuple[list[Answer], dict[str, Counter[int]]]:
        http, statuses = Http(port), {name: Counter[int]() for name in made}
        ends = time.perf_counter() + seconds
        small = asyncio.create_task(closed_loop(http, 4, seconds))
        for name, body in itertools.cycle(made.items()):
            statuses[name][await send(port, body)] += 1
            if time.perf_counter() > ends - 2 and all(statuses.values()):
                break
        answers = await small
        http.close()
        return answers, statuses

    made = hostile_bodies()
    with serving({"scorer": "exact"}, max_bytes=1 << 26) as server:
        answers, statuses = asyncio.run(run(server.port))
    longest = max(answer.seconds for answer in answers)
    report.counts = {"small": len(answers), "longest ms": round(1e3 * longest), **milliseconds(answers)}
    report.counts |= {name: dict(count) for name, count in statuses.items()}
    report.promise(all(answer.status == 200 for answer in answers), "a small request was not answered")
    report.promise(longest < HALF or not options.times, f"a small request waited {longest:.2f} s")
    for name in ("10,000 samples of 3 kB", "10,000 equal samples"):
        report.promise(set(statuses[name]) == {200}, f"the honest body of {name} got {dict(statuses[name])}")
    return report


def crowd(options: Options, seconds: float) -> Report:
    """Thousands of requests at once."""
    report = Report(name="crowd")

    async def run(port: int) -> list[Answer]:
        http = Http(port)
        answers = await asyncio.gather(*(http.score(f"{number}") for number in range(options.crowd)))
        http.close()
        return answers

    with serving({"scorer": "exact", "waiting": 2 * options.crowd}) as server:
        answers = asyncio.run(run(server.port))
    statuses = Counter(answer.status for answer in answers)
    report.counts = {"sent": len(answers), "answered": statuses[200], **milliseconds(answers)}
    report.promise(statuses[200] == options.crowd, f"statuses {dict(statuses)}")
    return report


def stop(options: Options, seconds: float) -> Report:
    """SIGTERM under load."""
    report = Report(name="stop")

    async def run(server: Server) -> list[Answer]:
        http = Http(server.port)
        load = asyncio.create_task(open_loop(http, 1.5 * BATCH / CALL, seconds))
        await asyncio.sleep(0.7 * seconds)
        server.process.send_signal(signal.SIGTERM)
        answers = await load
        http.close()
        return answers

    with serving(STEADY) as server:
        answers = asyncio.run(run(server))
        code = server.process.wait(PATIENCE)
        lines = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith('{"request_id"')]
    accepted = {line["request_id"] for line in lines if "samples" in line and line["status"] != 503}
    answered = {answer.identity for answer in answers if answer.status == 200}
    statuses = Counter(answer.status for answer in answers)
    report.counts = {
        "sent": len(answers),
        "accepted": len(accepted),
        "answered": len(answered),
        "refused": statuses[503],
        "not let in": statuses[0],
        "exit code": code,
    }
    report.promise(accepted == answered, f"accepted and not answered: {sorted(accepted - answered)[:5]}")
    report.promise(bool(answered) and statuses[0] > 0, "it was not stopped under load")
    report.promise(code == 0, f"exit code {code}")
    return report


def kill(options: Options, seconds: float) -> Report:
    """SIGKILL under load, and another server in its place."""
    report = Report(name="kill")
    count = int(seconds * BATCH / CALL)
    rows = [Sample(prompt="q", response="x" * (1 + n % 50), id=f"{n}", extra={"n": n}) for n in range(count)]
    with serving(STEADY | {"waiting": 10_000}) as first:
        client = Client(ClientConfig(url=f"http://127.0.0.1:{first.port}", chunk=8))
        found: list[list[Score]] = []
        thread = _started(lambda: found.append(client.score(rows, "it")))
        time.sleep(0.4 * seconds)
        early = not thread.is_alive()
        first.process.kill()
        first.process.wait(PATIENCE)
        with serving(STEADY | {"waiting": 10_000}, first.port):
            thread.join(PATIENCE + 2 * seconds)
            client.close()
    scores = found[0] if found else []
    right = sum(score.value == len(row.response) for score, row in zip(scores, rows, strict=False))
    report.counts = {"sent": count, "scored": right}
    report.promise(not early, "it was done before the server was killed")
    report.promise(right == count, f"{count - right} samples without their score")
    return report


def _started(work: Callable[[], None]) -> Any:
    import threading

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def idle(options: Options, seconds: float) -> Report:
    """Thousands of connections that say nothing."""
    report = Report(name="idle")

    async def run(port: int) -> tuple[list[Answer], list[Answer], int]:
        http = Http(port)
        without = await closed_loop(http, 1, seconds / 4)
        silent = []
        for number in range(options.idle):  # a source address has too few ports for tens of thousands
            source = (f"127.0.0.{2 + number // 20_000}", 0)
            silent.append(await asyncio.open_connection("127.0.0.1", port, local_addr=source))
        beside = await closed_loop(http, 1, seconds / 4)
        still = sum(not reader.at_eof() for reader, _ in silent)
        for _, writer in silent:
            writer.close()
        http.close()
        return without, beside, still

    with serving({"scorer": "exact"}, body_seconds=max(30.0, seconds)) as server:
        without, beside, still = asyncio.run(run(server.port))
    report.counts = {"connections": still, "requests": len(beside), "p99 ms without": milliseconds(without)["p99 ms"]}
    report.counts |= milliseconds(beside)
    report.promise(still == options.idle, f"only {still} of {options.idle} connections were held")
    report.promise(all(answer.status == 200 for answer in beside), "a request was not answered")
    slower = percentile([a.seconds for a in beside], 0.5) - percentile([a.seconds for a in without], 0.5)
    report.promise(slower < 0.05 or not options.times, f"a request takes {slower:.3f} s longer")
    return report


def slow(options: Options, seconds: float) -> Report:
    """Heads and bodies that come a byte at a time."""
    report = Report(name="slow")
    patience = min(5.0, seconds / 3)

    async def drip(port: int, head: bool) -> bool:
        """Send a byte now and then; return whether the server ended it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /v1/score HTTP/1.1\r\nHost: x\r\n" + (b"" if head else b"Content-Length: 100000\r\n\r\n"))
        begun = time.perf_counter()
        ended = False
        while not ended and time.perf_counter() - begun < PATIENCE:
            try:
                writer.write(b"x")
                await writer.drain()
                await asyncio.wait_for(reader.read(1000), 0.1)
                ended = reader.at_eof()
            except OSError as error:  # a reset is the server's, and a time limit ours
                ended = not isinstance(error, TimeoutError)
        writer.close()
        return ended

    async def run(port: int) -> tuple[list[bool], list[Answer]]:
        http = Http(port)
        drips = asyncio.gather(*(drip(port, bool(number % 2)) for number in range(options.slow)))
        answers = await closed_loop(http, 2, seconds)
        http.close()
        return await drips, answers

    with serving({"scorer": "exact"}, body_seconds=patience) as server:
        ended, answers = asyncio.run(run(server.port))
    report.counts = {"slow": len(ended), "ended": sum(ended), "requests": len(answers), **milliseconds(answers)}
    report.promise(all(ended), f"{len(ended) - sum(ended)} slow connections were not ended")
    report.promise(all(answer.status == 200 for answer in answers), "a request was not answered")
    return report


def clock(options: Options, seconds: float) -> Report:
    """The wall clock is set while requests wait."""
    report = Report(name="clock")
    hour = 3600.0
    jumps = (5 * hour, -9 * hour, 0.0, 400 * 24 * hour, -24 * hour, 0.0)

    async def run(port: int, off: Path) -> tuple[list[Answer], list[Answer]]:
        http = Http(port)
        load = asyncio.create_task(open_loop(http, 0.5 * BATCH / CALL, seconds))
        again = [await http.score("once", key="once", within=PATIENCE)]
        for jump in jumps:
            await asyncio.sleep(seconds / (len(jumps) + 1))
            draft = off.with_suffix(".new")
            draft.write_text(f"{jump}")
            draft.replace(off)
            again.append(await http.score("once", key="once", within=PATIENCE))
        answers = await load
        http.close()
        return answers, again

    with tempfile.TemporaryDirectory() as folder:
        off = Path(folder, "off")
        off.write_text("0")
        lane = STEADY | {"cache": str(Path(folder, "cache"))}
        with serving(lane, environment={CLOCK: str(off)}, max_under_way=QUEUE + 1) as server:
            answers, again = asyncio.run(run(server.port, off))
            accepted = int(server.metric("adjudge_accepted_total"))
            time.sleep(1.5)  # the page looks once a second
            page = json.loads(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/dashboard").read())
    (shown,) = page["scorers"]
    rows, interval = shown["run"]["rows"], shown["run"]["interval"]
    statuses = Counter(answer.status for answer in answers)
    report.counts = {
        "sent": len(answers),
        "answered": statuses[200],
        "jumps": len(jumps),
        "charted": sum(row[3] for row in rows),
        "chart s": (rows[-1][0] - rows[0][0] + 1) * interval,
        **milliseconds(answers),
    }
    report.promise(set(statuses) == {200}, f"statuses {dict(statuses)}")
    values = [answer.values for answer in answers if answer.status == 200]
    report.promise(all(None not in value for value in values), "a sample got no score")
    report.promise(len({answer.body for answer in again}) == 1, "a key's answer was not the first one")
    report.promise(accepted == len(answers) + 1, f"{accepted} accepted of {len(answers) + 1}")
    report.promise(report.counts["charted"] == accepted, "the chart of the whole run has other answers")
    taken = page["now"] - page["started"]
    report.promise(0 < taken < 2 * seconds + PATIENCE, f"the page says that the server runs for {taken:.0f} s")
    report.promise(report.counts["chart s"] <= taken + 20, "the chart is longer than the run")
    late = percentile([answer.seconds for answer in answers], 0.99) > QUEUE / BATCH * CALL
    report.promise(not (late and options.times), "answers took as long as if the queue were full")
    return report


SCENARIOS: dict[str, Callable[[Options, float], Report]] = {
    "overload": overload,
    "misbehaviour": misbehaviour,
    "bodies": bodies,
    "crowd": crowd,
    "stop": stop,
    "kill": kill,
    "idle": idle,
    "slow": slow,
    "clock": clock,
}


def main() -> None:
    options = tyro.cli(Options)
    if unknown := set(options.scenarios) - set(SCENARIOS):
        raise SystemExit(f"there is no scenario {sorted(unknown)[0]!r}; there are {', '.join(SCENARIOS)}")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    table = Table(title=f"{options.minutes:g} minutes")
    for head in ("scenario", "what was counted", "promises that did not hold"):
        table.add_column(head)
    failed = False
    for name in options.scenarios:
        report = SCENARIOS[name](options, 60 * options.minutes / len(options.scenarios))
        counts = ", ".join(f"{what} {count}" for what, count in report.counts.items())
        table.add_row(name, counts, "; ".join(dict.fromkeys(report.broken)) or "none")
        failed = failed or bool(report.broken)
    Console(width=140).print(table)
    sys.exit(failed)


if __name__ == "__main__":
    main()
