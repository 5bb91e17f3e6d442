"""Who is blamed when a worker dies, step by step, on a stand-in for Ray that does what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
import ray.exceptions

from adjudge.data_pipelines.label import ray_workers as module
from adjudge.data_pipelines.label.bench import Verdict, Written
from adjudge.data_pipelines.label.ray_workers import Demand, RayWorkerGroup
from adjudge.io.errors import JobError
from adjudge.protocol import Sample, Score
from adjudge.runtime.contract import BrokenScorer

LOST = ray.exceptions.RayActorError
WHO = ("toy", "toy:1", False)


def raised(error: Exception) -> Exception:
    """What Ray makes of an error in a worker."""
    made: Any = ray.exceptions.RayTaskError
    return cast(Exception, made("open", "trace", error))


class Call:
    """A method of an actor: `remote` gives what the stand-in's answer comes to."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.remote = answer


class FakeActor:
    """A worker whose batches the test answers."""

    def __init__(self, ray: FakeRay) -> None:
        self._ray = ray
        self.batches: list[tuple[list[str], asyncio.Future[Any]]] = []
        self.open = Call(self._open)
        self.judge = Call(self._judge)

    def _open(self) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        described = self._ray.openings.pop(0) if self._ray.openings else WHO
        if isinstance(described, Exception):
            answer.set_exception(described)
        else:
            answer.set_result(described)
        return answer

    def _judge(self, rows: Sequence[Any]) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.batches.append(([row[1] for row in rows], answer))
        self._ray.judged += 1
        return answer

    def texts(self) -> list[list[str]]:
        return [texts for texts, answer in self.batches if not answer.done()]

    def answer(self) -> None:
        """Answer every open batch."""
        for texts, future in self.batches:
            if not future.done():
                future.set_result([Written(text, 1.0, "scored", "", "toy") for text in texts])

    def die(self) -> None:
        for _, future in self.batches:
            if not future.done():
                future.set_exception(LOST())


class FakeRay:
    """The part of Ray that a group of workers uses.

    Attributes:
        actors: all that were started.
        openings: what the next ones say of themselves, or how they die; after those, all are well.
        judged: calls of `judge`.
    """

    exceptions = ray.exceptions

    def __init__(self) -> None:
        self.actors: list[FakeActor] = []
        self.openings: list[Any] = []
        self.judged = 0

    def remote(self, **resources: Any) -> Callable[[type], Call]:
        return lambda worker: Call(lambda order: self._started())

    def _started(self) -> FakeActor:
        self.actors.append(FakeActor(self))
        return self.actors[-1]

    def kill(self, actor: FakeActor) -> None:
        actor.die()

    def wait(self, waiting: list[Any], *, num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return waiting[:num_returns], waiting[num_returns:]

    def get(self, answer: asyncio.Future[Any]) -> Any:
        return answer.result()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay()
    monkeypatch.setattr(module, "need_ray", lambda: found)
    return found


class Notes(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


def group_of(workers: int, in_flight: int = 2, notes: Notes | None = None) -> RayWorkerGroup:
    found = RayWorkerGroup(
        Demand(scorer="toy", cpus=1),
        {},
        workers=workers,
        in_flight=in_flight,
        note=Notes() if notes is None else notes,
    )
    found.open()
    return found


def asked(group: RayWorkerGroup, *texts: str) -> asyncio.Task[list[Verdict]]:
    return asyncio.create_task(group.judge([Sample(prompt="", response=text, group=text[0]) for text in texts]))


async def judged(fake: FakeRay, calls: int) -> None:
    """Wait until workers were asked so often in all."""
    for _ in range(10_000):
        if fake.judged >= calls:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"workers were asked {fake.judged} times, and not {calls}")


def told(verdicts: Sequence[Verdict]) -> list[str]:
    return [
        verdict.text if isinstance(verdict, Written) else str(getattr(verdict, "reason", "")) for verdict in verdicts
    ]


def test_a_batch_goes_to_the_least_busy_worker_and_waits_when_all_are_full(fake: FakeRay) -> None:
    async def run() -> None:
        group = group_of(2)
        tasks = [asked(group, f"{index}") for index in range(5)]
        await judged(fake, 4)
        assert [actor.texts() for actor in fake.actors] == [[["0"], ["2"]], [["1"], ["3"]]]
        fake.actors[1].answer()
        await judged(fake, 5)
        assert fake.actors[1].texts() == [["4"]]
        for actor in fake.actors:
            actor.answer()
        assert [told(await task) for task in tasks] == [["0"], ["1"], ["2"], ["3"], ["4"]]

    asyncio.run(run())


def test_an_innocent_batch_beside_a_guilty_one_is_scored(fake: FakeRay) -> None:
    """After the first death neither shares a worker with anybody, so the next deaths are its own."""

    async def run() -> None:
        notes = Notes()
        group = group_of(1, notes=notes)
        good, bad = asked(group, "g1", "g2"), asked(group, "b1", "b2")
        await judged(fake, 2)
        fake.actors[0].die()
        await judged(fake, 3)
        later = asked(group, "late")
        for _ in range(20):
            await asyncio.sleep(0)
        assert fake.actors[1].texts() == [["g1", "g2"]], "alone, though there is room for two"
        fake.actors[1].answer()
        assert told(await good) == ["g1", "g2"]
        for death in range(2):
            await judged(fake, 4 + death)
            assert fake.actors[-1].texts() == [["b1", "b2"]]
            fake.actors[-1].die()
        await judged(fake, 6)
        assert fake.actors[-1].texts() == [["b1"]], "one by one"
        fake.actors[-1].die()
        await judged(fake, 7)
        assert fake.actors[-1].texts() == [["b1"]]
        fake.actors[-1].die()
        await judged(fake, 8)
        while not (later.done() and bad.done()):
            fake.actors[-1].answer()
            await asyncio.sleep(0)
        assert told(await bad) == ["worker_died", "b2"]
        assert told(await later) == ["late"]
        assert len(notes) == 5
        failed = (await bad)[0]
        assert isinstance(failed, Score)
        assert failed.status == "failed"

    asyncio.run(run())


def test_a_worker_that_finishes_another_batch_stays_reserved(fake: FakeRay) -> None:
    async def run() -> None:
        group = group_of(2)
        tasks = [asked(group, "a"), asked(group, "b"), asked(group, "c"), asked(group, "d")]
        await judged(fake, 4)
        first, second = fake.actors
        assert (first.texts(), second.texts()) == ([["a"], ["c"]], [["b"], ["d"]])
        first.die()
        await judged(fake, 5)
        replaced = fake.actors[2]
        assert len(replaced.texts()) == 1, "one of the two has it to itself"
        assert len(second.texts()) == 2, "and the other waits for this one to be free"
        second.batches[0][1].set_result([Written("b", 1.0, "scored", "", "toy")])
        extra = asked(group, "e")
        for _ in range(20):
            await asyncio.sleep(0)
        assert ["e"] not in second.texts() + replaced.texts()
        while not all(task.done() for task in [*tasks, extra]):
            second.answer()
            replaced.answer()
            await asyncio.sleep(0)
        assert [told(await task) for task in [*tasks, extra]] == [["a"], ["b"], ["c"], ["d"], ["e"]]

    asyncio.run(run())


def test_groups_are_not_cut(fake: FakeRay) -> None:
    async def run() -> None:
        fake.openings = [("toy", "toy:1", True)] * 9
        group = group_of(1)
        task = asked(group, "a1", "a2", "b1", "b2")
        for tries in range(3):
            await judged(fake, tries + 1)
            fake.actors[-1].die()
        for calls, members in ((4, ["a1", "a2"]), (5, ["b1", "b2"])):
            await judged(fake, calls)
            assert fake.actors[-1].texts() == [members]
            fake.actors[-1].answer()
        assert told(await task) == ["a1", "a2", "b1", "b2"]

    asyncio.run(run())


def test_workers_that_die_while_loading_are_not_replaced_for_ever(fake: FakeRay) -> None:
    async def run() -> None:
        group = group_of(1)
        task = asked(group, "a")
        await judged(fake, 1)
        fake.openings = [LOST(), LOST(), LOST()]
        fake.actors[0].die()
        with pytest.raises(JobError, match="3 Ray workers in a row died while they loaded toy"):
            await task
        assert len(fake.actors) == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    ("opening", "expected"),
    [
        (("toy", "toy:2", False), "not alike: one has the fingerprint 'toy:1', another 'toy:2'"),
        (raised(ValueError("no weights")), "in a new Ray worker, no weights"),
        (raised(OSError("no disk")), "in a new Ray worker, loading the scorer raised OSError: no disk"),
    ],
)
def test_a_new_worker_that_is_another_one_stops_the_job(fake: FakeRay, opening: Any, expected: str) -> None:
    async def run() -> None:
        group = group_of(1)
        task = asked(group, "a")
        await judged(fake, 1)
        fake.openings = [opening]
        fake.actors[0].die()
        with pytest.raises(JobError, match=expected):
            await task

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BrokenScorer("the scorer 'toy' raised OSError: gone"), "^the scorer 'toy' raised OSError: gone$"),
        (MemoryError("too much"), "^the Ray worker for toy raised MemoryError: too much$"),
    ],
)
def test_what_a_worker_raises_names_the_scorer(fake: FakeRay, error: Exception, expected: str) -> None:
    async def run() -> None:
        group = group_of(1)
        task = asked(group, "a")
        await judged(fake, 1)
        fake.actors[0].batches[0][1].set_exception(raised(error))
        with pytest.raises(BrokenScorer, match=expected):
            await task

    asyncio.run(run())


def test_waiting_for_room_is_said(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        notes = Notes()
        group = group_of(1, notes=notes)
        task = asked(group, "a")
        await judged(fake, 1)
        monkeypatch.setattr(module, "_PATIENCE", 0.001)
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(FakeActor, "_open", lambda actor: waiting)
        fake.actors[0].die()
        while not any("no worker for toy is left; waiting for Ray" in note for note in notes):
            await asyncio.sleep(0.001)
        waiting.set_result(WHO)
        await judged(fake, 2)
        fake.actors[1].answer()
        assert told(await task) == ["a"]

    asyncio.run(run())
