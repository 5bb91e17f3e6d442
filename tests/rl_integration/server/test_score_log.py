"""The file of scores: what is in it, that SIGTERM leaves it whole, and that it costs no score where it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.rl_integration.server.conftest import served
from tests.rl_integration.server.good_requests import GOOD, PROGRAMS
from tests.rl_integration.server.test_server import Lengths

from adjudge.evals.trust.live import run_live_drift
from adjudge.evals.trust.verdicts import LiveDriftConfig
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base import score_log
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.base.score_log import ScoreLog

SECRET = "nobody may read this"


def row(answer: int, **fields: Any) -> dict[str, Any]:
    return {"prompt": f"{SECRET}: 1+1?", "response": f"\\boxed{{{answer}}}", "reference": "2", **fields}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


@contextmanager
def logged(path: Path, **options: Any) -> Iterator[ScoreLog]:
    log = ScoreLog(str(path), options.pop("max_bytes", 1 << 20)).start()
    try:
        yield log
    finally:
        log.close()


def add(log: ScoreLog, count: int = 1, *, group: str = "g", prompt: str = "p") -> None:
    samples = [Sample(prompt=prompt, response="four", group=group)] * count
    log.add("s", samples, [Score.scored(1.0)] * count, latency=0.25, client="c", route="/r", traffic="train")


def until(true: Callable[[], bool]) -> None:
    """Wait for the writing thread."""
    end = time.monotonic() + 300
    ticking = threading.Event()
    while not true():
        assert time.monotonic() < end
        ticking.wait(0.01)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_log, "_EVERY", 0.01)


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`adjudge serve math` as a program; yield it and its address."""
    command = [sys.executable, "-m", "adjudge.cli.main", "serve", "math", "--port", "0", "--json", *flags]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as server:
        try:
            assert server.stdout is not None
            with ThreadPoolExecutor(1) as thread:
                told = thread.submit(server.stdout.readline).result(timeout=1200)
            yield server, json.loads(told)["address"]
        finally:
            server.kill()


def test_what_was_served_until_sigterm_is_what_live_drift_reads(tmp_path: Path) -> None:
    """Right answers at first and wrong ones later; the stop comes before the last second was written."""
    path = tmp_path / "scores.jsonl"
    with (
        started(tmp_path, "--score-log", str(path)) as (server, address),
        httpx.Client(base_url=address, timeout=1200) as http,
    ):
        for call in range(120):
            rows = [row(2 if call < 80 and one else 3, group=f"g{call}") for one in range(4)]
            assert http.post("/v1/score", json={"samples": rows}).status_code == 200
        rows = [row(3, group=f"late {one}") for one in range(20)]
        streamed = http.post("/v1/score", json={"samples": rows, "stream": True, "traffic": "eval"})
        assert len(streamed.text.splitlines()) == 20
        with pytest.raises(ValueError, match=r"another process writes it.*name another file"):
            ScoreLog(str(path), 1 << 20)
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=1200)
        assert server.returncode == 0, errors
    written = lines(path)
    assert [one["value"] for one in written[:8]] == [0.0, 1.0, 1.0, 1.0] * 2
    assert sum(one["value"] for one in written) == 240
    assert len(written) == 500
    first, last = written[0], written[-1]
    assert set(first) == {"time", "scorer", "fingerprint", "value", "status", "reason", "group", "length", "latency",
                          "client", "route", "traffic"}  # fmt: skip
    assert (first["scorer"], first["status"], first["reason"], first["group"]) == ("math", "scored", "wrong", "g0")
    assert first["length"] == len(row(2)["response"])
    assert first["fingerprint"].startswith("math")
    assert (first["route"], first["traffic"], last["traffic"]) == ("/v1/score", "train", "eval")
    assert 0 < first["latency"] < 60
    assert abs(first["time"] - time.time()) < 600
    assert SECRET not in path.read_text(encoding="ascii")

    looked = LiveDriftConfig(input=str(tmp_path), window=40, reference_rows=160, where=("scorer=math",), resamples=0)
    result = run_live_drift(looked)
    assert (result.counts.samples, result.counts.unreadable) == (500, 0)
    broken = {check.name for check in result.checks if check.passed is False}
    assert {"value: windows", "zero: windows"} <= broken
    assert "one fingerprint" not in broken


def test_each_route_of_each_framework_leaves_lines(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    config = ServerConfig(port=0, score_log=str(path))
    routes = GOOD.keys() - {*PROGRAMS, "/seed_session", "/close_session"}
    with served({"lengths": Lengths()}, config) as address, httpx.Client(base_url=address, timeout=1200) as http:
        for route in routes:
            assert http.post(route, json=GOOD[route]).status_code == 200, route
    assert {one["route"] for one in lines(path)} == routes
    assert {one["status"] for one in lines(path)} == {"scored"}


def test_a_file_goes_on_and_a_broken_line_stays_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text('{"time": 1, "val', encoding="ascii")
    with logged(path) as log:
        add(log)
    assert [line[:8] for line in path.read_text(encoding="ascii").splitlines()] == ['{"time":'] * 2
    assert json.loads(path.read_text(encoding="ascii").splitlines()[1])["value"] == 1.0


def test_a_full_file_becomes_the_older_one_and_that_one_goes(tmp_path: Path, quick: None) -> None:
    path, older = tmp_path / "scores.jsonl", tmp_path / "scores.1.jsonl"
    with logged(path, max_bytes=1000) as log:
        for name in ("first", "second", "third"):
            add(log, 4, group=name)
            until(lambda name=name: path.exists() and path.read_text(encoding="ascii").count(name) == 4)  # type: ignore[misc]
        assert log.lost == 0
    assert {one["group"] for one in lines(older)} == {"second"}
    assert {one["group"] for one in lines(path)} == {"third"}
    assert sorted(one.name for one in tmp_path.iterdir()) == ["scores.1.jsonl", "scores.jsonl"]


def test_a_folder_that_goes_costs_lines_that_are_counted_and_no_scores(
    tmp_path: Path, quick: None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "scores.jsonl"
    config = ServerConfig(port=0, score_log=str(path))

    def lost() -> float:
        text = http.get("/metrics").text
        return float(text.partition("\nadjudge_score_log_lost_total ")[2].partition("\n")[0])

    with served({"math": "math"}, config) as address, httpx.Client(base_url=address, timeout=1200) as http:
        path.unlink()
        folder.rmdir()
        for _ in range(2):
            (score,) = http.post("/v1/score", json={"sample": row(2)}).json()["scores"]
            assert score["value"] == 1.0
        until(lambda: lost() == 2)
        folder.mkdir()
        http.post("/v1/score", json={"sample": row(3)})
        until(lambda: path.exists() and bool(path.read_text(encoding="ascii")))
        assert lost() == 2
    assert [one["value"] for one in lines(path)] == [0.0]
    told = [json.loads(one.message) for one in caplog.records if "score_log" in one.message]
    assert [one["error"].partition("]")[0] for one in told] == ["[Errno 2", "none any more"]


def test_a_write_that_fails_half_way_leaves_whole_lines(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, full = tmp_path / "scores.jsonl", os.write, threading.Event()

    def half(file: int, data: Any) -> int:
        if not full.is_set():
            return write(file, data)
        if len(data) < 100:
            raise OSError(28, "No space left on device")
        return write(file, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with logged(path) as log:
        add(log, 3, group="kept")
        until(lambda: path.stat().st_size > 0)
        full.set()
        add(log, 5, group="lost")
        until(lambda: log.lost == 5)
        full.clear()
        add(log, 2, group="later")
    assert [one["group"] for one in lines(path)] == ["kept"] * 3 + ["later"] * 2


def test_memory_is_bounded_while_the_disk_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_log, "_MAX_ROWS", 10)
    path = tmp_path / "scores.jsonl"
    log = ScoreLog(str(path), 1 << 20)  # not started, as if its thread waited for the disk
    add(log, 8)
    add(log, 8)
    assert log.lost == 8
    log.start().close()
    assert len(lines(path)) == 8


def test_groups_have_short_names_and_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "scores.jsonl"
    with logged(path) as log:
        for group, prompt in (("g", "p"), ("", "p"), ("", "p"), ("", "q"), (SECRET * 9, "p"), ("", ""), ("\ud800", "")):
            add(log, group=group, prompt=prompt)
    named, same, again, other, long, nothing, half = (one["group"] for one in lines(path))
    assert (named, nothing, half) == ("g", "", "\ud800")
    assert same == again != other
    assert len({same, other, long}) == 3
    assert all(len(one) == 16 and int(one, 16) for one in (same, other, long))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scores.txt", "ends with .jsonl"),
        ("missing/scores.jsonl", "No such file or directory; name another file, or see to its folder"),
        ("folder.jsonl", "no plain file"),
        ("pipe.jsonl", "no plain file"),
        ("full.jsonl", "no plain file"),
    ],
)
def test_what_cannot_be_written_is_told_at_the_start(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    with pytest.raises(ValueError, match=told):
        ScoreLog(str(tmp_path / name), 1 << 20)


def test_a_full_disk_is_told_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ValueError, match=r"scores\.jsonl' cannot be written: No space left on device"):
        ScoreLog(str(tmp_path / "scores.jsonl"), 1 << 20)
