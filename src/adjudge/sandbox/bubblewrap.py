"""bubblewrap: what a sandboxed program sees of the machine and who it is there, and its start under limits.

It sees `/usr` and its links, a handful of files of `/etc`, and the folders it was given, all read-only; an empty
working directory and `/dev/shm` in memory; devices that hold no data; its own processes.  It is user 1000 on a host
named "sandbox", without capabilities, in fresh user, pid, mount, network, ipc, uts and cgroup namespaces.

Started by the superuser, the program must not be root in disguise: bubblewrap then enters a user namespace in which
user 1000 is the host's user 65534, and the program is handed to that user after the mounts are made.

Both one program, once (`adjudge.sandbox.sandbox`), and a server (`adjudge.sandbox.zygote`) start as an `Enclosure`:
bubblewrap, already in the run's control group, makes the namespaces and stops; the process it made is put under its
resource limits from outside; then the gate opens.

Not covered: hosts without user namespaces, and bubblewrap installed setuid root.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import json
import math
import os
import platform
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import ClassVar

from adjudge.sandbox.cgroup import Group
from adjudge.sandbox.program import RunLimits

WORK = "/tmp/work"  # in the sandbox
USER = 1000
NOBODY = 65534
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT: Mapping[str, str] = {
    "PATH": SYSTEM_PATH,
    "HOME": WORK,
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",  # a pool of threads for numpy costs every fork, and results would depend on the cores
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "java-*")
_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_PASSWD = b"user:x:1000:1000::/tmp/work:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n"
_GROUPS = b"user:x:1000:\nnogroup:x:65534:\n"


class SandboxUnavailableError(RuntimeError):
    """This host cannot keep programs apart; the message says what is missing and how to get it."""

    reason: ClassVar[str] = "engine_unavailable"


def find_tools() -> tuple[str, str]:
    """Return the paths of bubblewrap and of util-linux's setpriv, which gives root's powers up; "" for others.

    Raises:
        SandboxUnavailableError: there is no bubblewrap, or no Linux.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(
            f"untrusted programs are kept apart with Linux namespaces, which {sys.platform} has not; run on Linux "
            "(a container will do), or, for programs you trust, say isolation='none'"
        )
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxUnavailableError(
            "untrusted programs are kept apart with bubblewrap, and there is no `bwrap`; install it "
            "(apt-get install bubblewrap), or, for programs you trust, say isolation='none'"
        )
    setpriv = ""
    if os.geteuid() == 0:
        for name in ("nsenter", "unshare", "setpriv"):
            if shutil.which(name, path=SYSTEM_PATH) is None:
                raise SandboxUnavailableError(f"a sandbox started by root needs `{name}`; apt-get install util-linux")
        setpriv = shutil.which("setpriv", path=SYSTEM_PATH) or ""
    return bwrap, setpriv


def explain(stderr: str) -> str:
    """Return what bubblewrap's complaint means and what to do about it."""
    advice = "run `bwrap --unshare-all --ro-bind / / true` to see what this host refuses"
    lowered = stderr.lower()
    if "namespace" in lowered or "uid map" in lowered or "operation not permitted" in lowered:
        advice = (
            "allow user namespaces: sysctl -w user.max_user_namespaces=15000, on Ubuntu also "
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in Docker, run with "
            "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
        )
    return f"bubblewrap cannot make a sandbox here ({stderr.strip()[:300]}); {advice}"


@cache
def _superuser_namespace(pid: int) -> int:
    """Return a descriptor of a user namespace that knows root and user 1000, the latter as the host's nobody."""
    command = ["unshare", "--user", "sh", "-c", "echo; read x"]  # of util-linux, like setpriv
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as helper:
        assert helper.stdout is not None
        assert helper.stderr is not None
        if not helper.stdout.readline():
            raise SandboxUnavailableError(explain(helper.stderr.read().decode(errors="replace")))
        try:
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{helper.pid}/{name}").write_text(f"0 0 1\n{USER} {NOBODY} 1\n", encoding="ascii")
            return os.open(f"/proc/{helper.pid}/ns/user", os.O_RDONLY)
        except OSError as error:
            raise SandboxUnavailableError(explain(f"namespace: {error}")) from error


class Layout:
    """One bubblewrap command line and the descriptors that go with it.

    A `server` is a program of ours that makes namespaces itself: it stays the namespace's root.
    """

    def __init__(self, tools: tuple[str, str], limits: RunLimits, server: bool = False) -> None:
        self._bwrap, self._setpriv = tools
        self._root = os.geteuid() == 0
        self.fds: list[int] = []  # to pass on, and to close once bubblewrap has started
        self._arguments: list[str] = []
        self._enter: list[str] = []
        self._identity: list[str] = []
        self._made = {"/usr", "/tmp", "/dev", "/proc"}
        if self._root:
            # by path: bubblewrap's own --userns would leave the descriptor open in the program
            path = f"/proc/{os.getpid()}/fd/{_superuser_namespace(os.getpid())}"
            self._enter = ["nsenter", f"--user={path}", "--"]
            self._add(*(f"--unshare-{name}" for name in ("ipc", "pid", "net", "uts", "cgroup")))
        else:
            # with any other user than 0, bubblewrap adds a second user namespace, which does not own the others
            user = "0" if server else str(USER)
            self._add("--unshare-all", "--uid", user, "--gid", user)
        self._add("--as-pid-1")
        if server:
            self._add("--cap-add", "ALL")
        self._add("--hostname", "sandbox", "--new-session", "--clearenv")
        self._show_system()
        size = str(limits.disk_mb << 20)
        self._add("--proc", "/proc", "--dev", "/dev")
        self._add("--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
        self._add("--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--perms", "0777", "--dir", WORK)

    def _add(self, *arguments: str) -> None:
        self._arguments += arguments

    def _show_system(self) -> None:
        self._add("--ro-bind", "/usr", "/usr")
        for name in _LINKED:
            path = f"/{name}"
            if os.path.islink(path):
                self._add("--symlink", os.readlink(path), path)
            elif os.path.isdir(path):
                self._add("--ro-bind", path, path)
        self._parents("/etc/x")
        for path in (path for name in _ETC for path in sorted(glob.glob(f"/etc/{name}"))):
            self._add("--ro-bind", path, path)
        self.file("/etc/passwd", _PASSWD, writable=False)
        self.file("/etc/group", _GROUPS, writable=False)

    def read_only(self, folders: Sequence[str]) -> None:
        """Show folders of the host, at their own places.

        Raises:
            ValueError: one is not an absolute path of a folder or file that exists.
        """
        for folder in folders:
            if not os.path.isabs(folder) or not os.path.exists(folder):
                raise ValueError(f"Program.read_only names {folder!r}; give absolute paths that exist")
            if not folder.startswith("/usr/"):
                self._parents(folder)
                self._add("--ro-bind", os.path.realpath(folder), folder)

    def show(self, folder: str, place: str) -> None:
        """Show a folder of the host, read-only, at another place."""
        self._parents(place)
        self._add("--ro-bind", os.path.realpath(folder), place)

    def _parents(self, path: str) -> None:
        """Make the folders above a path; those that bubblewrap makes by itself are closed to other users."""
        for parent in reversed(PurePosixPath(path).parents[:-1]):
            if str(parent) not in self._made:
                self._made.add(str(parent))
                self._add("--perms", "0755", "--dir", str(parent))

    def file(self, path: str, content: bytes, writable: bool = True) -> None:
        """Put a file into the sandbox, without one on the host."""
        fd = self._memory_file(content)
        if writable:
            self._add("--perms", "0777", "--file", str(fd), path)
        else:
            self._parents(path)
            self._add("--perms", "0444", "--ro-bind-data", str(fd), path)

    def _memory_file(self, content: bytes) -> int:
        fd = os.memfd_create("adjudge")
        self.fds.append(fd)
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def folder(self, path: str) -> None:
        """Make a folder that the program may write to."""
        self._add("--perms", "0777", "--dir", path)

    def pass_fd(self, option: str, fd: int) -> None:
        """Give bubblewrap an option whose value is a descriptor; it is closed here after the start."""
        self.fds.append(fd)
        self._add(option, str(fd))

    def seccomp(self, program: bytes) -> None:
        """Filter the program's system calls."""
        self._add("--seccomp", str(self._memory_file(program)))

    def drop_privileges(self) -> None:
        """Hand the program to the unprivileged user."""
        if self._root:
            self._add("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
            self._identity = [self._setpriv, f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
            self._identity += ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]

    def words(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return the command line that starts a program with all of its variables."""
        for name, value in environment.items():
            self._add("--setenv", name, value)
        self._add("--remount-ro", "/", "--chdir", WORK)
        return [*self._enter, self._bwrap, *self._arguments, "--", *self._identity, *command]

    def close(self) -> None:
        """Close the descriptors."""
        while self.fds:
            os.close(self.fds.pop())


START_SECONDS = 60.0
"""Longest wait for bubblewrap, which takes 4 ms; a host that needs more than this is in trouble."""

OPEN_FILES = 256
"""Descriptors that one process in a sandbox may have open."""


class Enclosure:
    """A program that has all of its variables and waits at its gate; standard error is a pipe.

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
            with contextlib.closing(layout):
                self.process = self._started = subprocess.Popen(
                    [*before, *layout.words(command, environment)],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    pass_fds=layout.fds,
                    env={},
                    umask=0o022,
                )
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
