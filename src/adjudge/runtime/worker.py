"""The worker process: it takes chunks of items, calls the target on each, and sends the results back.

It is forked from a supervisor that has loaded the target, so it starts in a millisecond or two.  It holds itself to
the limits it can (memory, CPU, processes); the wall clock is the parent's, which reads the worker's board and kills.

Not covered: recovery.  After a MemoryError, or when memory grew and stays, the worker says so and leaves.
"""

from __future__ import annotations

import gc
import marshal
import os
import pickle
import socket
import time
from collections.abc import Callable
from typing import Any, NoReturn

from adjudge.runtime import confine, role, waits
from adjudge.runtime.board import HANDLING, IDLE, Board
from adjudge.runtime.channel import read_frame, write_frame
from adjudge.runtime.pickling import module_to_send

FLUSH_SECONDS = 0.02  # results older than this are sent before the next item starts
_CHECK_SECONDS = 2.0  # how long a worker works between two looks at its own size
_MAX_ERROR = 2000  # characters of an error that travel

OUT_OF_MEMORY = 97  # exit code of a worker that cannot even say so
_OUT_OF_MEMORY = ("memory", "MemoryError")

Odd = dict[int, tuple[str, str]]
"""Offset in a results frame -> (kind, error) of an item that did not return."""
Unread = tuple[str, str]
"""The module that was missing, if one was, and the error, when a chunk could not be unpickled."""


class Worker:
    """One forked process at work.

    Args:
        connection: the socket to the parent.
        board: the page the parent watches.
        target: what is called on each item.
        confined: whether child processes are forbidden.
    """

    def __init__(
        self, connection: socket.socket, board: Board, target: Callable[[Any], object], confined: bool
    ) -> None:
        self._connection = connection
        self._board = board
        board.sign()
        waits.excuse_by(board.excuse)
        self._target = target
        self._confined = confined
        self._pid = os.getpid()
        self._base = confine.address_space()
        self._memory = 0
        self._looked_at = time.monotonic()

    def serve(self) -> None:
        """Work until the parent closes the socket or this worker has to leave."""
        confine.forbid_core_dumps()
        if self._confined:
            confine.forbid_processes()
        else:
            confine.adopt_orphans()  # what the target leaves behind stays below this process, to be found and killed
        serial, leaving = 0, False
        while not leaving and (frame := read_frame(self._connection)) is not None:
            serial += 1
            self._board.begin_chunk(serial, time.monotonic())
            leaving = self._work(frame)

    def _work(self, frame: bytearray) -> bool:
        try:
            seconds, memory, items = pickle.loads(frame)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 an item's own class decides what unpickling raises
            return self._send([], [], {}, (module_to_send(error), f"{type(error).__name__}: {_text(error)}"))
        self._limit(memory, seconds * len(items))
        del frame
        values: list[object] = []
        times: list[float] = []
        odd: Odd = {}
        target, begin, clock = self._target, self._board.begin, time.monotonic
        started = flushed = clock()
        for position, item in enumerate(items):
            begin(position, started)
            try:
                value = target(item)
            except MemoryError:  # a text of our own would need memory before the traceback has let go of any
                odd[len(values)] = _OUT_OF_MEMORY
                value = None
            except BaseException as error:  # noqa: BLE001 whatever the target raises, SystemExit too, is its answer
                odd[len(values)] = ("raised", f"{type(error).__name__}: {_text(error)}")
                value = None
            if os.getpid() != self._pid:
                os._exit(0)  # the target forked, and this is the child coming back
            ended = clock()
            values.append(value)
            times.append(ended - started)
            started = ended
            if odd and odd.get(len(values) - 1) is _OUT_OF_MEMORY:
                break
            if ended - flushed > FLUSH_SECONDS and position + 1 < len(items):
                if self._send(values, times, odd):
                    return True
                values, times, odd = [], [], {}
                started = flushed = clock()
        leaving = _OUT_OF_MEMORY in odd.values() or self._grown(memory)
        return self._send(values, times, odd, leaving=leaving)

    def _send(
        self, values: list[object], times: list[float], odd: Odd, unread: Unread | None = None, *, leaving: bool = False
    ) -> bool:
        self._board.begin(HANDLING, time.monotonic())
        out_of_memory = False
        try:
            frame = _packed((values, times, odd, unread, leaving))
        except MemoryError:
            out_of_memory = True
        if out_of_memory:
            frame, leaving = _piecewise(values, times, odd), True
        self._board.begin(IDLE, time.monotonic())
        write_frame(self._connection, frame)
        return leaving

    def _limit(self, memory_mb: int, seconds: float) -> None:
        confine.limit_cpu(seconds * (os.cpu_count() or 1))
        if memory_mb != self._memory and self._base:
            self._memory = memory_mb
            confine.limit_memory(self._base + (memory_mb << 20))

    def _grown(self, memory_mb: int) -> bool:
        """Whether this worker, looked at every few seconds, holds half of what an item may use."""
        now = time.monotonic()
        if now - self._looked_at < _CHECK_SECONDS:
            return False
        self._looked_at = now
        return confine.address_space() - self._base > memory_mb << 19


def run_worker(connection: socket.socket, board_fd: int, target: Callable[[Any], object], confined: bool) -> NoReturn:
    """Be a worker until the end of the process."""
    role.enter()
    gc.enable()
    board = Board(board_fd)
    os.close(board_fd)
    code = 1
    try:
        Worker(connection, board, target, confined).serve()
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_MAX_ERROR]
    except Exception:  # noqa: BLE001 an exception's own __str__ may raise
        return "(its text cannot be shown)"


def _packed(results: tuple[list[object], list[float], Odd, Unread | None, bool]) -> bytes:
    """Pack results: built-in values so that the parent can unpack them when it likes, since that cannot go wrong."""
    values, *rest = results
    try:
        try:
            return pickle.dumps((marshal.dumps(values), *rest), pickle.HIGHEST_PROTOCOL)
        except ValueError:
            return pickle.dumps(results, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 a value's own class decides what pickling raises
        return _packed_slowly(*results)  # classes that only the parent's `__main__` has travel by value


def _packed_slowly(values: list[object], times: list[float], odd: Odd, unread: Unread | None, leaving: bool) -> bytes:
    import cloudpickle

    for offset, value in enumerate(values):
        try:
            cloudpickle.dumps(value)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 as above
            odd[offset] = ("raised", f"the result cannot be pickled: {type(error).__name__}: {_text(error)}")
            values[offset] = None
    packed: bytes = cloudpickle.dumps((values, times, odd, unread, leaving))
    return packed


def _piecewise(values: list[object], times: list[float], odd: Odd) -> bytes:
    """Pickle results of which at least one is too large to be pickled within the memory limit."""
    for offset, value in enumerate(values):
        try:
            _packed(([value], [], {}, None, False))
        except MemoryError:
            values[offset] = None
            odd[offset] = ("memory", "MemoryError: the result is too large to be sent")
    return pickle.dumps((values, times, odd, None, True), pickle.HIGHEST_PROTOCOL)
