"""The server against clients that go away, say little or too much, repeat themselves, or watch it stop."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlparse

import httpx
import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.access import Replays
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.server.running import Server, server
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService

WAIT = 20.0
Serve = Callable[..., httpx.Client]


class Held:
    """Scores by length, once its gate is open."""

    name = "held"
    fingerprint = "held:1"
    groupwise = False

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.seen: list[str] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.seen += [str(sample.response) for sample in samples]
        self.begun.release()
        assert await asyncio.to_thread(self.gate.wait, WAIT)
        return [Score.scored(float(len(sample.response))) for sample in samples]


class Wordy:
    """Says more than the kernel holds for a client."""

    name = "wordy"
    fingerprint = "wordy:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score(value=1.0, evidence={"words": "x" * (1 << 25)}) for _ in samples]


def body(*responses: str, **fields: Any) -> dict[str, Any]:
    return {"samples": [{"prompt": "q", "response": response} for response in responses], **fields}


def opened(client: httpx.Client) -> socket.socket:
    address = urlparse(str(client.base_url))
    connection = socket.create_connection((str(address.hostname), address.port or 80))
    connection.settimeout(WAIT)
    return connection


def posted(client: httpx.Client, asked: dict[str, Any], *headers: str) -> socket.socket:
    """Send a request to score, and do not wait for the answer."""
    raw = json.dumps(asked).encode()
    connection = opened(client)
    lines = ["POST /v1/score HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(raw)}"]
    connection.sendall("\r\n".join([*lines, *headers, "", ""]).encode() + raw)
    return connection


def metric(client: httpx.Client, name: str) -> float:
    (line,) = [line for line in client.get("/metrics").text.splitlines() if line.startswith(f'{name}{{scorer="it"}}')]
    return float(line.split()[-1])


def until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT / 0.01)):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come true")


def ended(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes."""
    found = b""
    while data := connection.recv(65536):
        found += data
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_client_waited_for_that_went_away_is_not_scored_and_its_share_is_free(
    serve: Serve, stream: bool
) -> None:
    scorer, free = Held(), Held()
    free.gate.set()
    client = serve({"it": LaneConfig(scorer=scorer, concurrency=1), "free": free}, max_under_way=2)

    def ask() -> int:
        asked = body("a", scorer="free")
        return client.post("/v1/score", json=asked, headers={"x-client": "me"}).status_code

    with posted(client, body("busy", scorer="it"), "X-Client: other") as busy:
        assert scorer.begun.acquire(timeout=WAIT)
        with posted(client, body("gone", "too", scorer="it", stream=stream), "X-Client: me"):
            until(lambda: metric(client, "adjudge_waiting") == 2)
            assert ask() == 429
        until(lambda: ask() == 200)
        until(lambda: metric(client, "adjudge_waiting") == 0)  # while another computes
        assert metric(client, "adjudge_given_up_total") == 2
        scorer.gate.set()
        assert busy.recv(12) == b"HTTP/1.1 200"
    until(lambda: metric(client, "adjudge_running") == 0)
    assert scorer.seen == ["busy"]
    assert metric(client, "adjudge_reward_sum") == len("busy")
    assert metric(client, "adjudge_latency_seconds_count") == 1


def test_a_key_that_comes_with_another_request_is_refused(serve: Serve) -> None:
    scorer = Held()
    scorer.gate.set()
    client = serve({"it": scorer})
    first = client.post("/v1/score", json=body("abc", idempotency_key="k"))
    assert first.json()["scores"][0]["value"] == 3.0
    reused = client.post("/v1/score", json=body("abcd", idempotency_key="k"))
    assert (reused.status_code, reused.json()["error"]["code"]) == (422, "key_reused")
    assert client.post("/v1/score", json=body("abc", idempotency_key="k")).content == first.content
    another = client.post("/v1/score", json=body("abcd", idempotency_key="k"), headers={"x-client": "another"})
    assert another.json()["scores"][0]["value"] == 4.0, "keys are each client's own"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_replays_are_bounded_and_forgotten_in_time() -> None:
    clock = Clock()
    done: list[str] = []

    async def ask(replays: Replays, key: str, answer: bytes = b"x" * 100, digest: bytes = b"") -> bytes:
        async def work() -> bytes:
            done.append(key)
            return answer

        return await replays.once("", key, digest, work)

    async def main() -> None:
        replays = Replays(seconds=10, max_bytes=2000, clock=clock)
        hanging = asyncio.create_task(replays.once("", "hangs", b"", asyncio.Event().wait))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        for n in range(100):
            await ask(replays, f"{n}")
        assert len(vars(replays)["_kept"]) == 3, "also while an older request is not answered"
        assert vars(replays)["_bytes"] <= 2000
        await ask(replays, "99")
        assert done.count("99") == 1
        clock.now = 11.0
        await ask(replays, "99")
        assert done.count("99") == 2
        with pytest.raises(HttpError, match="its own"):
            await ask(replays, "99", digest=b"other")
        hanging.cancel()

    asyncio.run(main())


def test_work_that_nobody_comes_back_for_is_given_up() -> None:
    async def main() -> None:
        ends = asyncio.Event()
        begun: list[int] = []

        async def work() -> bytes:
            begun.append(1)
            try:
                await asyncio.Event().wait()
            finally:
                ends.set()
            return b""

        async def gone(replays: Replays) -> None:
            caller = asyncio.create_task(replays.once("", "k", b"", work))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            caller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await caller

        patient = Replays(orphaned=60)
        await gone(patient)
        await gone(patient)
        assert (len(begun), ends.is_set()) == (1, False), "whoever comes back finds the same work"
        await gone(Replays(orphaned=0.0))
        await asyncio.wait_for(ends.wait(), WAIT)

    asyncio.run(main())


def test_heads_that_are_slow_or_endless_and_refused_bodies_end(serve: Serve) -> None:
    client = serve({"it": Held()}, body_seconds=0.2, max_bytes=1000)
    with opened(client) as silent, opened(client) as slow, opened(client) as endless:
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost:")
        assert ended(silent) == b""
        assert ended(slow) == b""
        with pytest.raises((ConnectionError, TimeoutError)):  # noqa: PT012 whichever line meets the closed connection
            endless.sendall(b"GET /healthz HTTP/1.1\r\n")
            for n in range(1000):
                endless.sendall(b"X-%d: " % n + b"x" * 1000 + b"\r\n")
            ended(endless)
    assert client.get("/healthz").status_code == 200


def test_a_head_that_comes_in_one_piece_is_no_longer_than_others(serve: Serve) -> None:
    client = serve({"it": "exact"})
    for size, status in ((1 << 17, b"HTTP/1.1 400"), (1 << 10, b"HTTP/1.1 200")):
        with opened(client) as connection:
            connection.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-A: " + b"a" * size + b"\r\n\r\n"
            )
            answer = ended(connection)
        assert answer.startswith(status)
        assert (b"head of the request is longer" in answer) == (status == b"HTTP/1.1 400")


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_leaves_its_answer_unread_is_ended_and_a_slow_one_is_not(serve: Serve, reads: bool) -> None:
    client = serve({"it": Wordy()}, body_seconds=0.5)
    asked = json.dumps(body("x")).encode()
    head = b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    address = urlparse(str(client.base_url))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.settimeout(WAIT)
        connection.connect((address.hostname, address.port))
        connection.sendall(head % len(asked) + asked)
        start = connection.recv(1 << 12, socket.MSG_WAITALL)
        size = int(start.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) + start.index(b"\r\n\r\n") + 4
        if not reads:
            time.sleep(3.0)
        got = len(start)
        try:
            while got < size and (part := connection.recv(1 << 20)):
                got += len(part)
                time.sleep(0.001)  # for each of some thousand parts: longer than a client may read nothing
        except ConnectionResetError:
            pass
    assert (got == size) == reads


def test_bodies_that_come_at_once_are_bounded_together(serve: Serve) -> None:
    scorer = Held()
    scorer.gate.set()
    client = serve({"it": scorer}, max_bytes=1000)
    with ExitStack() as stack:
        for _ in range(16):
            connection = stack.enter_context(opened(client))
            connection.sendall(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 990)
        until(lambda: client.post("/v1/score", json=body("x" * 500)).status_code == 503)
        refused = client.post("/v1/score", json=body("x" * 500))
        assert (refused.json()["error"]["code"], refused.headers["retry-after"]) == ("busy", "1")
    until(lambda: client.post("/v1/score", json=body("x" * 500)).status_code == 200)


def test_websockets_and_what_is_no_http_are_turned_away(serve: Serve) -> None:
    client = serve({"it": Held()})
    head = (
        "GET /v1/score HTTP/1.1",
        "Host: x",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "",
        "",
    )
    upgrade = "\r\n".join(head).encode()
    for raw in (upgrade, b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        with opened(client) as odd:
            odd.sendall(raw)
            assert odd.recv(4096).split(b" ", 2)[1] in (b"400", b"405")
    assert client.get("/healthz").status_code == 200


@contextmanager
def stopping(scorers: dict[str, Any], **options: Any) -> Iterator[tuple[httpx.Client, Server, threading.Thread]]:
    with RewardService(scorers) as service:
        listening: queue.Queue[str] = queue.Queue()
        http = server(service, ServerConfig(port=0, **options), listening.put)
        thread = threading.Thread(target=http.run)
        thread.start()
        with httpx.Client(base_url=listening.get(timeout=WAIT), timeout=WAIT) as client:
            yield client, http, thread
        http.should_exit = True
        thread.join(WAIT)


@pytest.mark.parametrize("incomplete", ["failed", "scored"])
def test_a_stopping_server_sends_members_of_an_incomplete_group_elsewhere_at_once(incomplete: Any) -> None:
    scorer = Held()
    scorer.groupwise = True
    scorer.gate.set()
    lane = LaneConfig(scorer=scorer, cohort=2, cohort_seconds=3600.0, incomplete=incomplete)
    with stopping({"it": lane}) as (client, http, thread), ThreadPoolExecutor(1) as threads:
        sample = {"prompt": "q", "response": "a", "group": "g"}
        answer = threads.submit(client.post, "/v1/score", json={"sample": sample})
        until(lambda: metric(client, "adjudge_waiting") == 1)
        http.should_exit = True
        found = answer.result(WAIT)
        assert (found.status_code, found.json()["error"]["code"]) == (503, "draining"), "its client asks again"
        thread.join(WAIT)
        assert not thread.is_alive()


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_stopping_server_cannot_answer_in_time_is_refused_after_all(stream: bool) -> None:
    scorer = Held()
    with (
        stopping({"it": LaneConfig(scorer=scorer, concurrency=1)}, drain_seconds=0.1) as (client, http, thread),
        ThreadPoolExecutor(1) as threads,
    ):
        answer = threads.submit(client.post, "/v1/score", json=body("abc", stream=stream))
        assert scorer.begun.acquire(timeout=WAIT)
        http.should_exit = True
        found = answer.result(WAIT)
        assert found.json()["error"]["code"] == "draining"
        assert stream or (found.status_code, found.headers["retry-after"]) == (503, "5")
        thread.join(WAIT)
        assert not thread.is_alive()
        scorer.gate.set()


def test_a_second_word_to_stop_does_not_wait() -> None:
    scorer = Held()
    with stopping({"it": scorer}, drain_seconds=3600.0) as (client, http, thread), ThreadPoolExecutor(1) as threads:
        answer = threads.submit(client.post, "/v1/score", json=body("abc"))
        assert scorer.begun.acquire(timeout=WAIT)
        http.should_exit = True
        until(lambda: not any(one.is_serving() for one in http.servers))
        http.force_exit = True
        thread.join(WAIT)
        assert not thread.is_alive()
        scorer.gate.set()
        error = answer.exception(WAIT)
        assert isinstance(error, httpx.HTTPError) if error is not None else answer.result().status_code == 503
