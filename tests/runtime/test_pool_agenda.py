"""Chunks, retries and charges, without any process."""

from __future__ import annotations

import marshal
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import Limits
from adjudge.runtime.agenda import Agenda
from adjudge.runtime.job import Chunk, Job, Kind, Outcome

CRASH: Outcome[Any] = Outcome("crash", error="died")
LOST: Outcome[Any] = Outcome("lost", error="killed")
TIMEOUT: Outcome[Any] = Outcome("timeout", error="late")


def test_marshalled_values_are_unpacked_when_somebody_asks() -> None:
    job = job_of(3)
    agenda = agenda_of(job)
    chunk = take(agenda)
    agenda.settle(chunk, pickle.dumps((marshal.dumps(["A"]), [0.1], {}, None, False)))
    chunk = take(agenda)
    odd = {0: ("raised", "ValueError: no")}
    agenda.settle(chunk, pickle.dumps((marshal.dumps([None]), [0.2], odd, None, False)))
    chunk = take(agenda)
    agenda.settle(chunk, pickle.dumps(([{"C"}], [0.3], {}, None, False)))
    results = job.future.result(0)
    assert results.values == ["A", None, {"C"}]
    assert [(each.kind, each.value, each.seconds) for each in results.outcomes()] == [
        ("ok", "A", 0.1),
        ("raised", None, 0.2),
        ("ok", {"C"}, 0.3),
    ]


def job_of(count: int) -> Job:
    return Job([f"item {at}" for at in range(count)], Limits())


def agenda_of(*jobs: Job) -> Agenda:
    agenda = Agenda()
    for job in jobs:
        agenda.add(job)
    return agenda


def take(agenda: Agenda, *, share: int = 1, unused: bool = False) -> Chunk:
    work = agenda.next_frame(share, unused=unused)
    assert work is not None
    chunk, frame = work
    assert pickle.loads(frame)[2] == [chunk.job.items[index] for index in chunk.indices]
    return chunk


def answer(agenda: Agenda, chunk: Chunk, seconds: float, count: int | None = None) -> None:
    values = [chunk.job.items[index].upper() for index in chunk.open[:count]]
    agenda.settle(chunk, pickle.dumps((values, [seconds] * len(values), {}, None, False)))


def kinds(job: Job) -> list[Kind]:
    return [outcome.kind for outcome in job.future.result(0).outcomes()]


def test_chunks_grow_to_eight_milliseconds_and_shrink_at_the_end() -> None:
    job = job_of(4000)
    agenda = agenda_of(job)
    sizes = []
    while job.waiting:
        chunk = take(agenda, share=2)
        sizes.append(len(chunk.indices))
        answer(agenda, chunk, 41e-6)
    assert sizes[:5] == [1, 4, 16, 64, 195]
    assert max(sizes) == 195
    assert sizes[-3:] == [12, 12, 7]  # half a millisecond each, and the rest
    assert [outcome.value for outcome in job.future.result(0).outcomes()] == [item.upper() for item in job.items]


def test_slow_items_travel_alone() -> None:
    job = job_of(50)
    agenda = agenda_of(job)
    while job.waiting:
        chunk = take(agenda)
        assert len(chunk.indices) == 1
        answer(agenda, chunk, 0.1)


def test_large_items_travel_in_small_chunks() -> None:
    job = Job([f"{at:05d}" + "x" * (1 << 16) for at in range(60)], Limits())
    agenda = agenda_of(job)
    while job.waiting:
        chunk = take(agenda)
        assert len(chunk.indices) <= 2
        answer(agenda, chunk, 1e-6)


def test_jobs_take_turns() -> None:
    jobs = [job_of(3), job_of(3)]
    agenda = agenda_of(*jobs)
    assert [take(agenda).job for _ in range(4)] == [jobs[0], jobs[1], jobs[0], jobs[1]]


def chunk_of(agenda: Agenda, job: Job, size: int) -> Chunk:
    """Take a chunk of a given size out of an agenda."""
    agenda._waiting -= size
    return Chunk(job, job.take(size), first=True)


def test_only_the_item_that_hung_is_charged() -> None:
    job = job_of(5)
    agenda = agenda_of(job)
    first, second = chunk_of(agenda, job, 4), chunk_of(agenda, job, 1)
    answer(agenda, first, 1e-3, count=1)
    agenda.after_death([first, second], 2, TIMEOUT)  # item 1 was done but not sent
    again = []
    while job.waiting:
        chunk = take(agenda)
        again.extend(chunk.indices)
        answer(agenda, chunk, 1e-3)
    assert again == [1, 3, 4]
    assert kinds(job) == ["ok", "ok", "timeout", "ok", "ok"]


def test_a_crash_is_tried_once_more_alone_in_a_fresh_worker() -> None:
    job = job_of(3)
    agenda = agenda_of(job)
    agenda.after_death([chunk_of(agenda, job, 3)], 1, CRASH)
    assert agenda.alone == 1
    for _ in range(2):
        answer(agenda, take(agenda), 1e-3)
    assert agenda.next_frame(1, unused=False) is None
    last = take(agenda, unused=True)
    assert (last.indices, last.alone) == ([1], True)
    agenda.after_death([last], 0, CRASH)
    assert kinds(job) == ["ok", "crash", "ok"]


def test_a_second_try_may_succeed() -> None:
    job = job_of(1)
    agenda = agenda_of(job)
    agenda.after_death([chunk_of(agenda, job, 1)], 0, CRASH)
    answer(agenda, take(agenda, unused=True), 1e-3)
    assert kinds(job) == ["ok"]


def test_an_item_is_lost_the_second_time() -> None:
    job = job_of(2)
    agenda = agenda_of(job)
    agenda.after_death([chunk_of(agenda, job, 2)], 0, LOST)
    assert job.waiting == 2
    agenda.after_death([chunk_of(agenda, job, 2)], 0, LOST)
    answer(agenda, take(agenda), 1e-3)
    assert kinds(job) == ["lost", "ok"]


def test_a_worker_that_dies_before_it_begins_does_not_go_on_for_ever() -> None:
    job = job_of(3)
    agenda = agenda_of(job)
    deaths = 0
    while job.waiting:
        agenda.after_death([take(agenda, unused=True)], None, CRASH)
        deaths += 1
    assert kinds(job) == ["lost"] * 3
    assert deaths == 6


def test_a_worker_that_is_let_go_costs_nothing() -> None:
    job = job_of(3)
    agenda = agenda_of(job)
    for _ in range(5):
        agenda.after_death([chunk_of(agenda, job, 3)], 1, None)
    assert job.waiting == 3
    assert job.losses == {}


def test_whoever_breaks_the_pickling_of_results_is_found() -> None:
    job = job_of(3)
    agenda = agenda_of(job)
    agenda.after_death([chunk_of(agenda, job, 3)], None, TIMEOUT, handling=True)
    assert (job.waiting, agenda.alone) == (0, 3)
    for at in range(3):
        chunk = take(agenda, unused=True)
        if at == 1:
            agenda.after_death([chunk], 0, TIMEOUT, handling=True)
        else:
            answer(agenda, chunk, 1e-3)
    assert kinds(job) == ["ok", "timeout", "ok"]


@pytest.mark.parametrize(("first", "alone"), [(True, 0), (False, 1)])
def test_memory_is_charged_to_an_item_only_in_a_fresh_worker(first: bool, alone: int) -> None:
    job = job_of(1)
    agenda = agenda_of(job)
    chunk = Chunk(job, job.take(1), first=first)
    assert agenda.settle(chunk, pickle.dumps(([None], [0.1], {0: ("memory", "MemoryError")}, None, True)))
    assert agenda.alone == alone
    assert job.future.done() is first


def test_results_that_cannot_be_read_cost_their_own_item() -> None:
    job = job_of(2)
    agenda = agenda_of(job)
    assert agenda.settle(chunk_of(agenda, job, 2), b"nonsense")
    for frame in (None, b"nonsense"):
        chunk = take(agenda, unused=True)
        if frame is None:
            answer(agenda, chunk, 1e-3)
        else:
            agenda.settle(chunk, frame)
    first, second = job.future.result(0).outcomes()
    assert (first.kind, second.kind) == ("ok", "raised")
    assert "cannot be unpickled" in second.error


def test_a_job_nobody_waits_for_is_forgotten() -> None:
    job, other = job_of(3), job_of(1)
    agenda = agenda_of(job, other)
    agenda.after_death([chunk_of(agenda, job, 1)], 0, CRASH)
    job.future.cancel()
    agenda.sweep()
    assert (agenda.waiting, agenda.alone, bool(agenda)) == (1, 0, True)
    answer(agenda, take(agenda), 1e-3)
    agenda.sweep()
    assert not agenda


events = st.lists(
    st.tuples(
        st.sampled_from(["answer", "part", "timeout", "crash", "lost", "let go", "handling", "nowhere"]),
        st.integers(0, 255),
        st.floats(1e-6, 0.02),
        st.booleans(),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(count=st.integers(1, 60), script=events)
def test_whatever_happens_every_item_gets_one_outcome(count: int, script: list[tuple[str, int, float, bool]]) -> None:
    job = job_of(count)
    agenda = agenda_of(job)
    causes = {"timeout": TIMEOUT, "crash": CRASH, "lost": LOST, "let go": None, "handling": TIMEOUT, "nowhere": LOST}
    for event, number, seconds, unused in script:
        work = agenda.next_frame(2, unused=unused)
        if work is None:
            continue
        chunk = work[0]
        if event == "answer":
            answer(agenda, chunk, seconds)
            continue
        if event == "part":
            answer(agenda, chunk, seconds, count=number % len(chunk.indices))
            event = "let go"
        single = event in ("timeout", "crash", "lost") or (event == "handling" and len(chunk.indices) == 1)
        position = chunk.done + number % len(chunk.open) if single else None
        agenda.after_death([chunk], position, causes[event], handling=event == "handling")
    for _ in range(10 * count):
        if job.future.done():
            break
        answer(agenda, take(agenda, unused=True), 1e-4)
    outcomes = job.future.result(0).outcomes()
    assert len(outcomes) == count
    for item, outcome in zip(job.items, outcomes, strict=True):
        assert outcome.kind != "ok" or outcome.value == item.upper()
