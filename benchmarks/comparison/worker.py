"""One verifier in a process of its own, and who asks it: a call that takes too long or kills the process is counted.

The process is kept from call to call and replaced when it is lost.  Code of others runs in bubblewrap, without a
network, on read-only files and with limits: it runs programs that attack it, and some of it runs what it is given.

Not covered: how much memory a verifier takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from benchmarks.verifier_peers import Peer

from adjudge.protocol import Sample

ROOT = Path(__file__).parents[2]
_ISOLATED = [
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--dev", "/dev"),
    *("--proc", "/proc", "--size", str(1 << 30), "--tmpfs", "/tmp"),
]
_LIMITS = ["prlimit", f"--as={8 << 30}", f"--fsize={256 << 20}", "--nproc=256"]
_TO_START = 120.0  # seconds


class MissingError(Exception):
    """What a verifier lacks here."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of a call.

    Attributes:
        verdict: "accepts", "rejects", "undecided", "crashed" (an exception, or the process is gone) or "hangs".
        seconds: that it took, without the way there and back; the limit where it hangs.
        error: of a crash.
        lost: whether the process is gone.
    """

    verdict: str
    seconds: float
    error: str = ""
    lost: bool = False


class Asked:
    """A verifier that is asked, in a process of its own.

    Attributes:
        title: its name with its version.
    """

    def __init__(
        self, peers: str, task: str, name: str, *, folders: Sequence[str], visible: Sequence[str], limit: float
    ):
        """Hold what to start.

        Args:
            peers: module with `PEERS`.
            task: key of `PEERS`.
            name: of the verifier in it.
            folders: where further packages are.
            visible: files below /tmp that it needs to see.
            limit: wall seconds of a call.
        """
        self.limit, self.title = limit, name
        self._command = [sys.executable, "-m", "benchmarks.comparison.worker", peers, task, name, *folders]
        if name != "adjudge":
            shown = [part for path in (*folders, *visible, str(ROOT)) for part in ("--ro-bind", path, path)]
            self._command = [*_ISOLATED, *shown, "--chdir", "/tmp", *_LIMITS, *self._command]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Asked:
        """Start it.

        Raises:
            MissingError: it cannot be started here.
        """
        if shutil.which(self._command[0]) is None:
            raise MissingError(f"the program {self._command[0]} is not installed")
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._end()

    def ask(self, sample: Sample) -> Outcome:
        """Return what it says of a sample."""
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asdict(sample)).encode() + b"\n")
            process.stdin.flush()
        try:
            line = self._line(self.limit)
        except TimeoutError:
            self._end()
            return Outcome(verdict="hangs", seconds=self.limit, lost=True)
        if line is None:
            self._end()
            return Outcome(verdict="crashed", seconds=0.0, error="the process is gone", lost=True)
        return Outcome(**line)

    def _start(self) -> None:
        paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "HOME": "/tmp"}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, start_new_session=True,
        )  # fmt: skip
        line = self._line(_TO_START)
        if line is None or "missing" in line:
            self._end()
            raise MissingError(line["missing"] if line else "its process ended while it was started")
        self.title = line["title"]

    def _line(self, seconds: float) -> dict[str, Any] | None:
        """Return the next line that the process writes; None where it is gone."""
        assert self._process is not None
        assert self._process.stdout is not None
        file, until, read = self._process.stdout.fileno(), time.monotonic() + seconds, b""
        while not read.endswith(b"\n"):
            if not select.select([file], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            more = os.read(file, 1 << 16)
            if not more:
                return None
            read += more
        found: dict[str, Any] = json.loads(read)
        return found

    def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None


def _judged(peer: Peer, lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield first what the verifier is, then what it says of each line."""
    if peer.missing:
        yield {"missing": peer.missing}
        return
    try:
        judge = peer.make()
    except ImportError as error:
        yield {"missing": f"cannot be imported here: {error}"}
        return
    yield {"title": peer.title}
    for line in lines:
        sample = Sample(**json.loads(line))
        started = time.perf_counter()
        try:
            paid = judge(sample)
        except BaseException as error:  # noqa: BLE001  # some end the process or derive from nothing else
            took = time.perf_counter() - started
            yield {"verdict": "crashed", "seconds": took, "error": f"{type(error).__name__}: {error}"[:200]}
            continue
        took = time.perf_counter() - started
        yield {"verdict": "undecided" if paid is None else "accepts" if paid else "rejects", "seconds": took}


def main(peers: str, task: str, name: str, *folders: str) -> None:
    """Judge the samples on standard input; what the verifier prints is dropped."""
    sys.path.extend(folders)
    answers, lines = os.fdopen(os.dup(1), "w"), os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for said in _judged(import_module(peers).PEERS[task][name], lines):
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
