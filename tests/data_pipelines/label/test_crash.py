"""Real kills: at every step on the file system, at random moments, and Ctrl-C."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCORER = '''
import asyncio, os
from adjudge.protocol import Score, response_text

class Careful:
    """Says when it begins, and hangs at its call number HANG_AT."""
    name = "careful"
    fingerprint = "careful:1"
    calls = 0

    async def score(self, samples):
        Careful.calls += 1
        if Careful.calls == int(os.environ.get("HANG_AT", "0")):
            print("hanging", flush=True)
            await asyncio.Event().wait()
        return [Score.scored(float(response_text(sample) == sample.reference)) for sample in samples]
'''


@pytest.mark.parametrize("suffix", [pytest.param("jsonl", marks=pytest.mark.full), "jsonl.gz"])
def test_killed_before_each_step_on_the_file_system(tmp_path: Path, suffix: str) -> None:
    driver = Path(__file__).with_name("crash_driver.py")
    ran = subprocess.run([sys.executable, str(driver), str(tmp_path), suffix], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 25  # eight batches, each committed in three steps, and those of begin and end


@pytest.mark.parametrize("suffix", ["jsonl", pytest.param("jsonl.gz", marks=pytest.mark.full)])
def test_killed_before_each_step_while_it_judges_again_what_failed(tmp_path: Path, suffix: str) -> None:
    driver = Path(__file__).with_name("crash_driver.py")
    ran = subprocess.run([sys.executable, str(driver), str(tmp_path), suffix, "retry"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 25


def job_in(folder: Path) -> list[str]:
    """Return the command that labels 3,000 rows, one of them bad, into out.jsonl of a folder."""
    (folder / "careful_scorer.py").write_text(SCORER)
    rows = [{"response": str(row % 7), "answer": "3", "padding": "x" * (row % 50)} for row in range(2999)]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{\n")
    command = [sys.executable, "-m", "adjudge.cli.main", "label", str(folder / "in.jsonl")]
    return [*command, str(folder / "out.jsonl"), "--scorer", "careful_scorer:Careful", "--batch-size", "20"]


@pytest.fixture
def job(tmp_path: Path) -> list[str]:
    return job_in(tmp_path)


def environment(folder: Path, hang_at: int = 0) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "HANG_AT": str(hang_at)}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes an uninterrupted run writes."""
    folder = tmp_path_factory.mktemp("whole")
    ran = subprocess.run([*job_in(folder), "--json"], env=environment(folder), capture_output=True, text=True)
    report = json.loads(ran.stdout)
    assert (report["rows"], report["scored"], report["failed"]) == (3000, 2999, 1)
    return (folder / "out.jsonl").read_bytes()


def test_killed_at_random_moments(tmp_path: Path, job: list[str], expected: bytes) -> None:
    seeded = random.Random(20261121)
    for _ in range(2):
        # The call at which it hangs is the moment; some of the batches in flight with it are scored, some are not.
        with subprocess.Popen(
            job, env=environment(tmp_path, seeded.randint(2, 40)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"hanging\n"
            running.kill()
        assert running.returncode == -signal.SIGKILL
        assert not (tmp_path / "out.jsonl").exists()
    ran = subprocess.run([*job, "--json"], env=environment(tmp_path), capture_output=True, text=True)
    report = json.loads(ran.stdout)
    assert (tmp_path / "out.jsonl").read_bytes() == expected
    assert (report["rows"], report["scored"], report["failed"]) == (3000, 2999, 1)
    assert report["mean"] == sum(row % 7 == 3 for row in range(2999)) / 2999


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path, job: list[str], expected: bytes) -> None:
    with subprocess.Popen(
        [*job, "--in-flight", "1"],
        env=environment(tmp_path, 11),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "hanging\n"
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=1200)
    assert running.returncode == 130
    assert "stopped; 200 rows are labelled and kept beside the output. Make the same call again to go on" in told
    assert "Traceback" not in told
    assert not (tmp_path / "out.jsonl").exists()
    ran = subprocess.run([*job, "--json"], env=environment(tmp_path), capture_output=True, text=True)
    assert json.loads(ran.stdout)["resumed_rows"] == 200
    assert (tmp_path / "out.jsonl").read_bytes() == expected


def test_ctrl_c_beside_a_running_loop(tmp_path: Path, job: list[str]) -> None:
    code = """
import asyncio, sys
from adjudge.data_pipelines.label import LabelConfig, JobStopped, run_label

async def cell():
    try:
        run_label(LabelConfig(input=sys.argv[1], output=sys.argv[2], scorer=sys.argv[3], batch_size=20, in_flight=1))
    except JobStopped as stopped:
        print(stopped)

loop = asyncio.new_event_loop()  # as a notebook has it: Ctrl-C raises where the cell is, and cancels nothing
loop.run_until_complete(cell())
loop.close()
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")]
    with subprocess.Popen(
        [*arguments, "careful_scorer:Careful"], env=environment(tmp_path, 11), stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "hanging\n"
        running.send_signal(signal.SIGINT)
        told, _ = running.communicate(timeout=1200)
    assert running.returncode == 0
    assert told.startswith("stopped; 200 rows are labelled")


POOLED = """
import sys
from adjudge.data_pipelines.label import LabelConfig, JobStopped, run_label

class Tell:
    def note(self, text): pass
    def update(self, snapshot): print(snapshot.rows, flush=True)

if __name__ == "__main__":
    config = LabelConfig(input=sys.argv[1], output=sys.argv[2], scorer="exact", batch_size=50, workers=2)
    try:
        run_label(config, progress=Tell())
    except JobStopped as stopped:
        sys.exit(str(stopped))
"""


def pooled_in(folder: Path) -> list[str]:
    (folder / "driver.py").write_text(POOLED)
    return [sys.executable, str(folder / "driver.py"), str(folder / "in.jsonl"), str(folder / "out.jsonl")]


@pytest.fixture(scope="module")
def expected_of_pool(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("pooled")
    job_in(folder)
    subprocess.run(pooled_in(folder), check=True, stdout=subprocess.DEVNULL)
    written = (folder / "out.jsonl").read_bytes()
    assert written.count(b'"status":"scored"') == 2999
    return written


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_job_with_worker_processes_is_interrupted_and_resumed(
    tmp_path: Path, expected_of_pool: bytes, how: int
) -> None:
    command, output = pooled_in(tmp_path), tmp_path / "out.jsonl"
    seeded, interrupted = random.Random(7), 0
    for _ in range(3 if how == signal.SIGKILL else 1):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as running:
            assert running.stdout is not None
            for _ in range(seeded.randint(1, 5)):
                assert running.stdout.readline()
            if how == signal.SIGKILL:
                running.kill()
            else:
                os.killpg(running.pid, how)  # as a terminal does it: the workers get it too
            _, told = running.communicate(timeout=1200)
        if output.exists():
            break  # on a busy machine the job may end before the signal reaches it
        interrupted += 1
        if how == signal.SIGINT:
            assert "rows are labelled and kept beside the output" in told
            assert "Traceback" not in told
    if not output.exists():
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert output.read_bytes() == expected_of_pool
    assert interrupted >= 1
