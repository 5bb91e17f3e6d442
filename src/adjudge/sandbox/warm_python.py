"""Python programs in warm sandboxes: one zygote for each set of imports, started on first use, replaced when lost.

`shared(isolation)` gives the instance of this process.  A worker process of a pool keeps it for its whole life; after
a fork the child makes its own, and the sandboxes end with the process that made them.

Not covered: several runs at a time from several threads; a lock lets them wait for each other.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import importlib.util
import os
import re
import sys
import threading
import time
from typing import Any

from adjudge.sandbox import codec, frames
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.capture import OPEN_TO_ALL, Captured, Streams, converse
from adjudge.sandbox.program import Ending, RunLimits, RunResult
from adjudge.sandbox.sandbox import Isolation
from adjudge.sandbox.time_limit import TimeLimit
from adjudge.sandbox.zygote import PLAIN_IMPORTS, Ended, Run, Zygote, ZygoteLostError

_IMPORT = re.compile(  # as a statement, be it in a text that is executed, or as a call
    r"(?:(?:^|[;:'\"])[ \t]*(?:import|from)[ \t]+|(?:\b__import__|\bimport_module)[ \t]*\([ \t]*['\"])"
    r"([A-Za-z_][\w.]*(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*)*)",
    re.MULTILINE,
)
_PRELOADED = {  # worth 100 to 250 ms of every run that imports them, with what they load late themselves
    "numpy": ("numpy.random",),
    "pytest": ("unittest", *(f"_pytest.{name}" for name in ("helpconfig", "skipping", "unittest", "warnings"))),
}

_ADD_SEALS, _ALL_SEALS = 1033, 0xF  # of Linux's fcntl.h: no seals, no size and no byte may change

Flavour = tuple[bool, tuple[str, ...]]
"""Whether installed packages can be imported, and which of them are loaded beforehand."""


def flavour_of(*sources: str) -> Flavour:
    """Return what a program's imports, read by their look, ask for."""
    names = {name.strip().partition(".")[0] for source in sources for listed in _IMPORT.findall(source)
             for name in listed.split(",")}  # fmt: skip
    foreign = names - sys.stdlib_module_names
    return bool(foreign), tuple(name for name in _PRELOADED if name in foreign and _installed(name))


@functools.cache
def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None  # 0.2 ms


class WarmPython:
    """The zygotes of this process."""

    def __init__(self, isolation: Isolation = "bubblewrap") -> None:
        self.isolation: Isolation = isolation
        self._zygotes: dict[tuple[str, Flavour], Zygote] = {}
        self.lock = threading.RLock()

    def zygote(self, role: str = "candidate", flavour: Flavour = (False, ())) -> Zygote:
        """Return a live zygote; each role has its own, so that their runs may overlap.

        Raises:
            SandboxUnavailableError: none can be started.
        """
        key = (role, flavour)
        zygote = self._zygotes.get(key)
        if zygote is None or not zygote.alive:
            packages, extra = flavour
            try:
                late = (module for name in extra for module in _PRELOADED[name])
                zygote = Zygote(self.isolation, packages, (*PLAIN_IMPORTS, *extra, *late))
            except ZygoteLostError as error:
                raise SandboxUnavailableError(f"a warm Python cannot be started: {error}") from error
            self._zygotes[key] = zygote
        return zygote

    def script(
        self, source: str, stdin: bytes, limits: RunLimits, flavour: Flavour = (False, ()), argv: tuple[str, ...] = ()
    ) -> tuple[RunResult, str]:
        """Run a source as a main program.

        Returns:
            What came of it, and why it could not be parsed, else "".

        Raises:
            SandboxUnavailableError: there is no sandbox.
            OverloadedError: the machine let the program wait for too long.
            ZygoteLostError: the sandbox was lost during the run.
        """
        with self.lock, contextlib.ExitStack() as held:
            run = held.enter_context(self.zygote("candidate", flavour).run(limits))
            job = {"source": source, "filename": "solution.py", "argv": list(argv)}
            given = _file_of(stdin)
            stdin_write, stdout, stderr = begun(run, job, held, given)
            started = time.monotonic()
            limit = TimeLimit(limits.seconds, [run.pid], fresh=False)
            unparsable = ""
            try:
                answer = codec.loads(frames.receive(run.channel, limit.left) or b"null")
                if type(answer) is tuple and answer[:1] == ("unparsable",):
                    unparsable = str(answer[1])
            except (frames.FrameError, codec.CodecError):
                pass  # how the run ended says more
            streams = Streams(stdin_write, stdout, stderr, run.ended)
            sent = stdin if given is None else b""
            got = converse(streams, sent, limit, limits.output_bytes, run.over_memory)
            seconds = time.monotonic() - started
            ended = run.end()
            ending, code = ending_of(got, ended)
            return got.result(ending, code, seconds, limit, memory_mb=ended.memory_mb), unparsable

    def close(self) -> None:
        """End all sandboxes of this process."""
        zygotes, self._zygotes = self._zygotes, {}
        for zygote in zygotes.values():
            zygote.close()


def _file_of(data: bytes) -> int | None:
    """Return a file that holds what a program reads and that nobody can change; None where there are none such.

    Programs that read all at once ask for its size, `os.read(0, os.fstat(0).st_size)`, which a pipe has not.
    """
    if not hasattr(os, "memfd_create"):
        return None
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, _ADD_SEALS, _ALL_SEALS)
    return fd


def begun(run: Run, job: dict[str, Any], held: contextlib.ExitStack, given: int | None = None) -> tuple[int, int, int]:
    """Give a run a source and return our ends of its standard streams; `held` closes the two for output.

    It reads the file `given`, which is closed here, or a pipe.

    Raises:
        ZygoteLostError: the sandbox was lost.
        CodecError: the source is too long to be sent.
    """
    (stdout, stdout_write), (stderr, stderr_write) = os.pipe(), os.pipe()
    stdin_read, stdin = os.pipe() if given is None else (given, os.open(os.devnull, os.O_WRONLY))
    held.callback(os.close, stdout)
    held.callback(os.close, stderr)
    for fd in (stdin_read, stdout, stderr):
        os.fchmod(fd, OPEN_TO_ALL)
    theirs = (stdin_read, stdout_write, stderr_write)
    try:
        run.begin("script", job, theirs)
    except BaseException:
        os.close(stdin)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    return stdin, stdout, stderr


def ending_of(got: Captured, ended: Ended) -> tuple[Ending, int | None]:
    """Return how a run ended, as `RunResult` says it."""
    if ended.out_of_memory:
        return "memory", None
    if got.excess is not None:
        return got.excess, None
    return ("signalled", -ended.code) if ended.code < 0 else ("exited", ended.code)


# By process id: those of the parent process are of no use after a fork.
_SHARED: dict[tuple[int, Isolation], WarmPython] = {}


def shared(isolation: Isolation) -> WarmPython:
    """Return the warm Python of this process."""
    key = (os.getpid(), isolation)
    if key not in _SHARED:
        _SHARED[key] = WarmPython(isolation)
    return _SHARED[key]


@atexit.register
def _close_all() -> None:
    for (process, _), warm in _SHARED.items():
        if process == os.getpid():
            warm.close()
