"""Bodies that nobody should send: each is told what is wrong with it, and the server goes on."""

from __future__ import annotations

import copy
import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.server.conftest import served
from tests.rl_integration.server.dialects.conftest import Obedient
from tests.rl_integration.server.good_requests import GOOD, PROGRAMS

from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.json_bodies import read_json
from adjudge.rl_integration.service.config import LaneConfig

MOST = 1 << 20
JSON = {"content-type": "application/json"}
NO_JSON = {
    "cut off": b'{"a": [1, 2',
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "UTF-16 without its other half": b"\xff\xfe\x00",
    "NUL bytes": b"\x00" * 99,
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "a number beyond a double": b'{"a": 1e999}',
    "an integer of 5000 digits": b'{"a": ' + b"9" * 5000 + b"}",
    "100,000 brackets": b"[" * 100_000,
    "100,000 brackets that close": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects": b'{"a":' * 100_000,
    "101 levels": b"[" * 101 + b"]" * 101,
    "a key twice": b'{"a": 1, "a": 2}',
    "a key twice, deep inside": b'{"a": [{"b": {"c": 1, "c": 1}}]}',
    "a bare word": b"hello",
    "two values": b"{} {}",
    "a comment": b"{} // fine?",
    "white space": b" \n ",
}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    scorers = {"it": LaneConfig(scorer=Obedient(), window=100_000)}
    config = ServerConfig(port=0, max_bytes=MOST, max_samples=100)
    with served(scorers, config) as address, httpx.Client(base_url=address, timeout=1200) as client:
        yield client


def refused(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an answer that must be one of our errors."""
    body = answer.json()
    assert 400 <= answer.status_code < 500, answer.text
    assert set(body) == {"error", "request_id"}
    assert body["error"]["message"]
    assert len(answer.content) < 2000, "an answer that repeats the request"
    return answer.status_code, body["error"]["code"]


def goes_on(client: httpx.Client) -> None:
    assert client.post("/rm", json=GOOD["/rm"]).json() == 3.0


def test_the_good_requests_are_all_routes_that_take_a_body(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {path for path, methods in paths.items() if "post" in methods} == set(GOOD)
    for path, body in GOOD.items():
        expected = 422 if path in PROGRAMS else 200
        assert client.post(path, json=body).status_code == expected, path


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_strict_json_is_refused_on_every_route(client: httpx.Client, body: bytes) -> None:
    for path in GOOD:
        assert refused(client.post(path, content=body, headers=JSON)) == (400, "not_json")
    goes_on(client)


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"5", b'"text"', b"true", b"[{}]", b"{}"])
def test_what_says_nothing_is_refused(client: httpx.Client, body: bytes) -> None:
    for path in set(GOOD) - {"/seed_session", "/close_session"}:  # which need none
        assert refused(client.post(path, content=body, headers=JSON))[0] in (400, 422)
    goes_on(client)


@pytest.mark.parametrize(
    "kind",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", "a/b/c", "\xe4"],
)
def test_what_is_not_sent_as_json_is_refused(client: httpx.Client, kind: str) -> None:
    for path, body in GOOD.items():
        headers = [(b"content-type", kind.encode("latin-1"))] if kind else []
        assert refused(client.post(path, content=json.dumps(body), headers=headers)) == (415, "not_json")
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"):
        assert client.post("/rm", content=json.dumps(GOOD["/rm"]), headers={"content-type": kind}).json() == 3.0


def test_compressed_bodies_are_refused_unread(client: httpx.Client) -> None:
    bomb = gzip.compress(b"[" + b" " * (50 << 20) + b"]")
    assert len(bomb) < MOST
    for coding in ("gzip", "br", "deflate", "gzip, gzip"):
        headers = JSON | {"content-encoding": coding}
        assert refused(client.post("/rm", content=bomb, headers=headers)) == (415, "compressed")
    assert client.post("/rm", json=GOOD["/rm"], headers={"content-encoding": "identity"}).json() == 3.0


def test_endless_chunks_end_at_the_limit(client: httpx.Client) -> None:
    address = urlparse(str(client.base_url))
    head = b"POST /rm HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection((str(address.hostname), address.port or 80), timeout=1200) as stream:
        stream.sendall(head + chunk * (MOST // 0x10000 + 1))
        answer = stream.recv(65536)
        while b"body_too_large" not in answer:
            more = stream.recv(65536)
            assert more, answer
            answer += more
    assert answer.startswith(b"HTTP/1.1 413")
    goes_on(client)


@pytest.mark.parametrize("key", ["\ud800", "\x00", "k" * 5000])
def test_what_is_wrong_can_be_told_of_any_key(client: httpx.Client, key: str) -> None:
    for body in ({key: 1}, {"sample": {"prompt": "q", "response": "a", key: 1}}, {"scorer": key, "samples": []}):
        assert refused(client.post("/v1/score", content=json.dumps(body), headers=JSON))[0] in (404, 422)


@settings(max_examples=200)
@given(body=st.binary(max_size=200), path=st.sampled_from(sorted(GOOD)))
def test_random_bytes(client: httpx.Client, body: bytes, path: str) -> None:
    answer = client.post(path, content=body, headers=JSON)
    if answer.status_code != 200 or path not in ("/seed_session", "/close_session"):
        refused(answer)


HOSTILE: list[Any] = [
    *(None, True, -1, 10**400, 1.7e308, -0.0, "", "\x00", "\ud800", "a" * 5000, "[" * 5000, "{" * 5000),
    *([], {}, [[]], [None], {"": ""}, {"\ud800": 1}),
    {"$adjudge": "bytes", "value": "?"},
    {"role": "assistant", "content": {"a": 1}},
]


def places(value: Any) -> list[tuple[Any, ...]]:
    """The way to every value inside a JSON value."""
    if not isinstance(value, dict | list):
        return [()]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [(), *((key, *rest) for key, inner in items for rest in places(inner))]


@st.composite
def changed(draw: st.DrawFn) -> tuple[str, Any]:
    """A good request, one or two values of which are replaced by hostile ones or taken away."""
    path = draw(st.sampled_from(sorted(GOOD)))
    body = copy.deepcopy(GOOD[path])
    for _ in range(draw(st.integers(1, 2))):
        way = draw(st.sampled_from(places(body)))
        if not way:
            return path, copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        inside = body
        for step in way[:-1]:
            inside = inside[step]
        if draw(st.booleans()):
            inside[way[-1]] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        else:
            del inside[way[-1]]
    return path, body


@settings(max_examples=1000)
@given(sent=changed(), scorer=st.sampled_from(["it", "it", "it", "it", "\x00", ""]))
def test_requests_with_hostile_values(client: httpx.Client, sent: tuple[str, Any], scorer: str) -> None:
    path, body = sent
    answer = client.post(path, content=json.dumps(body), headers=JSON, params={"scorer": scorer})
    if answer.status_code != 200:
        refused(answer)
    else:
        read_json(answer.content)


@settings(max_examples=100)
@given(cut=st.integers(0, 400), path=st.sampled_from(sorted(GOOD)))
def test_requests_that_are_cut_off(client: httpx.Client, cut: int, path: str) -> None:
    body = json.dumps(GOOD[path]).encode()
    if cut < len(body):
        answer = client.post(path, content=body[:cut], headers=JSON)
        assert answer.status_code == 200 if not cut and path.endswith("session") else refused(answer)
