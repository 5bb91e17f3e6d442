"""A supervisor and its workers as the pool's thread sees them: processes that are spoken to over sockets.

A supervisor is started by exec.  Of a worker there are its socket, its board, and the chunks it was handed.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections import deque

from adjudge.runtime import waits
from adjudge.runtime.board import HANDLING, IDLE, Board, new_page
from adjudge.runtime.channel import Channel
from adjudge.runtime.job import Chunk

_BOOT = (
    "import sys; sys.path[:] = sys.argv[3].split('\\n'); "
    "from adjudge.runtime.supervisor import main; main(int(sys.argv[1]), int(sys.argv[2]))"
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LAST_SECONDS = 12.0  # a supervisor ends within 10, and at once unless something cannot be killed
_NEVER = float("inf")
_CONFIRM_SECONDS = waits.TICKS  # an item found overdue is looked at once more: its result may be on the way
_HANDLING_SECONDS = 1.0  # least time allowed for pickling a chunk's results or unpickling its items
_POLL_SECONDS = 0.05  # between two looks at a worker that has not begun what it was sent
_STUCK_SECONDS = 120.0  # a worker that does not begin within this is given up


class WorkerClient:
    """The parent's end of one worker.

    Attributes:
        number: names the worker to its supervisor.
        channel: frames to and from it.
        chunks: what it was handed and has not finished, oldest first; the worker is at the first.
        since: when the first of them became the first (`time.monotonic`).
        look_at: when to look at the board next (`time.monotonic`).
        unused: whether it was never handed anything.
        leaving: whether it takes no more work: it said so, or its process ended.
        farewell: whether it said so.
        overloaded: whether what is overdue was let wait rather than slow.
    """

    def __init__(self, number: int, connection: socket.socket, board: Board) -> None:
        self.number = number
        self.channel = Channel(connection)
        self.chunks: deque[Chunk] = deque()
        self.since = 0.0
        self.look_at = _NEVER
        self.unused = True
        self.leaving = False
        self.farewell = False
        self._board = board
        self._serial = 1  # of chunks[0]
        self._suspect: tuple[int, int, float] | None = None
        self._waits: dict[int, waits.Thread] = {}
        self._latest: dict[int, waits.Thread] = {}
        self.overloaded = False

    def hand(self, chunk: Chunk, frame: bytes, now: float) -> None:
        """Send a chunk; `frame` is the pickled (seconds, MiB, items)."""
        self.unused = False
        self.chunks.append(chunk)
        self.channel.send(frame)
        if len(self.chunks) == 1:
            self._expect(now)

    def finish_chunk(self, now: float) -> None:
        """Drop the first chunk: nothing of it is open."""
        self.chunks.popleft()
        self._serial += 1
        self._expect(now)

    def _expect(self, now: float) -> None:
        self.since = now
        self._waits = waits.by_task(self._board.pid)
        self.look_at = now + self.chunks[0].job.limits.seconds if self.chunks else _NEVER

    def overdue(self, now: float) -> bool:
        """Look at the board; True once what the worker is at has taken longer than its limit, twice seen."""
        if not self.chunks:
            return False
        limit = self.chunks[0].job.limits.seconds
        seen = self._board.read()
        serial, position, start = seen
        if serial != self._serial or position == IDLE:
            self._suspect = None
            self.look_at = now + min(limit, _POLL_SECONDS)
            return now - self.since > _STUCK_SECONDS
        due = start + (limit if position >= 0 else max(limit, _HANDLING_SECONDS))
        self.overloaded = now >= start + waits.BACKSTOP * limit
        if now >= due and not self.overloaded:
            due += self._not_charged(now - start)
        if now < due:
            self.look_at = due
            return False
        latest = waits.by_task(self._board.pid)
        if seen == self._suspect and (self.overloaded or not waits.going_on(self._latest, latest)):
            return True
        self._suspect, self._latest = seen, latest
        self.look_at = now + _CONFIRM_SECONDS
        return False

    def _not_charged(self, wall: float) -> float:
        """Return how much of so many seconds the worker, or what it ran, was let wait."""
        waited = waits.longest(self._waits, waits.by_task(self._board.pid)) + self._board.excused
        return min(waited + waits.GRACE, wall) if waited > wall / 50 else 0.0

    def at(self) -> tuple[int | None, float, bool]:
        """Return what the worker is, or was, at.

        Returns:
            The position in its first chunk, None when it is at no single item that still has no result; since
            when; and whether it is pickling or unpickling the chunk as a whole.
        """
        serial, position, start = self._board.read()
        if not self.chunks or serial != self._serial:
            return None, start, False
        handling = position == HANDLING
        size = len(self.chunks[0].indices)
        if handling and size == 1:
            position = 0
        open_item = self.chunks[0].done <= position < size
        return position if open_item else None, start, handling

    def close(self) -> None:
        """Give back socket and page; the process sees the end of its input."""
        self.leaving = True
        self.look_at = _NEVER
        self.chunks.clear()
        self.channel.close()
        self._board.close()


class SupervisorClient:
    """The parent's end of a supervisor.

    Attributes:
        channel: frames to and from it.
        loaded: whether it has said that it can fork workers.
    """

    def __init__(self) -> None:
        """Start the process, with the parent's import path, folder and environment."""
        ours, theirs = socket.socketpair()
        # One thread per numerical library: workers are one per core, and a supervisor with threads forks badly.
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
        """The supervisor's process id."""
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
        """Close the socket: the supervisor kills its workers and ends; one that is still loading is killed itself."""
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
