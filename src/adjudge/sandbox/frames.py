"""Frames over a socket: 4 bytes of length, then so many bytes; nothing longer than `MOST` is taken or sent.

Also what the caller of a fork server and the server say to each other: records of one size, answered in order.

The file uses the standard library alone, because the sandbox's Python loads it too.
"""

from __future__ import annotations

import array
import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

MOST = 32 << 20
"""Most bytes of a frame."""

Deadline = float | Callable[[], float] | None
"""A time on the monotonic clock; or a function that says for how many seconds to wait before it is asked again, and 0
or less when the time is up; None waits for ever."""

_LENGTH = struct.Struct("!I")
_MAX_DESCRIPTORS = 8


class FrameError(Exception):
    """The other end sent something other than frames, or a longer one than is taken."""


class FrameTimeoutError(FrameError):
    """The other end took longer than allowed."""


def send(connection: socket.socket, frame: bytes, deadline: Deadline = None, descriptors: Sequence[int] = ()) -> None:
    """Send one frame on a stream socket, on a Unix one with descriptors for `receive_first`.

    Raises:
        FrameError: the frame is too long, or the other end is gone.
        FrameTimeoutError: the other end did not take it in time.
    """
    if len(frame) > MOST:
        raise FrameError(f"a frame of {len(frame)} bytes is longer than {MOST}")
    data = memoryview(_LENGTH.pack(len(frame)) + frame)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    while data:
        _set_timeout(connection, deadline)
        try:
            data = data[connection.sendmsg([data], rights) :]
        except TimeoutError:
            continue
        except OSError as error:
            raise FrameError(f"the other end is gone: {error}") from None
        rights = []


def receive(connection: socket.socket, deadline: Deadline = None) -> bytes | None:
    """Return the next frame, or None when the other end has closed before one began.

    Raises:
        FrameError: the stream ends inside a frame, or the frame is too long.
        FrameTimeoutError: no whole frame came in time.
    """
    head = _exactly(connection, _LENGTH.size, deadline)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MOST:
        raise FrameError(f"a frame of {length} bytes is longer than {MOST}")
    return _exactly(connection, length, deadline, inside=True)


def receive_first(connection: socket.socket) -> tuple[bytes | None, list[int]]:
    """Return the first frame, as `receive` does, and the descriptors that came with it; waits for ever.

    Raises:
        FrameError: see `receive`.
    """
    fds = array.array("i")
    head, rights, _, _ = connection.recvmsg(_LENGTH.size, socket.CMSG_SPACE(_MAX_DESCRIPTORS * fds.itemsize))
    for _, _, data in rights:
        fds.frombytes(data)
    if not head:
        return None, []
    if len(head) < _LENGTH.size:
        raise FrameError("the stream ends inside a frame")
    return _exactly(connection, _LENGTH.unpack(head)[0], None, inside=True), list(fds)


def _exactly(connection: socket.socket, count: int, deadline: Deadline, inside: bool = False) -> bytes:
    parts: list[bytes] = []
    missing = count
    while missing:
        _set_timeout(connection, deadline)
        try:
            part = connection.recv(min(missing, 1 << 18))
        except TimeoutError:
            continue
        except ConnectionError:
            part = b""
        if not part:
            if parts or inside:
                raise FrameError("the stream ends inside a frame")
            return b""
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _set_timeout(connection: socket.socket, deadline: Deadline) -> None:
    if deadline is None:
        connection.settimeout(None)
        return
    left = deadline() if callable(deadline) else deadline - time.monotonic()
    if left <= 0:
        raise FrameTimeoutError("the time is up")
    connection.settimeout(left)


READY, MAKE, END = 1, 2, 3
"""The server has started; make a run; kill a run and say how it ended."""

PREPARED = b"+"
"""What a run says on its channel when it has been made apart and waits for its job."""

TAKEN = b"!"
"""What it says when it has its job, before it looks at it: what happens from here on is the job's doing."""

_RECORD = struct.Struct("!BI?iq")
ORDER_BYTES = _RECORD.size


class Order(NamedTuple):
    """An order, and the answer to it.

    Attributes:
        kind: `READY`, `MAKE` or `END`.
        number: of the run; the caller counts them.
        light: of `MAKE`: whether the run is for code that is trusted.
        code: of an answer to `END`: exit status, or minus the signal's number; to `MAKE`: 0, or why there is no run, an
            error number.
        size: of `MAKE`: MiB of files; of an answer to `END`: the most memory that a process of it held, in KiB.
    """

    kind: int
    number: int = 0
    light: bool = False
    code: int = 0
    size: int = 0

    def pack(self) -> bytes:
        """Return it as `ORDER_BYTES` bytes."""
        return _RECORD.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        """Return the order that `pack` wrote."""
        return cls._make(_RECORD.unpack(data))
