"""Frames over a Unix socket: 8 bytes of length, then the bytes.

`Channel` is the parent's end: it never blocks, because one thread serves all workers.  The functions are for the
other end, a process that has nothing else to do and may block.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence

_LENGTH = struct.Struct("!Q")
_READ = 1 << 18  # bytes asked for at once; above the default socket buffer of Linux (208 KiB)
_MAX_FDS = 4  # file descriptors that come with one frame


class Channel:
    """A socket that sends and receives frames without ever waiting.

    Attributes:
        socket: the connected socket, which the channel owns.
        ended: True once the other end is closed.
        on_backlog: called with True when bytes have to wait until the socket takes them, with False when none do.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.ended = False
        self.on_backlog: Callable[[bool], None] | None = None
        self._waits = False
        self._incoming = bytearray()
        self._outgoing: deque[tuple[list[memoryview], tuple[int, ...]]] = deque()

    def send(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Queue a frame and send as much as fits.

        Args:
            frame: the bytes.
            fds: file descriptors to hand over with it; they are closed here once sent.
        """
        self._outgoing.append(([memoryview(_LENGTH.pack(len(frame))), memoryview(frame)], tuple(fds)))
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now; a broken connection drops the rest and shows as `ended` on reading."""
        while self._outgoing:
            parts, fds = self._outgoing[0]
            try:
                sent = socket.send_fds(self.socket, parts, fds) if fds else self.socket.sendmsg(parts)
            except BlockingIOError:
                break
            except OSError:
                self._drop_outgoing()
                break
            _close_all(fds)
            self._outgoing.popleft()
            if rest := _after(parts, sent):
                self._outgoing.appendleft((rest, ()))
        if self._waits != bool(self._outgoing):
            self._waits = not self._waits
            if self.on_backlog is not None:
                self.on_backlog(self._waits)

    def receive(self) -> list[bytes]:
        """Return the frames that are complete by now, in order; set `ended` when no more can come."""
        while not self.ended:
            try:
                data = self.socket.recv(_READ)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.ended = True
            self._incoming += data
            if len(data) < _READ:
                break
        return self._frames()

    def _frames(self) -> list[bytes]:
        frames: list[bytes] = []
        at, held = 0, len(self._incoming)
        while held - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming, at)
            end = at + _LENGTH.size + length
            if end > held:
                break
            with memoryview(self._incoming) as view:
                frames.append(bytes(view[at + _LENGTH.size : end]))
            at = end
        if at:
            del self._incoming[:at]
        return frames

    def close(self) -> None:
        """Close the socket and whatever was to be handed over."""
        self._drop_outgoing()
        self.socket.close()

    def _drop_outgoing(self) -> None:
        for _, fds in self._outgoing:
            _close_all(fds)
        self._outgoing.clear()


def write_frame(connection: socket.socket, frame: bytes) -> None:
    """Send one frame, waiting until it is out."""
    connection.sendall(_LENGTH.pack(len(frame)) + frame)


def read_frame(connection: socket.socket) -> bytearray | None:
    """Wait for one frame; None when the other end is closed."""
    header = _read_exactly(connection, bytearray(_LENGTH.size), 0)
    return None if header is None else _read_body(connection, header)


def read_frame_with_fds(connection: socket.socket) -> tuple[bytearray, list[int]] | None:
    """Wait for one frame and the file descriptors that came with it; None when the other end is closed."""
    start, fds, _, _ = socket.recv_fds(connection, _LENGTH.size, _MAX_FDS)
    for fd in fds:
        os.set_inheritable(fd, False)
    header = bytearray(start.ljust(_LENGTH.size, b"\0"))
    if not start or _read_exactly(connection, header, len(start)) is None:
        return None
    body = _read_body(connection, header)
    return None if body is None else (body, list(fds))


def _read_body(connection: socket.socket, header: bytearray) -> bytearray | None:
    (length,) = _LENGTH.unpack(header)
    return _read_exactly(connection, bytearray(length), 0)


def _read_exactly(connection: socket.socket, into: bytearray, held: int) -> bytearray | None:
    with memoryview(into) as view:
        while held < len(into):
            try:
                count = connection.recv_into(view[held:], 0, socket.MSG_WAITALL)
            except ConnectionResetError:
                return None
            if not count:
                return None
            held += count
    return into


def _after(parts: Sequence[memoryview], sent: int) -> list[memoryview]:
    """Return what is left of some parts when so many bytes of them are sent."""
    rest: list[memoryview] = []
    for part in parts:
        if sent < len(part):
            rest.append(part[sent:])
        sent = max(sent - len(part), 0)
    return rest


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
