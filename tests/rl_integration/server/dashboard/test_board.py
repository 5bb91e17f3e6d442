"""What the page is told: the last minutes in points, the verdict on each scorer, and only what is new."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.dashboard.board import Board, History, verdict
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import BINS, LaneStats, Spread
from adjudge.rl_integration.watch.hacking import HackingWatch, WatchConfig
from adjudge.rl_integration.watch.panel import WatchPanel
from adjudge.rl_integration.watch.report import HackingReport

NOTHING = LaneStats(
    name="a",
    scorer="a",
    fingerprint="a:1",
    generation=1,
    state="closed",
    waiting=0,
    running=0,
    accepted=0,
    refused=0,
    answered=0,
    shared=0,
    calls=0,
    called=0,
    empty_calls=0,
    suspensions=0,
    threads_left=0,
    reasons={},
    seconds=0.0,
    queued=0.0,
    latency=(0,) * BINS,
    latency_sum=0.0,
    given_up=0,
    reward_sum=0.0,
)


def latencies(*seconds: float) -> tuple[int, ...]:
    spread = Spread()
    for one in seconds:
        spread.add(one)
    return tuple(spread.counts)


def test_a_point_is_what_came_between_two_looks() -> None:
    history = History(10)
    first = replace(NOTHING, answered=10, calls=2, called=10, latency=latencies(5.0))
    second = replace(
        first, answered=110, calls=4, called=110, waiting=7, latency=latencies(5.0, *[0.01] * 90, *[1.0] * 10)
    )
    assert history.newest(10) == {"rate": [], "p50": [], "p95": [], "waiting": [], "batch": []}
    for stats, now in ((first, 0.0), (second, 2.0), (second, 3.0)):
        assert not history.note(stats, now)
    points = history.newest(10)
    assert points["rate"] == [50.0, 0.0]
    assert points["waiting"] == [7, 7]
    assert points["batch"] == [50.0, None]
    assert points["p50"] == [pytest.approx(0.01, rel=0.1), None]
    assert points["p95"] == [pytest.approx(1.0, rel=0.1), None]
    assert history.newest(1)["rate"] == [0.0]
    assert history.newest(0)["rate"] == []


def test_a_history_has_an_end_and_begins_anew_with_another_scorer() -> None:
    history = History(3)
    for place in range(6):
        history.note(replace(NOTHING, answered=place * place), float(place))
    assert history.newest(9)["rate"] == [5.0, 7.0, 9.0]
    assert history.note(replace(NOTHING, generation=2), 7.0)
    assert history.newest(9)["rate"] == []


def test_samples_that_wait_unanswered_are_timed() -> None:
    history = History(3)
    waiting = replace(NOTHING, waiting=4, answered=1)
    history.note(NOTHING, 0.0)
    history.note(NOTHING, 50.0)
    assert history.stalled == 0.0
    for now in (60.0, 75.0, 91.0):
        history.note(waiting, now)
    assert history.stalled == 31.0
    history.note(replace(waiting, answered=2), 92.0)
    assert history.stalled == 0.0


def report(*scores: Score) -> HackingReport:
    watch = HackingWatch(WatchConfig(window=64, baseline=8, enough=8, block=4, enough_groups=2))
    for place, score in enumerate(scores):
        watch.see(Sample(prompt=f"{place // 2}", response=f"{place}"), score)
    return watch.report()


GOOD = [Score.scored(float(place % 2)) for place in range(16)]
FAILED = Score.failed("engine_timeout")
SOME = replace(NOTHING, answered=16)


@pytest.mark.parametrize(
    ("stats", "found", "stalled", "state"),
    [
        (NOTHING, report(), 0.0, "idle"),
        (NOTHING, None, 0.0, "idle"),
        (SOME, report(*GOOD), 0.0, "healthy"),
        (SOME, None, 0.0, "healthy"),
        (SOME, report(*GOOD[:7]), 0.0, "learning"),
        (SOME, report(*GOOD, *[Score.scored(1.0)] * 190), 0.0, "look"),
        (SOME, report(*GOOD, FAILED, FAILED), 0.0, "look"),
        (SOME, report(*GOOD, *[FAILED] * 16), 0.0, "failing"),
        (replace(SOME, reasons={"failed engine_timeout": 9, "scored": 7}), None, 0.0, "failing"),
        (replace(SOME, reasons={"failed gold_unparsable": 16}), report(FAILED), 0.0, "failing"),
        (replace(SOME, waiting=1), report(*GOOD), 31.0, "stalled"),
        (replace(NOTHING, waiting=1), None, 31.0, "stalled"),
        (replace(SOME, state="open"), report(*GOOD), 99.0, "resting"),
    ],
)
def test_verdicts(stats: LaneStats, found: HackingReport | None, stalled: float, state: str) -> None:
    told = verdict(stats, found, stalled)
    assert told.state == state
    assert told.sentence.endswith(".")


def test_a_verdict_names_the_gravest_sign_and_counts_the_others() -> None:
    told = verdict(SOME, report(*[FAILED] * 4, *[Score.scored(1.0)] * 20), 0.0)
    assert told.sentence.startswith("17 % of the newest samples could not be judged, most of them: engine timeout.")
    assert told.sentence.endswith("And 1 more sign below.")


class Wild:
    """Gives the values that the responses name."""

    name = "wild"
    fingerprint = "wild:1"

    async def score(self, samples: Any) -> list[Score]:
        return [Score.scored(float(sample.response)) for sample in samples]


class Told(WatchPanel):
    """Lets a test wait until it was told; that is a moment after the caller has the score."""

    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Semaphore(0)

    def __call__(self, name: str, sample: Sample, score: Score) -> None:
        super().__call__(name, sample, score)
        self.told.release()

    def score(self, service: RewardService, name: str, *samples: Sample) -> None:
        service.score_blocking(name, samples)
        for _ in samples:
            assert self.told.acquire(timeout=1200)


def board(panel: WatchPanel | None, service: RewardService) -> Board:
    return Board(service, ServerConfig(), panel)


def test_only_what_is_new_is_told() -> None:
    panel = Told()
    with RewardService({"a": "exact", "b": "exact"}, watch=panel) as service:
        page = board(panel, service)
        page.look(0.0)
        panel.score(service, "a", Sample(prompt="q", response="x", reference="x"))
        panel.score(service, "b", Sample(prompt="q", response="y", reference="x"))
        page.look(1.0)
        first = page.moment()
        assert [len(one["newest"]) for one in first["scorers"]] == [1, 1]
        assert [one["history"]["rate"] for one in first["scorers"]] == [[1.0], [1.0]]
        again = page.moment(first["tick"], first["sample"])
        assert [one["newest"] for one in again["scorers"]] == [[], []]
        assert [one["history"]["rate"] for one in again["scorers"]] == [[], []]
        page.look(2.0)
        panel.score(service, "a", Sample(prompt="q", response="z", reference="x"))
        later = page.moment(again["tick"], again["sample"])
        assert [[one["response"] for one in scorer["newest"]] for scorer in later["scorers"]] == [["z"], []]
        assert [one["history"]["rate"] for one in later["scorers"]] == [[0.0], [0.0]]
        assert len(page.moment(10**9, 10**9)["scorers"][0]["history"]["rate"]) == 2, "a page of another server"


def test_another_scorer_under_the_name_begins_anew() -> None:
    panel = Told()
    with RewardService({"a": "exact"}, watch=panel) as service:
        page = board(panel, service)
        page.look(0.0)
        panel.score(service, "a", Sample(prompt="q", response="x", reference="x"))
        service.reload("a", LaneConfig(scorer=Wild()))
        page.look(1.0)
        (found,) = page.moment()["scorers"]
        assert (found["generation"], found["scorer"], found["answered"]) == (2, "wild", 0)
        assert (found["watch"]["measures"]["samples"], found["newest"]) == (0, [])


def test_without_a_watch_the_service_is_shown_all_the_same() -> None:
    with RewardService({"a": "exact"}) as service:
        found = board(None, service).moment()
    assert found["limits"] is None
    assert found["texts"] is False
    assert (found["scorers"][0]["watch"], found["scorers"][0]["newest"]) == (None, [])


@pytest.mark.parametrize(
    "values",
    [
        ["1e308", "-1e308"] * 200,
        [f"{sign}{place}e307" for place in range(1, 10) for sign in ("", "-")] * 30,
        [f"{place}e-320" for place in range(1, 99)] * 4,
        ["0"] * 300,
    ],
)
def test_whatever_the_values_the_answer_is_json(values: list[str]) -> None:
    panel = Told()
    with RewardService({"a": Wild()}, watch=panel) as service:
        samples = [Sample(prompt=f"\ud800 {place}", response=value) for place, value in enumerate(values)]
        panel.score(service, "a", *samples)
        told = json.dumps(board(panel, service).moment(), allow_nan=False)
    assert sum(bar[2] for bar in json.loads(told)["scorers"][0]["watch"]["bars"]) == len(values)
