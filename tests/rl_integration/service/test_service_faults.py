"""What must never happen to a request, whatever scorers, callers and watchers do: to be lost, or to wait for ever."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import LaneStats
from adjudge.rl_integration.service.tickets import Traffic
from adjudge.runtime.deadline import seconds_left

WAIT = 300.0  # seconds after which a test has failed
SOON = 5.0  # what must not take as long as the scorer does


def rows(*responses: Any, group: str = "") -> list[Sample]:
    return [Sample(prompt="q", response=response, group=group) for response in responses]


class Scripted:
    """Scores by length; what it does with a response that names an action is in a table."""

    name = "scripted"
    fingerprint = "scripted:1"

    def __init__(self, **actions: Callable[[], Any]) -> None:
        self.actions = actions
        self.begun = threading.Semaphore(0)
        self.batches: list[list[str]] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.batches.append([str(sample.response) for sample in samples])
        self.begun.release()
        for sample in samples:
            action = self.actions.get(str(sample.response))
            found = action() if action is not None else None
            if asyncio.iscoroutine(found):
                await found
        return [Score.scored(float(len(sample.response))) for sample in samples]


class Gate:
    """Holds a coroutine of any loop until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()

    async def __call__(self) -> None:
        assert await asyncio.to_thread(self.open.wait, WAIT)


@contextmanager
def hosted(scorer: object, **options: Any) -> Iterator[RewardService]:
    with RewardService({"it": LaneConfig(scorer=scorer, **options)}) as service:
        yield service


def later(
    service: RewardService,
    samples: list[Sample],
    client: str = "",
    traffic: Traffic = "train",
    within: float | None = None,
) -> Future[list[Score]]:
    """Submit samples, and return when they are accepted."""
    before = service.stats()[0].accepted
    found: Future[list[Score]] = Future()

    def ask() -> None:
        try:
            found.set_result(service.score_blocking("it", samples, client=client, traffic=traffic, within=within))
        except BaseException as error:  # noqa: BLE001 for the test's own thread to see
            found.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    until(service, lambda now: now.accepted > before or found.done())
    return found


def until(service: RewardService, true: Callable[[LaneStats], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT / 0.002)):
        if true(service.stats()[0]):
            return
        pause.wait(0.002)
    raise AssertionError(service.stats()[0])


def seen(scores: Sequence[Score]) -> list[float | str | None]:
    return [score.reason if score.value is None else score.value for score in scores]


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_a_scorer_that_raises_what_ends_programs_costs_its_own_sample(error: BaseException) -> None:
    with hosted(Scripted(bad=lambda: _raise(error))) as service:
        for _ in range(2):
            found = later(service, rows("a", "bad", "ccc")).result(WAIT)
            assert seen(found) == [1.0, "verifier_error", 3.0]
        assert seen(later(service, rows("bad")).result(WAIT)) == ["verifier_error"]


def test_a_scorer_that_stops_its_own_loop_gets_another() -> None:
    with hosted(Scripted(bad=lambda: asyncio.get_running_loop().stop()), seconds=0.3) as service:
        assert seen(later(service, rows("a")).result(WAIT)) == [1.0]
        later(service, rows("bad")).result(WAIT)
        assert seen(later(service, rows("abc")).result(WAIT)) == [3.0]


def test_a_watcher_that_raises_costs_no_score(caplog: pytest.LogCaptureFixture) -> None:
    def watch(name: str, sample: Sample, score: Score) -> None:
        raise RuntimeError("the watcher is broken")

    with caplog.at_level(logging.CRITICAL, "asyncio"):
        service = RewardService({"it": Scripted()}, watch=watch)
        for _ in range(2):
            assert seen(later(service, rows("a", "bb")).result(WAIT)) == [1.0, 2.0]
        assert service.close()


def test_a_watcher_of_many_equal_samples_holds_nobody_up_and_sees_all(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []
    came_round: list[int] = []

    def watch(name: str, sample: Sample, score: Score) -> None:
        if not shown:
            asyncio.get_running_loop().call_soon(lambda: came_round.append(len(shown)))
        shown.append(str(sample.response))
        if len(shown) % 3 == 0:
            raise RuntimeError("the watcher is broken")

    with caplog.at_level(logging.CRITICAL, "asyncio"):
        service = RewardService({"it": Scripted()}, watch=watch)
        assert seen(later(service, rows(*["a"] * 1000)).result(WAIT)) == [1.0] * 1000
        assert service.close()
    assert shown == ["a"] * 1000
    assert came_round[0] < 500


def test_samples_that_no_key_can_be_made_of_are_scored() -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with hosted(Scripted(), waiting=3) as service:
        for reference in (circle, deep, object()):
            found = later(service, [Sample(prompt="q", response="abc", reference=reference)])
            assert seen(found.result(WAIT)) == [3.0]
        assert seen(later(service, rows("a", "b", "c")).result(WAIT)) == [1.0] * 3, "nothing is counted as waiting"
    while deep:
        deep = deep.pop()  # or its end would be a recursion too deep for C


def test_odd_texts_do_not_stop_the_queue() -> None:
    with hosted(Scripted()) as service:
        for response in (["turn"], [None], 5, None, [{"content": {"parts": [1]}}]):
            later(service, rows(response)).result(WAIT)
        assert seen(later(service, rows("abc")).result(WAIT)) == [3.0]


def test_a_sample_may_be_a_mapping_of_its_fields() -> None:
    with hosted(Scripted()) as service:
        assert seen(service.score_blocking("it", [{"prompt": "q", "response": "abc"}, *rows("ab")])) == [3.0, 2.0]


def test_what_is_no_sample_is_a_mistake() -> None:
    with hosted(Scripted()) as service:
        for samples in ([{"prompt": "q", "answer": "r"}], [None], ["text"]):
            with pytest.raises(ValueError, match="sample 0: "):
                later(service, samples).result(WAIT)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="a group is named by text"):
            service.score_blocking("it", [Sample(prompt="q", response="r", group=["g"])])  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="within=nan"):
            service.score_blocking("it", rows("a"), within=float("nan"))


def test_a_service_that_is_closed_too_early_says_so_to_all_who_wait() -> None:
    gate = Gate()
    service = RewardService({"it": LaneConfig(scorer=Scripted(wait=gate), concurrency=1)})
    running, queued = later(service, rows("wait", "x")), later(service, rows("abc"))
    assert not service.close(0.05)
    assert seen(running.result(WAIT)) == ["closed", "closed"]
    assert seen(queued.result(WAIT)) == ["closed"]
    assert not service.close(), "and it goes on saying so"
    now = service.stats()[0]
    assert (now.waiting, now.running, now.accepted, now.answered) == (0, 0, 3, 3)
    gate.open.set()


def test_a_drain_waits_for_scorers_that_were_replaced() -> None:
    gate = Gate()
    scorer = Scripted(wait=gate)
    service = RewardService({"it": scorer})
    first = later(service, rows("wait"))
    assert scorer.begun.acquire(timeout=WAIT)
    service.reload("it", Scripted())
    assert not asyncio.run(service.drain(0.05))
    gate.open.set()
    assert service.close()
    assert seen(first.result(WAIT)) == [4.0]


def test_a_trial_of_samples_that_nobody_needs_is_none() -> None:
    up = threading.Event()

    class Down(Scripted):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            failed = Score.failed("engine_unavailable")
            return [Score.scored(1.0) if up.is_set() else failed for _ in samples]

    with hosted(Down(), window=2, rest=0.05, longest_rest=0.05) as service:
        later(service, rows("a")).result(WAIT)
        up.set()
        until(service, lambda now: now.state == "trial")
        assert seen(later(service, rows("b"), within=0.0).result(WAIT)) == ["expired"]
        assert seen(later(service, rows("c")).result(SOON)) == [1.0]


def test_the_deadline_of_a_sample_that_waits_is_kept_while_the_scorer_is_busy() -> None:
    gate = Gate()
    scorer = Scripted(wait=gate)
    with hosted(scorer, concurrency=1) as service:
        busy = later(service, rows("wait"))
        assert scorer.begun.acquire(timeout=WAIT)
        assert seen(later(service, rows("late"), within=0.05).result(SOON)) == ["expired"]
        patient, impatient = later(service, rows("same")), later(service, rows("same"), within=0.05)
        assert seen(impatient.result(SOON)) == ["expired"]
        gate.open.set()
        assert seen(busy.result(WAIT)) + seen(patient.result(WAIT)) == [4.0, 4.0]
    assert scorer.batches == [["wait"], ["same"]]
    assert service.stats()[0].answered == service.stats()[0].accepted == 4


def test_many_names_do_not_get_many_shares() -> None:
    gate = Gate()
    scorer = Scripted(wait=gate)
    with hosted(scorer, concurrency=1, batch=1) as service:
        found = [later(service, rows("wait"))]
        assert scorer.begun.acquire(timeout=WAIT)
        found += [later(service, rows(f"eval {n}"), client=f"{n}", traffic="eval") for n in range(9)]
        found += [later(service, rows(*[f"train {n}" for n in range(9)]), client="one")]
        gate.open.set()
        for one in found:
            one.result(WAIT)
    first = [batch[0].split()[0] for batch in scorer.batches[1:13]]
    assert (first.count("train"), first.count("eval")) == (9, 3)


def test_training_does_not_wait_in_the_line_of_an_equal_evaluation() -> None:
    gate = Gate()
    scorer = Scripted(wait=gate)
    with hosted(scorer, concurrency=1, batch=1) as service:
        found = [later(service, rows("wait"))]
        assert scorer.begun.acquire(timeout=WAIT)
        found += [later(service, rows(*[f"eval {n}" for n in range(9)], "same"), traffic="eval")]
        found += [later(service, rows("same"))]
        gate.open.set()
        for one in found:
            one.result(WAIT)
    assert scorer.batches.index(["same"]) <= 2
    assert len(scorer.batches) == 11, "and it is scored once"
    assert service.stats()[0].waiting == 0


def test_a_call_that_shares_a_blocked_thread_is_tried_again() -> None:
    block, gate = threading.Event(), Gate()
    scorer = Scripted(block=lambda: block.wait(WAIT), wait=gate)
    with hosted(scorer, concurrency=2, seconds=0.5) as service:
        innocent = later(service, rows("wait"))
        assert scorer.begun.acquire(timeout=WAIT)
        guilty = later(service, rows("block"))
        assert scorer.begun.acquire(timeout=WAIT)
        gate.open.set()
        assert seen(innocent.result(WAIT)) == [4.0]
        assert seen(guilty.result(WAIT)) == ["scorer_timeout"]
        block.set()
        assert seen(later(service, rows("abc")).result(WAIT)) == [3.0]


def test_a_blocked_thread_that_comes_back_takes_no_call_with_it() -> None:
    block, gate = threading.Event(), Gate()
    scorer = Scripted(block=lambda: block.wait(WAIT), wait=gate)
    with hosted(scorer, concurrency=3, seconds=1.0) as service:
        guilty = later(service, rows("block"))
        assert scorer.begun.acquire(timeout=WAIT)
        innocent = later(service, rows("wait"))  # stands on the blocked thread, and has a second left when it is freed
        gate.open.set()
        assert seen(guilty.result(WAIT)) == ["scorer_timeout"]
        block.set()
        assert seen(innocent.result(WAIT)) == [4.0]


class Longest(Scripted):
    """A scorer of groups: 1 for the longest response of a group."""

    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.batches.append([str(sample.response) for sample in samples])
        most = max(len(sample.response) for sample in samples)
        return [Score.scored(float(len(sample.response) == most)) for sample in samples]


def test_a_member_that_nobody_waits_for_makes_no_group_whole() -> None:
    with hosted(Longest(), cohort=3) as service:

        async def members() -> list[float | str | None]:
            gone = asyncio.create_task(service.score("it", rows("a", group="g")))
            while service.stats()[0].accepted < 1:
                await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            again = (service.score("it", rows(text, group="g")) for text in ("a", "bb", "ccc"))
            return [value for scores in await asyncio.gather(*again) for value in seen(scores)]

        assert asyncio.run(members()) == [0.0, 0.0, 1.0]


def test_samples_without_a_group_make_none_and_traffic_is_not_mixed() -> None:
    scorer = Longest()
    with hosted(scorer, cohort=2) as service:
        assert seen(later(service, rows("a", "bb")).result(WAIT)) == ["bad_sample", "bad_sample"]
        train, evaluation = later(service, rows("a", group="g")), later(service, rows("bb", group="g"), traffic="eval")
        later(service, rows("ccc", group="g")).result(WAIT)
        later(service, rows("d", group="g"), traffic="eval").result(WAIT)
        assert seen(train.result(WAIT)) + seen(evaluation.result(WAIT)) == [0.0, 1.0]
    assert sorted(map(sorted, scorer.batches)) == [["a", "ccc"], ["bb", "d"]]


def test_a_stopped_stream_frees_what_it_kept_waiting() -> None:
    gate = Gate()
    scorer = Scripted(wait=gate)
    with hosted(scorer, concurrency=1) as service:

        async def read_one() -> None:
            busy = asyncio.create_task(service.score("it", rows("wait")))
            assert await asyncio.to_thread(scorer.begun.acquire, timeout=WAIT)
            stream = service.stream("it", rows("a", "b"))
            read = asyncio.create_task(anext(stream))
            while service.stats()[0].accepted < 3:
                await asyncio.sleep(0)
            read.cancel()
            with pytest.raises(asyncio.CancelledError):
                await read
            gate.open.set()
            await busy

        asyncio.run(read_one())
    assert scorer.batches == [["wait"]]


class Partial(Scripted):
    """Gives out what it has at the deadline: nothing of what says "stuck", and what is slow the second time."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        left = seconds_left()
        assert left is not None
        self.batches.append([str(sample.response) for sample in samples])
        slow = {"stuck", "slow"} if len(self.batches) == 1 else {"stuck"}
        undone = [str(sample.response) in slow for sample in samples]
        if any(undone):
            await asyncio.sleep(left)
        late = Score.failed("scorer_timeout")
        return [late if one else Score.scored(1.0, "") for one in undone]


def test_what_a_call_finished_before_its_time_was_up_counts() -> None:
    scorer = Partial()
    with hosted(scorer, seconds=0.4, concurrency=1) as service:
        found = later(service, rows("a", "slow", "stuck", "b")).result(WAIT)
        assert seen(found) == [1.0, 1.0, "scorer_timeout", 1.0]
        assert scorer.batches == [["a", "slow", "stuck", "b"], ["slow", "stuck"], ["stuck"]]
        assert service.stats()[0].state == "closed"
