"""A warden as the pool's thread sees it: started by exec, spoken to over one socket."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys

from adjudge.runtime.board import Board, new_page
from adjudge.runtime.channel import Channel
from adjudge.runtime.worker_client import WorkerClient

_BOOT = (
    "import sys; sys.path[:] = sys.argv[3].split('\\n'); "
    "from adjudge.runtime.warden import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LAST_SECONDS = 12.0  # a warden ends within 10, and at once unless something cannot be killed


class WardenClient:
    """The parent's end of a warden.

    Attributes:
        channel: frames to and from it.
        loaded: whether it has said that it can fork workers.
    """

    def __init__(self) -> None:
        """Start the process, with the parent's import path, folder and environment."""
        ours, theirs = socket.socketpair()
        # One thread per numerical library: workers are one per core, and a warden with threads forks badly.
        environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
        path = "\n".join(part for part in sys.path if isinstance(part, str) and "\n" not in part)
        with theirs:
            try:
                # -P: nothing is imported from the current folder before sys.path is the parent's
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), str(os.getpid()), path],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        self.channel = Channel(ours)
        self.loaded = False

    @property
    def pid(self) -> int:
        """The warden's process id."""
        return self._process.pid

    def load(self, payload: bytes) -> None:
        """Have it load a pickled target."""
        self._tell("load", payload)

    def fork(self, number: int, confined: bool) -> WorkerClient:
        """Have it fork a worker; the client can be handed work at once."""
        ours, theirs = socket.socketpair()
        page = new_page()
        board = Board(page)
        self.channel.send(pickle.dumps(("fork", number, confined)), (theirs.detach(), page))
        return WorkerClient(number, ours, board)

    def kill(self, number: int) -> None:
        """Have it kill a worker and what that worker started."""
        self._tell("kill", number)

    def _tell(self, *message: object) -> None:
        self.channel.send(pickle.dumps(message))

    def hang_up(self) -> None:
        """Close the socket: the warden kills its workers and ends; one that is still loading is killed itself."""
        self.channel.close()
        if not self.loaded:
            self._process.kill()

    def wait(self) -> int:
        """Wait until it has ended, after `hang_up`, and return its exit code."""
        try:
            return self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def ended(self) -> bool:
        """Whether the process is over, without waiting."""
        return self._process.poll() is not None

    def forget(self) -> None:
        """In a forked child: drop the socket, and never wait for a process that is the parent's."""
        self.channel.close()
        self._process.returncode = 0
