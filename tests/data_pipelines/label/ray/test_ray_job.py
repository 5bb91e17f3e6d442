"""Label jobs on a real Ray of several processes: the same bytes as here, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label import JobError, LabelConfig, LabelReport, Snapshot, run_label
from adjudge.data_pipelines.label import ray_worker as order
from adjudge.data_pipelines.label.bench import Verdict
from adjudge.data_pipelines.label.plan import Batch, Batcher
from adjudge.data_pipelines.label.ray_workers import RayWorkerGroup
from adjudge.io.jobs.journal import partial_of
from adjudge.protocol import Sample

pytestmark = pytest.mark.usefixtures("cluster", "odd_scorers")

CHAT = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


def rows(count: int, fatal: Sequence[int] = ()) -> list[Any]:
    found: list[Any] = [
        {
            "id": f"q{index}",
            "response": "fatal" if index in fatal else "so " * (index % 40) + f"\\boxed{{{index + index % 2}}}",
            "answer": str(index),
            "g": f"g{index // 3}",
        }
        for index in range(count)
    ]
    return found


ODD: list[Any] = [
    {"id": "lone", "response": "x\ud800", "answer": "x"},
    {"id": "chat", "response": CHAT, "answer": "4"},
    {"id": "object", "response": "an object", "answer": "4"},
    {"id": "unfit", "response": "x", "answer": "none"},
    {"id": "none", "response": None, "answer": "4"},
    7,
]


def jsonl(path: Path, data: Sequence[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return str(path)


def spec(name: str, **options: Any) -> str:
    return json.dumps({f"odd_scorers:{name}": options or None})


def label(source: str, output: Path, progress: Any = None, **options: Any) -> LabelReport:
    given = {"engine": "ray", "ray_workers": 2, "batch_size": 16, "group_column": "g", **options}
    if given["engine"] == "local":
        del given["ray_workers"]
    return run_label(LabelConfig(input=source, output=str(output), **given), progress=progress)


class Watch:
    """Keeps what a job tells."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.rows = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def update(self, snapshot: Snapshot) -> None:
        self.rows = snapshot.rows

    @property
    def lost(self) -> int:
        return sum("was lost" in note for note in self.notes)


def test_both_engines_write_the_same_bytes(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(200) + ODD)
    here = label(source, tmp_path / "here.jsonl", engine="local", scorer=spec("Plain"), keep_columns=True)
    there = label(source, tmp_path / "there.jsonl", scorer=spec("Plain"), keep_columns=True)
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    assert (there.counts, there.mean, there.fingerprint) == (here.counts, here.mean, here.fingerprint)
    assert there.counts["plain", "failed", "verifier_error"] == 1, "evidence that no JSON holds"
    assert there.counts["plain", "failed", "bad_sample"] == 3


def test_several_scorers_and_a_cache_and_verifiers_in_pools(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(60))
    options: dict[str, Any] = {
        "scorer": ("math", "long={length: {max_length: 100, buffer: 50}}", f"dear={spec('Plain')}"),
        "unless": ("dear=math",),
        "doubt": ("wrong",),
    }
    label(source, tmp_path / "here.jsonl", engine="local", **options)
    cached: dict[str, Any] = {"cache": str(tmp_path / "cache"), "ray_workers": "math=1,long=1,dear=2"}
    report = label(source, tmp_path / "there.jsonl", **options, **cached)
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    assert (report.by_scorer["math"].mean, report.by_scorer["dear"].not_asked) == (0.5, 30)


def test_a_worker_that_dies_is_replaced_and_its_batches_are_written_once(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(200, fatal=[50]))
    for index in range(2):
        (tmp_path / f"{index}.kill").touch()
    watch = Watch()
    label(source, tmp_path / "there.jsonl", watch, scorer=spec("DiesOnce", folder=str(tmp_path)))
    assert watch.lost == 2
    assert not list(tmp_path.glob("*.kill"))
    label(source, tmp_path / "here.jsonl", engine="local", scorer=spec("Plain"))
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("scorer", "failed"),
    [
        pytest.param("DiesAlways", ["q17"], marks=pytest.mark.full),
        ("DiesAlwaysInGroups", ["q15", "q16", "q17"]),
    ],
)
def test_what_kills_every_worker_fails_alone(tmp_path: Path, scorer: str, failed: list[str]) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(60, fatal=[17]))
    watch = Watch()
    report = label(source, tmp_path / "out.jsonl", watch, scorer=spec(scorer, folder=str(tmp_path)))
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [row["row"] for row in written] == list(range(60))
    assert [row["id"] for row in written if row["status"] == "failed"] == failed
    assert report.counts == {("plain", "failed", "worker_died"): len(failed), ("plain", "scored", ""): 60 - len(failed)}
    assert "ended 2 times" in written[17]["evidence"]["error"]
    sizes = [int(size) for size in (tmp_path / "sizes").read_text().split()]
    assert len(sizes) == watch.lost == 5
    assert len(set(sizes[:3])) == 1, "three times the whole batch, and then what is in it"
    assert sizes[3:] == [len(failed)] * 2
    if scorer == "DiesAlwaysInGroups":
        assert {row["evidence"]["of"] for row in written if row["status"] == "scored"} == {3}


def test_a_scorer_that_raises_stops_the_job_and_the_local_engine_goes_on(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(100, fatal=[70]))
    scorer = spec("Raises", file=str(tmp_path / "broken"))
    (tmp_path / "broken").touch()
    output = tmp_path / "out.jsonl"
    with pytest.raises(JobError, match=r"'plain' raised KeyError: 'a fault of the scorer'; \d+ rows are labelled"):
        label(source, output, scorer=scorer, in_flight=1, ray_workers=1)
    assert not output.exists()
    (tmp_path / "broken").unlink()
    report = label(source, output, scorer=scorer, engine="local")
    assert report.resumed_rows == 64
    label(source, tmp_path / "whole.jsonl", scorer=scorer, engine="local")
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("scorer", "told"),
    [
        (spec("NotThere"), "in a Ray worker, the weights are not on this machine"),
        (spec("DiesLoading"), "the Ray workers for .*DiesLoading.* cannot start: The actor"),
        (spec("Unlike"), "are not alike: one has the fingerprint 'unlike:"),
        ("no_such_module:X", "in a Ray worker, the scorer 'no_such_module:X' cannot be used"),
        ("no_such_file.yaml", "the spec file 'no_such_file.yaml' cannot be read"),
    ],
)
def test_what_cannot_be_loaded_is_said_before_any_work(tmp_path: Path, scorer: str, told: str) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(5))
    with pytest.raises(ValueError, match=told):
        label(source, tmp_path / "out.jsonl", scorer=scorer, ray_workers=2 if "Unlike" in scorer else 1)
    assert not partial_of(tmp_path / "out.jsonl").exists()


def test_another_version_in_workers_is_said_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "version", lambda package: "0.0.1")
    with pytest.raises(ValueError, match=r"the job runs with adjudge 0\.0\.1, and a Ray worker on .* has"):
        label(jsonl(tmp_path / "in.jsonl", rows(5)), tmp_path / "out.jsonl", scorer=spec("Plain"), ray_workers=1)


def test_a_sample_that_lacks_what_the_scorer_needs_is_said_before_any_work(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"response": "x", "g": ""}])
    with pytest.raises(ValueError, match="compares with a reference"):
        label(source, tmp_path / "out.jsonl", scorer="exact", ray_workers=1)


def test_a_file_travels_and_an_object_inside_a_running_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "map.json").write_text('{"kind": "platt", "slope": 1.0, "intercept": 0.0}')
    (tmp_path / "specs" / "mine.yaml").write_text('calibrated: {scorer: "odd_scorers:Plain", map: map.json}\n')
    source = jsonl(tmp_path / "in.jsonl", rows(5))
    monkeypatch.chdir(tmp_path)
    label(source, tmp_path / "here.jsonl", engine="local", scorer="specs/mine.yaml")
    label(source, tmp_path / "there.jsonl", scorer="specs/mine.yaml", ray_workers=1)
    assert (tmp_path / "here.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    config = LabelConfig(input=source, output=str(tmp_path / "object.jsonl"), engine="ray", ray_workers=1)

    async def inside() -> LabelReport:
        return run_label(config, scorer=importlib.import_module("odd_scorers").Plain())

    assert asyncio.run(inside()).scored == 5


def test_no_more_batches_are_under_way_than_workers_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first batch is held until all others that were read are scored; meanwhile nothing more is read."""
    watch, read, before, most, first_is_done = Watch(), 0, 0, 0, False
    batches, judge = Batcher.batches, RayWorkerGroup.judge

    def counted(self: Batcher, start: Any) -> Iterator[Batch]:
        nonlocal read, before, most
        for batch in batches(self, start):
            read += len(batch.items)
            before = before if first_is_done else read
            most = max(most, read - watch.rows)
            yield batch

    async def watched(self: RayWorkerGroup, samples: Sequence[Sample]) -> list[Verdict]:
        nonlocal first_is_done
        verdicts = await judge(self, samples)
        first_is_done = first_is_done or samples[0].id == "q0"
        return verdicts

    monkeypatch.setattr(Batcher, "batches", counted)
    monkeypatch.setattr(RayWorkerGroup, "judge", watched)
    source = jsonl(tmp_path / "in.jsonl", rows(200))
    scorer = spec("Holds", folder=str(tmp_path), others=5)
    label(source, tmp_path / "out.jsonl", watch, scorer=scorer, batch_size=4, in_flight=3)
    assert read == watch.rows == 200
    assert before == 2 * 3 * 4, "two workers with three batches of four"
    assert most <= 2 * before, "those, and as many that are being written"
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert len({row["evidence"]["worker"] for row in written}) == 2
    assert max(row["value"] for row in written) <= 3.0


def command(source: str, output: Path, scorer: str, *more: str) -> list[str]:
    asked = ["--scorer", scorer, "--engine", "ray", "--ray-workers", "2", "--batch-size", "16", "--group-column", "g"]
    return [sys.executable, "-m", "adjudge.cli.main", "label", source, str(output), *asked, *more]


def wait_for(file: Path, running: subprocess.Popen[str]) -> None:
    while not file.exists():
        assert running.poll() is None, running.communicate()
        time.sleep(0.05)


def environment(mark: str = "") -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "ADJUDGE_TEST_MARK": mark}


def test_a_killed_job_goes_on_to_the_same_bytes(tmp_path: Path, cluster: Any) -> None:
    """The job joins a Ray by its address, as on a cluster, and that Ray ends what the dead job left."""
    source = jsonl(tmp_path / "in.jsonl", rows(400, fatal=[300]))
    scorer, output = spec("Hangs", folder=str(tmp_path)), tmp_path / "out.jsonl"
    address = cluster.get_runtime_context().gcs_address
    with subprocess.Popen(
        command(source, output, scorer, "--ray-address", address),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        wait_for(tmp_path / "hangs", running)
        running.kill()
        running.communicate()
    assert running.returncode == -signal.SIGKILL
    assert not output.exists()
    (tmp_path / "free").touch()
    label(source, tmp_path / "whole.jsonl", scorer=scorer, engine="local")
    report = label(source, output, scorer=scorer)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (report.rows, report.samples) == (400, 400)
    assert 0 <= report.resumed_rows <= 300


def marked(mark: str) -> list[int]:
    """Processes that have a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"ADJUDGE_TEST_MARK={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ctrl_c_ends_the_ray_that_was_started_and_output_stays_clean(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", rows(100, fatal=[40]))
    scorer, output = spec("Hangs", folder=str(tmp_path)), tmp_path / "out.jsonl"
    mark = str(tmp_path)
    with subprocess.Popen(
        command(source, output, scorer, "--json"),
        env=environment(mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        wait_for(tmp_path / "hangs", running)
        assert len(marked(mark)) > 4
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: Ray's processes get it too
        printed, told = running.communicate(timeout=1200)
    assert running.returncode == 130, told
    assert "rows are labelled and kept beside the output" in told
    assert "Traceback" not in told
    assert printed == ""
    assert marked(mark) == []
    (tmp_path / "free").touch()
    assert label(source, output, scorer=scorer, engine="local").rows == 100
