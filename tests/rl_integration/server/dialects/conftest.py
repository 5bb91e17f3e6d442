"""One real server for all dialects, with a scorer that does as the response says and remembers what it saw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.rl_integration.server.conftest import served

from adjudge.protocol import Sample, Score, StepScore, response_text
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.service.config import LaneConfig

SCORES = {
    "down": Score.failed("engine_unavailable", error="no route to it"),
    "broken gold": Score.failed("gold_unparsable", error={("\ud800", 1): {2}}),
    "no verdict": Score.failed("judge_unparsable"),
    "not mine": Score.abstained("out_of_scope"),
    "sum": Score(value=1.5, parts={"a": Score.scored(1.0), "b": Score.scored(0.5)}),
    "mean": Score(value=0.75, parts={"a": Score.scored(1.0), "b": Score.scored(0.5)}),
    "large part": Score(value=1.0, parts={"a": Score.scored(7.0), "b": Score.failed("judge_truncated")}),
    "steps": Score(value=0.5, steps=(StepScore(value=1.0, label="good"), StepScore(value=None), StepScore(value=0.0))),
}


class Obedient:
    """Scores by length, but gives the score that a response asks for by its name."""

    name = "obedient"
    fingerprint = "obedient:1"

    def __init__(self) -> None:
        self.seen: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.seen += samples
        return [SCORES.get(text := response_text(sample), Score.scored(float(len(text)))) for sample in samples]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A client of the server, and the scorer `it` behind it."""

    client: httpx.Client
    scorer: Obedient

    def post(self, path: str, body: object, **query: Any) -> httpx.Response:
        # as ASCII, in which JSON can hold half a surrogate pair
        content = json.dumps(body)
        headers = {"content-type": "application/json"}
        return self.client.post(path, content=content, headers=headers, params={"scorer": "it", **query})

    def good(self, path: str, body: object, **query: Any) -> Any:
        """What is answered to a request that is fine."""
        answer = self.post(path, body, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def told(self, path: str, body: object, **query: Any) -> tuple[int, str, str]:
        """What is answered to one that is not: the status, the code and the message."""
        answer = self.post(path, body, **query)
        error = answer.json()["error"]
        return answer.status_code, error["code"], error["message"]

    @property
    def last(self) -> Sample:
        """The sample that the scorer saw last."""
        return self.scorer.seen[-1]


@pytest.fixture(scope="package")
def bench() -> Iterator[Bench]:
    scorer = Obedient()
    scorers = {
        "it": LaneConfig(scorer=scorer, window=100_000),
        "math": "math",
        "code": "code",
        "thorough": {"code": {"credit": "fraction", "measured": True}},
        "run": {"adjudge.verifiers.code.run:RunVerifier": {"seconds": 20.0}},
    }
    with (
        served(scorers, ServerConfig(port=0, max_samples=100)) as address,
        httpx.Client(base_url=address, timeout=1200) as client,
    ):
        yield Bench(client=client, scorer=scorer)
