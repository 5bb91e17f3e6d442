"""What Ray Serve's proxies do before they choose a replica: name the group a request is about.

Serve's consistent-hash router sends requests with the same `x-session-id` to the same replica.  Frameworks send no
such header, so it is made here, out of the group or the prompt of the first sample in the body.  Members of a group
that come one by one then meet in one replica, and samples with one prompt find its prefix in one engine's cache.

Also, where Serve itself would answer 404 because the application is not there yet or any more, the answer is the
server's 503 with Retry-After, which clients try again.

Not covered: bodies that are larger than `MAX_BYTES`, or slower than `SECONDS`; they go to any replica.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.middleware import Middleware

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEADER = b"x-session-id"

MAX_BYTES = 4 << 20
"""Bodies beyond it are not read here; 4 MiB of JSON take a proxy about 20 ms."""

SECONDS = 5.0
"""How long a body is waited for here; the server's own limit is for the replica."""

_GONE = json.dumps(
    {"error": {"code": "not_there", "message": "the server is starting or closing; try again"}, "request_id": ""}
).encode()


class SessionAffinity:
    """Stands between a proxy's socket and its router."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Handle a connection, as ASGI wants it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "POST" and not any(name.lower() == HEADER for name, _ in scope["headers"]):
            body, receive = await _peeked(receive)
            name = about(body)
            if name:
                scope["headers"] = [*scope["headers"], (HEADER, name.encode())]
        await self._app(scope, receive, _answered(send))


def middlewares() -> list[Middleware]:
    """Return what each proxy puts in front of itself; Serve calls this by its name."""
    from starlette.middleware import Middleware

    return [Middleware(SessionAffinity)]


def about(body: bytes) -> str:
    """Return a name for the group, or the prompt, of the first sample in a body; "" where there is none."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    subject = _subject(asked)
    if subject in (None, "", [], {}):
        return ""
    return hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()[:32]


def _subject(asked: Any) -> Any:
    """The group or prompt of a request, in any of the server's dialects."""
    if isinstance(asked, list):
        return _subject(asked[0]) if asked else None
    if not isinstance(asked, Mapping):
        return None
    for nested in ("sample", "samples", "responses_create_params"):
        if asked.get(nested):
            return _subject(asked[nested])
    for field in ("group", "group_id", "prompt", "prompts", "input", "messages", "query"):
        value = asked.get(field)
        if value:
            return value[0] if isinstance(value, list) and field in ("prompts", "messages", "query") else value
    return None


async def _peeked(receive: Receive) -> tuple[bytes, Receive]:
    """The body, or "" where it is too large or too slow, and a way to receive everything from its beginning."""
    seen: list[Message] = []
    parts: list[bytes] = []
    size = 0
    complete = False
    try:
        async with asyncio.timeout(SECONDS):
            while not complete and size <= MAX_BYTES:
                message = await receive()
                seen.append(message)
                if message["type"] != "http.request":
                    break
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                complete = not message.get("more_body", False)
    except TimeoutError:
        pass

    async def again() -> Message:
        return seen.pop(0) if seen else await receive()

    return b"".join(parts) if complete and size <= MAX_BYTES else b"", again


def _answered(send: Send) -> Send:
    """A way to send that turns Serve's own 404 into the server's 503, and drops the request id that Serve repeats."""
    gone = False

    async def sending(message: Message) -> None:
        nonlocal gone
        if message["type"] == "http.response.start":
            headers = _without_second(message.get("headers", []), b"x-request-id")
            kinds = [value for name, value in headers if name.lower() == b"content-type"]
            gone = message["status"] == 404 and not any(b"json" in kind for kind in kinds)  # the application's are JSON
            if gone:
                headers = [(name, value) for name, value in headers if not name.lower().startswith(b"content-")]
                headers += [(b"content-type", b"application/json"), (b"retry-after", b"5")]
                headers.append((b"content-length", str(len(_GONE)).encode()))
                message = {**message, "status": 503}
            await send({**message, "headers": headers})
        elif not gone:
            await send(message)
        elif not message.get("more_body", False):
            await send({"type": "http.response.body", "body": _GONE})

    return sending


def _without_second(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[tuple[bytes, bytes]]:
    kept: list[tuple[bytes, bytes]] = []
    for one, value in headers:
        if one.lower() != name or all(other.lower() != name for other, _ in kept):
            kept.append((one, value))
    return kept
