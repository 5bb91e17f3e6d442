"""The reward service: batches, fairness, refusals, deadlines, suspension, groups, reload and shutdown."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from adjudge.protocol import Cost, Sample, Score
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import LaneStats
from adjudge.rl_integration.service.tickets import Draining, Overloaded, Suspended
from adjudge.scoring.compose import Part, Weighted

WAIT = 300.0  # seconds after which a test has failed


def samples(*responses: str, group: str = "") -> list[Sample]:
    return [Sample(prompt="q", response=response, group=group) for response in responses]


def values(scores: Sequence[Score]) -> list[float | None]:
    return [score.value for score in scores]


class Lengths:
    """Scores by length; keeps what it was given; waits at a gate before it answers."""

    name = "lengths"
    fingerprint = "lengths:1"

    def __init__(self, *, open_gate: bool = True, factor: float = 1.0) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.batches: list[list[str]] = []
        self.factor = factor
        if open_gate:
            self.gate.set()

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.batches.append([str(sample.response) for sample in samples])
        self.begun.release()
        if not self.gate.is_set():
            assert await asyncio.to_thread(self.gate.wait, WAIT)
        return [Score(value=self.factor * len(sample.response), cost=Cost(seconds=0.5)) for sample in samples]


@contextmanager
def hosted(scorer: object, **options: object) -> Iterator[RewardService]:
    with RewardService({"it": LaneConfig(scorer=scorer, **options)}) as service:  # type: ignore[arg-type]
        yield service


def stats(service: RewardService) -> LaneStats:
    (one,) = service.stats()
    return one


def until(service: RewardService, true: Callable[[LaneStats], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(WAIT / 0.002)):
        if true(stats(service)):
            return
        pause.wait(0.002)
    raise AssertionError(stats(service))


def came(before: int, future: Future[object], now: LaneStats) -> bool:
    return now.accepted > before or future.done()


def behind(scorer: Lengths, service: RewardService, callers: Sequence[Callable[[], object]]) -> list[object]:
    """Run callers while a first sample keeps a scorer with one call at once busy; return what they returned."""
    with ThreadPoolExecutor(len(callers) + 1) as threads:
        first = threads.submit(service.score_blocking, "it", samples("first"))
        assert scorer.begun.acquire(timeout=WAIT)
        futures = []
        for caller in callers:
            before = stats(service).accepted
            futures.append(threads.submit(caller))
            until(service, functools.partial(came, before, futures[-1]))
        scorer.gate.set()
        assert values(first.result(WAIT)) == [5.0]
        return [future.result(WAIT) for future in futures]


def test_from_threads_loops_and_both_at_once() -> None:
    with hosted(Lengths()) as service:

        async def many() -> list[list[Score]]:
            blocking = service.score_blocking("it", samples("abc"))
            return [blocking, *await asyncio.gather(*(service.score("it", samples("a" * n)) for n in range(1, 6)))]

        assert [values(scores) for scores in asyncio.run(many())] == [[3.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
        with ThreadPoolExecutor(4) as threads:
            found = threads.map(lambda n: values(service.score_blocking("it", samples("b" * n, "c"))), range(1, 30))
            assert list(found) == [[float(n), 1.0] for n in range(1, 30)]
        assert service.score_blocking("it", []) == service.submit("it", []).result(timeout=60) == []
        assert stats(service).answered == stats(service).accepted == 6 + 58


def test_what_waits_becomes_a_batch() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, batch=3) as service:
        callers = [lambda n=n: values(service.score_blocking("it", samples(f"{n:05}"))) for n in range(5)]
        assert behind(scorer, service, callers) == [[5.0]] * 5
    assert [len(batch) for batch in scorer.batches] == [1, 3, 2]


def test_characters_bound_a_batch_and_a_long_sample_goes_alone() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, characters=10) as service:
        behind(scorer, service, [lambda: service.score_blocking("it", samples("1234", "12345", "x" * 50, "1", "2"))])
    assert [len(batch) for batch in scorer.batches] == [1, 1, 1, 1, 2]  # "q" and four, "q" and five, ...


def test_equal_samples_on_their_way_are_scored_once_and_paid_once() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1) as service:
        callers = [lambda: service.score_blocking("it", samples("same", "same"))] * 2
        found = behind(scorer, service, callers)
        scores = [score for scores in found for score in scores]  # type: ignore[attr-defined]
        assert values(scores) == [4.0] * 4
        assert sorted(score.cost.seconds for score in scores) == [0.0, 0.0, 0.0, 0.5]
        assert stats(service).shared == 3
        service.score_blocking("it", samples("same"))  # what is done is not kept; a cache does that
    assert scorer.batches == [["first"], ["same"], ["same"]]


def test_a_burst_of_evaluations_does_not_hold_up_training() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, batch=4) as service:
        burst = [f"eval {n}" for n in range(40)]
        callers = [
            lambda: service.score_blocking("it", samples(*burst), traffic="eval"),
            lambda: service.score_blocking("it", samples("train 1", "train 2", "train 3"), traffic="train"),
        ]
        behind(scorer, service, callers)
    assert {"train 1", "train 2", "train 3"} <= set(scorer.batches[1] + scorer.batches[2])


def test_a_small_request_does_not_wait_behind_a_data_set_of_the_same_client() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, batch=4) as service:
        data = [f"row {n}" for n in range(40)]
        callers = [
            lambda: service.score_blocking("it", samples(*data)),
            lambda: service.score_blocking("it", samples("one")),
        ]
        behind(scorer, service, callers)
    assert "one" in scorer.batches[1] + scorer.batches[2]


def test_overload_refuses_whole_requests_and_keeps_what_was_accepted() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, waiting=3) as service:

        def refused() -> object:
            with pytest.raises(Overloaded, match="at most 3 may") as caught:
                service.score_blocking("it", samples("c", "d"))
            return caught.value.retry_after

        found = behind(scorer, service, [lambda: values(service.score_blocking("it", samples("a", "bb"))), refused])
        assert found == [[1.0, 2.0], 1.0]
        with pytest.raises(Overloaded, match="send fewer at once") as caught:
            service.score_blocking("it", samples("a", "b", "c", "d"))
        assert caught.value.retry_after is None
        assert (stats(service).refused, stats(service).accepted) == (6, 3)


class Blocking(Lengths):
    """Blocks its own event loop for responses that say so, as a careless plug-in does."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if any(sample.response == "block" for sample in samples):
            self.begun.release()
            self.gate.wait(WAIT)
        return [Score.scored(float(len(sample.response))) for sample in samples]


def test_a_scorer_that_blocks_its_thread_costs_only_the_sample_that_makes_it() -> None:
    scorer, other = Blocking(open_gate=False), Lengths()
    with RewardService({"bad": LaneConfig(scorer=scorer, seconds=0.3, concurrency=1), "good": other}) as service:
        with ThreadPoolExecutor(1) as threads:
            future = threads.submit(service.score_blocking, "bad", samples("a", "bb", "block", "dddd"))
            assert scorer.begun.acquire(timeout=WAIT)
            assert values(service.score_blocking("good", samples("abc"))) == [3.0], "the other lane goes on"
            scores = future.result(WAIT)
        assert values(scores) == [1.0, 2.0, None, 4.0]
        assert (scores[2].reason, scores[2].evidence["seconds"]) == ("scorer_timeout", 0.3)
        bad, _ = service.stats()
        assert bad.threads_left == 2  # for all four, and for the one
        scorer.gate.set()


class Picky(Lengths):
    """Raises for a whole batch when one response is bad."""

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if any(sample.response == "bad" for sample in samples):
            raise RuntimeError("I do not like this")
        return [Score.scored(float(len(sample.response))) for sample in samples]


def test_a_sample_that_breaks_the_scorer_fails_alone() -> None:
    with hosted(Picky()) as service:
        for _ in range(20):  # and does not suspend the scorer: other samples of its calls got scores
            scores = service.score_blocking("it", samples("a", "bb", "bad", "dddd", "eeeee"))
            assert values(scores) == [1.0, 2.0, None, 4.0, 5.0]
            assert scores[2].reason == "verifier_error"
            assert "I do not like this" in scores[2].evidence["error"]
        assert (stats(service).state, stats(service).suspensions) == ("closed", 0)


class Dead(Lengths):
    """An engine that is down until it is told to recover."""

    def __init__(self, reason: str = "engine_unavailable") -> None:
        super().__init__()
        self.up = False
        self.reason = reason

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if not self.up:
            return [Score.failed(self.reason) for _ in samples]
        return [Score.scored(1.0) for _ in samples]


def test_a_dead_scorer_is_suspended_and_comes_back_by_itself() -> None:
    scorer = Dead()
    with hosted(scorer, window=4, rest=0.05, longest_rest=0.05) as service:
        for n in range(2):
            assert service.score_blocking("it", samples(f"{n}"))[0].reason == "engine_unavailable"
        with pytest.raises(Suspended, match="gave no scores lately") as caught:
            service.score_blocking("it", samples("later"))
        assert caught.value.retry_after is not None
        assert 0 < caught.value.retry_after <= 0.05
        scorer.up = True
        until(service, lambda now: now.state == "trial")
        assert values(service.score_blocking("it", samples("now"))) == [1.0]
        assert (stats(service).state, stats(service).suspensions) == ("closed", 1)
        assert stats(service).reasons == {"failed engine_unavailable": 2, "scored": 1}
        assert stats(service).failed_share == 2 / 3


@pytest.mark.parametrize("reason", ["engine_unavailable", "overloaded", "verifier_error"])
def test_a_dead_part_of_a_composite_suspends_it_as_it_would_alone(reason: str) -> None:
    for scorer in (
        Dead(reason),
        Weighted(parts=(Part(Weighted(parts=(Part(Dead(reason), name="dead"), Part(Lengths())))),)),
    ):
        with hosted(scorer, window=2, rest=60.0) as service:
            (score,) = service.score_blocking("it", samples("a"))
            raised = reason == "verifier_error" and not isinstance(scorer, Dead)
            assert (score.status, score.reason) == ("failed", "part_failed" if raised else reason)
            assert stats(service).state == "open"


def test_what_nobody_needs_any_more_is_not_begun() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1) as service:
        late = behind(scorer, service, [lambda: service.score_blocking("it", samples("late"), within=0.0)])
        assert [score.reason for score in late[0]] == ["expired"]  # type: ignore[attr-defined]
    assert scorer.batches == [["first"]]


def test_waiting_is_never_charged_as_computing() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1, seconds=0.2) as service, ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(service.score_blocking, "it", samples("one"))]
        assert scorer.begun.acquire(timeout=WAIT)
        futures += [threads.submit(service.score_blocking, "it", samples("three"))]
        assert scorer.begun.acquire(timeout=WAIT)  # the first call's deadline passed; the second begins only now
        scorer.gate.set()
        found = sorted((future.result(WAIT)[0] for future in futures), key=lambda score: score.status)
        assert [score.reason for score in found] == ["scorer_timeout", ""]


def test_a_caller_that_went_away_costs_nothing() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1) as service:

        async def impatient() -> None:
            first = asyncio.create_task(service.score("it", samples("first")))
            await asyncio.to_thread(scorer.begun.acquire)
            gone = asyncio.create_task(service.score("it", samples("gone")))
            while stats(service).accepted < 2:
                await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            scorer.gate.set()
            assert values(await first) == [5.0]

        asyncio.run(impatient())
        until(service, lambda now: now.waiting == 0)
    assert scorer.batches == [["first"]]


class Ranks(Lengths):
    """A scorer of groups: the share of the others that a response is longer than."""

    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.batches.append([str(sample.response) for sample in samples])
        found = []
        for one in samples:
            group = [other for other in samples if other.group == one.group]
            shorter = sum(len(other.response) < len(one.response) for other in group)
            found.append(
                Score.scored(shorter / (len(group) - 1)) if len(group) > 1 else Score.failed("group_too_small")
            )
        return found


def test_a_request_holds_whole_groups() -> None:
    scorer = Ranks()
    with hosted(scorer, batch=2) as service:
        mixed = [*samples("a", "bbb", group="g"), *samples("cc", "c", group="h"), *samples("bb", group="g")]
        assert values(service.score_blocking("it", mixed)) == [0.0, 1.0, 1.0, 0.0, 0.5]
    assert sorted(map(sorted, scorer.batches)) == [["a", "bb", "bbb"], ["c", "cc"]], "batches are not cut in a group"


def test_two_clients_may_give_their_groups_the_same_name() -> None:
    scorer = Ranks()
    with hosted(scorer, linger=0.2) as service:
        one = service.submit("it", samples("a", "bbb", group="0"), client="one")
        two = service.submit("it", samples("cc", "dddd", "c", group="0"), client="two")
        assert (values(one.result(30)), values(two.result(30))) == ([0.0, 1.0], [0.5, 1.0, 0.0])
    assert sorted(map(len, scorer.batches)) == [2, 3]


def test_members_of_a_group_may_come_one_by_one() -> None:
    with hosted(Ranks(), cohort=3) as service:

        async def one_by_one() -> list[list[Score]]:
            texts = ("a", "bbb", "bb")
            return await asyncio.gather(*(service.score("it", samples(text, group="g")) for text in texts))

        assert [values(scores) for scores in asyncio.run(one_by_one())] == [[0.0], [1.0], [0.5]]


@pytest.mark.parametrize(("incomplete", "expected"), [("failed", [None, None]), ("scored", [0.0, 1.0])])
def test_a_group_that_does_not_become_whole_is_let_go(incomplete: str, expected: list[float | None]) -> None:
    with hosted(Ranks(), cohort=3, cohort_seconds=0.05, incomplete=incomplete) as service:
        scores = service.score_blocking("it", samples("a", "bb", group="g"))
        assert values(scores) == expected
        if incomplete == "failed":
            assert (scores[0].reason, scores[0].evidence["missing"]) == ("cohort_incomplete", 1)
        until(service, lambda now: (now.waiting, now.running) == (0, 0))


def test_a_reload_changes_what_comes_and_not_what_is_here() -> None:
    scorer = Lengths(open_gate=False)
    with hosted(scorer, concurrency=1) as service, ThreadPoolExecutor(2) as threads:
        with pytest.raises(ValueError, match="scorer 'it': "):
            service.reload("it", "no such scorer")
        first = threads.submit(service.score_blocking, "it", samples("first"))
        assert scorer.begun.acquire(timeout=WAIT)
        second = threads.submit(service.score_blocking, "it", samples("old"))
        until(service, lambda now: now.accepted == 2)
        service.reload("it", LaneConfig(scorer=Lengths(factor=10.0)))
        assert values(service.score_blocking("it", samples("new"))) == [30.0]
        scorer.gate.set()
        assert values(first.result(WAIT)) + values(second.result(WAIT)) == [5.0, 3.0]
        assert stats(service).generation == 2


def test_drain_answers_what_was_accepted_and_takes_nothing_more() -> None:
    scorer = Lengths(open_gate=False)
    service = RewardService({"it": LaneConfig(scorer=scorer, concurrency=1)})
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(service.score_blocking, "it", samples("first"))
        assert scorer.begun.acquire(timeout=WAIT)
        second = threads.submit(service.score_blocking, "it", samples("second"))
        until(service, lambda now: now.accepted == 2)
        assert not asyncio.run(service.drain(0.01))
        with pytest.raises(Draining):
            service.score_blocking("it", samples("third"))
        scorer.gate.set()
        assert values(first.result(WAIT)) + values(second.result(WAIT)) == [5.0, 6.0]
    assert service.close()
    assert not service._thread.is_alive()


def test_a_forked_child_is_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with hosted(Lengths()) as service:
        child = os.fork()
        if not child:
            try:
                service.score_blocking("it", samples("x"))
            except ValueError as error:
                told.write_text(str(error))
            os._exit(0)
        os.waitpid(child, 0)
    assert "made in another process" in told.read_text()


def test_mistakes_are_told_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="one at least"):
        RewardService({})
    with pytest.raises(ValueError, match=r"scorer 'a': .*maths"):
        RewardService({"a": "maths"})
    with pytest.raises(ValueError, match="cohort=4 is for scorers that compare"):
        RewardService({"a": LaneConfig(scorer="math", cohort=4)})
    with hosted(Lengths()) as service:
        with pytest.raises(ValueError, match="no scorer 'that' in this service; it has it"):
            service.score_blocking("that", samples("x"))
        with pytest.raises(ValueError, match='give "train" or "eval"'):
            service.score_blocking("it", samples("x"), traffic="test")  # type: ignore[arg-type]


def test_a_cache_is_kept_between_services(tmp_path: Path) -> None:
    for _ in range(2):
        scorer = Lengths()
        with hosted(scorer, cache=str(tmp_path / "scores.sqlite")) as service:
            assert values(service.score_blocking("it", samples("abc"))) == [3.0]
    assert scorer.batches == []


def test_a_cache_for_scores_that_compare_a_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="such scores are not cached; leave out cache="):
        RewardService({"it": LaneConfig(scorer="ttrl", cache=str(tmp_path / "scores.sqlite"))})


def test_a_watcher_sees_every_computed_score() -> None:
    seen: list[tuple[str, str, float | None]] = []
    service = RewardService(
        {"it": Lengths()}, watch=lambda name, sample, score: seen.append((name, str(sample.response), score.value))
    )
    service.score_blocking("it", samples("a", "bb"))
    assert service.close()
    assert sorted(seen) == [("it", "a", 1.0), ("it", "bb", 2.0)]


def test_verifiers_run_behind_it() -> None:
    with RewardService({"math": "math", "exact": "exact"}) as service:
        rows = [Sample(prompt="1+1?", response=f"\\boxed{{{n}}}", reference="2") for n in (1, 2)]
        assert values(service.score_blocking("math", rows)) == [0.0, 1.0]
        assert service.names == ["math", "exact"]
        assert service.scorer("exact").name == "exact"
