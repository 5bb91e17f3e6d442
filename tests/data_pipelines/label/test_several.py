"""Several scorers in one pass: one line for each sample, and dear scorers asked only where cheap ones left doubt."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

from adjudge.cli import exits
from adjudge.cli.main import main
from adjudge.data_pipelines.label import JobError, LabelConfig, LabelReport, run_label
from adjudge.data_pipelines.label.bench import LocalBench, Stage, Stages, Written
from adjudge.data_pipelines.label.report import Tally
from adjudge.protocol import Cost, Sample, Score, response_text

HERE = Path(__file__).stem


class Cheap:
    """Knows short answers, is unsure of long ones, and fails on the word "broken"."""

    name = "cheap"
    fingerprint = "cheap:1"
    asked: ClassVar[list[str]] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        Cheap.asked += [sample.id for sample in samples]
        return [self._one(response_text(sample), sample.reference) for sample in samples]

    def _one(self, text: str, gold: Any) -> Score:
        if text == "broken":
            return Score.failed("engine_unavailable")
        if len(text) > 5:
            return Score.scored(0.0, "undecided")
        return Score.scored(float(text == gold), "" if text == gold else "wrong")


class Dear(Cheap):
    """Knows everything."""

    name = "dear"
    fingerprint = "dear:1"
    asked: ClassVar[list[str]] = []
    breaks: ClassVar[bool] = False

    def validate(self, sample: Sample) -> None:
        if sample.reference == "none":
            raise ValueError("the reference is none")

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        if Dear.breaks:
            raise ConnectionError("the engine is gone")
        Dear.asked += [sample.id for sample in samples]
        return [Score.scored(2.0) for _ in samples]


class Groups(Cheap):
    name = "groups"
    groupwise = True


ROWS: list[dict[str, Any]] = [
    {"id": "right", "response": "4", "answer": "4"},
    {"id": "wrong", "response": "5", "answer": "4"},
    {"id": "unsure", "response": "four, I think", "answer": "4"},
    {"id": "broken", "response": "broken", "answer": "4"},
    {"id": "unfit", "response": "a long answer", "answer": "none"},
    {"id": "bad", "response": None, "answer": "4"},
]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cheap, "asked", [])
    monkeypatch.setattr(Dear, "asked", [])
    monkeypatch.setitem(sys.modules, HERE, sys.modules[__name__])  # whatever pytest calls this file


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


SCORERS = (f"cheap={HERE}:Cheap", f"dear={HERE}:Dear")


def label(source: str, output: Path, **options: Any) -> LabelReport:
    return run_label(LabelConfig(input=source, output=str(output), **{"scorer": SCORERS, **options}))


def records(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_bytes().splitlines())}


def test_every_scorer_is_asked_about_every_sample_unless_told_otherwise(tmp_path: Path, source: str) -> None:
    report = label(source, tmp_path / "out.jsonl")
    rows = records(tmp_path / "out.jsonl")
    assert list(rows) == [row["id"] for row in ROWS]
    assert all(row["not_asked"] == [] and list(row["scores"]) == ["cheap", "dear"] for row in rows.values())
    assert [row["scores"]["cheap"]["value"] for row in rows.values()] == [1.0, 0.0, 0.0, None, 0.0, None]
    assert [row["scores"]["dear"]["value"] for row in rows.values()] == [2.0, 2.0, 2.0, 2.0, None, None]
    assert rows["unfit"]["scores"]["dear"]["evidence"] == {"error": "the reference is none"}
    assert Score.from_dict(rows["right"]["scores"]["dear"]) == Score(
        value=2.0, provenance=Score.from_dict(rows["wrong"]["scores"]["dear"]).provenance
    )
    assert (report.rows, report.samples, report.mean, report.scorer) == (6, 12, None, "cheap, dear")
    assert report.by_scorer["cheap"].mean == 1.0 / 4
    assert (report.by_scorer["dear"].scored, report.by_scorer["dear"].failed) == (4, 2)
    assert report.to_dict()["by_scorer"]["dear"]["fingerprint"] == "dear:1"
    assert report.counts["dear", "failed", "bad_sample"] == 2


def test_a_dear_scorer_is_asked_only_where_the_cheap_one_left_doubt(tmp_path: Path, source: str) -> None:
    report = label(source, tmp_path / "out.jsonl", unless=("dear=cheap",), doubt=("undecided",))
    rows = records(tmp_path / "out.jsonl")
    assert Dear.asked == ["unsure", "broken"]
    assert {name: row["not_asked"] for name, row in rows.items()} == {
        "right": ["dear"],
        "wrong": ["dear"],
        "unsure": [],
        "broken": [],
        "unfit": [],
        "bad": [],
    }
    assert rows["right"]["scores"]["dear"] is None
    assert rows["bad"]["scores"]["dear"]["status"] == "failed"
    assert report.by_scorer["dear"].not_asked == 2
    assert report.by_scorer["dear"].failed == 2
    assert ("dear", "scored", "") in report.counts
    Dear.asked.clear()
    label(source, tmp_path / "sure.jsonl", unless=("dear=cheap",))
    assert Dear.asked == ["broken"], "without --doubt, any number settles"


def test_the_options_of_speed_change_no_byte(tmp_path: Path, source: str) -> None:
    options: dict[str, Any] = {"unless": ("dear=cheap",), "doubt": ("undecided",), "keep_columns": True}
    label(source, tmp_path / "a.jsonl", batch_size=1, in_flight=1, **options)
    label(source, tmp_path / "b.jsonl", batch_size=4, cache=str(tmp_path / "cache"), **options)
    label(source, tmp_path / "c.jsonl", cache=str(tmp_path / "cache"), **options)
    assert len({(tmp_path / f"{name}.jsonl").read_bytes() for name in "abc"}) == 1


def test_a_job_of_several_goes_on_and_is_not_mixed_with_another(
    tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"unless": ("dear=cheap",), "doubt": ("undecided",), "batch_size": 1, "in_flight": 1}
    whole = label(source, tmp_path / "whole.jsonl", **options)
    monkeypatch.setattr(Dear, "breaks", True)
    output = tmp_path / "out.jsonl"
    with pytest.raises(JobError, match="'dear' raised ConnectionError: the engine is gone; 2 rows are labelled"):
        label(source, output, **options)
    monkeypatch.setattr(Dear, "breaks", False)
    with pytest.raises(ValueError, match=r"scorers\.dear\.unless was \['cheap'\] and is \[\]"):
        label(source, output)
    with pytest.raises(ValueError, match=r"doubt was \['undecided'\] and is \[\]"):
        label(source, output, unless=("dear=cheap",))
    with pytest.raises(ValueError, match=r"scorers.* was .* and is None"):
        label(source, output, scorer=f"{HERE}:Cheap")
    monkeypatch.setattr(Dear, "fingerprint", "dear:2")
    with pytest.raises(ValueError, match=r"scorers\.dear\.fingerprint was 'dear:1' and is 'dear:2'"):
        label(source, output, **options)
    monkeypatch.setattr(Dear, "fingerprint", "dear:1")
    Cheap.asked.clear()
    report = label(source, output, **options)
    assert Cheap.asked == ["unsure", "broken", "unfit"], "what was written is not asked again"
    assert (report.by_scorer, report.counts) == (whole.by_scorer, whole.counts)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_parquet_holds_scores_by_name(tmp_path: Path, source: str) -> None:
    label(source, tmp_path / "out.parquet", unless=("dear=cheap",), doubt=("undecided",))
    rows = {row["id"]: row for row in pq.read_table(tmp_path / "out.parquet").to_pylist()}
    assert rows["right"]["scores"]["dear"] is None
    assert rows["right"]["not_asked"] == ["dear"]
    assert rows["unsure"]["scores"]["dear"]["value"] == 2.0
    assert json.loads(rows["unfit"]["scores"]["dear"]["evidence"])["error"] == "the reference is none"


def test_one_scorer_with_a_name_is_written_by_it(tmp_path: Path, source: str) -> None:
    report = label(source, tmp_path / "out.jsonl", scorer=f"mine={HERE}:Cheap")
    assert records(tmp_path / "out.jsonl")["right"]["scores"]["mine"]["value"] == 1.0
    assert report.by_scorer["mine"].scorer == "cheap"


def test_a_scorer_without_a_name_goes_by_its_own(tmp_path: Path, source: str) -> None:
    label(source, tmp_path / "out.jsonl", scorer=(f"{HERE}:Cheap", f"{HERE}:Dear"))
    assert list(records(tmp_path / "out.jsonl")["right"]["scores"]) == ["cheap", "dear"]
    with pytest.raises(ValueError, match="two scorers are called 'cheap'; name one of them"):
        label(source, tmp_path / "two.jsonl", scorer=(f"{HERE}:Cheap", f"{HERE}:Cheap"))


def test_a_cascade_is_one_scorer(tmp_path: Path, source: str) -> None:
    """What composites do is theirs; here, that the spec works from a label job and asks no more than it must."""
    spec = f"{{cascade: {{stages: ['{HERE}:Cheap', '{HERE}:Dear'], pass_on: [undecided]}}}}"
    label(source, tmp_path / "out.jsonl", scorer=spec)
    rows = records(tmp_path / "out.jsonl")
    assert [rows[name]["value"] for name in ("right", "wrong", "unsure")] == [1.0, 0.0, 2.0]
    assert Dear.asked == ["unsure", "broken"]
    assert list(rows["right"]["parts"]) == ["cheap"]


def test_the_command_takes_several(tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [word for scorer in SCORERS for word in ("--scorer", scorer)]
    asked += ["--unless", "dear=cheap", "--doubt", "undecided"]
    assert main(["label", source, str(tmp_path / "out.jsonl"), *asked, "--json"]) == exits.FOUND
    assert json.loads(capsys.readouterr().out)["by_scorer"]["dear"] == {
        "scorer": "dear",
        "fingerprint": "dear:1",
        "scored": 2,
        "abstained": 0,
        "failed": 2,
        "not_asked": 2,
        "mean": 2.0,
        "out_of_scope": 0,
        "cost": {"seconds": 0.0, "prompt_tokens": 0, "completion_tokens": 0},
    }
    assert main(["label", source, str(tmp_path / "again.jsonl"), *asked]) == exits.FOUND
    assert "dear: mean 2, scored 2, abstained 0, failed 2, not asked 2" in capsys.readouterr().out


def test_a_group_scorer_may_not_be_spared() -> None:
    with pytest.raises(ValueError, match="'b' compares the samples of a group"):
        Stages(each=(Stage(name="a", bench=LocalBench(Cheap())),
                     Stage(name="b", bench=LocalBench(Groups()), unless=("a",))))  # fmt: skip


def test_what_no_column_holds_is_found_before_any_work_and_names_the_scorer(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"response": "x"}\n')
    with pytest.raises(ValueError, match=r"the scorer 'math': .* compares with a reference"):
        label(str(tmp_path / "in.jsonl"), tmp_path / "out.jsonl", scorer=("math", f"{HERE}:Cheap"))


def test_counts_survive_the_manifest() -> None:
    tally = Tally(rows=3)
    tally.add_named("a", None)
    tally.add_named("a", Written("", None, "failed", "engine_error", "x", Cost(prompt_tokens=3), "status 400"))
    kept = Tally.from_dict(json.loads(json.dumps(tally.to_dict())))
    assert kept == tally
    assert kept.parts["a"].not_asked == 1
    assert kept.errors == {("a", "failed", "engine_error"): "status 400"}
    assert (kept.cost, kept.parts["a"].cost) == (Cost(prompt_tokens=3), Cost(prompt_tokens=3))
