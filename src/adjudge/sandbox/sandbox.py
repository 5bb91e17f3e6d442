"""`Sandbox.run`: one untrusted program, apart from the host and from every other program, within its limits.

With `isolation="bubblewrap"` each run has namespaces of its own (see `adjudge.sandbox.bubblewrap`), a
system call filter, no network, and files in memory only.  Memory and processes are held by a control group where the
host grants one, else by resource limits and a watch on the process tree.  When a limit is passed, and in any case
when the program's first process has ended, everything it started is killed with its process namespace.

With `isolation="none"` the program runs as this user, with resource limits only: for programs you trust, and for
hosts without namespaces.

Files are brought back from a place that the program could write to: only plain files below its folder count, reached
without following a link; a name that is a link, a folder, a pipe or a device counts as absent.

Not covered: side channels, kernel bugs, and CPU shares among concurrent runs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from adjudge.sandbox.bubblewrap import (
    ENVIRONMENT,
    START_SECONDS,
    SYSTEM_PATH,
    WORK,
    Enclosure,
    Layout,
    SandboxUnavailableError,
    explain,
    find_tools,
    wait_readable,
)
from adjudge.sandbox.capture import Captured, converse, streams_of
from adjudge.sandbox.cgroup import Group, tree_exceeds
from adjudge.sandbox.program import Ending, Program, RunLimits, RunResult
from adjudge.sandbox.seccomp import syscall_filter
from adjudge.sandbox.time_limit import TimeLimit


def collect(folder: int, names: Sequence[str], most: int) -> dict[str, bytes]:
    """Return the contents of the files that exist below a folder, given by its descriptor and paths without "..".

    What goes beyond `most` bytes of all of them together counts as absent.
    """
    contents: dict[str, bytes] = {}
    for name in names:
        content = _read(folder, PurePosixPath(name).parts, most)
        if content is not None:
            contents[name] = content
            most -= len(content)
    return contents


def _read(folder: int, parts: Sequence[str], most: int) -> bytes | None:
    with contextlib.ExitStack() as held:
        try:
            for part in parts[:-1]:
                folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                held.callback(os.close, folder)
            fd = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            return None
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            os.close(fd)
            return None
        with open(fd, "rb") as file:
            content = file.read(most + 1)
    return content if len(content) <= most else None


# ulimit counts memory in KiB and files in blocks of 512 bytes; what a platform cannot limit is left as it is
_LIMITED = 'ulimit -c 0; ulimit -d "$1" 2>&-; ulimit -f "$2" 2>&-; ulimit -n 256 2>&-; shift 2; exec "$@"'


def run_unconfined(program: Program, limits: RunLimits) -> RunResult:
    """Run a program as this user.

    Raises:
        SandboxUnavailableError: there is no shell to set the limits.
        OverloadedError: the machine let the program wait for too long.
    """
    with tempfile.TemporaryDirectory(prefix="adjudge-", ignore_cleanup_errors=True) as folder:
        for path, content in program.files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(0o755)
        environment = {**ENVIRONMENT, "HOME": folder, "TMPDIR": folder, **program.environment}
        shell = ["/bin/sh", "-c", _LIMITED, "sh", str(limits.memory_mb << 10), str(limits.disk_mb << 11)]
        started = time.monotonic()
        try:
            process = subprocess.Popen(
                [*shell, *program.command],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxUnavailableError(f"a program cannot be started: {error}") from error
        with contextlib.ExitStack() as held:
            held.callback(process.wait)
            held.callback(_kill, process)
            limit = TimeLimit(limits.seconds, [process.pid])
            got = converse(streams_of(process, held), program.stdin, limit, limits.output_bytes)
            seconds = time.monotonic() - started
            _kill(process)
            code = process.wait()
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            outputs = collect(opened, program.outputs, limits.disk_mb << 20)
        finally:
            os.close(opened)
    ending = got.excess or ("signalled" if code < 0 else "exited")
    return got.result(ending, None if got.excess else abs(code), seconds, limit, outputs=outputs)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


__all__ = ["Isolation", "Sandbox", "SandboxUnavailableError", "sandbox"]

Isolation = Literal["bubblewrap", "none"]

# The first process of the sandbox is a shell under the program's own system call filter: bubblewrap's would be under
# none, and an ordinary user's program may write to it.  Held back, it waits until we hold the working directory;
# `--block-fd` blocks before the mounts are made, and a short program ends at once.
_FIRST = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
_HELD_BACK = ("/bin/sh", "-c", 'echo; read x; "$@"; exit $?', "sh")


class Sandbox:
    """Runs programs apart; safe to use from several threads, each with a run of its own.

    `isolation` is "bubblewrap", or "none" for programs you trust.

    Raises:
        SandboxUnavailableError: this host cannot isolate.
        ValueError: `isolation` is neither.
    """

    def __init__(self, isolation: Isolation = "bubblewrap") -> None:
        if isolation not in ("bubblewrap", "none"):
            raise ValueError(f"Sandbox isolation={isolation!r}; it must be 'bubblewrap' or 'none'")
        self._tools = None if isolation == "none" else find_tools()
        self._groups: list[Group] = []
        self._owner = os.getpid()
        self._no_groups = False
        self._lock = threading.Lock()
        if isolation == "none":
            warnings.warn(
                "isolation='none': programs run as this user, with its files and its network; "
                "never run what a model wrote this way on a machine you care about",
                stacklevel=2,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the control groups back; the sandbox can still be used afterwards."""
        with self._lock:
            groups, self._groups = self._groups if self._owner == os.getpid() else [], []
        for group in groups:
            group.close()

    def run(self, program: Program, limits: RunLimits) -> RunResult:
        """Run a program and return what came of it.

        `RunResult.code` of a program that a signal ended is the signal's number; a program that exits with 128 plus
        a signal's number, as shells do, is taken for one.

        Raises:
            SandboxUnavailableError: the sandbox cannot be made, or the host has no such program.
            OverloadedError: the machine let the program wait for too long.
            ValueError: the program's files, outputs or folders are not relative paths, or not there.
        """
        _check_paths(program)
        if self._tools is None:
            return run_unconfined(program, limits)
        name = program.command[0]
        if "/" not in name and shutil.which(name, path=SYSTEM_PATH) is None:
            raise SandboxUnavailableError(f"there is no program {name!r} in {SYSTEM_PATH}; install it")
        layout = Layout(self._tools, limits)
        try:
            _fill(layout, program)
            layout.seccomp(syscall_filter())
            layout.drop_privileges()
            with self._group(limits) as group:
                return self._run(layout, program, limits, group)
        finally:
            layout.close()

    def _run(self, layout: Layout, program: Program, limits: RunLimits, group: Group | None) -> RunResult:
        pipe = subprocess.PIPE
        first = _HELD_BACK if program.outputs else _FIRST
        environment = {**ENVIRONMENT, **program.environment}
        box = Enclosure(layout, (*first, *program.command), environment, pipe, pipe, group)
        root = -1
        with contextlib.ExitStack() as held:
            held.callback(box.close)
            box.hold(limits, grouped=group is not None)
            box.open()
            started = time.monotonic()
            watch = None
            if group is None:
                watch = functools.partial(tree_exceeds, box.pid, limits.memory_mb << 20)
            if program.outputs:
                root = _work_folder(box)
                held.callback(os.close, root)
            streams = streams_of(box.process, held)
            limit = TimeLimit(limits.seconds, [box.pid])
            got = converse(streams, program.stdin, limit, limits.output_bytes, watch)
            seconds = time.monotonic() - started
            box.kill()
            ending, code = _ending(got, box.process.wait(), box.exit_code(), group)
            outputs = collect(root, program.outputs, limits.disk_mb << 20) if root >= 0 else {}
            peak_mb = None if group is None else group.peak_mb()
            return got.result(ending, code, seconds, limit, outputs=outputs, memory_mb=peak_mb)

    @contextlib.contextmanager
    def _group(self, limits: RunLimits) -> Iterator[Group | None]:
        with self._lock:
            if self._owner != os.getpid():  # after a fork the groups are still the parent's
                self._owner, self._groups = os.getpid(), []
            group = self._groups.pop() if self._groups else None
        if group is None and not self._no_groups:
            group = Group.make()
            self._no_groups = group is None
        try:
            if group is not None:
                # bubblewrap's own process and the sandbox's first one are counted, too
                group.hold(limits.memory_mb << 20, limits.processes + 2)
            yield group
        finally:
            if group is not None:
                with self._lock:
                    self._groups.append(group)


# By process id: a sandbox of the parent process is of no use after a fork.
_SANDBOXES: dict[tuple[int, Isolation], Sandbox] = {}


def sandbox(isolation: Isolation) -> Sandbox:
    """Return the sandbox that all verifiers of this process share, made when the first one asks.

    Raises:
        SandboxUnavailableError: the host cannot isolate programs.
    """
    key = (os.getpid(), isolation)
    if key not in _SANDBOXES:
        _SANDBOXES[key] = Sandbox(isolation)
    return _SANDBOXES[key]


def _check_paths(program: Program) -> None:
    for kind, paths in (("files", program.files), ("outputs", program.outputs)):
        for path in paths:
            parts = PurePosixPath(path).parts
            if not parts or path.startswith("/") or ".." in parts or "\0" in path:
                raise ValueError(f"Program.{kind} names {path!r}; give paths below the working directory")
    if not program.command:
        raise ValueError("Program.command is empty; give the program and its arguments")


def _fill(layout: Layout, program: Program) -> None:
    layout.read_only(program.read_only)
    folders = {str(parent) for path in program.files for parent in PurePosixPath(path).parents if str(parent) != "."}
    for folder in sorted(folders):
        layout.folder(f"{WORK}/{folder}")
    for path, content in program.files.items():
        layout.file(f"{WORK}/{path}", content)


def _work_folder(box: Enclosure) -> int:
    """Let go of a program that was held back, and return a descriptor of its folder, which outlives it."""
    stdin, stdout = box.process.stdin, box.process.stdout
    assert stdin is not None
    assert stdout is not None
    if not wait_readable(stdout.fileno(), START_SECONDS) or os.read(stdout.fileno(), 1) != b"\n":
        box.kill()
        raise box.refused()
    # before it may go on: a short program ends at once, and its folder's path with it
    folder = os.open(f"/proc/{box.pid}/root{WORK}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    os.write(stdin.fileno(), b"\n")
    return folder


def _ending(got: Captured, own: int, code: int | None, group: Group | None) -> tuple[Ending, int | None]:
    if group is not None and group.killed():
        return "memory", None
    if got.excess is not None:
        return got.excess, None
    if code is None:
        raise SandboxUnavailableError(explain(got.stderr.decode(errors="replace") or f"it ended with {own}"))
    if code == 128 + signal.SIGXFSZ:
        return "disk", None
    if 128 < code <= 128 + 64:
        return "signalled", code - 128
    return "exited", code
