"""`Enclosure`: a program that bubblewrap has started and that waits at a gate until its limits are set.

Both `adjudge.sandbox.sandbox` (one program, once) and `adjudge.sandbox.zygote` (a server)
start this way: bubblewrap, already in the run's control group, makes the namespaces and stops; the process it made is
put under its resource limits from outside; then the gate opens.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import platform
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from adjudge.sandbox.bubblewrap import Layout, SandboxUnavailableError, explain
from adjudge.sandbox.cgroup import Group
from adjudge.sandbox.program import RunLimits

START_SECONDS = 60.0
"""Longest wait for bubblewrap, which takes 4 ms; a host that needs more than this is in trouble."""

OPEN_FILES = 256
"""Descriptors that one process in a sandbox may have open."""


class Enclosure:
    """A program that waits at its gate; standard error is a pipe, the rest is as for `Layout.start`.

    The layout is spent afterwards; a control group takes the program and bubblewrap's own process.

    Attributes:
        process: bubblewrap's own process, outside the sandbox.
        pid: the sandbox's first process, as the host counts it.

    Raises:
        SandboxUnavailableError: bubblewrap cannot make the sandbox.
    """

    def __init__(
        self,
        layout: Layout,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdin: int,
        stdout: int,
        group: Group | None,
    ) -> None:
        gate_read, self._gate = os.pipe()
        self._status, status_write = os.pipe()
        self._pid_fd = -1
        self._started: subprocess.Popen[bytes] | None = None
        try:
            layout.pass_fd("--block-fd", gate_read)
            layout.pass_fd("--json-status-fd", status_write)
            before = group.entering() if group is not None else ()
            self.process = self._started = layout.start(command, environment, stdin, stdout, subprocess.PIPE, before)
            self.pid = self._first_pid()
            self._pid_fd = os.pidfd_open(self.pid)
        except BaseException:
            self.close()
            raise

    def _first_pid(self) -> int:
        deadline = time.monotonic() + START_SECONDS
        text = b""
        os.set_blocking(self._status, False)
        while b"\n" not in text:
            if not wait_readable(self._status, deadline - time.monotonic()):
                raise SandboxUnavailableError(explain("it does not start"))
            part = os.read(self._status, 4096)
            if not part:
                raise self.refused()
            text += part
        return int(json.loads(text.splitlines()[0])["child-pid"])

    def refused(self) -> SandboxUnavailableError:
        """Return what bubblewrap complains about, as an error; it must have ended, or be about to."""
        assert self.process.stderr is not None
        return SandboxUnavailableError(explain(self.process.stderr.read().decode(errors="replace")))

    def hold(self, limits: RunLimits, grouped: bool) -> None:
        """Set the program's resource limits; `RLIMIT_NPROC` counts its processes where no control group does."""
        counted = not grouped and counts_processes_by_namespace()
        for which, value in (
            (resource.RLIMIT_DATA, limits.memory_mb << 20),
            (resource.RLIMIT_FSIZE, limits.disk_mb << 20),
            (resource.RLIMIT_NOFILE, OPEN_FILES),
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_STACK, limits.stack_mb << 20),
            (resource.RLIMIT_CPU, math.ceil(limits.seconds * 64) + 1),
            (resource.RLIMIT_AS, resource.RLIM_INFINITY),  # a pool's worker has one, which children would inherit
            (resource.RLIMIT_NPROC, limits.processes + 3 if counted else resource.RLIM_INFINITY),
        ):
            self._bound(which, value)

    def lift(self) -> None:
        """Lift the resource limits that a pool's worker would hand down to a server."""
        for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            self._bound(which, resource.RLIM_INFINITY)

    def _bound(self, which: int, value: int) -> None:
        hard = resource.prlimit(self.pid, which)[1]
        infinity = resource.RLIM_INFINITY
        bound = hard if value == infinity else value if hard == infinity else min(value, hard)
        resource.prlimit(self.pid, which, (bound, bound))

    def open(self) -> None:
        """Let the program go."""
        os.write(self._gate, b"1")

    def exit_code(self) -> int | None:
        """Return the exit code that bubblewrap reports of the program, or None if the program never started."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self._status, 4096):
                text += part
        codes = [json.loads(line).get("exit-code") for line in text.splitlines()]
        return next((code for code in codes if code is not None), None)

    def kill(self) -> None:
        """Kill everything in the sandbox: the kernel ends a process namespace with its first process."""
        if self._pid_fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pid_fd, signal.SIGKILL)
        if self._started is not None and self._started.poll() is None:
            self._started.kill()

    def close(self) -> None:
        """Kill everything and give the descriptors back."""
        self.kill()
        if self._started is not None:
            self._started.wait()
            for stream in (self._started.stdin, self._started.stdout, self._started.stderr):
                if stream is not None:
                    stream.close()
        for fd in (self._gate, self._status, self._pid_fd):
            if fd >= 0:
                os.close(fd)
        self._gate = self._status = self._pid_fd = -1


def wait_readable(fd: int, seconds: float) -> bool:
    """Return whether a descriptor can be read, or has ended, within so many seconds."""
    poll = select.poll()  # select() knows no descriptor above 1023
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


@functools.cache
def counts_processes_by_namespace() -> bool:
    """Return whether a limit on a user's processes counts those in a user namespace alone, as Linux 5.14 and later do.

    Sandboxes that root makes share a namespace, so there the limit holds for all of this process's runs together.
    """
    if sys.platform != "linux":
        return False
    major, minor = (int(word) for word in platform.release().split(".")[:2])
    return (major, minor) >= (5, 14)
