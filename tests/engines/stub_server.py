"""A small HTTP server on a thread, which misbehaves on demand: what real servers do only when nobody is testing."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that came in; `number` counts those of one path from 1."""

    path: str
    number: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent back.

    Attributes:
        body: JSON data, or bytes as they are.
        length: what Content-Length says, if not the truth; -1 leaves it out.
        cut: so many bytes of the body are sent, then the connection ends; None for all.
        reset: the connection is torn down with a reset, before anything is sent if `cut` is None.
        hang: nothing is ever sent.
        drip: seconds between single bytes of the body.
    """

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    cut: int | None = None
    reset: bool = False
    hang: bool = False
    drip: float = 0.0

    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class StubServer:
    """Answers each request with what `script` returns for it; a context manager.

    Attributes:
        asked: all requests, in the order in which they came.
        max_at_once: how many were open at the same time, at most.
        closed: is set when a client has gone away before its answer was sent.
    """

    def __init__(self, script: Callable[[Asked], Reply]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.max_at_once = 0
        self.closed = threading.Event()
        self.arrived = threading.Condition()
        self._open = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def up(self) -> None:
        """Listen."""
        self._do(self._listen())

    def down(self) -> None:
        """Stop listening and cut all connections."""
        self._do(self._stop())

    def until(self, count: int, seconds: float = 20.0) -> bool:
        """Wait until so many requests have come; False if they do not."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.asked) >= count, seconds)

    def paths(self) -> list[str]:
        return [one.path for one in self.asked]

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the server was stopped
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        with self.arrived:
            number = sum(one.path == path for one in self.asked) + 1
            asked = Asked(path=path, number=number, headers=headers, body=json.loads(raw) if raw else None)
            self.asked.append(asked)
            self._open += 1
            self.max_at_once = max(self.max_at_once, self._open)
            self.arrived.notify_all()
        try:
            return await self._send(self.script(asked), reader, writer)
        finally:
            self._open -= 1

    async def _send(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if reply.hang:
            await reader.read(1)  # returns when the client goes away
            self.closed.set()
            return False
        if reply.reset and reply.cut is None:
            _reset(writer)
            return False
        content = reply.content()
        headers = {"Content-Type": "application/json", **reply.headers}
        if reply.length != -1:
            headers["Content-Length"] = str(len(content) if reply.length is None else reply.length)
        lines = [f"HTTP/1.1 {reply.status} Stub", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        for piece in [bytes([byte]) for byte in content] if reply.drip else [content[: reply.cut]]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(reply.drip)
        if reply.cut is not None and reply.reset:
            _reset(writer)
        return reply.cut is None and reply.length is None


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a crashed machine does."""
    found = writer.get_extra_info("socket")
    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
