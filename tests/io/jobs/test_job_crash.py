"""A job over rows survives kill -9 before every step on the file system and at random moments, Ctrl-C, a full disk."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

JOB = """
import asyncio, os, sys
from adjudge.io.jobs.config import JobConfig
from adjudge.io.jobs.job import run_job
from adjudge.io.errors import JobStopped
from tests.io.jobs.toys import Doubler

class Hangs(Doubler):
    async def make(self, unit):
        if unit.first == int(os.environ.get("HANG_AT", "-1")):
            print("hanging", flush=True)
            await asyncio.Event().wait()
        return await super().make(unit)

def work():
    return run_job(JobConfig(input=sys.argv[1], output=sys.argv[2], in_flight=8), Hangs())

async def cell():
    return work()

try:
    if os.environ.get("IN_A_LOOP"):  # as a notebook has it: Ctrl-C raises where the cell is, and cancels nothing
        report = asyncio.new_event_loop().run_until_complete(cell())
    else:
        report = work()
except JobStopped as stopped:
    sys.exit(str(stopped))
import json
print(json.dumps(report.to_dict()))
"""


@pytest.mark.parametrize("name", ["out.jsonl", "out"])
def test_killed_before_each_step_on_the_file_system(tmp_path: Path, name: str) -> None:
    driver = Path(__file__).with_name("job_crash_driver.py")
    ran = subprocess.run(
        [sys.executable, str(driver), str(tmp_path), name],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 12


@pytest.fixture
def job(tmp_path: Path) -> list[str]:
    """The command that doubles 3,000 rows, the last of them bad, into out.jsonl of the test's folder."""
    rows = "".join(json.dumps({"x": x, "padding": "x" * (x % 50)}) + "\n" for x in range(2999))
    (tmp_path / "in.jsonl").write_text(rows + "{\n")
    (tmp_path / "job.py").write_text(JOB)
    return [sys.executable, str(tmp_path / "job.py"), str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")]


def environment(hang_at: int = -1, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "HANG_AT": str(hang_at), **more}


def whole_run(job: list[str]) -> bytes:
    """The bytes an uninterrupted run writes; the output is gone again."""
    ran = subprocess.run(job, env=environment(), capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    assert (report["rows"], report["made"], report["dropped"]) == (3000, 3000, {"odd": 1499, "unreadable": 1})
    output = Path(job[-1])
    written = output.read_bytes()
    output.unlink()
    return written


def test_killed_at_random_moments(job: list[str]) -> None:
    expected, output = whole_run(job), Path(job[-1])
    seeded = random.Random(20261122)
    for moment in sorted(seeded.sample(range(3, 2999), 4)):
        with subprocess.Popen(
            job, env=environment(moment), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"hanging\n"
            running.kill()
        assert running.returncode == -signal.SIGKILL
        assert not output.exists()
    ran = subprocess.run(job, env=environment(), capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    assert output.read_bytes() == expected
    assert (report["rows"], report["made"], report["dropped"]) == (3000, 3000, {"odd": 1499, "unreadable": 1})
    assert (report["counts"], report["cost"]["prompt_tokens"]) == ({"halves": 750.0, "seen": 2999}, 4499)


@pytest.mark.parametrize("in_a_loop", ["", "1"])
def test_ctrl_c_commits_and_says_how_to_go_on(job: list[str], in_a_loop: str) -> None:
    expected = whole_run(job)
    with subprocess.Popen(
        job, env=environment(1500, IN_A_LOOP=in_a_loop), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "hanging\n"
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=1200)
    assert told == "stopped; 1500 rows are done and kept beside the output. Make the same call again to go on\n"
    ran = subprocess.run(job, env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["resumed_rows"] == 1500
    assert Path(job[-1]).read_bytes() == expected


def test_a_full_disk_says_so_and_the_job_goes_on_when_there_is_room(job: list[str]) -> None:
    expected = whole_run(job)
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))\n"
    quiet = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    crowded = Path(job[1]).with_name("crowded.py")
    crowded.write_text(full + quiet + JOB)
    ran = subprocess.run([job[0], str(crowded), *job[2:]], env=environment(), capture_output=True, text=True)
    assert ran.returncode == 1
    assert "JobError: the disk is full (File too large) while writing" in ran.stderr
    assert "Make room and make the same call again to go on" in ran.stderr
    ran = subprocess.run(job, env=environment(), capture_output=True, text=True, check=True)
    report = json.loads(ran.stdout)
    assert Path(job[-1]).read_bytes() == expected
    assert (report["rows"], report["made"], report["counts"]["seen"]) == (3000, 3000, 2999)
