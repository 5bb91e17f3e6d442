"""What a run is charged for: computing and sleeping, and not what the machine lets it wait for."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from adjudge.runtime.waits import Thread
from adjudge.sandbox import time_limit
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.sandbox.time_limit import OverloadedError, TimeLimit
from adjudge.sandbox.warm_python import WarmPython

COMPUTES = "import time\nwhile time.process_time() < {}: pass\nprint('done')"
LIMIT = RunLimits(seconds=1.5)


@pytest.mark.usefixtures("busy")
def test_a_busy_machine_changes_no_ending(sandbox: Sandbox, warm: WarmPython) -> None:
    with ThreadPoolExecutor() as threads:
        for source, ending in (
            (COMPUTES.format(0.25), "exited"),
            (COMPUTES.format(60), "timeout"),
            ("import time\ntime.sleep(600)", "timeout"),
        ):
            fresh = threads.submit(sandbox.run, Program(command=("python3", "-c", source)), LIMIT)
            assert warm.script(source, b"", LIMIT)[0].ending == ending, source
            assert fresh.result().ending == ending, source


def test_who_lets_itself_wait_is_charged(warm: WarmPython) -> None:
    crowd = (
        "import os, time\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "for _ in range(20):\n    if not os.fork(): break\n" + COMPUTES.format(60)
    )
    assert warm.script(crowd, b"", LIMIT)[0].ending == "timeout"
    rest = "import os, time\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"
    assert b"Operation not permitted" in warm.script(rest, b"", LIMIT)[0].stderr
    assert b"Operation not permitted" in warm.script("import os\nos.nice(19)", b"", LIMIT)[0].stderr


class Machine:
    """Of each second of its time, or of so many, a run has so much of a processor and then waits for so much."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, computes: float, waits: float, turn: float = 0.0) -> None:
        self.now = 100.0
        self._computes, self._waits, self._turn = computes, waits, turn
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time_limit, "_used", self._used)

    def _used(self, roots: object) -> tuple[float, dict[int, Thread]]:
        spent = self.now - 100.0
        over = spent // self._turn * self._turn if self._turn else spent
        cpu = over * self._computes + min(spent - over, self._turn * self._computes)
        return cpu, {1: Thread(over * self._waits, round(cpu * 1e9), self._waits > 0)}

    def charge(self, seconds: float) -> tuple[float, float]:
        """Return when the limit passes, and what is charged then."""
        limit = TimeLimit(seconds, [1])
        while (left := limit.left()) > 0:
            self.now += min(left, 0.1)
        return round(self.now - 100.0, 1), round(limit.total, 1)


@pytest.mark.parametrize(
    ("computes", "waits", "passes", "charged"),
    [
        (1.0, 0.0, 2.0, 2.0),  # alone
        (0.0, 0.0, 2.0, 2.0),  # asleep
        (4.0, 0.0, 2.0, 2.0),  # on four processors
        (0.25, 0.75, 8.0, 2.0),  # beside three others
        (0.1, 0.5, 5.0, 2.5),  # asleep for most of the rest; what is not yet counted of a wait is given
        (1.0, 1.0, 2.0, 2.0),  # its own threads wait for each other
    ],
)
def test_what_passes_the_limit(
    monkeypatch: pytest.MonkeyPatch, computes: float, waits: float, passes: float, charged: float
) -> None:
    found = Machine(monkeypatch, computes=computes, waits=waits).charge(2.0)
    assert found == pytest.approx((passes, charged), abs=0.3)


def test_a_wait_that_is_still_going_on_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, computes=0.2, waits=0.8, turn=6.0)
    passes, _ = machine.charge(2.0)
    assert passes == pytest.approx(6.8, abs=0.3)  # 1.2 s of work, 4.8 s of waiting, 0.8 s of work


def test_a_run_that_only_waited_was_judged_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OverloadedError, match=r"of 6\d s the machine gave a run 0\.6 s"):
        Machine(monkeypatch, computes=0.01, waits=0.99).charge(2.0)


def test_a_restart_forgets_what_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, computes=0.5, waits=0.5)
    limit = TimeLimit(2.0, [1])
    for _ in range(3):
        began = machine.now
        while (left := limit.left()) > 0:
            machine.now += min(left, 0.1)
        assert machine.now - began == pytest.approx(4.0, abs=0.6)
        limit.restart(2.0)
    assert limit.total == pytest.approx(6.0, abs=0.8)


def test_a_limit_is_extended_within_what_is_left_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch, computes=1.0, waits=0.0)
    limit = TimeLimit(2.0, [1])
    limit.restart(2.0, within=5.0)
    for expected in (3.5, 5.0, 5.0):
        limit.extend(1.5)
        assert limit.seconds == expected
