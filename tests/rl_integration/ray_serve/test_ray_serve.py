"""On a real Ray: the reward server in two replicas behind Serve's proxy, and a reward service in an actor."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from examples.frameworks.ray_actor import rewards
from tests.rl_integration.ray_serve.scorers import Gated, Here, Pair, Together

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.ray_actor import RewardActor
from adjudge.rl_integration.client.client import Client, ClientConfig
from adjudge.rl_integration.ray_serve.config import RayConfig
from adjudge.rl_integration.ray_serve.running import ray_server
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.tickets import Draining, Overloaded
from adjudge.scoring.api import score_batch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Serve's own, of pydantic

TOKEN = "0123456789abcdef-test"
ADDING = [Sample(prompt=f"{n}+1?", response=r"\boxed{2}", reference=str(n + 1), id=str(n)) for n in range(40)]


class Served(NamedTuple):
    """A server, a client with a token, and the file that the gated scorer waits for."""

    address: str
    http: httpx.Client
    gate: Path


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def served(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    tokens, gate = folder / "tokens", folder / "gate"
    tokens.touch(0o600)
    tokens.write_text(f"tester {TOKEN}\n", encoding="utf-8")
    lanes = {
        "math": "math",
        "here": Here(),
        "counted": Here(),
        "pair": LaneConfig(scorer=Pair(), cohort=2, cohort_seconds=10.0),
        "gated": LaneConfig(scorer=Gated(gate=str(gate)), batch=1, concurrency=1, waiting=1),
    }
    config = ServerConfig(port=free_port(), tokens=str(tokens), max_bytes=1 << 20, drain_seconds=20.0)
    with ray_server(lanes, config, RayConfig(replicas=2, cpus=0.1)) as address:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=headers, timeout=1200) as http:
            yield Served(address, http, gate)


def score(http: httpx.Client, scorer: str, *samples: Sample, **more: Any) -> httpx.Response:
    return http.post("/v1/score", json={"scorer": scorer, "samples": [one.to_dict() for one in samples], **more})


def where(http: httpx.Client, group: str, scorer: str = "here") -> float:
    """The process that scores a group."""
    sample = Sample(prompt="x", response="y", group=group)
    found: float = score(http, scorer, sample).json()["scores"][0]["value"]
    return found


def test_a_client_gets_the_scores_that_this_process_gives(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_TOKEN", TOKEN)
    with Client(ClientConfig(url=served.address, chunk=7)) as client:
        there = client.score(ADDING, "math")
    here = score_batch(ADDING, "math")
    assert [one.to_dict() | {"cost": None} for one in there] == [one.to_dict() | {"cost": None} for one in here]
    assert [one.value for one in there[:3]] == [0.0, 1.0, 0.0]


def test_who_has_no_token_is_turned_away_but_for_probes(served: Served) -> None:
    for headers in ({}, {"Authorization": "Bearer 0123456789abcdef-else"}):
        answer = httpx.post(f"{served.address}/v1/score", json={}, headers=headers, timeout=1200)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert httpx.get(f"{served.address}/healthz", timeout=1200).json() == {"status": "alive"}


def test_scores_come_line_by_line(served: Served) -> None:
    request = {"scorer": "math", "samples": [one.to_dict() for one in ADDING[:3]], "stream": True}
    with served.http.stream("POST", "/v1/score", json=request) as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        found = {line["index"]: line["score"]["value"] for line in map(json.loads, answer.iter_lines())}
    assert found == {0: 0.0, 1: 1.0, 2: 0.0}


def test_errors_keep_their_codes_and_one_request_id(served: Served) -> None:
    unknown = score(served.http, "maths", ADDING[0])
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_scorer")
    large = served.http.post("/v1/score", content=b"x" * (2 << 20))
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")
    named = served.http.get("/v1/nothing", headers={"X-Request-Id": "mine"})
    assert named.status_code == 404
    assert named.headers.get_list("x-request-id") == ["mine"]


def test_a_group_has_one_replica_and_groups_have_both(served: Served) -> None:
    first = {group: where(served.http, group) for group in map(str, range(16))}
    assert len(set(first.values())) == 2
    assert {group: where(served.http, group) for group in first} == first


def test_a_prompt_is_a_group_where_there_is_none(served: Served) -> None:
    places = set()
    for prompt in map(str, range(16)):
        bodies = [{"prompt": prompt, "response": text} for text in "ab"]
        asked = [served.http.post("/rm?scorer=here", json=body).json() for body in bodies]
        assert asked[0] == asked[1]
        places.add(asked[0])
    assert len(places) == 2


def test_members_of_a_group_that_come_one_by_one_meet(served: Served) -> None:
    members = [Sample(prompt="x", response=text, group=str(group)) for group in range(8) for text in "ab"]
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda member: score(served.http, "pair", member).json(), members))
    assert [answer["scores"][0]["value"] for answer in answers] == [1.0] * 16


def test_a_full_queue_refuses_and_loses_nothing(served: Served) -> None:
    members = [Sample(prompt="x", response=str(place), group="full") for place in range(8)]
    being_scored = Path(f"{served.gate}.asked")
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(score, served.http, "gated", members[0])]
        until = time.monotonic() + 600
        while not being_scored.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        asked += [threads.submit(score, served.http, "gated", member) for member in members[1:]]
        refused = [one.result() for one in islice(as_completed(asked, timeout=1200), 6)]  # one is scored, one waits
        served.gate.touch()
        answers = [one.result() for one in asked]
    assert all(one.headers["retry-after"] for one in refused)
    assert {one.json()["error"]["code"] for one in refused} == {"overloaded"}
    assert sorted(one.status_code for one in answers) == [200] * 2 + [503] * 6


def counted(http: httpx.Client) -> dict[str, float]:
    """The numbers of `counted`, as any replica gives them."""
    answer = http.get("/metrics")
    assert answer.status_code == 200, answer.text
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if 'scorer="counted"' in line]
    return {name: float(value) for name, _, value in lines}


def replicas(http: httpx.Client) -> set[str]:
    """The replicas that are there."""
    return {name.partition('replica="')[2] for name in counted(http) if name.startswith("adjudge_running")}


def whole_run(http: httpx.Client) -> tuple[int, int]:
    """How many answers of `counted` the page tells, and how many its chart of the whole run has."""
    (shown,) = [one for one in http.get("/v1/dashboard").json()["scorers"] if one["name"] == "counted"]
    return shown["answered"], sum(row[3] for row in shown["run"]["rows"])


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.1)


ACCEPTED = 'adjudge_accepted_total{scorer="counted"}'
SCORES = 'adjudge_scores_total{reason="",scorer="counted",status="scored"}'


def test_any_door_has_the_sums_of_all_replicas_those_that_died_included(served: Served) -> None:
    places = [where(served.http, group, "counted") for group in map(str, range(40))]
    assert len(set(places)) == 2
    until(lambda: counted(served.http)[SCORES] >= 40)
    assert [counted(served.http)[ACCEPTED] for _ in range(20)] == [40] * 20, "every proxy says the same"
    until(lambda: whole_run(served.http) == (40, 40))
    there = replicas(served.http)
    assert len(there) == 2

    os.kill(int(places[0]), signal.SIGKILL)
    asked = 0
    while True:  # a request that meets the dying replica is an error, and counts nowhere
        again = score(served.http, "counted", Sample(prompt="x", response="y", group="0"))
        asked += again.status_code == 200
        if again.status_code == 200 and again.json()["scores"][0]["value"] != places[0]:
            break
    until(lambda: counted(served.http)[SCORES] >= 40 + asked)
    assert counted(served.http)[ACCEPTED] == 40 + asked
    until(lambda: whole_run(served.http) == (40 + asked, 40 + asked))
    until(lambda: len(replicas(served.http) - there) == 1 and len(replicas(served.http)) == 2)


def test_a_replica_that_dies_costs_no_scores(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_TOKEN", TOKEN)
    victim = where(served.http, "0")
    os.kill(int(victim), signal.SIGKILL)
    with Client(ClientConfig(url=served.address, deadline=90.0)) as client:
        (found,) = client.score([Sample(prompt="x", response="y", group="0")], "here")
    assert found.status == "scored"
    assert found.value != victim


def test_a_second_server_does_not_take_over_the_first(served: Served) -> None:
    with (
        pytest.raises(ValueError, match="Ray Serve runs already in this Ray"),
        ray_server({"math": "math"}, ServerConfig(port=free_port()), RayConfig()),
    ):
        pytest.fail("it started")


# -- an actor, asked from here and from other actors

THREE = [Sample(prompt="1+1?", response=rf"\boxed{{{n}}}", reference="2", id=str(n)) for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("actor") / "gate"


@pytest.fixture(scope="module")
def actor(cluster: Any, gate: Path) -> Iterator[Any]:
    lanes = {
        "math": "math",
        "together": LaneConfig(scorer=Together(), batch=1, concurrency=2),
        "gated": LaneConfig(scorer=Gated(gate=str(gate)), batch=1, concurrency=1, waiting=1),
    }
    made = cluster.remote(num_cpus=0.1)(RewardActor).remote(lanes)
    yield made
    cluster.kill(made)


def test_an_actor_scores_as_this_process_does(cluster: Any, actor: Any) -> None:
    there, here = cluster.get(actor.score.remote(THREE, "math")), score_batch(THREE, "math")
    assert [one.value for one in there] == [0.0, 1.0, 0.0]
    assert [(one.value, one.reason, one.evidence) for one in there] == [
        (one.value, one.reason, one.evidence) for one in here
    ]
    assert there[0].provenance.fingerprint == here[0].provenance.fingerprint


def test_other_workers_ask_it_too(cluster: Any, actor: Any) -> None:
    worker = cluster.remote(num_cpus=0.1)(rewards)
    assert cluster.get([worker.remote(actor, answer) for answer in "23"]) == [[1.0], [0.0]]


def test_its_calls_run_side_by_side(cluster: Any, actor: Any) -> None:
    calls = [actor.score.remote([one], "together") for one in THREE[:2]]
    assert [scores[0].value for scores in cluster.get(calls, timeout=1200)] == [1.0, 1.0]


def test_a_refusal_arrives_as_one(cluster: Any, actor: Any, gate: Path) -> None:
    first = actor.score.remote(THREE[:1], "gated")
    while not Path(f"{gate}.asked").exists():
        cluster.wait([first], timeout=0.05)
    second = actor.score.remote(THREE[1:2], "gated")
    while not any(one.waiting for one in cluster.get(actor.stats.remote())):
        cluster.wait([second], timeout=0.05)
    with pytest.raises(Overloaded, match="wait for 'gated'") as caught:
        cluster.get(actor.score.remote(THREE[2:], "gated"))
    assert caught.value.retry_after is not None
    gate.touch()
    assert [scores[0].value for scores in cluster.get([first, second], timeout=1200)] == [1.0, 1.0]


def test_mistakes_are_told(cluster: Any, actor: Any) -> None:
    for call in (actor.score.remote(THREE), actor.score.remote(THREE, "maths"), actor.score.remote([{"prompt": 1}])):
        with pytest.raises(ValueError, match=r"name the scorer|no scorer 'maths'|response"):
            cluster.get(call)


def test_the_numbers_and_a_new_scorer(cluster: Any, actor: Any) -> None:
    cluster.get(actor.reload.remote("math", "exact"))
    (score,) = cluster.get(actor.score.remote([Sample(prompt="", response="2", reference="2")], "math"))
    assert score.provenance.scorer == "exact"
    assert next((one.name, one.generation) for one in cluster.get(actor.stats.remote())) == ("math", 2)


def test_a_dead_actor_is_an_error_and_no_number(cluster: Any, gate: Path) -> None:
    closed = LaneConfig(scorer=Gated(gate=f"{gate}.never"))
    actor = cluster.remote(num_cpus=0.1)(RewardActor).remote({"gated": closed})
    waiting = actor.score.remote(THREE)
    while not Path(f"{gate}.never.asked").exists():
        cluster.wait([waiting], timeout=0.05)
    cluster.kill(actor)
    for call in (waiting, actor.score.remote(THREE)):
        with pytest.raises(cluster.exceptions.RayActorError):
            cluster.get(call, timeout=1200)


def test_a_drained_actor_refuses(cluster: Any) -> None:
    actor = cluster.remote(num_cpus=0.1)(RewardActor).remote({"math": "math"})
    assert cluster.get(actor.drain.remote(10.0)) is True
    with pytest.raises(Draining):
        cluster.get(actor.score.remote(THREE))
    cluster.kill(actor)
