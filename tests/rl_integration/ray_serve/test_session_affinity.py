"""What stands in front of Serve's router, without Ray."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from adjudge.rl_integration.ray_serve import session_affinity
from adjudge.rl_integration.ray_serve.session_affinity import SessionAffinity, about

Message = MutableMapping[str, Any]
OK: list[Message] = [
    {"type": "http.response.start", "status": 200, "headers": [(b"x-request-id", b"a"), (b"X-Request-Id", b"b")]},
    {"type": "http.response.body", "body": b"fine"},
]
GONE: list[Message] = [
    {"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]},
    {"type": "http.response.body", "body": b"Path '/x' not found.", "more_body": True},
    {"type": "http.response.body", "body": b""},
]


class Proxy:
    """What stands behind it: notes what comes, and answers."""

    def __init__(self, answer: list[Message]) -> None:
        self.answer = answer
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        self.headers = scope["headers"]
        while True:
            message = await receive()
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                break
        for message in self.answer:
            await send(message)


def through(
    *parts: bytes, answer: list[Message] | None = None, headers: list[tuple[bytes, bytes]] | None = None
) -> tuple[Proxy, list[Message]]:
    """Send a body through it; return what the proxy saw, and what the client was sent."""
    coming = [
        {"type": "http.request", "body": part, "more_body": place < len(parts) - 1} for place, part in enumerate(parts)
    ]
    sent: list[Message] = []
    proxy = Proxy(OK if answer is None else answer)

    async def receive() -> Message:
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Message = {"type": "http", "method": "POST", "path": "/v1/score", "headers": list(headers or [])}
    asyncio.run(asyncio.wait_for(SessionAffinity(proxy)(scope, receive, send), 20))
    return proxy, sent


def sessions(proxy: Proxy) -> list[bytes]:
    return [value for name, value in proxy.headers if name.lower() == session_affinity.HEADER]


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        ({"sample": {"group": "g", "prompt": "p"}}, {"samples": [{"group": "g"}, {"group": "h"}]}, {"group": "h"}),
        ({"sample": {"prompt": "p", "response": "a"}}, {"prompt": "p", "response": "b"}, {"prompt": "q"}),
        ({"query": ["pa"], "prompts": ["p"]}, {"prompt": "p"}, {"query": ["pa"], "prompts": ["q"]}),
        (
            {"responses_create_params": {"input": [{"role": "user", "content": "p"}]}, "response": {"id": "1"}},
            {"responses_create_params": {"input": [{"content": "p", "role": "user"}]}, "response": {"id": "2"}},
            {"responses_create_params": {"input": "p"}},
        ),
        ({"messages": [{"role": "user", "content": "p"}, {}]}, {"messages": [{"role": "user", "content": "p"}]}, {}),
        ([{"prompt": "p"}], {"prompt": "p"}, []),
    ],
)
def test_requests_about_the_same_group_or_prompt_have_the_same_name(one: Any, same: Any, other: Any) -> None:
    names = [about(json.dumps(body).encode()) for body in (one, same, other)]
    assert names[0] == names[1] != names[2]
    assert len(names[0]) == 32


@pytest.mark.parametrize(
    "body", [b"", b"{", b"7", b"null", b"\xff\xfe", b"[" * 100_000, b'{"prompt": ""}', b'{"a": 1}']
)
def test_a_body_without_a_subject_has_no_name(body: bytes) -> None:
    assert about(body) == ""


def test_the_name_is_given_to_the_router_and_the_body_arrives_whole() -> None:
    proxy, _ = through(b'{"prompt": ', b'"p"', b"}")
    assert sessions(proxy) == [about(b'{"prompt": "p"}').encode()]
    assert proxy.body == b'{"prompt": "p"}'


def test_a_name_that_the_client_gives_stays() -> None:
    proxy, _ = through(b'{"prompt": "p"}', headers=[(b"X-Session-Id", b"mine")])
    assert sessions(proxy) == [b"mine"]


def test_a_large_body_goes_on_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_affinity, "MAX_BYTES", 20)
    parts = (b'{"prompt": "p", ', b'"response": "' + b"x" * 100, b'"}')
    proxy, _ = through(*parts)
    assert sessions(proxy) == []
    assert proxy.body == b"".join(parts)


def test_a_slow_body_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_affinity, "SECONDS", 0.01)
    late = asyncio.Event()
    seen: list[Message] = []

    async def receive() -> Message:
        await late.wait()
        return {"type": "http.request", "body": b'{"prompt": "p"}', "more_body": False}

    async def proxy(scope: Message, receive: Any, send: Any) -> None:
        late.set()  # the body comes only once the proxy was reached
        seen.append(await receive())
        assert all(name != session_affinity.HEADER for name, _ in scope["headers"])

    async def send(message: Message) -> None:
        pytest.fail(f"nothing was to be sent: {message}")

    scope: Message = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(asyncio.wait_for(SessionAffinity(proxy)(scope, receive, send), 20))
    assert seen[0]["body"] == b'{"prompt": "p"}'


def test_a_request_id_that_serve_repeats_is_sent_once() -> None:
    _, sent = through(b"{}")
    assert sent[0]["headers"] == [(b"x-request-id", b"a")]
    assert sent[1]["body"] == b"fine"


def test_serves_own_404_is_the_servers_503() -> None:
    _, sent = through(b"{}", answer=GONE)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    headers = dict(sent[0]["headers"])
    assert (sent[0]["status"], headers[b"retry-after"]) == (503, b"5")
    assert int(headers[b"content-length"]) == len(sent[1]["body"])
    assert json.loads(sent[1]["body"])["error"]["code"] == "not_there"


def test_the_applications_404_stays() -> None:
    start = {"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"application/json")]}
    _, sent = through(b"{}", answer=[start, {"type": "http.response.body", "body": b"{}"}])
    assert (sent[0]["status"], sent[1]["body"]) == (404, b"{}")
