"""The client against real servers: answers, mistakes, refusals, a server that is stopped, killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rl_integration.server.conftest import served

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.client.client import AsyncClient, Client, ClientConfig, chunked
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig

WAIT = 60.0
SCORER = '''
import asyncio, os, pathlib
from adjudge import Score

class Slow:
    """Scores by length, after a file is there; says in another that it began."""

    name = "slow"
    fingerprint = "slow:1"

    async def score(self, samples):
        pathlib.Path("begun").touch()
        while not os.path.exists("allowed"):
            await asyncio.sleep(0.005)
        return [Score.scored(float(len(sample.response))) for sample in samples]
'''


def values(scores: Sequence[Score]) -> list[float | None]:
    return [score.value for score in scores]


def math(*responses: str) -> list[Sample]:
    return [Sample(prompt="1+1?", response=f"\\boxed{{{text}}}", reference="2") for text in responses]


def told(status: int, answer: bytes) -> list[tuple[str, str]]:
    """What two samples get from a server that always answers so; KEY in it stands for the request's own."""

    class Odd(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent = answer.replace(b"KEY", asked["idempotency_key"].encode())
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        scores = Client(f"http://127.0.0.1:{server.server_port}").score(math("2", "3"), "math")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    return [(score.status, score.reason) for score in scores]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def started(port: int, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start `adjudge serve` and wait until it answers."""
    command = [
        sys.executable,
        "-m",
        "adjudge.cli.main",
        "serve",
        "math",
        "slow=slow_scorer:Slow",
        "--port",
        str(port),
        *more,
    ]
    (folder / "slow_scorer.py").write_text(SCORER)
    with (folder / "log").open("ab") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    pause = threading.Event()
    for _ in range(int(WAIT / 0.05)):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).close()
        except (urllib.error.URLError, OSError):
            assert server.poll() is None, (folder / "log").read_text()
            pause.wait(0.05)
        else:
            return server
    raise AssertionError((folder / "log").read_text())


@contextmanager
def running(port: int, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    server = started(port, folder, *more)
    try:
        yield server
    finally:
        server.kill()
        server.wait(WAIT)


def appears(path: Path) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT / 0.005)):
        if path.exists():
            return
        pause.wait(0.005)
    raise AssertionError(f"{path} did not appear")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a token."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "tokens").touch(mode=0o600)
    (folder / "tokens").write_text("me 0123456789abcdef\n")
    port = free_port()
    with running(port, folder, "--tokens", "tokens"):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_TOKEN", "0123456789abcdef")


@pytest.mark.usefixtures("token")
def test_scores_come_back_in_order_from_anywhere(address: str) -> None:
    samples = math(*["2", "3"] * 100)
    config = ClientConfig(url=address, chunk=7)
    with Client(config) as client:
        assert values(client.score(samples, "math")) == [1.0, 0.0] * 100
        assert client.score([], "math") == []
        assert values(client.score([sample.to_dict() for sample in samples[:3]], "math")) == [1.0, 0.0, 1.0]
        assert [one["name"] for one in client.scorers()] == ["math", "slow"]
        assert values(pickle.loads(pickle.dumps(AsyncClient(config))).config.url and client.score(samples[:1], "math"))
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(lambda n: client.score(samples[n : n + 1], "math")[0].value, (0, 1, 2, 3))) == [
                1.0,
                0.0,
                1.0,
                0.0,
            ]

        async def inside_a_loop() -> list[float | None]:
            return values(client.score(samples[:1], "math")) + values(await AsyncClient(config).score(samples, "math"))

        assert asyncio.run(inside_a_loop()) == [1.0] + [1.0, 0.0] * 100


@pytest.mark.usefixtures("token")
def test_mistakes_are_told_and_never_scored(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(address)
    with pytest.raises(ValueError, match="there is no scorer 'maths'"):
        client.score(math("2"), "maths")
    with pytest.raises(ValueError, match="name the scorer"):
        client.score(math("2"))
    for no_list in (math("2")[0], "math", None, 5):
        with pytest.raises(ValueError, match="give a list"):
            client.score(no_list, "math")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sample 0"):
        client.score([Sample(prompt=5, response="x")], "math")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"sample 1 cannot be sent: .*builtins.object"):
        client.score([*math("2"), Sample(prompt="q", response="x", reference=object())], "math")
    monkeypatch.setenv("ADJUDGE_TOKEN", "another-0123456789")
    with pytest.raises(ValueError, match="401") as caught:
        Client(address).score(math("2"), "math")
    assert "another-0123456789" not in str(caught.value)


def test_a_server_that_is_not_there_gives_failed_scores() -> None:
    client = Client(ClientConfig(url=f"http://127.0.0.1:{free_port()}", attempts=2))
    scores = client.score(math("2", "2"), "math")
    assert [(score.status, score.reason) for score in scores] == [("failed", "engine_unavailable")] * 2
    with pytest.raises(ConnectionError, match="gave no answer"):
        client.scorers()


@pytest.mark.parametrize(
    "answer",
    [
        b"{}",
        b'{"scores": 1, "idempotency_key": "KEY"}',
        b'{"scores": [{"value": 1.0, "status": "scored"}], "idempotency_key": "KEY"}',
        b'{"scores": [1, 2], "idempotency_key": "KEY"}',
        b'{"scores": [{"value": 1}, {"value": 1' + b"0" * 400 + b'}], "idempotency_key": "KEY"}',
        b'{"scores": [{"value": NaN}, {"value": 1}], "idempotency_key": "KEY"}',
        b'{"scores": [{"value": 1}, {"value": 1}], "idempotency_key": "another"}',
        b'{"scores": [{"value": 1}, {"value": 1}]}',
        b"[]",
    ],
)
def test_an_answer_that_is_none_or_another_requests_is_no_score(answer: bytes) -> None:
    assert told(200, answer) == [("failed", "engine_error")] * 2


def test_a_line_that_is_too_slow_is_no_mistake_of_the_callers() -> None:
    assert told(408, b'{"error": {"code": "slow_body"}}') == [("failed", "engine_timeout")] * 2
    with pytest.raises(ValueError, match="413"):
        told(413, b'{"error": {"code": "body_too_large"}}')


def test_a_server_that_is_told_to_stop_answers_what_it_accepted(tmp_path: Path) -> None:
    port = free_port()
    with running(port, tmp_path) as server, ThreadPoolExecutor(1) as threads:
        client = Client(f"http://127.0.0.1:{port}")
        scores = threads.submit(client.score, [Sample(prompt="q", response="abc")], "slow")
        appears(tmp_path / "begun")
        server.send_signal(signal.SIGTERM)
        (tmp_path / "allowed").touch()
        assert values(scores.result(WAIT)) == [3.0]
        assert server.wait(WAIT) == 0


def test_a_client_outlives_its_server(tmp_path: Path) -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as threads:
        with running(port, tmp_path) as server:
            client = Client(f"http://127.0.0.1:{port}")
            scores = threads.submit(client.score, [Sample(prompt="q", response="abc")], "slow")
            appears(tmp_path / "begun")
            server.kill()
            server.wait(WAIT)
            assert not scores.done()
        (tmp_path / "allowed").touch()
        with running(port, tmp_path):
            assert values(scores.result(WAIT)) == [3.0]


def test_after_a_fork(tmp_path: Path) -> None:
    port = free_port()
    with running(port, tmp_path):
        client = Client(f"http://127.0.0.1:{port}")
        assert values(client.score(math("2"), "math")) == [1.0]
        child = os.fork()
        if not child:
            try:
                found = values(client.score(math("2", "3"), "math"))
            except BaseException as error:  # noqa: BLE001 a child must not go back into pytest
                found = [repr(error)]  # type: ignore[list-item]
            (tmp_path / "found").write_text(repr(found))
            os._exit(0)
        os.waitpid(child, 0)
    assert (tmp_path / "found").read_text() == "[1.0, 0.0]"


def test_a_server_that_takes_fewer_at_once_is_asked_for_fewer() -> None:
    samples = math(*["2", "3"] * 20)
    group = [Sample(prompt="1+1?", response="\\boxed{2}", reference="2", group="g") for _ in range(8)]
    lane = LaneConfig(scorer="math", waiting=7)
    for option, scorer, config in (
        ("waiting", lane, ServerConfig(port=0)),
        ("max_samples", "math", ServerConfig(port=0, max_samples=7)),
    ):
        with served({"math": scorer}, config) as address, Client(address) as client:
            assert values(client.score(samples, "math")) == [1.0, 0.0] * 20
            with pytest.raises(ValueError, match=f"status 413: 8 samples .* a larger `{option}`"):
                client.score(group, "math")


RANKS = {"transform": {"scorer": "exact", "steps": ["rank"]}}


def member(group: int, response: str) -> list[Sample]:
    return [Sample(prompt=f"{group}", response=response, reference="b", group=f"{group}")]


def test_members_of_many_groups_wait_for_their_siblings_at_once() -> None:
    lane = LaneConfig(scorer=RANKS, cohort=2, cohort_seconds=120.0)
    with served({"ranks": lane}, ServerConfig(port=0)) as address:
        client = AsyncClient(address)

        async def main() -> list[list[Score]]:
            return await asyncio.gather(*(client.score(member(n % 50, "ab"[n // 50])) for n in range(100)))

        assert [value for scores in asyncio.run(main()) for value in values(scores)] == [0.0] * 50 + [1.0] * 50
        http = vars(client)["_connections"][os.getpid()].http
        assert len(vars(http)["_free"]) <= 72, "most connections are closed when they have nothing to do"


def test_a_group_whose_members_had_to_wait_for_a_place_says_so() -> None:
    lane = LaneConfig(scorer=RANKS, cohort=2, cohort_seconds=0.01)
    with (
        served({"ranks": lane}, ServerConfig(port=0)) as address,
        Client(ClientConfig(url=address, concurrency=1, chunk=1)) as client,
    ):
        (alone,) = client.score(member(0, "a"))
        crowded = client.score([*member(1, "a"), *member(2, "a")])
    assert [score.reason for score in (alone, *crowded)] == ["cohort_incomplete"] * 3
    assert "error" not in alone.evidence
    for score in crowded:
        assert "the client option `concurrency`=1" in score.evidence["error"]


def test_large_requests_are_sent_a_few_at_a_time() -> None:
    config = ServerConfig(port=0, max_under_way=16 * 9)
    with (
        served({"exact": "exact"}, config) as address,
        Client(ClientConfig(url=address, chunk=9, attempts=1)) as client,
    ):
        assert values(client.score([Sample(prompt="q", response="a", reference="a")] * 9 * 40)) == [1.0] * 9 * 40


def test_no_more_than_half_of_the_files_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, most in ((256, 128), (1024, 512), (4096, 512), (resource.RLIM_INFINITY, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert ClientConfig(url="http://localhost:8000").at_once == most


def test_nobody_waits_longer_than_within_for_a_server_that_is_not_there() -> None:
    start = time.monotonic()
    (score,) = Client(f"http://127.0.0.1:{free_port()}").score(math("2"), "math", within=1)
    assert time.monotonic() - start < 2
    assert (score.status, score.reason) in {("failed", "engine_unavailable"), ("failed", "expired")}
    with pytest.raises(ValueError, match="within=-1"):
        Client("http://127.0.0.1:1").score(math("2"), "math", within=-1)


def test_nobody_waits_longer_than_within_for_an_answer_that_does_not_come() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        many = math(*"2" * 1200)  # in more large requests than are sent at once
        scores = Client(f"http://127.0.0.1:{silent.getsockname()[1]}").score(many, "math", within=0.5)
        assert time.monotonic() - start < 4
    assert {(score.status, score.reason) for score in scores} == {("failed", "expired")}


def test_a_second_try_tells_what_is_left_and_is_the_same_request() -> None:
    heard: list[tuple[str | None, bytes]] = []

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.headers["within"], self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(503)
            self.send_header("retry-after", "0.3")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        (score,) = Client(f"http://127.0.0.1:{server.server_port}").score(math("2"), "math", within=3)
        server.shutdown()
        thread.join()
    assert score.reason == "engine_overloaded"
    left = [float(said or "nan") for said, _ in heard]
    assert len(left) > 1
    assert left == sorted(left, reverse=True)
    assert 2.5 < left[0] <= 3
    assert left[1] < 2.7
    assert len({body for _, body in heard}) == 1


@pytest.mark.usefixtures("token")
def test_an_async_client_closes_behind_itself(address: str) -> None:
    async def asked() -> list[float | None]:
        async with AsyncClient(address) as client:
            found = values(await client.score(math("2", "3"), "math", within=60))
        assert not client._connections
        return found

    assert asyncio.run(asked()) == [1.0, 0.0]


@given(st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=30), st.integers(1, 5))
def test_chunks_hold_whole_groups(groups: list[str], most: int) -> None:
    chunks = chunked(groups, most)
    assert sorted(place for chunk in chunks for place in chunk) == list(range(len(groups)))
    for group in "abc":
        assert sum(any(groups[place] == group for place in chunk) for chunk in chunks) <= 1
    for chunk in chunks:
        assert len(chunk) <= most or len({groups[place] for place in chunk}) == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [("url", "localhost:8000"), ("url", "http://me:secret@host"), ("chunk", 0), ("timeout", 0), ("attempts", 0)],
)
def test_options_out_of_range_are_told(option: str, value: object) -> None:
    given_options = {"url": "http://localhost:8000", option: value}
    with pytest.raises(ValueError, match=f"client option {option}="):
        ClientConfig(**given_options)  # type: ignore[arg-type]
