"""A pool works from wherever it is called, may be interrupted, and closes cleanly."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adjudge.protocol import Limits
from adjudge.runtime.deadline import set_deadline
from adjudge.runtime.pool import Outcome, Pool, as_default, default_pool

LIMITS = Limits(seconds=5.0, memory_mb=64)


def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not true():
        if time.monotonic() > end:
            return False
        pause.wait(0.005)
    return True


def double(item: int) -> int:
    return 2 * item


def double_when(item: tuple[int, str]) -> int:
    """Double a number as soon as there is a file."""
    number, allowed = item
    while not Path(allowed).exists():
        pass
    return 2 * number


def begin_and_hang(path: str) -> str:
    """Say in a file that the item has begun, and never return; without a path, return at once."""
    if not path:
        return "fine"
    Path(path).touch()
    while True:
        pass


def values(outcomes: list[Outcome[int]]) -> list[int | None]:
    return [outcome.value for outcome in outcomes]


def test_the_callers_deadline_ends_what_is_not_done(tmp_path: Path) -> None:
    async def hurried(pool: Pool) -> list[Outcome[str]]:
        set_deadline(0.3)
        return await pool.run_async(begin_and_hang, [str(tmp_path / "begun")], limits=Limits(seconds=400.0))

    with Pool(workers=1) as pool:
        (outcome,) = asyncio.run(hurried(pool))
        assert (outcome.kind, outcome.error) == ("late", "the time of the whole call was up")
        assert pool.run(double, [4], limits=LIMITS)[0].value == 8


def test_from_many_threads_at_once() -> None:
    results: dict[int, list[int | None]] = {}
    with Pool(workers=2) as pool:

        def run(start: int) -> None:
            results[start] = values(pool.run(double, range(start, start + 300), limits=LIMITS))

        threads = [threading.Thread(target=run, args=(1000 * at,)) for at in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert results == {1000 * at: [2 * x for x in range(1000 * at, 1000 * at + 300)] for at in range(6)}


def test_in_a_running_event_loop(tmp_path: Path) -> None:
    async def main(pool: Pool, allowed: Path) -> None:
        calls = asyncio.gather(
            *(pool.run_async(double_when, [(at, str(allowed))] * 20, limits=LIMITS) for at in range(5))
        )
        await asyncio.sleep(0)
        allowed.touch()  # the workers wait for what only this loop can do: a call that held it would end at its limit
        assert [values(batch) for batch in await calls] == [[2 * at] * 20 for at in range(5)]
        assert values(pool.run(double, [4], limits=LIMITS)) == [8]  # blocking, inside the loop

    with Pool(workers=2) as pool:
        asyncio.run(main(pool, tmp_path / "first"))
        asyncio.run(main(pool, tmp_path / "second"))  # another loop, the same pool


def test_a_cancelled_call_leaves_the_pool_usable(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    async def main(pool: Pool) -> float:
        task = asyncio.create_task(pool.run_async(begin_and_hang, [str(begun)] * 3, limits=Limits(seconds=1000)))
        while not begun.exists():
            await asyncio.sleep(0.005)
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (outcome,) = await pool.run_async(begin_and_hang, [""], limits=Limits(seconds=1000))
        assert outcome.value == "fine"
        return time.monotonic() - start

    with Pool(workers=1) as pool:
        assert asyncio.run(main(pool)) < 500


def test_an_interrupted_call_leaves_the_pool_usable(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with Pool(workers=1) as pool:

        def interrupt() -> None:
            until(begun.exists)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            pool.run(begin_and_hang, [str(begun)] * 3, limits=Limits(seconds=1000))
        thread.join()
        (outcome,) = pool.run(begin_and_hang, [""], limits=Limits(seconds=1000))
        assert outcome.value == "fine"
        assert time.monotonic() - start < 500


def test_closing_ends_what_runs_and_what_waits(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    pool = Pool(workers=1)
    outcomes: list[Outcome[str]] = []
    thread = threading.Thread(
        target=lambda: outcomes.extend(pool.run(begin_and_hang, ["", str(begun), ""], limits=Limits(seconds=1000)))
    )
    thread.start()
    assert until(begun.exists)
    start = time.monotonic()
    pool.close()
    thread.join(500)
    assert time.monotonic() - start < 500
    assert [outcome.kind for outcome in outcomes] == ["ok", "closed", "closed"]
    assert outcomes[2].error == "the pool was closed"
    assert [outcome.kind for outcome in pool.run(double, [1], limits=LIMITS)] == ["closed"]
    pool.close()


def open_files() -> set[str]:
    """Return what this process has open, by number; listing them opens one more, and closes it again."""
    return {entry for entry in os.listdir("/dev/fd") if os.path.lexists(f"/dev/fd/{entry}")}


def test_nothing_is_kept_open_after_close(tmp_path: Path) -> None:
    with Pool(workers=1) as pool:
        pool.run(double, [1], limits=LIMITS)
    gc.collect()
    files, threads = open_files(), set(threading.enumerate())
    for _ in range(2):
        with Pool(workers=2) as pool:
            pool.run(double, range(1000), limits=LIMITS)
            pool.run(begin_and_hang, ["", str(tmp_path / "begun")], limits=Limits(seconds=0.3))
            pool.run(lambda item: os._exit(1), [1], limits=LIMITS)
    gc.collect()
    assert open_files() <= files  # what other tests left may close meanwhile
    assert set(threading.enumerate()) <= threads


def test_a_pool_that_is_dropped_closes_itself() -> None:
    pool = Pool(workers=1)
    pool.run(double, [1], limits=LIMITS)
    dispatcher = pool._dispatcher
    assert dispatcher is not None
    del pool
    gc.collect()
    dispatcher.join()  # would wait for ever


def test_the_shared_pool_is_made_again_when_somebody_closed_it() -> None:
    first = default_pool()
    assert default_pool() is first
    first.close()
    assert values(default_pool().run(double, [3], limits=LIMITS)) == [6]
    default_pool().close()


def test_a_chosen_pool_is_the_default_inside_and_in_the_tasks_started_there() -> None:
    with Pool(workers=1) as pool:
        with as_default(pool):
            assert default_pool() is pool
            assert asyncio.run(asyncio.to_thread(default_pool)) is pool
            with ThreadPoolExecutor(1) as thread:  # a thread that was not started from here keeps its own
                assert thread.submit(default_pool).result() is not pool
        assert default_pool() is not pool


# -- as scripts, because they fork, or because their `__main__` matters

HEAD = """
import os, sys, threading
from adjudge.protocol import Limits
from adjudge.runtime.pool import Pool, default_pool

LIMITS = Limits(seconds=5)

class Point:
    def __init__(self, x):
        self.x = x

def step(point):
    return Point(point.x + OFFSET)

def parents(item):
    return os.getppid()

OFFSET = 10

def work(pool, start):
    points = [outcome.value for outcome in pool.run(step, [Point(start + at) for at in range(20)], limits=LIMITS)]
    assert [type(point) for point in points] == [Point] * 20, points
    assert [point.x for point in points] == [start + 10 + at for at in range(20)], points
"""


def run_script(tmp_path: Path, body: str) -> str:
    script = tmp_path / "script.py"
    script.write_text(HEAD + body)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", script], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_targets_and_items_of_a_script(tmp_path: Path) -> None:
    body = """
if __name__ == "__main__":
    work(default_pool(), 0)
    print("done")
"""
    assert run_script(tmp_path, body) == "done\n"


def test_a_script_need_not_be_guarded(tmp_path: Path) -> None:
    assert run_script(tmp_path, "work(default_pool(), 0)\nprint('done')\n") == "done\n"


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_in_a_child_of_multiprocessing(tmp_path: Path, method: str) -> None:
    body = f"""
import multiprocessing

def child(queue):
    work(default_pool(), 100)
    queue.put("child")

if __name__ == "__main__":
    work(default_pool(), 0)
    context = multiprocessing.get_context("{method}")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=1200))
    process.join(30)
    print(process.exitcode)
    work(default_pool(), 200)
"""
    assert run_script(tmp_path, body) == "child\n0\n"


def test_a_forked_child_and_its_parent_go_on_apart(tmp_path: Path) -> None:
    body = """
pool = Pool(2)
(supervisor,) = {outcome.value for outcome in pool.run(parents, range(3), limits=LIMITS)}
thread = threading.Thread(target=lambda: [work(pool, at) for at in range(50)])
thread.start()
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(write)
    status = 1
    try:
        work(pool, 1000)
        assert pool.run(parents, [0], limits=LIMITS)[0].value != supervisor
        status = 0
    finally:
        print("child", status, flush=True)
        os.read(read, 1)  # stay until the parent has closed its pool: its supervisors must not wait for us
        os._exit(status)
os.close(read)
thread.join()
work(pool, 0)
pool.close()
print("closed", not os.path.exists(f"/proc/{supervisor}"), flush=True)
os.close(write)
print(os.waitpid(pid, 0)[1])
"""
    assert sorted(run_script(tmp_path, body).split("\n")) == ["", "0", "child 0", "closed True"]


def test_no_fork_lands_in_the_middle_of_anything(tmp_path: Path) -> None:
    body = """
pool = Pool(2)
stop = threading.Event()
def churn():
    while not stop.is_set():
        pool.run(lambda item: os._exit(0), [0], limits=LIMITS)
thread = threading.Thread(target=churn)
thread.start()
statuses = []
for at in range(8):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work(pool, at)
            pool.close()
            status = 0
        finally:
            os._exit(status)
    statuses.append(os.waitpid(pid, 0)[1])
stop.set()
thread.join()
pool.close()
print(statuses)
"""
    assert run_script(tmp_path, body) == f"{[0] * 8}\n"
