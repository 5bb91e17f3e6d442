"""The server as programs see it: its own routes, who may ask, limits, refusals, and two other frameworks' routes."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import httpx
import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base import json_bodies
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.json_bodies import read_json
from adjudge.rl_integration.server.middleware import Tokens
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.scoring.compose import Part, Weighted

WAIT = 20.0
TOKEN = "0123456789abcdef"


class Lengths:
    """Scores by length when its gate is open; fails what is empty, and dies of what says so."""

    name = "lengths"
    fingerprint = "lengths:1"

    def __init__(self, *, open_gate: bool = True) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.calls = 0
        if open_gate:
            self.gate.set()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        import asyncio

        self.calls += 1
        self.begun.release()
        assert await asyncio.to_thread(self.gate.wait, WAIT)
        return [self._one(str(sample.response)) for sample in samples]

    def _one(self, text: str) -> Score:
        if text == "down":
            return Score.failed("engine_unavailable")
        return Score.scored(float(len(text))) if text else Score.failed("gold_unparsable")


def row(response: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": "q", "response": response, **fields}


def values(answer: httpx.Response) -> list[float | None]:
    assert answer.status_code == 200, answer.text
    return [score["value"] for score in answer.json()["scores"]]


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_one_many_and_as_they_come(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"math": "math", "lengths": Lengths()})
    one = client.post("/v1/score", json={"scorer": "math", "sample": row("\\boxed{2}", reference="2")})
    assert values(one) == [1.0]
    assert Score.from_dict(one.json()["scores"][0]).provenance.scorer == "math"
    assert one.headers["x-request-id"] == one.json()["request_id"]
    many = client.post("/v1/score", json={"scorer": "lengths", "samples": [row("a"), row("bb"), row("")]})
    assert values(many) == [1.0, 2.0, None]
    assert values(client.post("/v1/score", json={"scorer": "lengths", "samples": []})) == []
    streamed = client.post("/v1/score", json={"scorer": "lengths", "samples": [row("a"), row("bb")], "stream": True})
    lines = [json.loads(line) for line in streamed.text.splitlines()]
    assert {line["index"]: line["score"]["value"] for line in lines} == {0: 1.0, 1: 2.0}
    listed = client.get("/v1/scorers").json()["scorers"]
    assert [(one["name"], one["state"]) for one in listed] == [("math", "closed"), ("lengths", "closed")]


class Shows:
    """Gives its evidence back as NumPy has it, and for "bad" as no JSON can."""

    name = "shows"
    fingerprint = "shows:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        import numpy as np

        return [
            Score.scored(1.0, it=object() if one.response == "bad" else np.arange(2, dtype=np.float32))
            for one in samples
        ]


def test_evidence_that_cannot_be_sent_costs_its_own_sample_alone(serve: Callable[..., httpx.Client]) -> None:
    both = Weighted(parts=(Part(Shows(), name="a"), Part(Shows(), name="b")))
    client = serve({"it": Shows(), "both": both})
    answer = client.post("/v1/score", json={"scorer": "it", "samples": [row("good"), row("bad")]})
    assert values(answer) == [1.0, None]
    good, bad = answer.json()["scores"]
    assert good["evidence"] == {"it": [0.0, 1.0]}
    assert (bad["status"], bad["reason"]) == ("failed", "verifier_error")
    assert "evidence['it'] is a builtins.object, which JSON cannot hold" in bad["evidence"]["error"]
    assert values(client.post("/v1/score", json={"scorer": "both", "samples": [row("good"), row("bad")]})) == [
        2.0,
        None,
    ]
    streamed = client.post("/v1/score", json={"scorer": "it", "samples": [row("bad"), row("good")], "stream": True})
    assert {one["index"]: one["score"]["value"] for one in map(json.loads, streamed.text.splitlines())} == {
        0: None,
        1: 1,
    }
    assert told(client.post("/rm?scorer=it", json=row("bad"))) == (422, "cannot_be_scored")


def test_a_stream_takes_no_idempotency_key(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"it": Lengths()})
    asked = {"sample": row("a"), "stream": True}
    for refused in (
        client.post("/v1/score", json={**asked, "idempotency_key": "k"}),
        client.post("/v1/score", json=asked, headers={"idempotency-key": "k"}),
    ):
        assert told(refused) == (422, "bad_request")
        assert "stream" in refused.json()["error"]["message"]
    assert client.post("/v1/score", json=asked).status_code == 200


def test_a_stream_is_sent_while_others_are_computed(serve: Callable[..., httpx.Client]) -> None:
    scorer = Lengths(open_gate=False)
    client = serve({"it": LaneConfig(scorer=scorer, concurrency=1, batch=1)})
    asked = {"samples": [row("a"), row("bb")], "stream": True}
    with client.stream("POST", "/v1/score", json=asked) as answer:
        lines = answer.iter_lines()
        assert scorer.begun.acquire(timeout=WAIT)
        scorer.gate.set()
        assert json.loads(next(lines))["index"] == 0
        assert json.loads(next(lines))["index"] == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"scorer": "maths", "sample": row("a")}, (404, "unknown_scorer")),
        ({"sample": row("a")}, (422, "which_scorer")),
        ({"scorer": "a"}, (422, "bad_request")),
        ({"scorer": "a", "sample": row("a"), "samples": []}, (422, "bad_request")),
        ({"scorer": "a", "samples": [1]}, (422, "bad_sample")),
        ({"scorer": "a", "sample": {"prompt": "q"}}, (422, "bad_sample")),
        ({"scorer": "a", "sample": row("a", reward=1)}, (422, "bad_sample")),
        ({"scorer": "a", "sample": {"prompt": 1, "response": "a"}}, (422, "bad_sample")),
        ({"scorer": "a", "sample": {"prompt": [1], "response": "a"}}, (422, "bad_sample")),
        ({"scorer": "a", "sample": row("a", id=5)}, (422, "bad_sample")),
        ({"scorer": "a", "samples": [row("a")] * 4}, (413, "too_many_samples")),
        ({"scorer": "a", "sample": row("a"), "within": -1}, (422, "bad_request")),
        ({"scorer": "a", "sample": row("a"), "traffic": "test"}, (422, "bad_request")),
        ({"scorer": "a", "sampel": row("a")}, (422, "bad_request")),
        ([], (422, "bad_request")),
    ],
    ids=lambda value: json.dumps(value)[:60] if not isinstance(value, tuple) else None,
)
def test_bad_requests_are_told_what_is_wrong(
    serve: Callable[..., httpx.Client], body: object, expected: tuple[int, str]
) -> None:
    client = serve({"a": Lengths(), "b": Lengths()}, max_samples=3)
    assert told(client.post("/v1/score", json=body)) == expected


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"[" * 50_000, b'{"scorer":"a","sample":NaN}', b"null", b"\x00" * 99]
)
def test_what_is_no_json_is_told_so(serve: Callable[..., httpx.Client], body: bytes) -> None:
    client = serve({"a": Lengths()})
    answer = client.post("/v1/score", content=body, headers={"content-type": "application/json"})
    assert told(answer)[0] in (400, 422)
    assert values(client.post("/v1/score", json={"sample": row("abc")})) == [3.0], "and the server goes on"


def test_wrong_routes_and_methods(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"a": Lengths()})
    assert told(client.get("/nothing")) == (404, "no_such_route")
    assert told(client.get("/v1/score")) == (405, "wrong_method")


def test_tokens_are_asked_for_and_name_the_client(serve: Callable[..., httpx.Client], tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"# people\n\nrun1 {TOKEN}\n")
    client = serve({"a": Lengths()}, tokens=str(file))
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    for header in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"{TOKEN}"):
        answer = client.post("/v1/score", json={"sample": row("a")}, headers={"authorization": header})
        assert told(answer) == (401, "unauthorized")
        assert told(client.get("/metrics", headers={"authorization": header})) == (401, "unauthorized")
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert values(client.post("/v1/score", json={"sample": row("a")}, headers=headers)) == [1.0]


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        (f"run1 {TOKEN}", 0o644, "chmod 600"),
        ("run1 short", 0o600, "line 1 of .* is not a token"),
        ("# nothing", 0o600, "there is no token in"),
        (f"run1 {TOKEN}\nrun2 {TOKEN}", 0o600, "line 2 of .* gives 'run2' the token of 'run1'"),
        (f"{TOKEN}\n{TOKEN}", 0o600, "line 2 of .* the token of"),
    ],
)
def test_files_of_tokens_are_looked_at(tmp_path: Path, text: str, mode: int, message: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(ValueError, match=message):
        Tokens.read(str(file))
    with pytest.raises(ValueError, match="cannot be read"):
        Tokens.read(str(tmp_path / "none"))


def test_a_name_may_have_several_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.touch(mode=0o600)
    file.write_text(f"run1 {TOKEN}\nrun1 {TOKEN}x\nrun1 {TOKEN}\n")
    assert Tokens.read(str(file)).client(f"Bearer {TOKEN}x") == "run1"


def test_no_samples_get_no_scores(serve: Callable[..., httpx.Client]) -> None:
    answer = serve({"a": Lengths()}).post("/v1/score", json={"samples": []})
    assert (answer.status_code, answer.json()["scores"]) == (200, [])


@pytest.mark.parametrize("within", ["-1", "nan", "soon"])
def test_what_is_left_of_the_callers_time_is_a_number(serve: Callable[..., httpx.Client], within: str) -> None:
    client = serve({"a": Lengths()})
    body = {"sample": row("a"), "within": 60}
    assert told(client.post("/v1/score", json=body, headers={"within": within})) == (422, "bad_request")
    answer = client.post("/v1/score", json=body, headers={"within": "0"})
    assert answer.json()["scores"][0]["reason"] == "expired"


def test_a_file_of_tokens_that_is_ours_by_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"run1 {TOKEN}")
    file.chmod(0o440)
    with pytest.raises(ValueError, match="chmod 600"):
        Tokens.read(str(file))
    monkeypatch.setattr("os.geteuid", lambda: file.stat().st_uid + 1)
    assert Tokens.read(str(file)).client(f"Bearer {TOKEN}") == "run1"
    file.chmod(0o444)
    with pytest.raises(ValueError, match="chmod 600"):
        Tokens.read(str(file))


def test_other_machines_may_not_ask_without_tokens() -> None:
    with pytest.raises(ValueError, match="lets other machines ask, and there are no tokens"):
        ServerConfig(host="0.0.0.0")
    assert ServerConfig(host="0.0.0.0", open_to_all=True).host == "0.0.0.0"
    assert ServerConfig(host="::1").host == "::1"
    for option in ("max_bytes", "max_samples", "max_under_way", "body_seconds", "drain_seconds", "port"):
        with pytest.raises(ValueError, match=f"server option {option}="):
            ServerConfig(**{option: -1})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["[]", "{}", "0", '""', '{"prompt":"","response":""}'])
def test_a_body_of_too_many_values_is_refused_before_it_is_read(serve: Callable[..., httpx.Client], value: str) -> None:
    client = serve({"a": Lengths()})
    body = f'{{"samples":[{",".join([value] * 1_000_001)}]}}'
    headers = {"content-type": "application/json"}
    assert told(client.post("/v1/score", content=body, headers=headers)) == (413, "too_many_values")
    text = ("[{" * 10 + ',\\"' * 10) * 50_000  # what stands in a string is not a value
    assert values(client.post("/v1/score", json={"sample": row(text)})) == [float(len(text))]


def test_large_bodies_are_read_on_another_thread(
    serve: Callable[..., httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def reading(body: bytes) -> Any:
        threads.append(threading.current_thread().name)
        return read_json(body)

    monkeypatch.setattr(json_bodies, "read_json", reading)
    client = serve({"a": Lengths()})
    assert values(client.post("/v1/score", json={"sample": row("x")})) == [1.0]
    assert values(client.post("/v1/score", json={"sample": row("x" * 100_000)})) == [100_000.0]
    small, large = threads
    assert small != large


def test_large_and_slow_bodies_are_refused(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"a": Lengths()}, max_bytes=1000, body_seconds=0.2)
    assert told(client.post("/v1/score", content=b"x" * 1001)) == (413, "body_too_large")
    assert told(client.post("/v1/score", content=iter([b"x" * 600] * 2))) == (413, "body_too_large")
    address = urlparse(str(client.base_url))
    with socket.create_connection((str(address.hostname), address.port or 80)) as slow:
        slow.settimeout(WAIT)
        slow.sendall(b"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test_overload_is_503_and_one_greedy_client_429(serve: Callable[..., httpx.Client]) -> None:
    scorer = Lengths(open_gate=False)
    client = serve({"it": LaneConfig(scorer=scorer, concurrency=1, waiting=2)}, max_under_way=2)

    def ask(count: int, name: str, tag: str) -> httpx.Response:
        body = {"samples": [row(f"{tag}{n}") for n in range(count)]}
        return client.post("/v1/score", json=body, headers={"x-client": name})

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(ask, 1, "one", "a")
        assert scorer.begun.acquire(timeout=WAIT)
        second = threads.submit(ask, 2, "two", "b")
        while "waiting 2.0" not in client.get("/metrics").text.replace('{scorer="it"}', ""):
            pass
        greedy = ask(2, "one", "c")
        assert (told(greedy), greedy.headers["retry-after"]) == ((429, "too_many_under_way"), "1")
        refused = ask(1, "three", "d")
        assert (told(refused), refused.headers["retry-after"]) == ((503, "overloaded"), "1")
        assert told(ask(3, "four", "e")) == (413, "too_many_samples")
        scorer.gate.set()
        assert (values(first.result(WAIT)), values(second.result(WAIT))) == ([2.0], [2.0, 2.0])


def test_a_repeated_request_is_paid_once(serve: Callable[..., httpx.Client]) -> None:
    scorer = Lengths(open_gate=False)
    client = serve({"it": scorer})

    def ask(key: str) -> httpx.Response:
        return client.post("/v1/score", json={"sample": row("abc")}, headers={"idempotency-key": key})

    with ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(ask, "k") for _ in range(2)]
        assert scorer.begun.acquire(timeout=WAIT)
        scorer.gate.set()
        one, two = (answer.result(WAIT) for answer in answers)
    assert one.content == two.content == ask("k").content
    assert scorer.calls == 1
    ask("another")
    assert scorer.calls == 2
    assert told(ask("k" * 129)) == (422, "bad_request")
    assert told(client.post("/v1/score", json={"sample": row("abc"), "idempotency_key": "k" * 129}))[0] == 422


def test_a_suspended_scorer_makes_the_server_unready(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"it": LaneConfig(scorer=Lengths(), window=2, rest=60.0)})
    assert client.get("/readyz").json() == {"status": "ready"}
    assert values(client.post("/v1/score", json={"sample": row("down")})) == [None]
    refused = client.post("/v1/score", json={"sample": row("abc")})
    assert (told(refused), refused.headers["retry-after"]) == ((503, "suspended"), "60")
    assert (client.get("/readyz").status_code, client.get("/healthz").status_code) == (503, 200)
    assert 'adjudge_scores_total{reason="engine_unavailable",scorer="it",status="failed"} 1.0' in (
        client.get("/metrics").text
    )


def last_line(caplog: pytest.LogCaptureFixture) -> str:
    """Give the log's last line; it is written just after the answer that it tells of has been sent."""
    end = time.monotonic() + WAIT
    while not caplog.messages:
        assert time.monotonic() < end, "no line was logged"
        time.sleep(0.01)
    return caplog.messages[-1]


def test_the_log_has_no_texts_unless_asked(
    serve: Callable[..., httpx.Client], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="adjudge.server")
    for log_texts in (False, True):
        caplog.clear()
        client = serve({"it": Lengths()}, log_texts=log_texts)
        client.post("/v1/score", json={"sample": row("a secret")}, headers={"x-request-id": "mine"})
        line = json.loads(last_line(caplog))
        assert (line["request_id"], line["status"], line["scorer"], line["samples"]) == ("mine", 200, "it", 1)
        assert ("a secret" in caplog.messages[-1]) is log_texts


def test_the_log_says_why_a_request_was_refused(
    serve: Callable[..., httpx.Client], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="adjudge.server")
    client = serve({"math": "math"})
    broken = {"query": ["1+1=\\boxed{2}"], "prompts": ["1+1="], "labels": ["\\frac{1}{"]}
    asked: list[tuple[str, dict[str, Any], int, str]] = [
        ("/get_reward", broken, 422, "gold_unparsable"),
        ("/v1/score", {"sample": 3}, 422, "sample"),
        ("/v1/score", {"sample": row("x"), "scorer": "maths"}, 404, "maths"),
        ("/nowhere", {}, 404, "Not Found"),
    ]
    for path, body, status, why in asked:
        caplog.clear()
        answer = client.post(path, json=body)
        line = json.loads(last_line(caplog))
        assert (answer.status_code, line["status"]) == (status, status)
        assert line["code"] == answer.json()["error"]["code"]
        assert why in line["message"]


OPENRLHF = {"query": ["1+1=\\boxed{2}"], "prompts": ["1+1="], "labels": ["2"]}


def test_open_rlhf(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"math": "math"})
    expected = {"rewards": [1.0], "scores": [1.0], "extra_logs": {"reward_valid": [1.0]}}
    assert client.post("/get_reward", json=OPENRLHF).json() == expected
    empty = client.post("/get_reward", json={"query": [], "prompts": [], "labels": []})
    assert empty.json() == {"rewards": [], "scores": [], "extra_logs": {"reward_valid": []}}
    assert told(client.post("/get_reward", json={**OPENRLHF, "labels": []})) != (200, "")
    assert told(client.post("/get_reward", json={**OPENRLHF, "labels": ["2", "3"]})) == (422, "bad_request")
    assert told(client.post("/get_reward", json={**OPENRLHF, "prompts": ["2+2="]})) == (422, "bad_request")


def test_slime(serve: Callable[..., httpx.Client]) -> None:
    client = serve({"exact": "exact"})
    assert client.post("/rm", json={"prompt": "q", "response": "a", "label": "a"}).json() == 1.0
    detailed = client.post("/rm?detail=true", json={"prompt": "q", "response": "b", "label": "a"}).json()
    assert detailed == {"reward": 0.0, "status": "scored", "reason": "wrong"}


@pytest.mark.parametrize(("response", "status"), [("down", 503), ("", 422)])
def test_no_number_is_made_up_for_those_who_know_only_numbers(
    serve: Callable[..., httpx.Client], response: str, status: int
) -> None:
    client = serve({"it": LaneConfig(scorer=Lengths(), window=1000)})
    for path, body in (
        ("/rm", {"prompt": "q", "response": response}),
        ("/get_reward", {"query": [f"q{response}"], "prompts": ["q"], "labels": [None]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == status
        assert "?fallback=NUMBER" in answer.json()["error"]["message"]
        assert ("retry-after" in answer.headers) is (status == 503)
    assert client.post("/rm?fallback=-0.5", json={"prompt": "q", "response": response}).json() == -0.5
    answer = client.post(
        "/get_reward?fallback=-0.5", json={"query": [f"q{response}"], "prompts": ["q"], "labels": [None]}
    )
    assert answer.json() == {"rewards": [-0.5], "scores": [-0.5], "extra_logs": {"reward_valid": [0.0]}}
    assert told(client.post("/rm?fallback=nan", json={"prompt": "q", "response": response})) == (422, "bad_request")


def test_pages_of_other_sites_are_turned_away(serve: Callable[..., httpx.Client], tmp_path: Path) -> None:
    """A site may have its name resolved to this machine; the browser then takes our answers for its own."""
    client = serve({"exact": "exact"})
    port = client.base_url.port
    page = {"Sec-Fetch-Site": "same-origin"}
    for host in (f"evil.example:{port}", "evil.example", "127.0.0.1.evil.example", ""):
        answer = client.get("/v1/dashboard", headers={**page, "Host": host})
        assert told(answer) == (403, "strange_page"), host
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "[::1]:80", "localhost"):
        assert client.get("/v1/dashboard", headers={**page, "Host": host}).status_code == 200, host
    assert client.get("/v1/scorers", headers={"Host": "a-proxy"}).status_code == 200, "a program, and no page"
    tokens = tmp_path / "tokens"
    tokens.write_text("run a-long-enough-token-for-a-run\n")
    tokens.chmod(0o600)
    guarded = serve({"exact": "exact"}, tokens=str(tokens))
    headers = {**page, "Host": "scores.example", "Authorization": "Bearer a-long-enough-token-for-a-run"}
    assert guarded.get("/v1/scorers", headers=headers).status_code == 200
