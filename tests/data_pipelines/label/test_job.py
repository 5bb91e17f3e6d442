"""The job as a whole, on real files of each format, with a scorer made for the test."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.data_pipelines.label import JobError, LabelConfig, LabelReport, Snapshot, run_label
from adjudge.data_pipelines.label.bench import Written
from adjudge.data_pipelines.label.outputs import LineWriter
from adjudge.data_pipelines.label.samples import Item
from adjudge.io.jobs.journal import partial_of
from adjudge.protocol import Sample, Score, response_text

ROWS = [
    {"id": f"q{index}", "prompt": f"{index}+1?", "response": str(index + (index % 3 != 0)), "answer": str(index + 1)}
    for index in range(500)
]
RIGHT = sum(index % 3 != 0 for index in range(500))


class Equal:
    """1 where the response is the reference."""

    name = "equal"
    fingerprint = "equal:1"

    def __init__(self) -> None:
        self.asked = 0

    def validate(self, sample: Sample) -> None:
        if sample.reference is None:
            raise ValueError("the sample has no reference; set --reference-column")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.asked += len(samples)
        return [Score.scored(float(response_text(one) == one.reference), ref=one.reference) for one in samples]


class Watch:
    """Keeps what a job tells."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.snapshots: list[Snapshot] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def update(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)


def jsonl(path: Path, rows: Sequence[Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def label(source: str, output: Path, scorer: Any = None, **options: Any) -> LabelReport:
    return run_label(LabelConfig(input=source, output=str(output), **options), scorer=scorer or Equal())


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_format_gives_the_same_output(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"in.{kind}"
    if kind == "jsonl":
        jsonl(file, ROWS)
    elif kind == "json":
        file.write_text(json.dumps(ROWS, indent=1))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), file, row_group_size=64)
    else:
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(ROWS[0]), delimiter="," if kind == "csv" else "\t")
            writer.writeheader()
            writer.writerows(ROWS)
    output = tmp_path / "out.jsonl"
    report = label(str(file), output, batch_size=32)
    assert (report.rows, report.samples, report.scored, report.failed) == (500, 500, 500, 0)
    assert report.mean == RIGHT / 500
    assert report.counts == {("equal", "scored", ""): 500}
    written = records(output)
    assert [(row["row"], row["id"]) for row in written] == [(index, f"q{index}") for index in range(500)]
    assert [row["value"] for row in written] == [float(index % 3 != 0) for index in range(500)]
    assert written[7]["provenance"] == {"scorer": "equal", "fingerprint": "equal:1", "engine": "", "revision": ""}
    assert written[7]["evidence"] == {"ref": "8"}
    assert not partial_of(output).exists()


class Backwards(Equal):
    """Holds its first calls until so many are under way, and answers them last first."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.held: list[asyncio.Event] = [asyncio.Event() for _ in range(calls)]
        self.calls = 0

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        mine = self.calls
        self.calls += 1
        if self.calls == len(self.held):
            self.held[-1].set()
        if mine < len(self.held):
            await asyncio.wait_for(self.held[mine].wait(), 60)
            if mine:
                self.held[mine - 1].set()
        return await super().score(samples)


def test_options_of_speed_do_not_change_a_byte(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", ROWS)
    label(source, tmp_path / "a.jsonl", batch_size=1, in_flight=1)
    label(source, tmp_path / "b.jsonl", Backwards(5), batch_size=7, in_flight=5)
    label(source, tmp_path / "c.jsonl", batch_size=1000, cache=str(tmp_path / "cache"))
    fresh = Equal()
    label(source, tmp_path / "d.jsonl", fresh, batch_size=33, cache=str(tmp_path / "cache"))
    assert len({(tmp_path / f"{name}.jsonl").read_bytes() for name in "abcd"}) == 1
    assert fresh.asked == 0


def test_bad_rows_are_written_out_and_stop_nothing(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    good = json.dumps(ROWS[1]).encode()
    no_gold = json.dumps({"id": "n", "prompt": "", "response": "x"}).encode()
    file.write_bytes(b"\n".join([good, b"{", b"[1]", no_gold, b'{"response":"\xff"}', b"x" * (2 << 20), b"\x00", good]))
    report = label(str(file), tmp_path / "out.jsonl", max_row_mb=1)
    assert report.counts == {("equal", "scored", ""): 2, ("equal", "failed", "bad_sample"): 6}
    written = records(tmp_path / "out.jsonl")
    assert [row["row"] for row in written] == list(range(8))
    assert [row["value"] for row in written] == [1.0, *[None] * 6, 1.0]
    assert [row["evidence"].get("line") for row in written[1:7]] == [2, 3, None, 5, 6, 7]
    told = [row["evidence"]["error"] for row in written[1:7]]
    for text, part in zip(
        told, ["malformed", "a list", "no reference", "not UTF-8", "limit", "malformed"], strict=True
    ):
        assert part in text


def test_a_file_of_bad_rows_only_is_taken_for_a_mistake_unless_the_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text("{\n[\n")
    with pytest.raises(ValueError, match=r"none of the first 2 rows of .*in\.jsonl can be read \(line 1: malformed"):
        label(str(file), tmp_path / "out.jsonl")
    report = label(str(file), tmp_path / "out.jsonl", response_column=("r",))
    assert report.failed == 2


@pytest.mark.parametrize(("name", "content"), [("in.jsonl", ""), ("in.csv", "response,answer\n"), ("in.json", "[]")])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_no_rows_give_an_empty_output(tmp_path: Path, name: str, content: str, suffix: str) -> None:
    (tmp_path / name).write_text(content)
    output = tmp_path / f"out.{suffix}"
    report = label(str(tmp_path / name), output)
    assert (report.rows, report.samples, report.mean) == (0, 0, None)
    assert output.exists()


def test_several_responses_columns_kept_and_parquet(tmp_path: Path) -> None:
    rows = [{"q": "?", "gold": "4", "a": {"text": "4"}, "b": ["5", "4"]} for _ in range(3)]
    source = jsonl(tmp_path / "in.jsonl", rows)
    output = tmp_path / "out.parquet"
    options: dict[str, Any] = {"response_column": ("a.text", "b"), "reference_column": "gold", "keep_columns": True}
    report = label(source, output, **options)
    assert (report.rows, report.samples) == (3, 9)
    table = pq.read_table(output).to_pylist()
    assert [row["id"] for row in table[:4]] == ["0/0", "0/1", "0/2", "1/0"]
    assert [row["column"] for row in table[:3]] == ["a.text", "b", "b"]
    assert [row["value"] for row in table[:3]] == [1.0, 0.0, 1.0]
    assert [row["group"] for row in table[:4]] == ["0", "0", "0", "1"]
    kept = [json.loads(row["input"]) for row in table[:3]]
    assert [(row["a"], row["b"]) for row in kept] == [({"text": "4"}, None), ({"text": "4"}, "5"), ({"text": "4"}, "4")]


def test_a_folder_for_datasets(tmp_path: Path) -> None:
    rows = [{"response": "4", "answer": "4", "id": "a"}, {"response": None, "id": "b"}]
    label(jsonl(tmp_path / "in.jsonl", rows), tmp_path / "out", keep_columns=True)
    read: list[Any] = list(datasets.load_from_disk(str(tmp_path / "out")))
    assert [(row["id"], row["value"], row["evidence"], row["input"]) for row in read] == [
        ("a", 1.0, {"ref": "4"}, rows[0]),
        (
            "b",
            None,
            {
                "error": "the response in 'response' is null; it must be text or chat turns with a role",
                "row": 1,
                "line": 2,
            },
            rows[1],
        ),
    ]


def test_shards_and_limit(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", ROWS)
    seen = []
    for shard in range(3):
        output = tmp_path / f"{shard}.jsonl"
        label(source, output, shard=f"{shard}/3", limit=100, batch_size=8)
        mine = [row["row"] for row in records(output)]
        assert mine == list(range(shard, 100, 3))
        seen += mine
    assert sorted(seen) == list(range(100))


def test_duplicate_ids_are_all_kept(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [ROWS[1], ROWS[0], ROWS[1]])
    report = label(source, tmp_path / "out.jsonl")
    assert report.samples == 3
    assert [(row["row"], row["id"]) for row in records(tmp_path / "out.jsonl")] == [(0, "q1"), (1, "q0"), (2, "q1")]


def test_progress_and_notes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = jsonl(tmp_path / "in.jsonl", [*ROWS, 7])
    watch = Watch()
    with caplog.at_level(logging.INFO):
        report = run_label(
            LabelConfig(input=source, output=str(tmp_path / "o.jsonl"), batch_size=50), progress=watch, scorer=Equal()
        )
    assert watch.notes[0] == "response: column 'response' (guessed; --response-column chooses another)"
    assert watch.notes == list(report.notes) == caplog.messages
    told = [snapshot.rows for snapshot in watch.snapshots]
    assert told == sorted({*told})
    assert set(told) <= {*range(50, 501, 50), 501}
    assert told[-1] == 501
    shares = [snapshot.fraction for snapshot in watch.snapshots]
    assert shares == sorted(shares, key=lambda share: share or 0)
    last = watch.snapshots[-1]
    assert (last.scored, last.failed, last.abstained, last.fraction) == (500, 1, 0, 1.0)
    assert last.mean == report.mean
    assert last.rows_per_second > 0
    assert last.eta_seconds == 0.0
    assert report.to_dict()["counts"][0] == {"scorer": "equal", "status": "scored", "reason": "", "count": 500}
    json.dumps(report.to_dict())


class Breaks(Equal):
    """Works for some calls and then breaks."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.calls -= 1
        if self.calls < 0:
            raise ConnectionError("the engine is gone")
        return await super().score(samples)


def test_a_broken_scorer_stops_the_job_and_loses_nothing(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", ROWS)
    label(source, tmp_path / "whole.jsonl", timings=True)
    output = tmp_path / "out.jsonl"
    with pytest.raises(JobError, match=r"'equal' raised ConnectionError: the engine is gone; 100 rows are labelled"):
        label(source, output, Breaks(10), batch_size=10, in_flight=1)
    assert not output.exists()
    scorer = Equal()
    report = label(source, output, scorer, batch_size=64)
    assert scorer.asked == 400
    assert (report.rows, report.resumed_rows, report.mean) == (500, 100, RIGHT / 500)
    with pytest.raises(JobError, match="0 rows are labelled"):
        label(source, tmp_path / "none.jsonl", Breaks(0))
    assert not partial_of(tmp_path / "none.jsonl").exists()


def test_counts_are_those_of_one_run_though_a_line_could_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, output = jsonl(tmp_path / "in.jsonl", ROWS), tmp_path / "out.jsonl"
    line = LineWriter.line

    def broken(self: LineWriter, item: Item, score: Written) -> bytes:
        if item.row == 305:
            raise RecursionError
        return line(self, item, score)

    with monkeypatch.context() as patched:
        patched.setattr(LineWriter, "line", broken)
        with pytest.raises(RecursionError):
            label(source, output, batch_size=10)
    report = label(source, output, batch_size=10)
    assert (report.resumed_rows, report.rows, report.samples, report.mean) == (300, 500, 500, RIGHT / 500)
    assert [row["row"] for row in records(output)] == list(range(500))


def test_a_scorer_that_miscounts_is_named(tmp_path: Path) -> None:
    class Short(Equal):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            return (await super().score(samples))[1:]

    source = jsonl(tmp_path / "in.jsonl", ROWS)
    with pytest.raises(JobError, match="'equal' returned 255 scores for 256 samples"):
        label(source, tmp_path / "out.jsonl", Short())


def test_a_job_with_another_scorer_or_option_is_not_mixed_in(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", ROWS)
    output = tmp_path / "out.jsonl"
    with pytest.raises(JobError):
        label(source, output, Breaks(10), batch_size=10)
    other = Equal()
    other.fingerprint = "equal:2"
    with pytest.raises(ValueError, match=r"scorer\.fingerprint was 'equal:1' and is 'equal:2'"):
        label(source, output, other)
    with pytest.raises(ValueError, match=r"options\.limit was None and is 7"):
        label(source, output, limit=7)
    with pytest.raises(ValueError, match=r"columns\.reference was 'answer' and is 'prompt'"):
        label(source, output, reference_column="prompt")
    jsonl(tmp_path / "in.jsonl", ROWS[:-1])
    with pytest.raises(ValueError, match=r"not this one: in\.jsonl has changed since\. Make the same"):
        label(source, output)
    assert label(source, output, restart=True).rows == 499


def test_an_input_that_changes_while_it_is_read_is_found(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"

    class Meddler(Equal):
        async def score(self, samples: Sequence[Sample]) -> list[Score]:
            file.open("a").close()
            jsonl(file, ROWS[::-1])
            return await super().score(samples)

    jsonl(file, ROWS)
    with pytest.raises(JobError, match=r"changed while it was read.*--restart"):
        label(str(file), tmp_path / "out.jsonl", Meddler())
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"output": "in.jsonl"}, "is the input or lies inside it"),
        ({"output": "out.txt"}, "must end in"),
        ({"output": "folder"}, "is a folder"),
        ({"output": "taken.jsonl"}, "exists already.*--overwrite"),
        ({"response_column": ("respones",)}, "Did you mean 'response'"),
        ({"input": "none.jsonl"}, "there is no file"),
        ({"input": "bare.jsonl"}, "the sample has no reference; set --reference-column"),
    ],
)
def test_mistakes_are_found_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(tmp_path / "in.jsonl", ROWS)
    jsonl(tmp_path / "bare.jsonl", [{"response": "x"}])
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken.jsonl").write_text("")
    before = sorted(tmp_path.iterdir())
    scorer = Equal()
    with pytest.raises(ValueError, match=told):
        run_label(LabelConfig(**{"input": "in.jsonl", "output": "out.jsonl", **options}), scorer=scorer)
    assert scorer.asked == 0
    assert sorted(tmp_path.iterdir()) == before


FILES: dict[str, dict[str, Any]] = {
    "sums": {"problem": "2+2", "solution": "4", "answer": "4"},
    "words": {"question": "2+2", "completion": "4", "answer": "4"},
    "alike": {"problem": "2+2", "solution": "5", "answer": "5", "note": "x"},
    "asks": {"problem": "2+2", "solution": "def f(): ...", "tests": ["assert f() is None"]},
}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_files_with_other_columns_are_refused_by_name(tmp_path: Path, suffix: str) -> None:
    paths = {name: str(tmp_path / f"{name}.{suffix}") for name in FILES}
    for name, row in FILES.items():
        if suffix == "parquet":
            pq.write_table(pa.Table.from_pylist([row]), paths[name])
        else:
            jsonl(Path(paths[name]), [row] * 200)
    told = (
        r"(words|sums)\.\w+ has the prompt in '\w+', and not in '\w+'; .*--prompt-column '(\w+\|\w+)' reads the first"
    )
    with pytest.raises(ValueError, match=told):
        label(f"{paths['sums']},{paths['words']}", tmp_path / "out.jsonl")
    assert label(f"{paths['sums']},{paths['alike']}", tmp_path / "both.jsonl").failed == 0
    if suffix == "parquet":
        with pytest.raises(ValueError, match=r"asks\.parquet has the reference in 'tests', and not in 'answer'"):
            label(f"{paths['sums']},{paths['asks']}", tmp_path / "kinds.jsonl")
        return
    named = {"prompt_column": "problem|question", "response_column": ("solution|completion",)}
    assert label(f"{paths['sums']},{paths['words']}", tmp_path / "named.jsonl", **named).mean == 1.0
    notes = label(f"{paths['sums']},{paths['asks']}", tmp_path / "kinds.jsonl").notes
    assert any(note.startswith("reference: column 'answer|tests' (guessed") for note in notes)


@pytest.mark.parametrize("written", ["jsonl", "parquet"])
def test_columns_that_come_late_are_told(tmp_path: Path, written: str) -> None:
    late = {"response": "x", "answer": None, "tests": "[]", "entry_point": "f", "other": "y"}
    rows = [{"response": "4", "answer": "4"}] * 150 + [late] * 3
    source = jsonl(tmp_path / "in.jsonl", rows)
    if written == "parquet":
        source = str(tmp_path / "in.parquet")
        pq.write_table(pa.Table.from_pylist([dict.fromkeys(late) | row for row in rows]), source)
    told = label(source, tmp_path / "out.jsonl").notes[-1]
    assert told.startswith("reference: from row 150 on the input has other columns, which were not read; --reference")
    assert told.endswith("-column 'answer|tests+entry_point' reads them")
    assert told not in label(source, tmp_path / "named.jsonl", reference_column="answer").notes


def test_the_output_may_not_lie_in_the_input_folder(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    jsonl(tmp_path / "in" / "a.jsonl", ROWS)
    with pytest.raises(ValueError, match="lies inside it"):
        label(str(tmp_path / "in"), tmp_path / "in" / "out.jsonl")


class Ranks:
    """The share of its group that a sample is not shorter than."""

    name = "ranks"
    fingerprint = "ranks:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        groups: dict[str, list[int]] = {}
        for sample in samples:
            groups.setdefault(sample.group, []).append(len(response_text(sample)))
        return [
            Score.scored(sum(length <= len(response_text(sample)) for length in group) / len(group), n=len(group))
            for sample in samples
            for group in [groups[sample.group]]
        ]


def test_a_groupwise_scorer_gets_whole_groups(tmp_path: Path) -> None:
    rows = [{"response": "x" * (index % 5 + 1), "group": f"g{index // 5}"} for index in range(100)]
    source = jsonl(tmp_path / "in.jsonl", rows)
    for size, shard in ((3, ""), (1, ""), (64, "1/2")):
        output = tmp_path / f"out{size}.jsonl"
        label(source, output, Ranks(), batch_size=size, shard=shard)
        written = records(output)
        assert {row["evidence"]["n"] for row in written} == {5}
        assert [row["value"] for row in written[:5]] == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert (tmp_path / "out3.jsonl").read_bytes() == (tmp_path / "out1.jsonl").read_bytes()
    listed = jsonl(tmp_path / "lists.jsonl", [{"response": ["x", "xx"]}] * 5)
    label(listed, tmp_path / "lists.out.jsonl", Ranks(), batch_size=1)
    assert [row["value"] for row in records(tmp_path / "lists.out.jsonl")] == [0.5, 1.0] * 5


def test_a_scorer_of_groups_that_asks_for_one_is_tried_with_the_groups_of_the_rows(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"prompt": "1+1?", "response": ["\\boxed{2}", "\\boxed{2}", "\\boxed{3}"]}])
    run_label(LabelConfig(input=source, output=str(tmp_path / "out.jsonl"), scorer="ttrl"))
    assert [row["value"] for row in records(tmp_path / "out.jsonl")] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("order", [[0, 0, 1, 1], [0, 1, 0, 1]], ids=["together", "scattered"])
def test_a_guessed_group_column_that_holds_several_prompts_is_refused(tmp_path: Path, order: list[int]) -> None:
    rows = [{"question": f"{at}+1?", "response": "\\boxed{2}", "group": f"algebra{at}"} for at in order]
    source = jsonl(tmp_path / "ok.jsonl", sorted(rows, key=str))
    assert label(source, tmp_path / "ok.out.jsonl", Ranks()).rows == 4, "one prompt each"
    source = jsonl(tmp_path / "in.jsonl", [{**row, "group": "algebra"} for row in rows])
    with pytest.raises(ValueError, match=r"'algebra' holds several prompts.*'group' was guessed.*--group-column"):
        label(source, tmp_path / "out.jsonl", Ranks())
    watch = Watch()
    config = LabelConfig(input=source, output=str(tmp_path / "out.jsonl"), group_column="group")
    assert run_label(config, scorer=Ranks(), progress=watch).rows == 4
    assert any("'algebra' holds several prompts" in note for note in watch.notes), "a user may mean it, and hears of it"


def test_scattered_groups_are_refused_before_any_work(tmp_path: Path) -> None:
    rows = [{"response": "x", "group": f"g{index % 5}"} for index in range(10)]
    source = jsonl(tmp_path / "in.jsonl", rows)
    with pytest.raises(ValueError, match="the group 'g0' goes on at row 5"):
        label(source, tmp_path / "out.jsonl", Ranks())
    assert not partial_of(tmp_path / "out.jsonl").exists()
    assert label(source, tmp_path / "out.jsonl", Equal(), reference_column="group").rows == 10


def test_it_runs_inside_a_running_loop_and_in_a_thread(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", ROWS)

    async def inside() -> None:
        assert label(source, tmp_path / "a.jsonl").rows == 500

    asyncio.run(inside())
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(label, source, tmp_path / "b.jsonl").result().rows == 500
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
