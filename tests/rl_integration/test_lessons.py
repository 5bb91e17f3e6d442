"""What broke runs elsewhere, as tests: each names what happened and holds that it cannot happen here.

The incidents are those of public issue threads of RL frameworks: frozen threads, pools that do not kill, time in a
queue charged as compute, broadcast and missing scores, herds, open doors, faults that became zeros.
"""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx
import pytest

from adjudge import score_batch
from adjudge.protocol import Limits, Sample, Score, Verifier
from adjudge.rl_integration.client.client import AsyncClient, ClientConfig
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.running import server
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.runtime.contract import BrokenScorer
from adjudge.trl import TrlReward

WAIT = 300.0


def rows(*responses: str) -> list[Sample]:
    return [Sample(prompt="1+1?", response=response, reference="2") for response in responses]


def seen(scores: Sequence[Score]) -> list[float | str | None]:
    return [score.reason if score.value is None else score.value for score in scores]


@contextmanager
def served(scorers: dict[str, Any], **options: Any) -> Iterator[httpx.Client]:
    with RewardService(scorers) as service:
        listening: queue.Queue[str] = queue.Queue()
        http = server(service, ServerConfig(port=0, **options), listening.put)
        thread = threading.Thread(target=http.run)
        thread.start()
        try:
            with httpx.Client(base_url=listening.get(timeout=WAIT), timeout=WAIT) as client:
                yield client
        finally:
            http.should_exit = True
            thread.join(WAIT)


class Answering:
    """A scorer that returns what it was given, whatever that is."""

    name = "answering"
    fingerprint = "answering:1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def score(self, samples: Sequence[Sample]) -> Any:
        return self.answer(samples) if callable(self.answer) else self.answer


class Blocking(Answering):
    """A scorer that blocks its thread until it is let go."""

    def __init__(self) -> None:
        super().__init__(None)
        self.begun = threading.Event()
        self.go = threading.Event()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.begun.set()
        self.go.wait(WAIT)
        return [Score.scored(1.0) for _ in samples]


@dataclass(frozen=True, kw_only=True)
class Hanging(Verifier):
    """Hangs where the response says so."""

    name: ClassVar[str] = "hanging"
    needs_reference: ClassVar[bool] = False
    limits: ClassVar[Limits] = Limits(seconds=0.3)

    def verify(self, sample: Sample) -> Score:
        while sample.response == "hang":
            pass
        return Score.scored(1.0)


def test_a_tower_of_powers_in_a_thread_costs_its_own_sample_alone() -> None:
    async def from_a_thread() -> list[Score]:
        texts = r"\boxed{9^{9^{9^{9}}}}", r"\boxed{2}", r"\boxed{3}"
        return await asyncio.to_thread(score_batch, rows(*texts), "math")

    assert seen(asyncio.run(asyncio.wait_for(from_a_thread(), WAIT))) == [0.0, 1.0, 0.0]


def test_a_frozen_scorer_does_not_freeze_the_server() -> None:
    scorer = Blocking()
    with served({"frozen": scorer, "exact": "exact"}) as client, ThreadPoolExecutor(1) as threads:
        sample = {"prompt": "q", "response": "a", "reference": "a"}
        frozen = threads.submit(client.post, "/v1/score", json={"scorer": "frozen", "sample": sample})
        assert scorer.begun.wait(WAIT)
        assert client.get("/healthz").json() == {"status": "alive"}
        other = client.post("/v1/score", json={"scorer": "exact", "sample": sample}).json()
        assert other["scores"][0]["value"] == 1.0
        assert not frozen.done()
        scorer.go.set()
        assert frozen.result(WAIT).json()["scores"][0]["value"] == 1.0


def test_a_verifier_that_hangs_is_killed_and_the_next_is_judged_on_time() -> None:
    with RewardService({"it": Hanging()}) as service:
        for _ in range(3):
            assert seen(service.score_blocking("it", rows("hang", "fine"))) == [0.0, 1.0]
        begun = time.monotonic()
        assert seen(service.score_blocking("it", rows("fine"))) == [1.0]
        assert time.monotonic() - begun < Hanging.limits.seconds + 5, "no worker is lost to those that hung"


def test_a_burst_does_not_fail_for_waiting() -> None:
    class Slow(Answering):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            await asyncio.sleep(0.01)
            return [Score.scored(1.0) for _ in samples]

    burst = rows(*(f"{n}" for n in range(200)))
    with RewardService({"it": LaneConfig(scorer=Slow(None), batch=1, concurrency=2, seconds=0.5)}) as service:
        begun = time.monotonic()
        assert seen(service.score_blocking("it", burst)) == [1.0] * 200
        assert time.monotonic() - begun > 0.5, "the last ones waited for longer than a call may take"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([Score.scored(1.0)], id="one for all"),
        pytest.param([], id="none"),
        pytest.param(None, id="nothing"),
        pytest.param(1.0, id="a number"),
        pytest.param([1.0, 1.0, 1.0], id="numbers"),
        pytest.param({"value": 1.0}, id="a mapping"),
        pytest.param(lambda samples: [Score.scored(1.0)] * (len(samples) + 1), id="one too many"),
        pytest.param(lambda samples: [_not_finite(math.nan) for _ in samples], id="nan"),
        pytest.param(lambda samples: [_not_finite(-math.inf) for _ in samples], id="infinite"),
    ],
)
def test_what_is_not_one_finite_score_for_each_sample_is_told_by_the_scorers_name(answer: Any) -> None:
    samples = rows("a", "b", "c")
    with pytest.raises(BrokenScorer, match="the scorer 'answering'"):
        score_batch(samples, Answering(answer))
    with RewardService({"it": Answering(answer)}) as service:
        alone = answer == [Score.scored(1.0)]  # the search for the sample that breaks the call asks for each by itself
        found = service.score_blocking("it", samples)
        assert seen(found) == ([1.0] * 3 if alone else ["verifier_error"] * 3)
        assert alone or all("'answering'" in score.evidence["error"] for score in found)


def _not_finite(value: float) -> Score:
    score = Score.scored(1.0)
    object.__setattr__(score, "value", value)
    return score


@pytest.mark.parametrize("response", [r"\boxed{2}", r"\boxed{3}", "", "x" * 10_000, "\ud800", "\\boxed{\x00}"])
def test_metrics_have_the_same_names_whatever_came(response: str) -> None:
    logged: dict[str, float] = {}
    extra: dict[str, list[Any]] = {}
    reward = TrlReward("math", reference="answer", max_failed=1.0)
    for answer in ("2", "\\frac{"):  # a reference that cannot be read, too
        call = reward(
            prompts=["1+1?"],
            completions=[response],
            answer=[answer],
            log_metric=logged.__setitem__,
            log_extra=extra.__setitem__,
        )
        assert len(call) == 1
        assert (set(logged), set(extra)) == (
            {"math/failed", "math/abstained", "math/out_of_scope"},
            {"math_reason"},
        )


def test_nothing_asked_is_nothing_answered() -> None:
    with served({"exact": "exact"}) as client:
        assert client.post("/v1/score", json={"samples": []}).json()["scores"] == []
        empty = client.post("/get_reward", json={"query": [], "prompts": [], "labels": []})
        assert (empty.status_code, empty.json()["rewards"]) == (200, [])
    assert score_batch([], "exact") == []
    assert list(TrlReward("exact", reference="answer")(prompts=[], completions=[])) == []


class Gated(Answering):
    """Scores by length, once its gate is open."""

    def __init__(self) -> None:
        super().__init__(None)
        self.gate = threading.Event()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if not self.gate.is_set():
            assert await asyncio.to_thread(self.gate.wait, WAIT)
        return [Score.scored(float(len(sample.response))) for sample in samples]


def test_a_herd_is_told_to_come_back_and_all_of_it_is_served() -> None:
    scorer = Gated()
    with served({"it": LaneConfig(scorer=scorer, waiting=100, batch=50)}) as client, ThreadPoolExecutor(1) as threads:

        async def herd() -> list[list[Score]]:
            config = ClientConfig(url=str(client.base_url), concurrency=32, attempts=40, deadline=WAIT * 2)
            clients = [AsyncClient(config) for _ in range(8)]
            asked = (clients[n % 8].score(rows("x" * (1 + n % 40) + f" {n:04}"), "it") for n in range(2000))
            found = await asyncio.gather(*asked)
            for one in clients:
                await one.close()
            return found

        def count(name: str) -> float:
            text = client.get("/metrics").text
            (line,) = [line for line in text.splitlines() if line.startswith(f'adjudge_{name}_total{{scorer="it"}}')]
            return float(line.split()[-1])

        served_all = threads.submit(asyncio.run, herd())
        while not count("refused"):  # 256 come at once, and at most 200 find room
            assert not served_all.done()
        scorer.gate.set()
        found = served_all.result(2 * WAIT)
        assert seen([score for scores in found for score in scores]) == [float(n % 40 + 6) for n in range(2000)]
        assert count("accepted") == 2000


def test_no_door_is_open_to_other_machines_by_default() -> None:
    assert ServerConfig().host == "127.0.0.1"
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(ValueError, match="there are no tokens; give a file of them"):
            ServerConfig(host=host)


FAULTS = {
    "unreadable reference": (r"\boxed{1}", "\\frac{"),
    "no reference": (r"\boxed{1}", None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_kept_us_from_judging_is_never_zero(fault: str) -> None:
    response, reference = FAULTS[fault]
    with served({"math": "math"}) as client:
        sample = {"prompt": "q", "response": response, "reference": reference}
        (score,) = client.post("/v1/score", json={"sample": sample}).json()["scores"]
        assert (score["status"] in ("failed", "abstained"), score["value"]) == (True, None)
        number = client.post("/rm", json={"prompt": "q", "response": response, "label": reference})
        assert number.status_code == 422
    reward = TrlReward("math", reference="answer", max_failed=1.0)
    assert list(reward(prompts=["q"], completions=[response], answer=[reference])) == [None]


def test_an_engine_that_is_down_is_never_zero_and_stops_being_asked() -> None:
    calls: list[int] = []

    def down(samples: Sequence[Sample]) -> list[Score]:
        calls.append(len(samples))
        return [Score.failed("engine_unavailable") for _ in samples]

    with served({"it": LaneConfig(scorer=Answering(down), window=4, rest=3600.0, longest_rest=3600.0)}) as client:
        statuses = []
        for n in range(6):
            answer = client.post("/rm", json={"prompt": "q", "response": f"{n}"})
            statuses.append((answer.status_code, answer.json()["error"]["code"]))
            assert int(answer.headers["retry-after"]) >= 1
        assert statuses == [(503, "not_scored")] * 2 + [(503, "suspended")] * 4
        assert client.get("/readyz").status_code == 503
    assert calls == [1, 1]


def test_every_answer_is_bound_to_its_request() -> None:
    with served({"it": Answering(lambda rows: [Score.scored(float(row.response)) for row in rows])}) as client:

        def ask(n: int) -> tuple[str, str, str, float]:
            asked = {"sample": {"prompt": "q", "response": f"{n}"}, "idempotency_key": f"key {n}"}
            answer = client.post("/v1/score", json=asked, headers={"x-request-id": f"id.{n}"})
            told = answer.json()
            value = told["scores"][0]["value"]
            return answer.headers["x-request-id"], told["request_id"], told["idempotency_key"], value

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(ask, range(200)))
    assert found == [(f"id.{n}", f"id.{n}", f"key {n}", float(n)) for n in range(200)]
