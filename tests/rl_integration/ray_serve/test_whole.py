"""The numbers of all replicas, without Ray: handles that fail, arrive twice, or arrive late."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.ray_serve import whole as module
from adjudge.rl_integration.ray_serve.whole import Passing, RemoteBoard, Told, Whole
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.errors import HttpError
from adjudge.rl_integration.service.service import RewardService

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Serve's own, of pydantic


class Handle:
    """Serve's handle of a whole in this process; loses the question, or the answer, where it is told to."""

    def __init__(self, whole: Whole) -> None:
        self._whole = whole
        self.loses: str = ""
        self.told: list[Told] = []

    def __getattr__(self, name: str) -> Any:
        handle = self

        class Call:
            def remote(self, *given: Any) -> Call:
                handle.told += [one for one in given if isinstance(one, Told)]
                self.found = getattr(handle._whole, name)(*given) if handle.loses != "question" else None
                return self

            def result(self, timeout_s: float) -> Any:
                if handle.loses:
                    raise TimeoutError
                return self.found

            def cancel(self) -> None:
                pass

        return Call()


class Noting(Passing):
    """Says what it has seen."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.seen = threading.Semaphore(0)

    def __call__(self, name: str, sample: Sample, score: Score) -> None:
        super().__call__(name, sample, score)
        self.seen.release()


class Replica:
    """A replica's service and board."""

    def __init__(self, whole: Whole) -> None:
        config = ServerConfig()
        self.panel = Noting(config)
        self.service = RewardService({"it": "exact"}, watch=self.panel)
        self.handle = Handle(whole)
        self.board = RemoteBoard(self.service, self.panel, self.handle)

    def score(self, count: int) -> None:
        self.service.score_blocking("it", [Sample(prompt="q", response=f"{n}", reference="0") for n in range(count)])
        for _ in range(count):
            assert self.panel.seen.acquire(timeout=600)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Whole:
    monkeypatch.setattr(Whole, "_ticks", lambda self: None)  # looks only when it is told to
    return Whole(ServerConfig())


@pytest.fixture
def pair(whole: Whole) -> Iterator[tuple[Replica, Replica]]:
    made = Replica(whole), Replica(whole)
    yield made
    for one in made:
        one.service.close()


def shown(whole: Whole) -> tuple[int, int, int]:
    """Answers in the sums, in the chart of the whole run, and in the watch."""
    whole._board.look(time.monotonic())
    (one,) = whole.moment(0, 0)["scorers"]
    return one["answered"], sum(row[3] for row in one["run"]["rows"]), one["watch"]["measures"]["window"]


def test_the_numbers_of_two_replicas_are_added_up(whole: Whole, pair: tuple[Replica, Replica]) -> None:
    one, other = pair
    one.score(3)
    other.score(4)
    one.board.close()
    lanes, there = other.board.lanes()
    assert [lane.answered for lane in lanes] == [7]
    assert sorted(lane.answered for own in there.values() for lane in own) == [3, 4]
    assert sum(lanes[0].reasons.values()) == 7
    assert sum(lanes[0].latency) == 7
    assert shown(whole) == (7, 7, 7)


@pytest.mark.parametrize("lost", ["question", "answer"])
def test_what_was_lost_on_the_way_is_told_again_and_counted_once(
    whole: Whole, pair: tuple[Replica, Replica], lost: str
) -> None:
    one, _ = pair
    one.score(3)
    one.handle.loses = lost
    with pytest.raises(HttpError, match=r"numbers of all replicas does not answer \(TimeoutError\)"):
        one.board.lanes()
    one.score(2)
    one.handle.loses = ""
    one.board.close()
    one.board.close()
    assert shown(whole) == (5, 5, 5)


def test_what_arrives_late_changes_nothing(whole: Whole, pair: tuple[Replica, Replica]) -> None:
    one, _ = pair
    one.board.close()
    one.score(3)
    one.board.close()
    for told in one.handle.told:
        whole.tell(told)
    assert shown(whole) == (3, 3, 3)


def test_a_replica_that_is_silent_stays_counted_and_holds_nothing(
    whole: Whole, pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = pair
    one.score(3)
    one.board.close()
    now = time.monotonic() + 2 * module._THERE
    monkeypatch.setattr(time, "monotonic", lambda: now)
    lanes, there = other.board.lanes()
    assert lanes[0].answered == 3
    assert len(there) == 1


def test_a_page_costs_no_wait_while_the_whole_is_away(whole: Whole, pair: tuple[Replica, Replica]) -> None:
    one, _ = pair
    one.board._away = True
    for ask in (one.board.lanes, one.board.moment):
        with pytest.raises(HttpError) as caught:
            ask()
        assert (caught.value.status, caught.value.code, caught.value.retry_after) == (503, "numbers_away", 2.0)
    assert one.handle.told == []
