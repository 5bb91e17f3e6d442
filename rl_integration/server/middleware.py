"""What happens before a request is read as JSON: ids, tokens, bodies too large or too slow, and a line in the log."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

from adjudge.rl_integration.server.base.config import ServerConfig, loopback
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.server.dashboard.board import FILES

_LINE = re.compile(r"(?:(?P<name>[\w.-]{1,64})[ \t]+)?(?P<token>[\x21-\x7e]{16,512})")


class Tokens:
    """The clients' names by token."""

    def __init__(self, names: dict[bytes, str]) -> None:
        self._names = names

    @classmethod
    def read(cls, path: str) -> Tokens:
        """Read a file with one token a line, as `NAME TOKEN` or `TOKEN`; blank lines and `#` lines are passed over.

        Raises:
            ValueError: others may read the file, or a line is not a token.
        """
        file = Path(path).expanduser()
        try:
            status = file.stat()
            lines = file.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ValueError(f"the tokens in {path!r} cannot be read: {error.strerror}") from error
        # A file of another owner is ours by its group, as the secrets of Kubernetes are.
        others = stat.S_IROTH | (stat.S_IRGRP if status.st_uid == os.geteuid() else 0)
        if status.st_mode & others:
            raise ValueError(f"others may read the tokens in {path!r}; chmod 600 it")
        names: dict[bytes, str] = {}
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            match = _LINE.fullmatch(text)
            if match is None:
                raise ValueError(
                    f"line {number} of {path!r} is not a token; write NAME TOKEN, the token of 16 to 512 visible ASCII "
                    "characters"
                )
            digest, name = _digest(match["token"]), match["name"] or f"client{number}"
            if names.setdefault(digest, name) != name:
                raise ValueError(
                    f"line {number} of {path!r} gives {name!r} the token of {names[digest]!r}, so the two could not be "
                    "told apart; give each name a token of its own"
                )
        if not names:
            raise ValueError(f"there is no token in {path!r}; write one NAME TOKEN a line")
        return cls(names)

    def client(self, authorization: str) -> str | None:
        """Return whose token a header holds, or None; the time that takes tells nothing of the tokens."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self._names.get(_digest(token.strip()))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


_LOOKS_AFTER = 0.5  # seconds; most requests are answered before, and cost no task for this


class Presence:
    """Watches one connection while a request of it is handled, and ends the handling once the client has gone away.

    What waits for the scorer on its behalf would only hold up others; work under an idempotency key goes on (`host`).

    Args:
        receive: tells what comes on the connection, as in ASGI; the body was read.
    """

    def __init__(self, receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
        self._receive = receive
        self._watcher: asyncio.Task[None] | None = None
        self._gone = False
        self.answered = False
        """Whether the answer is complete: what ends from now on is the connection, not the request."""

    async def during(self, work: Awaitable[None]) -> bool:
        """Await work, and end it when the client goes away; return whether it came to its own end."""
        task = asyncio.current_task()
        assert task is not None
        timer = asyncio.get_running_loop().call_later(_LOOKS_AFTER, self._look, task)
        try:
            await work
        except asyncio.CancelledError:
            if not self._gone:
                raise
            task.uncancel()
            return False
        finally:
            timer.cancel()
            if self._watcher is not None:
                self._watcher.cancel()
        return True

    def _look(self, task: asyncio.Task[Any]) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch(task))

    async def _watch(self, task: asyncio.Task[Any]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.answered:
            self._gone = True
            task.cancel()


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG = logging.getLogger("adjudge.server")
OPEN = frozenset({"/healthz", "/readyz", "/health", *FILES})
"""What needs no token: whether the server lives, and the page without its data."""

QUIET = frozenset({"/v1/dashboard", *FILES})
"""What is not logged unless it fails: a page that is left open asks once a second."""

_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_BROWSER = frozenset({"origin", "sec-fetch-site"})  # what browsers add, and programs do not
_PORT = re.compile(r":[0-9]+$")
_DIGITS = re.compile(r"[0-9]{1,18}")
_BODIES = 16  # times the largest body: what is held of all requests together; more are told to come again
_GONE = 499  # in the log: the client went away, and its request was not answered


class RequestMiddleware:
    """Lets requests through to the application."""

    def __init__(self, app: App, config: ServerConfig, tokens: Tokens | None) -> None:
        self._app = app
        self._config = config
        self._tokens = tokens
        self._held = 0  # bytes of the bodies of all requests that are not answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection, as ASGI wants it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        begun, status, body = time.perf_counter(), 0, b""
        presence = Presence(receive)

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-request-id", request_id.encode())]
            elif not message.get("more_body", False):
                presence.answered = True
            await send(message)

        try:
            state["client"] = self._client(scope["path"], headers)
            body = await self._body(headers, receive)
        except HttpError as error:
            state["log"] = state.get("log", {}) | error.logged()
            await error.response(request_id)(scope, receive, sending)
        else:
            if not await presence.during(self._app(scope, _replayed(body, receive), sending)):
                status = _GONE
        finally:
            self._held -= len(body)
            line = {
                "request_id": request_id,
                "client": state.get("client", ""),
                "method": scope["method"],
                "path": scope["path"],
                "status": status or 500,
                "milliseconds": round((time.perf_counter() - begun) * 1e3, 3),
                **({} if status else {"code": "fault"}),  # an exception, whose traceback stands before this line
                **state.get("log", {}),
            }
            level = logging.DEBUG if scope["path"] in QUIET and status == 200 else logging.INFO
            if LOG.isEnabledFor(level):
                LOG.log(level, "%s", json.dumps(line))

    def _client(self, path: str, headers: dict[str, str]) -> str:
        if self._tokens is None:
            self._check_page(headers)
        if self._tokens is None or path in OPEN:
            return headers.get("x-client", "")[:64]
        client = self._tokens.client(headers.get("authorization", ""))
        if client is None:
            raise HttpError(401, "unauthorized", "send a known token: Authorization: Bearer TOKEN")
        return client

    def _check_page(self, headers: dict[str, str]) -> None:
        """Turn away pages of other sites that had their name resolved to this machine (DNS rebinding)."""
        host = headers.get("host", "")
        if _BROWSER.isdisjoint(headers) or not loopback(self._config.host) or loopback(_PORT.sub("", host).strip("[]")):
            return
        raise HttpError(
            403,
            "strange_page",
            f"a page of {host[:100]!r} asks, and this server is for its own machine; open it by its address there, or "
            "give it a file of tokens",
        )

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        most = self._config.max_bytes
        declared = headers.get("content-length", "")
        if _DIGITS.fullmatch(declared) and int(declared) > most:
            raise _too_large(most)
        body, whole = bytearray(), False
        try:
            async with asyncio.timeout(self._config.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise HttpError(400, "gone", "the client went away before its request was complete")
                    part = message.get("body", b"")
                    body += part
                    self._held += len(part)
                    if len(body) > most:
                        raise _too_large(most)
                    if self._held > _BODIES * most:
                        raise HttpError(503, "busy", "too many large bodies came at once; ask again", retry_after=1.0)
                    if not message.get("more_body", False):
                        whole = True
                        return bytes(body)
        except TimeoutError:
            seconds = self._config.body_seconds
            raise HttpError(408, "slow_body", f"the body did not arrive within {seconds:g} s") from None
        finally:
            if not whole:
                self._held -= len(body)


def _too_large(most: int) -> HttpError:
    return HttpError(
        413, "body_too_large", f"the body is larger than {most} bytes (`max_bytes`); send fewer samples at once"
    )


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, and then whatever comes on the connection."""
    given = False

    async def replay() -> MutableMapping[str, Any]:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replay
