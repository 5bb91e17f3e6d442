"""The fork server inside the sandbox: a Python that has its imports done and forks once for each run.

It is the first process of its process namespace, so everything ends with it, and it ends when its control socket
does.  It never runs a line of anybody else's: each run is a fork with process, mount, network and ipc
namespaces, working directory, limits and system call filter of its own, no capabilities, and neither the control
socket nor any other descriptor of the server.

A run is made ahead of its job: it has all of that but its limits, says `frames.PREPARED` on its channel, and waits.
The job brings limits and standard streams along (`guest`); until then nothing of anybody's has reached it.  A "light"
run, for code that is trusted, shares the network and `/proc` of the sandbox, and nothing it can write to.

Orders on the control socket are `frames.Order`; the answer to `MAKE` brings two descriptors: the run's channel, and
one that becomes readable when the run has ended.

Before it serves, it rehearses.  A Python adapts to what it does: it looks up methods once and remembers where they are,
rewrites instructions for the types they meet, interns names, binds functions of shared libraries.  Done in a run, each
of these writes to a page that the run shared with the server until then, and a page costs a run 3 microseconds; a run
touches 600 of them without a rehearsal.  The rehearsal does what runs do, with a program of ours, but for namespaces
and limits, and leaves nothing behind: no module, no file, no descriptor, no thread.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import gc
import importlib
import json
import linecache
import os
import resource
import signal
import site
import socket
import sys
from typing import Any, NoReturn

from adjudge.sandbox import codec, frames, guest, guest_tests
from adjudge.sandbox.peer import Peer, serves_everything

_ROUNDS = 24  # an instruction is rewritten after at most 8 rounds, and one that cannot be is left alone after 16 more
_NAME = "rehearsed program"
_SOURCE = """
def solve(items, most=3):
    positive = sorted({item for item in items if item > 0})
    return positive[:most]
"""
_TESTS = """
def check(candidate):
    assert candidate([3, -1, 2]) == [2, 3]
"""
_SETUP = {"memory_mb": 1024, "disk_mb": 64, "cpu_seconds": 322, "open_files": 256, "processes": 72, "streams": []}
_SERVE = codec.dumps((_SETUP, "serve", {"source": _SOURCE, "filename": _NAME, "wanted": ["solve"]}))
_CALL = codec.dumps(("do", 1, "call", codec.Handle(-1, "function"), ([3, -1, 2],), {}, ({}, [])))
_ANSWER = codec.dumps(("done", 1, [2, 3], ({}, [])))
_TEST = codec.dumps(
    (
        _SETUP,
        "tests",
        {
            "style": "humaneval", "setup": "", "tests": [_TESTS], "take": ["solve"], "imports": {}, "start": 0,
            "names": [("solve", "object", codec.Handle(-1, "function"))], "entry_point": "solve", "named": ["solve"],
            "module": _NAME, "own": [], "classes": {}, "idle": None,
        },
    )
)  # fmt: skip


def rehearse() -> None:
    """Do what runs do, until this Python has adapted to it."""
    for _ in range(_ROUNDS):
        for run in (_serve_a_candidate, _test_a_candidate):
            near, far = socket.socketpair()
            with near, far:
                run(near, far)


def _job(near: socket.socket, far: socket.socket, order: bytes) -> dict[str, Any]:
    frames.send(near, order)
    frame, _ = frames.receive_first(far)
    assert frame is not None
    _, _, job = codec.loads(frame, trusted=True)
    taken: dict[str, Any] = job
    return taken


def _serve_a_candidate(near: socket.socket, far: socket.socket) -> None:
    job = _job(near, far, _SERVE)
    module, code = guest.load(job["source"], _NAME, job["filename"])
    exec(code, module.__dict__)
    peer = Peer(far, serves_everything, trusting=True)
    frames.send(far, codec.dumps(("ready", guest.describe(module.__dict__, peer, job["wanted"])), peer.keep))
    frames.send(near, _CALL)
    near.shutdown(socket.SHUT_WR)
    peer.serve()
    del sys.modules[_NAME], linecache.cache[_NAME]


def _test_a_candidate(near: socket.socket, far: socket.socket) -> None:
    job = _job(near, far, _TEST)
    frames.send(near, _ANSWER)
    guest_tests.run(far, far, job)


WORK = "/tmp/work"
_NEW_MOUNT, _NEW_IPC, _NEW_NET = 0x20000, 0x8000000, 0x40000000
_NEW_PID, _NEW_USER = 0x20000000, 0x10000000
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 2, 4, 8, 1
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 24, 22, 38, 47
_CAPABILITY_VERSION = 0x20080522
_MAX_INODES = 16384

_libc = ctypes.CDLL(None, use_errno=True)
_FUNCTIONS = ("unshare", "setns", "mount", "prctl", "capset")


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _mount(kind: str, place: str, flags: int, options: str = "") -> None:
    _check(_libc.mount(kind.encode(), place.encode(), kind.encode(), flags, options.encode() or None))


class Server:
    """The fork server; the control socket leads to the caller, whose options are those of `main`."""

    def __init__(self, control: socket.socket, options: dict[str, Any]) -> None:
        self._control = control
        self._isolated: bool = options["isolated"]
        self._superuser: bool = options["superuser"]
        self._user: int = options["user"]
        self._filter = base64.b64decode(options["seccomp"])
        os.environ.clear()  # once, here: in a run it would cost 75 page faults
        os.environ.update(options["environment"])
        self._held = ctypes.create_string_buffer(self._filter, len(self._filter))
        self._program = _Filter(len(self._filter) // 8, ctypes.addressof(self._held))
        self._header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        self._nothing = (ctypes.c_uint32 * 6)()
        self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if self._isolated else -1
        for name in _FUNCTIONS if self._isolated else ():
            getattr(_libc, name)  # looked up once, here
        self._data = _data_bytes()
        self._runs: dict[int, int] = {}  # process ids by number
        self._folders: dict[int, str] = {}

    def serve(self) -> None:
        """Fork runs until the control socket ends."""
        while data := self._control.recv(frames.ORDER_BYTES, socket.MSG_WAITALL):
            order = frames.Order.unpack(data)
            if order.kind == frames.MAKE:
                self._make(order)
            else:
                self._control.sendall(self._end(order.number).pack())
        for number in list(self._runs):
            self._end(number)

    def _make(self, order: frames.Order) -> None:
        """Make a run, or say why there is none: one under way may have taken all processes or memory."""
        try:
            channel, theirs = socket.socketpair()
            with channel, theirs:
                watch = self._fork(order, theirs, channel)
                socket.send_fds(self._control, [order.pack()], [channel.fileno(), watch])
                os.close(watch)
        except OSError as error:
            refused = frames.Order(frames.MAKE, order.number, code=error.errno or errno.EIO)
            self._control.sendall(refused.pack())

    def _fork(self, order: frames.Order, channel: socket.socket, other: socket.socket) -> int:
        """Fork a run and return a descriptor that becomes readable when it has ended."""
        folder = ""
        if not self._isolated:
            import tempfile  # here, because a sandbox does without its libraries, and each costs every fork

            folder = tempfile.mkdtemp(prefix="adjudge-")
        try:
            if self._isolated:
                _check(_libc.unshare(_NEW_PID))
            run = os.fork()
            if not run:
                self._become(order, channel, (self._control, other), folder)
        finally:
            if self._isolated:
                _check(_libc.setns(self._namespace, _NEW_PID))
        self._runs[order.number] = run
        self._folders[order.number] = folder
        return os.pidfd_open(run)

    def _end(self, number: int) -> frames.Order:
        run, folder = self._runs.pop(number), self._folders.pop(number)
        if not self._isolated:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(run, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(run, signal.SIGKILL)
        _, status, usage = os.wait4(run, 0)
        if folder:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
        return frames.Order(frames.END, number, code=os.waitstatus_to_exitcode(status), size=usage.ru_maxrss)

    def _become(
        self, order: frames.Order, channel: socket.socket, others: tuple[socket.socket, ...], folder: str
    ) -> NoReturn:
        """Be the run; never return into the server."""
        code = 70
        try:
            for other in others:
                other.detach()  # closed below with everything else
            os.setsid()
            if self._isolated:
                self._isolate(order)
            else:
                os.chdir(folder)
                os.environ.update(HOME=folder, TMPDIR=folder)
            os.closerange(3, channel.fileno())  # all but the standard streams and the channel
            os.closerange(channel.fileno() + 1, 1024)
            if self._isolated:
                self._drop()
            os.dup2(0, 1)  # the null device, until the job brings other streams
            os.dup2(0, 2)
            guest.prepare()
            channel.sendall(frames.PREPARED)
            code = guest.run(channel, self._data)
        except BaseException as error:  # noqa: BLE001 nothing may reach the server's code
            with contextlib.suppress(BaseException):
                os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)

    def _isolate(self, order: frames.Order) -> None:
        """Make namespaces and mounts of this run's own."""
        _write("/proc/self/oom_score_adj", "1000")  # if the group runs out of memory, the run goes and not the server
        # the host name and the control group are the sandbox's, and no run can change them: the filter refuses
        _check(_libc.unshare(_NEW_MOUNT | _NEW_IPC | (0 if order.light else _NEW_NET)))
        outer = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)  # whose maps can be written, unlike the new one's
        size = f"size={order.size}m,nr_inodes={_MAX_INODES},mode=1777"
        _mount("tmpfs", "/tmp", _NOSUID | _NODEV, size)
        _mount("tmpfs", "/dev/shm", _NOSUID | _NODEV, size)
        if not order.light:
            _mount("proc", "/proc", _NOSUID | _NODEV | _NOEXEC | _READ_ONLY)
        os.mkdir(WORK)
        os.chmod(WORK, 0o777)
        if self._superuser:
            os.chown(WORK, self._user, self._user)
        else:  # one user alone is known here, as 0; one more namespace makes that 1000
            _check(_libc.unshare(_NEW_USER))
            _write("setgroups", "deny", outer)
            for name in ("gid_map", "uid_map"):
                _write(name, f"{self._user} 0 1", outer)
        os.close(outer)
        os.chdir(WORK)

    def _drop(self) -> None:
        """Give up every privilege for good."""
        if self._superuser:
            os.setgroups([])
            os.setresgid(self._user, self._user, self._user)
            os.setresuid(self._user, self._user, self._user)
        else:
            _bound_nothing()
        _prctl(_PR_CAP_AMBIENT, 4)  # PR_CAP_AMBIENT_CLEAR_ALL
        _check(_libc.capset(self._header, self._nothing))
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        _check(_libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.byref(self._program)))


def _write(path: str, text: str, folder: int | None = None) -> None:
    fd = os.open(path, os.O_WRONLY, dir_fd=folder)  # open() would cost a run some 200 page faults
    os.write(fd, text.encode())
    os.close(fd)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def _bound_nothing() -> None:
    """Empty the bounding set, so that no program that is started can gain anything."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break  # beyond the last one


def _data_bytes() -> int:
    """Return what the server holds, which is not the run's."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
    return 64 << 20


def main(control_fd: str, text: str) -> None:
    """Be the server until the caller is gone.

    Args:
        control_fd: number of the inherited control socket.
        text: what the caller wants, as JSON: "isolated", "superuser" (whether it was started by root), "user" (to
            become), "seccomp" (base64), "environment", "preload" (modules).
    """
    options = json.loads(text)
    control = socket.socket(fileno=int(control_fd))
    control.set_inheritable(False)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    for name in options["preload"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    site.setquit()  # `exit` and `quit`, which this Python, started without `site`, has not
    rehearse()
    if (generator := sys.modules.get("numpy.random")) is not None:
        generator.seed(0)  # the same run twice is the same run, in every server
    if options["isolated"]:
        _bound_nothing()
    server = Server(control, options)
    gc.collect()
    gc.disable()
    gc.freeze()  # runs share these pages until somebody writes to them
    control.sendall(frames.Order(frames.READY).pack())
    server.serve()
