"""Progress where there is no terminal: a few lines, soon at first and later every minute."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.cli import console
from adjudge.cli.console import JobBar, Lines, duration
from adjudge.cli.serve import _telling


class Clock:
    """A clock that a test turns."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_lines_come_every_ten_seconds_and_later_every_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(console, "time", clock)
    lines = Lines()
    for second in range(301):
        clock.now = float(second)
        lines.line(f"at {second}")
    assert capsys.readouterr().err.split("\n")[:-1] == [f"at {at}" for at in (10, 20, 30, 40, 50, 110, 170, 230, 290)]
    lines.line("now", now=True)
    told = capsys.readouterr()
    assert (told.err, told.out) == ("now\n", "")


def test_a_terminal_has_a_bar_and_no_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert Lines().line("here", now=True) is False
    assert capsys.readouterr().err == ""


def test_times_are_said_as_people_say_them() -> None:
    assert [duration(one) for one in (0.4, 99, 180, 5_400, 19_200)] == ["0 s", "99 s", "3 min", "90 min", "5 h 20 min"]


def test_a_job_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(console, "_FIRST", 0.0)
    with JobBar("label") as bar:
        bar.show("9 rows", 0.5, 120.0)
        bar.show("10 rows", None, None)
    assert capsys.readouterr().err == "50.0%  9 rows  2 min left\n10 rows\n"


def test_a_server_says_what_it_scored_when_that_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_FIRST", 0.0)

    class Lane:
        name, answered, failed_share, waiting = "math", 7, 0.5, 2

    asked = threading.Semaphore(0)

    def stats() -> Sequence[Any]:
        asked.release()
        return [Lane()]

    with _telling(stats, pause=0.001):
        for _ in range(5):
            assert asked.acquire(timeout=1200)
    assert capsys.readouterr().err == "math: 7 scores, 50.0% failed, 2 waiting\n"
