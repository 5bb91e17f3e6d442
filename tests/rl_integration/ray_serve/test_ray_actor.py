"""A reward service in a real Ray actor, asked from here and from other actors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples.frameworks.ray_actor import rewards
from tests.rl_integration.ray_serve.scorers import Gated, Together

from adjudge.protocol import Sample
from adjudge.rl_integration.adapters.ray_actor import RewardActor
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.tickets import Draining, Overloaded
from adjudge.scoring.api import score_batch

ADDING = [Sample(prompt="1+1?", response=rf"\boxed{{{n}}}", reference="2", id=str(n)) for n in (1, 2, 3)]


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
    there, here = cluster.get(actor.score.remote(ADDING, "math")), score_batch(ADDING, "math")
    assert [one.value for one in there] == [0.0, 1.0, 0.0]
    assert [(one.value, one.reason, one.evidence) for one in there] == [
        (one.value, one.reason, one.evidence) for one in here
    ]
    assert there[0].provenance.fingerprint == here[0].provenance.fingerprint


def test_other_workers_ask_it_too(cluster: Any, actor: Any) -> None:
    worker = cluster.remote(num_cpus=0.1)(rewards)
    assert cluster.get([worker.remote(actor, answer) for answer in "23"]) == [[1.0], [0.0]]


def test_its_calls_run_side_by_side(cluster: Any, actor: Any) -> None:
    calls = [actor.score.remote([one], "together") for one in ADDING[:2]]
    assert [scores[0].value for scores in cluster.get(calls, timeout=1200)] == [1.0, 1.0]


def test_a_refusal_arrives_as_one(cluster: Any, actor: Any, gate: Path) -> None:
    first = actor.score.remote(ADDING[:1], "gated")
    while not Path(f"{gate}.asked").exists():
        cluster.wait([first], timeout=0.05)
    second = actor.score.remote(ADDING[1:2], "gated")
    while not any(one.waiting for one in cluster.get(actor.stats.remote())):
        cluster.wait([second], timeout=0.05)
    with pytest.raises(Overloaded, match="wait for 'gated'") as caught:
        cluster.get(actor.score.remote(ADDING[2:], "gated"))
    assert caught.value.retry_after is not None
    gate.touch()
    assert [scores[0].value for scores in cluster.get([first, second], timeout=1200)] == [1.0, 1.0]


def test_mistakes_are_told(cluster: Any, actor: Any) -> None:
    for call in (actor.score.remote(ADDING), actor.score.remote(ADDING, "maths"), actor.score.remote([{"prompt": 1}])):
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
    waiting = actor.score.remote(ADDING)
    while not Path(f"{gate}.never.asked").exists():
        cluster.wait([waiting], timeout=0.05)
    cluster.kill(actor)
    for call in (waiting, actor.score.remote(ADDING)):
        with pytest.raises(cluster.exceptions.RayActorError):
            cluster.get(call, timeout=1200)


def test_a_drained_actor_refuses(cluster: Any) -> None:
    actor = cluster.remote(num_cpus=0.1)(RewardActor).remote({"math": "math"})
    assert cluster.get(actor.drain.remote(10.0)) is True
    with pytest.raises(Draining):
        cluster.get(actor.score.remote(ADDING))
    cluster.kill(actor)
