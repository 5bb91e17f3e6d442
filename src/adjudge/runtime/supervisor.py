"""The supervisor: a small single-threaded process that loads one target and forks workers from that warm image.

It is started by exec, never by fork, so it inherits no threads or locks of the parent and never imports the user's
`__main__`.  It alone is the workers' parent: it reaps them, reports how they ended, and kills them on request.
When the parent goes away, even by SIGKILL and even while a worker holds its interpreter lock in a C call, the
control socket ends and the supervisor kills every worker and every descendant, then exits.

Messages from the parent: `("load", payload)`, `("fork", number, confined)` with two file descriptors (the worker's
socket and its board), `("kill", number)`.  To the parent: `("loaded",)`, `("unloadable", missing module, text)`,
`("unforkable", number, text)`, `("exited", number, wait status)`.

Not covered: time limits; the parent keeps the clock.  On macOS descendants that left their process group are not
found, and a target that hangs while it is loaded outlives a killed parent.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from adjudge.runtime import confine, role
from adjudge.runtime.channel import read_frame_with_fds, write_frame
from adjudge.runtime.pickling import module_to_send
from adjudge.runtime.worker import run_worker

_LAST_SECONDS = 10.0  # how long an ending supervisor tries to kill what does not die
_MAX_TEXT = 4000


class Supervisor:
    """The fork server of one target.

    Args:
        control: the socket to the parent.
        parent: the parent's process id.
    """

    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._target: Callable[[Any], object] | None = None
        self._pids: dict[int, int] = {}  # worker's number -> process id
        self._numbers: dict[int, int] = {}
        self._may_stray = False  # whether a worker may have left descendants
        self._wake_read, self._wake_write = os.pipe()
        for fd in (self._wake_read, self._wake_write):
            os.set_blocking(fd, False)

    def run(self) -> None:
        """Serve until the parent is gone; then leave nothing behind."""
        confine.adopt_orphans()
        self._listen()
        parent_fd = _watch(self._parent)
        poll = select.poll()  # select() knows no descriptor above 1023, and ours has the parent's number
        for fd in (self._control.fileno(), self._wake_read, parent_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        try:
            while True:
                ready = {fd for fd, _ in poll.poll()}
                if self._wake_read in ready:
                    self._reap()
                if parent_fd in ready or (self._control.fileno() in ready and not self._obey()):
                    return
        except (BrokenPipeError, ConnectionResetError):
            return
        finally:
            self._end()

    def _listen(self) -> None:
        """Have the end of a child wake us up."""
        signal.signal(signal.SIGCHLD, _do_nothing)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def _obey(self) -> bool:
        """Carry out one request; False when the parent is gone."""
        message = read_frame_with_fds(self._control)
        if message is None:
            return False
        frame, fds = message
        match pickle.loads(frame):
            case ("load", payload):
                self._load(payload)
            case ("fork", number, confined):
                self._fork(number, confined, *fds)
            case ("kill", number):
                self._kill(number)
        return True

    def _tell(self, *message: object) -> None:
        write_frame(self._control, pickle.dumps(message))

    def _load(self, payload: bytes) -> None:
        confine.die_with_parent()  # nobody listens to the control socket while the target's imports run
        if os.getppid() != self._parent:
            os._exit(1)
        try:
            self._target = pickle.loads(payload)
            warm_up = getattr(self._target, "warm_up", None)
            if callable(warm_up):
                warm_up()
        except BaseException as error:  # noqa: BLE001 importing the target's modules may raise anything
            self._tell("unloadable", module_to_send(error), f"{type(error).__name__}: {error}"[:_MAX_TEXT])
            return
        finally:
            confine.die_with_parent(False)
        self._listen()  # the target's imports may have taken the signal
        gc.collect()
        gc.freeze()  # workers share these pages until somebody writes to them
        self._tell("loaded")

    def _fork(self, number: int, confined: bool, connection_fd: int, board_fd: int) -> None:
        self._may_stray |= not confined
        me = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._tell("unforkable", number, str(error))
            return
        finally:
            if os.getpid() == me:
                os.close(connection_fd)
                os.close(board_fd)
        if pid == 0:
            self._become_worker(me, connection_fd, board_fd, confined)
        self._pids[number] = pid
        self._numbers[pid] = number

    def _become_worker(self, supervisor: int, connection_fd: int, board_fd: int, confined: bool) -> None:
        try:
            os.setsid()
            confine.die_with_parent()
            if os.getppid() != supervisor:
                return
            signal.set_wakeup_fd(-1)
            for signal_number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signal_number, signal.SIG_DFL)
            self._control.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            assert self._target is not None
            run_worker(socket.socket(fileno=connection_fd), board_fd, self._target, confined)
        finally:
            os._exit(1)

    def _kill(self, number: int) -> None:
        pid = self._pids.get(number)
        if pid is None:
            return  # it ended by itself, and was reported
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # its own session, unless the fork is younger than its setsid
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Collect the dead, report workers, and kill what a dead worker left behind."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 512):
                pass
        strays = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if not pid:
                break
            number = self._numbers.pop(pid, None)
            strays = True
            if number is None:
                continue
            del self._pids[number]
            if self._may_stray:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            self._tell("exited", number, status)
        if strays and self._may_stray:
            self._kill_strays()

    def _kill_strays(self) -> None:
        """Kill adopted processes: their worker is dead.  Theirs come to us as they die, and wake us again."""
        for pid in confine.children():
            if pid not in self._numbers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        deadline = time.monotonic() + _LAST_SECONDS
        woken = select.poll()
        woken.register(self._wake_read, select.POLLIN)
        for number in list(self._pids):
            self._kill(number)
        while time.monotonic() < deadline:
            for pid in confine.children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                woken.poll(5)
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 512)


def _do_nothing(number: int, frame: object) -> None:
    """Let SIGCHLD interrupt the wait; the wake-up pipe tells of it."""


def _watch(pid: int) -> int:
    """Return a descriptor that becomes readable when the process ends, or -1 where there is no such thing."""
    try:
        return os.pidfd_open(pid)  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        return -1


def main(control_fd: int, parent: int) -> None:
    """Run a supervisor on an inherited socket."""
    role.enter()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides; when it dies of these, so do we
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
    Supervisor(socket.socket(fileno=control_fd), parent).run()
    sys.exit(0)
