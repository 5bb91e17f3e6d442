"""Reading, working and writing at once: the order stays, and nothing runs away."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.io.errors import JobError
from adjudge.io.jobs.ordered import in_order


def chunked(count: int, sizes: Sequence[int]) -> Iterator[list[int]]:
    done = 0
    while done < count:
        for size in sizes:
            yield list(range(done, min(count, done + size)))
            done += size


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(0, 60),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    at_once=st.integers(1, 8),
    ahead=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
def test_what_is_written_keeps_the_order_of_what_was_read(
    count: int, sizes: list[int], at_once: int, ahead: int, seed: int
) -> None:
    chance, written, told = random.Random(seed), list[tuple[int, int]](), 0

    async def work(item: int) -> int:
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        return item * item

    def tell() -> None:
        nonlocal told
        told += 1

    asyncio.run(in_order(chunked(count, sizes), work, written.extend, at_once=at_once, ahead=ahead, told=tell))
    assert written == [(item, item * item) for item in range(count)]
    assert (told > 0) == (count > 0)


def test_large_items_are_not_read_ahead() -> None:
    read: list[int] = []
    held: list[int] = []

    def chunks() -> Iterator[list[int]]:
        for item in range(40):
            read.append(item)
            yield [item]

    async def work(item: int) -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        held.append(len(read) - item)

    asyncio.run(in_order(chunks(), work, lambda done: None, at_once=4, ahead=30, size=lambda item: 10, ahead_bytes=50))
    assert len(held) == 40
    assert max(held) <= 6  # five of ten bytes each, and the one that is read while the first of them is taken away


@pytest.mark.parametrize("where", ["work", "write", "read"])
def test_all_before_a_failure_is_written_first(where: str) -> None:
    written: list[int] = []
    others = threading.Event()

    def chunks() -> Iterator[list[int]]:
        for first in range(0, 100, 5):
            if where == "read" and first == 50:
                raise JobError("cut off")
            yield list(range(first, first + 5))

    async def work(item: int) -> int:
        if where == "work" and item == 50:
            raise ZeroDivisionError
        return item

    def write(done: Sequence[tuple[int, int]]) -> None:
        for item, _ in done:
            if where == "write" and item == 50:
                raise ZeroDivisionError
            written.append(item)
        others.set()

    with pytest.raises(JobError if where == "read" else ZeroDivisionError):
        asyncio.run(in_order(chunks(), work, write, at_once=3, ahead=20))
    assert written == list(range(50))
    assert not {"adjudge-read_0", "adjudge-write_0"} & {thread.name for thread in threading.enumerate()}


def test_what_is_under_way_when_it_is_cancelled_is_cancelled_too_and_what_is_done_is_written() -> None:
    written: list[int] = []
    cancelled: list[int] = []

    async def work(item: int) -> int:
        if item < 3:
            return item
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise
        return item

    def write(done: Sequence[tuple[int, int]]) -> None:
        written.extend(item for item, _ in done)

    async def stopped() -> None:
        running = asyncio.create_task(in_order(iter([list(range(9))]), work, write, at_once=5, ahead=9))
        while len(written) < 3:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(stopped())
    assert written == [0, 1, 2]
    assert cancelled == [3, 4, 5, 6, 7]


@settings(max_examples=60, deadline=None)
@given(turns=st.integers(0, 120), seed=st.integers(0, 1000), hard=st.booleans())
def test_cancelled_at_any_moment_what_is_written_has_no_gaps(turns: int, seed: int, hard: bool) -> None:
    chance, written = random.Random(seed), list[int]()

    async def work(item: int) -> int:
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        return item

    def write(done: Sequence[tuple[int, int]]) -> None:
        for item, _ in done:
            written.append(item)
            threading.Event().wait(0.0002)  # so that results wait for the write before theirs

    async def stopped() -> None:
        running = asyncio.create_task(in_order(chunked(200, [3, 1, 5]), work, write, at_once=4, ahead=16))
        for _ in range(turns):
            await asyncio.sleep(0)
        for _ in range(1 + hard):
            running.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(stopped())
    assert written == list(range(len(written)))


def test_what_is_written_may_rest_while_the_next_item_is_slow() -> None:
    written: list[int] = []
    at_rest: list[list[int]] = []

    async def everything() -> None:
        rested = asyncio.Event()
        loop = asyncio.get_running_loop()

        async def work(item: int) -> int:
            if item == 3:
                await asyncio.wait_for(rested.wait(), 60)
            return item

        def rest() -> None:
            at_rest.append(list(written))
            loop.call_soon_threadsafe(rested.set)

        def write(done: Sequence[tuple[int, int]]) -> None:
            written.extend(item for item, _ in done)

        await in_order(iter([list(range(6))]), work, write, at_once=2, ahead=9, rest=rest)

    asyncio.run(everything())
    assert at_rest == [[0, 1, 2]]
    assert written == list(range(6))


def test_nothing_rests_on_a_write_that_failed() -> None:
    rested: list[int] = []

    async def work(item: int) -> int:
        if item == 1:
            await asyncio.Event().wait()
        return item

    def write(done: Sequence[tuple[int, int]]) -> None:
        raise JobError("the disk is full")

    with pytest.raises(JobError, match="the disk is full"):
        asyncio.run(in_order(iter([[0, 1]]), work, write, at_once=2, ahead=9, rest=lambda: rested.append(1)))
    assert rested == []
