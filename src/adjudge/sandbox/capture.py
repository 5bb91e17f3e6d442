"""Reading what a program prints, feeding what it reads, and noticing when it goes over its limits.

Not covered: who kills; the caller does, told by the return value.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.sandbox.program import Ending, RunResult
from adjudge.sandbox.time_limit import TimeLimit

_CHUNK = 1 << 16
OPEN_TO_ALL = 0o666
"""Mode of a program's pipes: it runs as another user than the one who made them, and may open `/dev/stdin` by name."""

Excess = Literal["timeout", "memory", "output"]


@dataclass(slots=True)
class Captured:
    """What a program printed so far, cut at the limit, and the limit that was passed."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    excess: Excess | None = None

    def result(self, ending: Ending, code: int | None, seconds: float, limit: TimeLimit, **more: Any) -> RunResult:
        """Return what came of the run; `more` are other fields."""
        out, err = bytes(self.stdout), bytes(self.stderr)
        return RunResult(ending=ending, code=code, stdout=out, stderr=err, seconds=seconds, charged=limit.total, **more)


@dataclass(frozen=True, slots=True)
class Streams:
    """Our ends of a program's pipes, and a descriptor that becomes readable when its main process ends."""

    stdin: int
    stdout: int
    stderr: int
    ended: int


def streams_of(process: subprocess.Popen[bytes], held: contextlib.ExitStack) -> Streams:
    """Return the streams of a process with pipes for all three; `held` closes what `converse` leaves open."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    held.enter_context(process.stdout)
    held.enter_context(process.stderr)
    ended = os.pidfd_open(process.pid)
    held.callback(os.close, ended)
    for stream in (process.stdin, process.stdout, process.stderr):
        os.fchmod(stream.fileno(), OPEN_TO_ALL)
    stdin = os.dup(process.stdin.fileno())
    process.stdin.close()
    return Streams(stdin, process.stdout.fileno(), process.stderr.fileno(), ended)


def converse(
    streams: Streams,
    stdin: bytes,
    limit: TimeLimit,
    output_bytes: int,
    over_memory: Callable[[], bool] | None = None,
    interval: float = 0.02,
) -> Captured:
    """Exchange data with a program until it ends or passes a limit; the program is left running in the latter case.

    Its standard input is closed when all was sent, or when the program no longer listens.

    Output is read up to `output_bytes` of either stream, whose pipes stay open; `over_memory` is asked every `interval`
    seconds, where the kernel does not watch.

    Raises:
        OverloadedError: the machine let it wait for too long.
    """
    got = Captured()
    into = {streams.stdout: got.stdout, streams.stderr: got.stderr}
    unsent = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        for fd in (streams.stdin, *into):
            os.set_blocking(fd, False)
        if stdin:
            selector.register(streams.stdin, selectors.EVENT_WRITE)
        else:
            os.close(streams.stdin)
        for fd in (*into, streams.ended):
            selector.register(fd, selectors.EVENT_READ)
        try:
            while got.excess is None:
                if (left := limit.left()) <= 0:
                    got.excess = "timeout"
                    break
                ready = {key.fd for key, _ in selector.select(min(left, interval) if over_memory else left)}
                if streams.stdin in ready and unsent:
                    unsent = _feed(selector, streams.stdin, unsent)
                if not all(_drain(fd, into[fd], output_bytes, selector) for fd in into if fd in ready):
                    got.excess = "output"
                elif streams.ended in ready:
                    got.excess = None if all(_drain(*pipe, output_bytes) for pipe in into.items()) else "output"
                    break
                elif over_memory is not None and over_memory():
                    got.excess = "memory"
        finally:
            if unsent:
                os.close(streams.stdin)
    return got


def _feed(selector: selectors.BaseSelector, fd: int, unsent: memoryview) -> memoryview:
    try:
        unsent = unsent[os.write(fd, unsent[:_CHUNK]) :]
    except BlockingIOError:
        return unsent
    except OSError:
        unsent = unsent[:0]  # the program closed its standard input
    if not unsent:
        selector.unregister(fd)
        os.close(fd)
    return unsent


def _drain(fd: int, sink: bytearray, most: int, selector: selectors.BaseSelector | None = None) -> bool:
    """Read once, or without a selector all that a program left when it ended; return whether it kept to its limit.

    What its own children would still write is not awaited.
    """
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, _CHUNK):
            sink += data
            if len(sink) > most:
                del sink[most:]
                return False
            if selector is not None:
                return True
        if selector is not None:
            selector.unregister(fd)
    return True
