"""The server on a socket: started, and stopped so that nothing accepted is lost.

SIGTERM and Ctrl-C close the socket to new connections, and the service to new samples; what was accepted is answered,
and the process ends.  What cannot be answered in time is refused after all (503), so that its client asks elsewhere.

Not covered: several worker processes; start several servers behind a balancer, or `adjudge serve --ray`.
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.watch.panel import WatchPanel

_HEAD_BYTES = 64 << 10
_LEAST_READ = 1 << 10  # bytes a second of an answer that a client must take
_BODY_IS_REFUSED = 5.0  # seconds for the rest of a body that nobody reads; a client needs a moment to see the answer


class _Connection(HttpToolsProtocol):
    """A connection with limits that uvicorn does not have.

    It does not limit how long the head of a request may take, nor how long it is, nor for how long a client goes on
    with a body that was refused already, nor for how long it leaves its answer unread: a client that says or reads
    little could use up the server's files and memory.
    """

    _head_seconds = 30.0
    _ends: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    _too_long = False

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a first request."""
        super().connection_made(transport)
        self._end_after(self._head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end_after(None)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to look whether the client takes its answer."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """Stop looking: nearly all of it was taken."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def _look_again(self, before: float = math.inf) -> None:
        left = self.transport.get_write_buffer_size()
        if before - left < _LEAST_READ * self._head_seconds:
            self.transport.abort()  # `close` would wait for the client
        else:
            self._unread = self.loop.call_later(self._head_seconds, self._look_again, left)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head has become too long."""
        self._head_bytes += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head_bytes > _HEAD_BYTES and not self.transport.is_closing():
            self._too_long = True
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request that is not HTTP, or whose head is too long."""
        longer = f"The head of the request is longer than {_HEAD_BYTES} bytes."
        super().send_400_response(longer if self._too_long else msg)

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the head."""
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0
        self._end_after(self._head_seconds)

    def on_headers_complete(self) -> None:
        """Stop waiting: the head is here; it may have come in one piece with what follows it."""
        if sum(len(name) + len(value) for name, value in self.headers) > _HEAD_BYTES:
            self._too_long = True
            raise ValueError("the head is too long")  # which ends the connection, by `send_400_response`
        self._in_head = False
        self._end_after(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop waiting: the body is here, wanted or not."""
        self._end_after(None)
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait only a moment for the rest of a request that was answered before it was complete."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.pipeline:
            self._end_after(_BODY_IS_REFUSED)

    def _end_after(self, seconds: float | None) -> None:
        if self._ends is not None:
            self._ends.cancel()
        closing = self.timeout_keep_alive_handler
        self._ends = self.loop.call_later(seconds, closing) if seconds is not None else None


_BACKLOG = 4096  # connections that the kernel holds while the loop is busy
_MAX_FILES = 65_536
_TURN_SECONDS = 0.001  # of a thread; a request passes through several, and would wait 5 ms for each that is busy
_FLUSH_SECONDS = 5  # for answers to reach their clients after the last of them is there


class Server(uvicorn.Server):
    """A server that tells where it listens as soon as it does, and that closes the service when it stops listening."""

    def __init__(
        self, settings: uvicorn.Config, service: RewardService, drain_seconds: float, tell: Callable[[str], None]
    ) -> None:
        super().__init__(settings)
        self._service = service
        self._drain_seconds = drain_seconds
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        _raise_file_limit()
        sys.setswitchinterval(min(sys.getswitchinterval(), _TURN_SECONDS))
        await super().startup(sockets)
        for one in self.servers:
            for listening in one.sockets:
                host, port = listening.getsockname()[:2]
                self._tell(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing more, answer what was accepted, and close the connections."""
        drained = asyncio.create_task(self._drained())
        await super().shutdown(sockets)
        if self.force_exit:  # a second Ctrl-C
            await self._service.abandon()
        await drained

    async def _drained(self) -> None:
        # Now, and not when the connections are closed: a group that waits for its last member keeps its connections
        # open, and the last member cannot come any more.
        if not await self._service.drain(self._drain_seconds):
            await self._service.abandon()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGTERM and Ctrl-C as a word to stop; unlike uvicorn's, they do not kill the process in the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def server(
    service: RewardService, config: ServerConfig, tell: Callable[[str], None], panel: WatchPanel | None = None
) -> Server:
    """Return a server that is ready to `run`.

    Args:
        service: what scores.
        config: where it listens, and its limits.
        tell: given the address when it listens.
        panel: the service's watch, for the page at `/`; None if it has none.

    Raises:
        ValueError: the file of tokens cannot be used, or the score log cannot be written.
    """
    settings = uvicorn.Config(
        application(service, config, panel),
        host=config.host,
        port=config.port,
        backlog=_BACKLOG,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=math.ceil(config.drain_seconds) + _FLUSH_SECONDS,
        server_header=False,
        http=type("Connection", (_Connection,), {"_head_seconds": config.body_seconds}),
        ws="none",
    )
    return Server(settings, service, config.drain_seconds, tell)


def _raise_file_limit() -> None:
    """Let the process have as many connections as its hard limit of open files allows; the usual soft one is 1024."""
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(ValueError, OSError):  # macOS has a limit of its own below the one it names
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
