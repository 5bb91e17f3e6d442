"""`Zygote`: a warm Python in a sandbox, of which every run is a fork with nothing shared but the imports.

A run costs 2 to 3 ms instead of the 40 ms of a fresh sandbox with a fresh interpreter, and most of that is spent ahead:
while one run is under way the next is made, up to the point where it waits for its job.  The fork server
(`zygote_guest`) never runs anybody's code, and neither has a run that waits; what a run does to its memory, files,
processes, namespaces or streams ends with it.  One run at a time; a second zygote is another sandbox.

Not covered: what travels over a run's channel (`codec`, `peer`), and Python versions other than the one this runs on.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from adjudge.sandbox import codec, frames
from adjudge.sandbox.bubblewrap import (
    ENVIRONMENT,
    OPEN_FILES,
    USER,
    Enclosure,
    Layout,
    counts_processes_by_namespace,
    find_tools,
    wait_readable,
)
from adjudge.sandbox.cgroup import Group, tree_exceeds
from adjudge.sandbox.program import RunLimits
from adjudge.sandbox.sandbox import Isolation
from adjudge.sandbox.seccomp import syscall_filter

_HERE = Path(__file__).parent
_FILES = (
    "aliases.py", "codec.py", "fork_hooks.py", "frames.py", "library_values.py", "operations.py", "peer.py",
    "raised.py", "remote.py", "served.py", "guest.py", "guest_tests.py", "zygote_guest.py",
)  # fmt: skip
_PLACE = "/opt/guest/adjudge/sandbox"
_BOOT = (  # the hooks come first: what is imported afterwards may register some
    "import sys; sys.path[:0] = sys.argv[3:]; from adjudge.sandbox import fork_hooks; "
    "fork_hooks.keep_back(); from adjudge.sandbox import zygote_guest; zygote_guest.main(*sys.argv[1:3])"
)
_ANSWER_SECONDS = 60.0  # a fork takes 2 ms, and killing a run that holds a gigabyte 0.2 s
_START_SECONDS = 60.0
_OVERHEAD_MB = 64  # what the server and the run that waits may hold beside the run, in the group's account
_OTHERS = 3  # processes in the group beside the run's: those two and bubblewrap's own
_TRIES = 3  # the run made ahead may be gone, or not be made: another that takes all memory or processes can do that
_SPARE_PROCESSES = 8  # the limit counts those of the tests, too

PLAIN_IMPORTS = (
    "array", "bisect", "collections", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools",
    "heapq", "io", "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "sys", "threading",
    "time", "traceback", "typing", "hashlib", "unicodedata", "numbers", "abc", "contextlib", "textwrap", "inspect",
)  # fmt: skip


class ZygoteLostError(RuntimeError):
    """The fork server is gone or does not answer; the run it was at has no result."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its exit status, or minus the signal's number; the most MiB it held; whether those ended it."""

    code: int = 0
    memory_mb: float = 0.0
    out_of_memory: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """A run; it waits until it is given its job.

    Its `channel` is a private socket; `ended` becomes readable when its first process has ended.
    """

    zygote: Zygote
    number: int
    light: bool
    disk_mb: int
    channel: socket.socket
    ended: int
    limits: RunLimits | None = None
    _ended: Ended | None = None

    def prepared(self, seconds: float) -> bool:
        """Return whether it was made, and still is there, once it has said so or ended."""
        self.channel.settimeout(seconds)
        try:
            said = self.channel.recv(len(frames.PREPARED))
        except ConnectionError:
            return False
        return said == frames.PREPARED and not wait_readable(self.ended, 0.0)

    def begin(
        self, kind: str, job: dict[str, Any], streams: Sequence[int] = (), peer: socket.socket | None = None
    ) -> None:
        """Give it its job; its time begins.

        The kinds of jobs are those of `adjudge.sandbox.guest`, and a job is plain data.  Streams are descriptors of its
        standard input, output and error, the null device by default; `peer` is a second socket for it.

        Raises:
            ZygoteLostError: it was gone before it had its job.
            CodecError: the job is not plain data, or too much of it.
        """
        assert self.limits is not None
        frame = codec.dumps((self.zygote.setup(self.limits, len(streams)), kind, job))
        if len(frame) > frames.MOST:
            raise codec.CodecError(f"a job of {len(frame)} bytes is longer than {frames.MOST}")
        fds = [*streams] if peer is None else [*streams, peer.fileno()]
        try:
            frames.send(self.channel, frame, time.monotonic() + _ANSWER_SECONDS, fds)
            self.channel.settimeout(_ANSWER_SECONDS)
            taken = self.channel.recv(len(frames.TAKEN)) == frames.TAKEN
        except (frames.FrameError, OSError) as error:
            raise ZygoteLostError(f"a run was gone before it had its job: {error}") from error
        if not taken:
            raise ZygoteLostError("a run was gone before it had its job")
        self.zygote.make(self.light, self.disk_mb)  # the next one, while this one runs

    @property
    def pid(self) -> int:
        """Its first process, as the host counts it; -1 once that has ended."""
        fd = os.open(f"/proc/self/fdinfo/{self.ended}", os.O_RDONLY)
        try:
            return int(os.read(fd, 4096).partition(b"\nPid:")[2].split(b"\n")[0])
        finally:
            os.close(fd)

    @property
    def over_memory(self) -> Callable[[], bool] | None:
        """What to ask now and then whether it holds too much; None where the kernel watches, or nobody does."""
        assert self.limits is not None
        return self.zygote.watch(self.limits.memory_mb)

    def end(self) -> Ended:
        """Kill what is left of it and return how it ended.

        Raises:
            ZygoteLostError: the server is gone.
        """
        if self._ended is None:
            self.close()
            self._ended = self.zygote.end(self.number)
        return self._ended

    def end_later(self) -> None:
        """Kill what is left of it without waiting; for runs whose end tells nothing."""
        if self._ended is None and self.zygote.alive:
            self.close()
            self._ended = Ended()
            self.zygote.order(frames.Order(frames.END, self.number))

    def close(self) -> None:
        """Close what connects to it."""
        self.channel.close()
        if self.ended >= 0:
            os.close(self.ended)
            self.ended = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
        if self._ended is None and self.zygote.alive:
            with contextlib.suppress(ZygoteLostError):
                self.end()


class Zygote:
    """One warm interpreter; not for several threads at once.

    Args:
        isolation: "bubblewrap", or "none" for programs you trust.
        packages: whether runs may import what is installed beside this interpreter (numpy, ...), or the standard
            library alone.
        preload: modules to import before the first run.

    Raises:
        SandboxUnavailableError: this host cannot isolate.
        ZygoteLostError: the server did not start.
    """

    def __init__(
        self, isolation: Isolation = "bubblewrap", packages: bool = False, preload: Sequence[str] = PLAIN_IMPORTS
    ) -> None:
        self._isolation = isolation
        self._owner = os.getpid()
        self._group: Group | None = None
        self._box: Enclosure | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._folders = _site_folders() if packages else []
        self._control, theirs = socket.socketpair()
        self._outstanding = 1  # answers still to come; the first says that the server is ready
        self._made = 0
        self._spare: Run | None = None
        self._last = frames.Order(frames.READY)
        self.alive = True
        try:
            with theirs:
                self._launch(theirs, tuple(preload))
            self._settle(_START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The server's process id, as the host counts it."""
        assert self._process is not None
        return self._process.pid if self._box is None else self._box.pid

    def _launch(self, theirs: socket.socket, preload: tuple[str, ...]) -> None:
        isolated = self._isolation != "none"
        options = {
            "isolated": isolated,
            "superuser": os.geteuid() == 0,
            "user": USER,
            "seccomp": base64.b64encode(syscall_filter()).decode() if isolated else "",
            "environment": dict(ENVIRONMENT),
            "preload": preload,
        }
        # the one below the prefix that the sandbox shows; a virtual environment's is a link to it
        command = [os.path.realpath(sys.executable), "-P", "-S", "-s", "-B", "-c", _BOOT]
        null = subprocess.DEVNULL
        # bound now, because else each run binds the functions it calls; runs do not see the variable
        environment = {**ENVIRONMENT, "LD_BIND_NOW": "1"}
        if not isolated:
            root = str(_HERE.parents[1])
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), json.dumps(options), root, *self._folders],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=null,
                stdout=null,
                stderr=null,
                start_new_session=True,
            )
            return
        layout = Layout(find_tools(), RunLimits(), server=True)
        with contextlib.closing(layout):
            for name in _FILES:
                layout.file(f"{_PLACE}/{name}", (_HERE / name).read_bytes(), writable=False)
            layout.read_only([sys.base_prefix])
            # not at their own places: one below /tmp would vanish behind the /tmp of a run
            places = [f"/opt/packages/{number}" for number in range(len(self._folders))]
            for folder, place in zip(self._folders, places, strict=True):
                layout.show(folder, place)
            control = os.dup(theirs.fileno())
            layout.fds.append(control)
            command += [str(control), json.dumps(options), "/opt/guest", *places]
            self._group = Group.make()
            self._box = Enclosure(layout, command, environment, null, null, self._group)
        self._process = self._box.process
        self._box.lift()
        self._box.open()

    def run(self, limits: RunLimits, light: bool = False) -> Run:
        """Return a run that waits for its job.

        A light one is for code that is trusted, such as tests: it has files, shared memory and processes of its own,
        but not a network and `/proc` of its own beside those of the sandbox.  The seconds of the limits are the
        caller's to keep, by `Run.end`.

        Raises:
            ZygoteLostError: the server is gone.
        """
        if os.getpid() != self._owner:
            raise ZygoteLostError("this zygote belongs to the process that made it")
        self._settle()
        for _ in range(_TRIES):
            if self._spare is None:
                self.make(light, limits.disk_mb)
                self._settle()
            run, self._spare = self._spare, None
            if run is None:
                continue
            if self._fits(run, light, limits.disk_mb):
                break
            run.end_later()
        else:
            raise self._lost("it makes no runs")
        try:
            if self._group is not None:
                self._group.hold((limits.memory_mb + _OVERHEAD_MB) << 20, limits.processes + _OTHERS)
        except OSError as error:
            run.close()
            raise self._lost(f"its group is gone: {error}") from error
        run.limits = limits
        return run

    def _fits(self, run: Run, light: bool, disk_mb: int) -> bool:
        try:
            return (run.light, run.disk_mb) == (light, disk_mb) and run.prepared(_ANSWER_SECONDS)
        except OSError as error:
            run.close()
            raise self._lost(str(error) or type(error).__name__) from error

    def setup(self, limits: RunLimits, streams: int) -> dict[str, Any]:
        """Return what a run is told beside its job."""
        # without a sandbox the limit would count all of this user's processes
        counted = self._box is not None and counts_processes_by_namespace()
        return {
            "memory_mb": limits.memory_mb,
            "disk_mb": limits.disk_mb,
            "processes": limits.processes + _SPARE_PROCESSES if counted else None,
            "cpu_seconds": int(limits.seconds * 64) + 2,
            "open_files": OPEN_FILES,
            "streams": list(range(streams)),
        }

    def end(self, number: int) -> Ended:
        """Kill a run; see `Run.end`."""
        self.order(frames.Order(frames.END, number))
        self._settle()
        peak = self.peak_mb
        return Ended(
            code=self._last.code,
            memory_mb=self._last.size / 1024 if peak is None else peak,
            out_of_memory=self._group is not None and self._group.killed(),
        )

    @property
    def peak_mb(self) -> float | None:
        """The most memory the sandbox has held since the run began, in MiB; None where the kernel does not say."""
        return None if self._group is None else self._group.peak_mb()

    def watch(self, memory_mb: int) -> Callable[[], bool] | None:
        """Return what tells whether the run holds more than so many MiB; None where that need not be asked."""
        if self._group is not None or self._box is None:
            return None
        return functools.partial(tree_exceeds, self.pid, (memory_mb + _OVERHEAD_MB) << 20)

    def make(self, light: bool, disk_mb: int) -> None:
        """Have a run made, without waiting for it; see `run`."""
        self._made += 1
        self.order(frames.Order(frames.MAKE, self._made, light, size=disk_mb))

    def order(self, order: frames.Order) -> None:
        """Send an order, without waiting for its answer.

        Raises:
            ZygoteLostError: the server is gone.
        """
        try:
            self._control.settimeout(_ANSWER_SECONDS)
            self._control.sendall(order.pack())
            self._outstanding += 1
        except OSError as error:
            raise self._lost(str(error) or type(error).__name__) from error

    def _settle(self, seconds: float = _ANSWER_SECONDS) -> None:
        """Wait for all answers that are still to come."""
        while self._outstanding:
            made, descriptors = self._answer(time.monotonic() + seconds)
            self._last = made
            self._outstanding -= 1
            if made.kind == frames.MAKE and not made.code:
                if len(descriptors) != 2:
                    raise self._lost("this process has no descriptors left")
                channel, ended = descriptors
                self._spare = Run(self, made.number, made.light, made.size, socket.socket(fileno=channel), ended)

    def _answer(self, deadline: float) -> tuple[frames.Order, list[int]]:
        """Return the next answer and the descriptors that came with it."""
        text = b""
        received: list[int] = []
        try:
            while len(text) < frames.ORDER_BYTES:
                self._control.settimeout(max(0.001, deadline - time.monotonic()))
                part, came, _, _ = socket.recv_fds(self._control, frames.ORDER_BYTES - len(text), 2)
                received += came
                if not part:
                    raise self._lost("it has ended")
                text += part
        except OSError as error:
            raise self._lost(str(error) or type(error).__name__) from error
        return frames.Order.unpack(text), received

    def _lost(self, why: str) -> ZygoteLostError:
        said = b""
        if self._box is not None and self._process is not None and self._process.stderr is not None:
            self._box.kill()  # the whole sandbox, or the pipe would not end
            said = self._process.stderr.read(2000)
        self.close()
        return ZygoteLostError(f"the warm Python is gone: {why} {said.decode(errors='replace')}".strip())

    def close(self) -> None:
        """End the server and everything in its sandbox."""
        if not self.alive:
            return
        self.alive = False
        self._control.close()
        if self._spare is not None:
            self._spare.close()
        if os.getpid() != self._owner:
            return
        if self._box is not None:
            self._box.close()
        elif self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ANSWER_SECONDS)  # it removes the folders of its runs
            self._process.kill()
            self._process.wait()
        if self._group is not None:
            self._group.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _site_folders() -> list[str]:
    """Return where installed packages are."""
    folders = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    return [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
