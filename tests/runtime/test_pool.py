"""What an item does to its worker costs that item alone, and within its limits."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adjudge.protocol import Limits
from adjudge.runtime import waits
from adjudge.runtime.pool import Outcome, Pool

LIMITS = Limits(seconds=0.4, memory_mb=64)
GRACE = 60.0  # seconds that a busy machine may take for what should take milliseconds


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(workers=2) as made:
        yield made


@pytest.fixture(scope="module")
def single() -> Iterator[Pool]:
    with Pool(workers=1) as made:
        yield made


def until(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait until something is true, but not for ever."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not true():
        if time.monotonic() > end:
            return False
        pause.wait(0.005)
    return True


def spin() -> None:
    while True:
        pass


def behave(item: str) -> str:
    """Do what the item says."""
    match item:
        case "hang":
            spin()
        case "hold the lock in pow":
            return str(pow(3, 10**9) % 10)
        case "hold the lock in re":
            re.match(r"(a+)+$", "a" * 40 + "b")
        case "abort":
            os.abort()
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(0)
        case "leave":
            sys.exit(3)
        case "interrupt":
            raise KeyboardInterrupt
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            os.closerange(3, 100)
            spin()
        case "grow":
            held = []
            while True:
                held.append(bytearray(1 << 20))
        case "huge":
            return str(len(bytes(1 << 40)))
        case "recurse":
            return behave(item)
        case "return a lock":
            return threading.Lock()  # type: ignore[return-value]
        case "return too much":
            return "x" * (40 << 20)
        case "raise":
            raise ValueError("no\nreason")
        case "raise badly":
            raise UnshowableError
        case "compute":
            while time.process_time() < 0.3:
                pass
        case "stop the clock":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            spin()
    return item.upper()


class UnshowableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this")


EXPECTED = {
    "hang": ("timeout", "no result after 0.4 s"),
    "hold the lock in pow": ("timeout", "no result after 0.4 s"),
    "hold the lock in re": ("timeout", "no result after 0.4 s"),
    "stop the clock": ("timeout", "no result after 0.4 s"),
    "abort": ("crash", "SIGABRT"),
    "segfault": ("crash", "SIGSEGV"),
    "exit": ("crash", "exited with code 0"),
    "close": ("crash", ""),
    "grow": ("memory", "MemoryError"),
    "huge": ("memory", "MemoryError"),
    "return too much": ("memory", "too large"),
    "kill": ("lost", "SIGKILL"),
    "leave": ("raised", "SystemExit: 3"),
    "interrupt": ("raised", "KeyboardInterrupt"),
    "recurse": ("raised", "RecursionError: "),
    "return a lock": ("raised", "the result cannot be pickled: TypeError"),
    "raise": ("raised", "ValueError: no\nreason"),
    "raise badly": ("raised", "UnshowableError: "),
}


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(("backstop", "kind"), [(waits.BACKSTOP, "ok"), (1, "overloaded")])
def test_time_without_a_processor_is_not_charged(monkeypatch: pytest.MonkeyPatch, backstop: int, kind: str) -> None:
    monkeypatch.setattr(waits, "BACKSTOP", backstop)
    with Pool(workers=1) as pool:
        pool.run(behave, ["warm"], limits=LIMITS)
        (outcome,) = pool.run(behave, ["compute"], limits=LIMITS)
    assert outcome.kind == kind


@pytest.mark.parametrize("item", EXPECTED)
def test_an_item_costs_only_itself(single: Pool, item: str) -> None:
    single.run(behave, ["warm"], limits=LIMITS)
    start = time.monotonic()
    before, outcome, after = single.run(behave, ["before", item, "after"], limits=LIMITS)
    kind, text = EXPECTED[item]
    assert outcome.kind == kind, outcome
    assert text in outcome.error
    assert outcome.value is None
    assert (before.value, after.value) == ("BEFORE", "AFTER")
    assert after.seconds < GRACE
    assert time.monotonic() - start < 2 * LIMITS.seconds + GRACE
    if kind == "timeout":
        assert LIMITS.seconds <= outcome.seconds < LIMITS.seconds + GRACE


def test_many_bad_items_among_good_ones(pool: Pool) -> None:
    bad = ["abort", "exit", "grow", "raise", "segfault", "kill"]
    items = [bad[at // 10 % len(bad)] if at % 10 == 5 else f"item {at}" for at in range(120)]
    outcomes = pool.run(behave, items, limits=LIMITS)
    for item, outcome in zip(items, outcomes, strict=True):
        if item in EXPECTED:
            assert outcome.kind == EXPECTED[item][0]
        else:
            assert outcome.value == item.upper()


def test_a_hung_item_does_not_hold_up_the_other_worker(pool: Pool) -> None:
    pool.run(behave, ["warm"] * 50, limits=LIMITS)
    outcomes = pool.run(behave, ["hang", *["x"] * 3], limits=LIMITS)
    assert [outcome.kind for outcome in outcomes] == ["timeout", "ok", "ok", "ok"]


def nap(seconds: float) -> float:
    threading.Event().wait(seconds)
    return seconds


def test_waiting_in_the_queue_is_not_charged(single: Pool) -> None:
    outcomes = single.run(nap, [0.2] * 5, limits=Limits(seconds=0.45))
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 5  # the last one began after 0.8 s
    assert all(0.19 < outcome.seconds < 0.45 for outcome in outcomes)


def test_the_limit_holds_for_each_item_of_a_chunk(single: Pool) -> None:
    single.run(nap, [0.0] * 300, limits=LIMITS)  # now chunks are long
    outcomes = single.run(nap, [0.0] * 60 + [1.0] + [0.0] * 60, limits=LIMITS)
    assert [at for at, outcome in enumerate(outcomes) if outcome.kind != "ok"] == [60]
    assert outcomes[60].kind == "timeout"


def test_outcomes_are_in_the_order_of_items(pool: Pool) -> None:
    items = [0.02 * (at % 3) * (at % 7 == 0) + at * 1e-9 for at in range(400)]
    assert [outcome.value for outcome in pool.run(nap, items, limits=LIMITS)] == items


def test_nothing_to_do_starts_nothing() -> None:
    with Pool(workers=1) as pool:
        assert pool.run(behave, [], limits=LIMITS) == []
        assert pool._dispatcher is None


def whoami(item: object) -> tuple[int, int]:
    return os.getpid(), os.getppid()


def pids(outcomes: list[Outcome[tuple[int, int]]]) -> set[int]:
    return {outcome.value[0] for outcome in outcomes if outcome.value is not None}


def test_one_cheap_item_starts_one_worker_and_workers_stay_warm() -> None:
    with Pool(workers=2) as pool:
        (first,) = pids(pool.run(whoami, [0], limits=LIMITS))
        assert pids(pool.run(whoami, [0, 1], limits=LIMITS)) == {first}


def slow_whoami(item: object) -> tuple[int, int]:
    nap(0.02)
    return whoami(item)


def test_much_work_starts_all_workers_and_no_more() -> None:
    with Pool(workers=3) as pool:
        assert len(pids(pool.run(slow_whoami, range(30), limits=LIMITS))) == 3


def whoami_or_wait(path: str) -> int:
    """Say who we are; the first time in a file, and wait to be killed."""
    if path and not Path(path).exists():
        Path(path).with_suffix(".new").write_text(str(os.getpid()))
        Path(path).with_suffix(".new").rename(path)
        nap(30.0)
    return os.getpid()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_killed_from_outside_is_replaced(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "pid"
    with Pool(workers=1) as pool:
        outcomes: list[Outcome[int]] = []
        items = ["", str(file), ""]
        thread = threading.Thread(
            target=lambda: outcomes.extend(pool.run(whoami_or_wait, items, limits=Limits(seconds=20)))
        )
        thread.start()
        assert until(file.exists)
        killed = int(file.read_text())
        os.kill(killed, number)
        thread.join(10)
        assert [outcome.kind for outcome in outcomes] == ["ok"] * 3
        assert outcomes[1].value != killed


def wait_with_supervisor(path: str) -> int:
    if not Path(path).exists():
        Path(path).with_suffix(".new").write_text(f"{os.getpid()} {os.getppid()}")
        Path(path).with_suffix(".new").rename(path)
        nap(30.0)
    return os.getppid()


def test_a_supervisor_killed_from_outside_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with Pool(workers=1) as pool:
        outcomes: list[Outcome[int]] = []
        thread = threading.Thread(
            target=lambda: outcomes.extend(pool.run(wait_with_supervisor, [str(file)], limits=Limits(seconds=20)))
        )
        thread.start()
        assert until(file.exists)
        worker, supervisor = map(int, file.read_text().split())
        os.kill(supervisor, signal.SIGKILL)
        thread.join(10)
        assert [outcome.kind for outcome in outcomes] == ["ok"]
        assert outcomes[0].value != supervisor
        assert until(lambda: not Path(f"/proc/{worker}").exists())


# -- processes


def start_processes(how: str) -> str:
    """Try to start some processes, 200 at most, which end at once should they start."""
    if how == "fork":
        for _ in range(100):
            if os.fork() == 0:
                os._exit(0)
    elif how == "fork bomb":
        for _ in range(100):
            try:
                if os.fork() == 0:
                    os._exit(0)
            except OSError:
                continue
        spin()
    elif how == "subprocess":
        subprocess.run([sys.executable, "-c", ""], check=True)
    elif how == "posix_spawn":
        os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}), 0)
    elif how == "thread":
        thread = threading.Thread(target=list)
        thread.start()
        thread.join()
    return "fine"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has a filter that binds the superuser too")
@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("fork", "raised", "PermissionError"),
        ("fork bomb", "timeout", ""),
        ("subprocess", "raised", "PermissionError"),
        ("posix_spawn", "raised", "PermissionError"),
        ("thread", "ok", ""),
    ],
)
def test_processes_are_refused_and_threads_are_not(single: Pool, how: str, kind: str, text: str) -> None:
    outcome, after = single.run(start_processes, [how, ""], limits=LIMITS)
    assert (outcome.kind, after.value) == (kind, "fine")
    assert text in outcome.error


def test_processes_are_allowed_on_request(single: Pool) -> None:
    (outcome,) = single.run(start_processes, ["subprocess"], limits=Limits(seconds=10, processes=1))
    assert outcome.value == "fine"


MARK = "import sys; sys.stdin.read()  # left by test_pool"


def leave_processes(path: str) -> None:
    """Start a child, and an orphan in a session of its own, and hang."""
    command = [sys.executable, "-c", MARK]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    if os.fork() == 0:
        os.setsid()
        orphan = subprocess.Popen(command, stdin=child.stdin)
        Path(path).write_text(f"{child.pid} {orphan.pid}")
        os._exit(0)
    os.wait()
    spin()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets a process adopt orphans")
def test_what_a_killed_worker_started_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    with Pool(workers=1) as pool:
        (outcome,) = pool.run(leave_processes, [str(path)], limits=Limits(seconds=1.5, processes=4))
        assert outcome.kind == "timeout", outcome
        left = [Path("/proc", pid) for pid in path.read_text().split()]
        assert len(left) == 2
        assert until(lambda: not any(process.exists() for process in left))


def hoard(item: int, held: list[bytearray] = []) -> int:  # noqa: B006 the point is that it stays
    held.append(bytearray(item << 20))
    return len(held)


def test_memory_that_earlier_items_hold_is_not_charged_to_the_next(single: Pool) -> None:
    outcomes = single.run(hoard, [20] * 8, limits=LIMITS)  # each is fine alone; all eight are 160 MiB
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 8
