"""`adjudge serve` in a process of its own, and scorers for it: one of known speed, and one that misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from adjudge import Limits, Sample, Score, Verifier

BATCH, CALL = 4, 0.02  # of `Steady`: samples in a call, and the seconds a call takes
PATIENCE = 60.0
HERE = Path(__file__).parent

CLOCK = "ADJUDGE_BENCHMARK_CLOCK"
if CLOCK in os.environ:  # in a server of `clock`: its wall clock is off by the seconds that stand in a file
    _shown, _shown_ns, _off = time.time, time.time_ns, Path(os.environ[CLOCK])
    time.time = lambda: _shown() + float(_off.read_text())
    time.time_ns = lambda: _shown_ns() + int(1e9 * float(_off.read_text()))


class Steady:
    """A scorer of known speed: scores by length, a call at a time."""

    name = "steady"
    fingerprint = "steady:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        """Take a while, and score."""
        await asyncio.sleep(CALL)
        return [Score.scored(float(len(sample.response))) for sample in samples]


@dataclass(frozen=True, kw_only=True)
class Moody(Verifier):
    """Scores by length; and dies, hangs, eats memory, raises or gives NaN where the response says so."""

    name: ClassVar[str] = "moody"
    needs_reference: ClassVar[bool] = False
    limits: ClassVar[Limits] = Limits(seconds=1.0, memory_mb=128)

    def verify(self, sample: Sample) -> Score:
        """Do as the response says."""
        if sample.response == "die":
            os._exit(1)
        while sample.response == "hang":
            pass
        eaten = []
        while sample.response == "eat":
            eaten.append(bytearray(1 << 26))
        if sample.response == "raise":
            raise RuntimeError("as it was told")
        if sample.response == "nan":
            return Score.scored(float("nan"))
        return Score.scored(float(len(sample.response)))


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running `adjudge serve`."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    def metric(self, name: str) -> float:
        """Return a number of its only scorer."""
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE).read().decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f'{name}{{scorer="it"}}')]
        return float(line.split()[-1])


@contextmanager
def serving(
    lane: dict[str, Any], port: int = 0, *, environment: dict[str, str] | None = None, **settings: Any
) -> Iterator[Server]:
    """Start a server and wait until it is ready."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        if not port:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            probe.close()
        config, log = Path(folder, "serve.json"), Path(folder, "log")
        config.write_text(json.dumps({"port": port, "scorers": {"it": lane}, **settings}))
        environment = {**os.environ, **(environment or {})} | {
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        }  # where the scorers above are found
        with log.open("wb") as written:
            command = [sys.executable, "-m", "adjudge.cli.main", "serve", "--config", str(config)]
            process = subprocess.Popen(command, env=environment, stdout=written, stderr=written)
        try:
            _wait_until_ready(port, process, log)
            yield Server(port=port, process=process, log=log)
        finally:
            process.kill()
            process.wait(PATIENCE)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and process.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).close()
            return
        time.sleep(0.05)
    raise SystemExit(log.read_text())
