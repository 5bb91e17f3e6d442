"""The whole run: nothing is lost when it grows coarser, when a scorer is reloaded, or when the server starts again."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.server.dashboard.conftest import Lengths, Serve
from tests.small_disk import needs_small_disk, printed_on_a_small_disk

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.dashboard.board import Board
from adjudge.rl_integration.server.dashboard.whole_run import SHORTEST, SLOTS, HistoryFile, WholeRun
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.stats import MAX_CLIENTS, OTHERS, Flows, Outcomes
from adjudge.rl_integration.service.tickets import Traffic

START = 1_700_000_000.0


def outcomes(answered: int = 1, total: float = 1.0, *, failed: int = 0) -> Outcomes:
    return Outcomes(answered=answered, scored=answered - failed, failed=failed, sum=total)


def totals(run: WholeRun) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for _, traffic, client, *counts in run.rows():
        sums = found.setdefault((traffic, client), [0, 0, 0, 0.0])
        found[traffic, client] = [total + (count or 0) for total, count in zip(sums, counts, strict=True)]
    return found


def test_a_run_grows_coarser_and_loses_nothing() -> None:
    rng = random.Random(1)
    run, now = WholeRun(), START
    expected: dict[tuple[str, str], list[float]] = {}
    flows: list[tuple[Traffic, str]] = [("train", ""), ("train", "run1"), ("eval", "run1")]
    for look in range(1, 3000):
        now += rng.choice([0.5, 1.0, 30.0, 400.0])
        new = {flow: outcomes(rng.randrange(1, 9), rng.randrange(-64, 64) / 8, failed=1) for flow in flows}
        if rng.random() < 0.3:
            del new["eval", "run1"]
        run.note(new, now, look)
        for flow, counts in new.items():
            before = expected.get(flow, [0, 0, 0, 0.0])
            expected[flow] = [one + more for one, more in zip(before, astuple(counts), strict=True)]
    assert totals(run) == expected
    slots = [row[0] for row in run.rows()]
    assert slots == sorted(slots)
    assert SLOTS / 2 <= slots[-1] - slots[0] + 1 <= SLOTS
    assert slots[0] * run.interval <= START + 400 <= (slots[0] + 1) * run.interval + 400
    assert slots[-1] == now // run.interval
    assert run.interval / SHORTEST == 2 ** round(math.log2(run.interval / SHORTEST))


def test_a_pause_makes_it_coarser_too_and_a_clock_set_back_costs_nothing() -> None:
    run = WholeRun()
    run.note({("train", ""): outcomes()}, START, 1)
    run.note({}, START + SLOTS * SHORTEST, 2)
    assert run.interval == 2 * SHORTEST
    run.note({("train", ""): outcomes()}, START - 1000, 3)
    run.note({("train", ""): outcomes()}, START - 10 * SLOTS * SHORTEST, 4)
    assert totals(run) == {("train", ""): [3, 3, 0, 3.0]}
    slots = [row[0] for row in run.rows()]
    assert slots == sorted(slots)
    assert slots[-1] - slots[0] < SLOTS


def test_only_what_changed_is_told_and_all_of_it_when_slots_double() -> None:
    run = WholeRun()
    for look in range(1, 5):
        run.note({("train", "a"): outcomes()}, START + look * SHORTEST, look)
    run.note({("train", "a"): outcomes(2), ("eval", "a"): outcomes()}, START + 4 * SHORTEST, 5)
    newest = int(START // SHORTEST) + 4
    assert run.rows(4) == [(newest, "eval", "a", 1, 1, 0, 1.0), (newest, "train", "a", 3, 3, 0, 2.0)]
    assert run.rows(5) == []
    assert len(run.rows()) == 5
    run.note({}, START + (SLOTS + 1) * SHORTEST, 6)
    assert run.rows(5) == run.rows()


def test_a_sum_that_is_too_large_is_no_number() -> None:
    run = WholeRun()
    for look in (1, 2):
        run.note({("train", ""): outcomes(total=1.5e308)}, START, look)
    assert run.rows()[0][3:] == (2, 2, 0, None)
    again = WholeRun.load(json.loads(json.dumps(run.dump(), allow_nan=False)))
    assert again.rows() == run.rows()


def test_what_was_kept_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    file = HistoryFile(str(path))
    assert file.runs == {}
    run = WholeRun()
    for look in range(1, 700):
        run.note({("train", "a" if look % 2 else "\ud800"): outcomes(3, 0.1, failed=1)}, START + look * 10, look)
    file.start(lambda: {"math": run.dump(), "idle": WholeRun().dump()})
    file.close()
    again = HistoryFile(str(path)).runs
    assert list(again) == ["math", "idle"]
    assert (again["math"].interval, again["math"].rows()) == (run.interval, run.rows())
    for one in (run, again["math"]):
        one.note({("train", "a"): outcomes()}, START + 90_000, 700)
    assert again["math"].dump() == run.dump()
    assert {one.name for one in tmp_path.iterdir()} == {"history.json", ".history.json.lock"}


def kept(interval: Any = 10, *row: Any) -> str:
    run = {"interval": interval, "rows": [row or (1, "train", "", 1, 1, 0, 0.5)]}
    return json.dumps({"format": "adjudge history 1", "scorers": {"math": run}})


def test_the_examples_of_damage_are_damaged_in_one_place_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(kept())
    assert HistoryFile(str(path)).runs["math"].rows() == [(1, "train", "", 1, 1, 0, 0.5)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        kept()[:-9],
        "\xff",
        "[" * 100_000,
        "[]",
        "{}",
        '{"format": "adjudge history 2", "scorers": {}}',
        '{"format": "adjudge history 1", "scorers": []}',
        kept(0),
        kept(15),
        kept(5),
        kept(20.0),
        kept("10"),
        kept(10, 1, "train", "", 1, 1, 0),
        kept(10, 1, "test", "", 1, 1, 0, 0.5),
        kept(10, 1, "train", None, 1, 1, 0, 0.5),
        kept(10, 1.5, "train", "", 1, 1, 0, 0.5),
        kept(10, 10**300, "train", "", 1, 1, 0, 0.5),
        kept(10, 1, "train", "", -1, 1, 0, 0.5),
        kept(10, 1, "train", "", 1, 1, 1, 0.5),
        kept(10, 1, "train", "", 1, True, 0, 0.5),
        kept(10, 1, "train", "", 1, 1, 0, "0.5"),
        kept(10, 1, "train", "", 1, 1, 0, math.nan),
        kept(10, 1, "train", "", 1, 1, 0, 10**400),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "history.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"history\.json' holds no history .* name another file, or move it away"):
        HistoryFile(str(path))
    assert path.read_text(encoding="latin-1") == text


def test_a_folder_is_no_history(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read: Is a directory; name another file"):
        HistoryFile(str(tmp_path))


FULL_DISK = """
import json, logging, sys, time
from pathlib import Path
from fastapi.testclient import TestClient
from adjudge.rl_integration.server.app import application
from adjudge.rl_integration.server.base.config import ServerConfig
from adjudge.rl_integration.server.dashboard import board, whole_run
from adjudge.rl_integration.service.service import RewardService

whole_run._EVERY = board._EVERY = 0.02
logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.WARNING)
disk = Path(sys.argv[1])
path = disk / "history.json"

def kept():
    runs = json.loads(path.read_text())["scorers"] if path.exists() else {}
    return sum(row[3] for run in runs.values() for row in run["rows"])

def until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)

with RewardService({"exact": "exact"}) as service:
    with TestClient(application(service, ServerConfig(history=str(path)))) as client:
        def score():
            sample = {"prompt": "?", "response": "1", "reference": "1"}
            return client.post("/v1/score", json={"sample": sample}).json()["scores"][0]["value"]
        print(score())
        until(lambda: kept() == 1)
        filler = (disk / "filler").open("wb", buffering=0)
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError:
            print("full")
        time.sleep(0.3)
        print(score(), kept(), sorted(one.name for one in disk.iterdir()))
        (disk / "filler").unlink()
        filler.close()
        until(lambda: kept() == 2)
        score()
print(kept())
"""


def test_a_second_process_is_refused_and_one_that_comes_after_the_first_is_not(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    code = f"from adjudge.rl_integration.server.dashboard.whole_run import HistoryFile; HistoryFile({str(path)!r})"

    def second() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)

    first = HistoryFile(str(path))
    refused = second()
    first.close()
    assert refused.returncode == 1
    assert f"another process keeps the history '{path}'; each server needs a file of its own" in refused.stderr
    assert second().returncode == 0


def test_a_file_from_a_clock_that_was_ahead_is_followed_by_what_comes(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    ahead = time.time() + 30 * 86_400
    run = WholeRun()
    for look in range(1, 4):
        run.note({("train", ""): outcomes()}, ahead + 20 * look, look)
    row = {"format": "adjudge history 1", "written": ahead, "scorers": {"exact": run.dump()}}
    path.write_text(json.dumps(row), encoding="utf-8")
    with RewardService({"exact": "exact"}) as service:
        board = Board(service, ServerConfig(history=str(path)), None)
        service.score_blocking("exact", [Sample(prompt="q", response="x", reference="x")])
        rows: list[Any] = []
        while sum(row[3] for row in rows) < 4:
            board.look(0.0)
            found = board.moment()
            rows, interval = (found["scorers"][0]["run"][name] for name in ("rows", "interval"))
    assert interval == SHORTEST, "no finer points were given up for a month that never was"
    assert [row[0] - rows[0][0] for row in rows[:3]] == [0, 2, 4]
    assert rows[-1][0] * interval <= found["now"] < (rows[-1][0] + 2) * interval


def test_a_run_that_begins_at_the_epoch_is_not_moved_before_it() -> None:
    run = WholeRun()
    run.note({("train", ""): outcomes()}, 30.0, 1)
    run.note({("train", ""): outcomes()}, 1000.0, 1)
    run.end_by(0.0)
    assert [row[0] for row in WholeRun.load(run.dump()).rows()] == [0, 97]


@needs_small_disk
def test_a_full_disk_costs_a_warning_and_no_request(tmp_path: Path) -> None:
    first, full, warning, during, again, at_the_end = printed_on_a_small_disk(FULL_DISK, tmp_path)
    assert (first, full, during) == ("1.0", "full", "1.0 1 ['.history.json.lock', 'filler', 'history.json']")
    assert "No space left" in json.loads(warning)["error"]
    assert "its room" in json.loads(warning)["remedy"]
    assert json.loads(again)["error"] == "none any more"
    assert at_the_end == "3"


def test_a_folder_that_is_not_there_costs_a_warning_alone(serve: Serve, tmp_path: Path, caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "adjudge.server"):
        running = serve(history=str(tmp_path / "nowhere" / "history.json"))
        running.score("a")
        running.stop()
    (told,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "No such file or directory" in told


def test_a_server_keeps_its_last_answers_and_goes_on(serve: Serve, tmp_path: Path) -> None:
    path = str(tmp_path / "history.json")
    for expected in (2, 4):
        running = serve(history=path)
        running.score("a", "bbb")
        running.stop()  # before the minute is over
        assert totals(HistoryFile(path).runs["lengths"]) == {("train", ""): [expected, expected, 0, 2.0 * expected]}


def taken(service: RewardService) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {flow: astuple(counts) for flow, counts in service.take_outcomes()["it"].items()}


def test_a_service_counts_by_traffic_and_client_and_over_a_reload() -> None:
    asked = [Sample(prompt="q", response=text) for text in ("a", "bbb", "", "a")]
    with RewardService({"it": LaneConfig(scorer=Lengths())}) as service:
        service.score_blocking("it", asked, client="run1")
        service.score_blocking("it", asked[:2], client="run1", traffic="eval")
        service.reload("it", LaneConfig(scorer=Lengths()))
        service.score_blocking("it", asked[:1], client="run2")
        service.score_blocking("it", asked[:1], within=0.0)
        found = taken(service)
        assert found["train", "run1"] == (4, 3, 1, 5.0)
        assert found["eval", "run1"] == (2, 2, 0, 4.0)
        assert found["train", "run2"] == (1, 1, 0, 1.0)
        assert found["train", ""] == (1, 0, 1, 0.0), "it expired, in the service and not in the scorer"
        assert taken(service) == {}


class Stuck:
    """Never answers."""

    name = "stuck"
    fingerprint = "stuck:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        await asyncio.Event().wait()
        return []


def test_what_a_closing_service_gives_up_is_counted() -> None:
    with RewardService({"it": LaneConfig(scorer=Stuck())}) as service:
        asked = service.submit("it", [Sample(prompt="q", response="a")] * 2, client="run1")
        assert not service.close(0.01)
    assert [score.reason for score in asked.result()] == ["closed", "closed"]
    assert taken(service) == {("train", "run1"): (2, 0, 2, 0.0)}


def test_clients_beyond_the_first_count_together() -> None:
    flows = Flows()
    for _ in range(2):
        for place in range(MAX_CLIENTS + 8):
            flows.count("train", f"run{place}", Score.scored(0.5))
            flows.count("eval", f"run{place}", Score.abstained("out_of_scope"))
        found = flows.take()
        assert len(found) == 2 * (MAX_CLIENTS + 1)
        assert found["train", OTHERS] == Outcomes(answered=8, scored=8, sum=4.0)
        assert found["eval", OTHERS] == Outcomes(answered=8)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Let threads take turns a thousand times as often as they do."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_nothing_is_lost_between_counting_and_taking() -> None:
    flows, ended, total = Flows(), threading.Event(), 0

    def count() -> None:
        for _ in range(50_000):
            flows.count("train", "", Score.scored(1.0))
        ended.set()

    counting = threading.Thread(target=count)
    counting.start()
    while not ended.is_set():
        total += sum(counts.answered for counts in flows.take().values())
    counting.join()
    assert total + sum(counts.answered for counts in flows.take().values()) == 50_000


@pytest.mark.parametrize(
    "report",
    ["runs/1", "javascript:alert(1)", "https://", "ftp://there/report.html", "https://[::1", "~/run"],
)
def test_a_report_that_is_no_address_and_no_path_is_refused(report: str) -> None:
    with pytest.raises(ValueError, match=r"server option report=.*begins with http:// or https://, or a path"):
        ServerConfig(report=report)


@pytest.mark.parametrize("report", ["", "https://there/runs/1/report.html", "HTTP://[::1]:80/", "/runs/1"])
def test_what_may_be_a_report(report: str) -> None:
    assert ServerConfig(report=report).report == report
