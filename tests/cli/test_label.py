from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.cli import exits
from adjudge.cli.label import LabelCommand
from adjudge.data_pipelines.label.config import LabelConfig
from adjudge.io.errors import JobStopped

Adjudge = Callable[..., Any]

ROWS = [
    {"id": "a", "question": "Capital of France?", "response": "Paris", "reference": "Paris"},
    {"id": "b", "question": "Capital of Norway?", "response": "Bergen", "reference": "Oslo"},
]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(path)


def test_a_job(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    ran = adjudge("label", rows, str(out), "--scorer", f"{toys}:Toy")
    assert ran.code == exits.FINE
    assert [json.loads(line)["value"] for line in out.read_text().splitlines()] == [1.0, 0.0]
    assert "toy" in ran.out
    assert "2 scores of 2 rows" in ran.out
    assert "mean 0.5" in ran.out
    assert "prompt: column 'question' (guessed" in ran.err
    assert "\x1b" not in ran.err, "no bar where there is no terminal"


def test_json(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> None:
    ran = adjudge("label", rows, str(tmp_path / "scores.jsonl"), "--scorer", f"{toys}:Toy", "--json", "--limit", "1")
    assert ran.code == exits.FINE
    assert (ran.json["rows"], ran.json["mean"], ran.json["scorer"]) == (1, 1.0, "toy")


def test_rows_that_fail_are_in_the_exit_code(adjudge: Adjudge, toys: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"id": "c", "response": "x", "reference": 5}]))
    ran = adjudge("label", str(path), str(tmp_path / "scores.jsonl"), "--scorer", f"{toys}:Toy")
    assert ran.code == exits.FOUND
    assert "bad_sample" in ran.out


def test_what_failed_in_a_group_is_judged_again_by_the_call_that_is_told(adjudge: Adjudge, tmp_path: Path) -> None:
    path, out = tmp_path / "rows.jsonl", str(tmp_path / "out.jsonl")
    ok = {"question": "1+1?", "response": "2", "reference": "2", "group": "g"}
    path.write_text("".join(json.dumps(row) + "\n" for row in [ok, ok, {**ok, "reference": {"sql": 1}}]))
    call = ("label", str(path), out, "--scorer", '{"transform": {"scorer": "math", "steps": ["rank"]}}')
    ran = adjudge(*call)
    assert ran.code == exits.FOUND
    assert "--retry-failed" not in ran.out
    assert "the same command with --overwrite judges all rows again" in ran.out
    assert adjudge(*call, "--overwrite").code == exits.FOUND
    refused = adjudge(*call, "--overwrite", "--cache", str(tmp_path / "cache.sqlite"))
    assert refused.code == exits.USER
    assert "are not cached" in refused.err


def test_a_minus_for_a_file_is_refused(adjudge: Adjudge, rows: str, tmp_path: Path) -> None:
    for paths in ((rows, "-"), ("-", str(tmp_path / "out.jsonl"))):
        ran = adjudge("label", *paths, "--scorer", "exact")
        assert ran.code == exits.USER
        assert "is -, and a job reads and writes files" in " ".join(ran.err.split())


def test_a_job_that_scored_nothing_is_in_the_exit_code_with_the_references_it_saw(
    adjudge: Adjudge, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    words = ("label", str(path), str(tmp_path / "scores.jsonl"), "--scorer", "token_f1", "--overwrite")
    for references, code in (([{"test": "x"}, {"test": "y"}], exits.FOUND), ([{"test": "x"}, "1"], exits.FINE)):
        path.write_text("".join(json.dumps({"response": "1", "reference": each}) + "\n" for each in references))
        ran = adjudge(*words)
        told = "Not one row was scored. What the references in the first rows are: an object with the fields test;"
        assert (ran.code, told in ran.out) == (code, code == exits.FOUND), ran.out


def test_start_up_is_counted_once_in_what_all_rows_would_take(adjudge: Adjudge, rows: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\nfrom adjudge.protocol import Score\n\n\nclass Slow:\n    name = fingerprint = 'slow'\n"
        "    started = False\n\n    def validate(self, sample):\n        pass\n\n"
        "    async def score(self, samples):\n"
        "        if not self.started:\n            time.sleep(3.0)\n            self.started = True\n"
        "        return [Score(value=1.0) for _ in samples]\n"
    )
    table = tmp_path / "rows.csv"
    table.write_text("response\n" + "x\n" * 1000)
    saved = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"response": ["x"] * 1000}), saved)
    for path, counted in ((table, False), (saved, True)):
        words = ("label", str(path), str(tmp_path / "out.jsonl"), "--scorer", f"{tmp_path}/slow.py:Slow", "--overwrite")
        told = adjudge(*words, "--batch-size", "5", "--limit", "100", "--json").json["whole_input"]
        assert (told["counted"], told["at_most"]) == (counted, False)
        assert 3.0 <= told["seconds"] < 20.0, "not ten times the three seconds that the start takes"
        told = adjudge(*words, "--limit", "100", "--json").json["whole_input"]
        assert (told["at_most"], told["seconds"] < 20.0) == (False, True), "in batches that hold all of them, too"
        assert adjudge(*words, "--limit", "1", "--json").json["whole_input"]["at_most"]
        assert told["rows"] == pytest.approx(1000, rel=0.1)


def test_without_a_reference_the_column_that_was_taken_for_the_response_is_told(
    adjudge: Adjudge, tmp_path: Path
) -> None:
    path = tmp_path / "math.jsonl"
    path.write_text(json.dumps({"problem": "2+2", "type": "x", "solution": "So it is $\\boxed{4}$."}) + "\n")
    ran = adjudge("label", str(path), str(tmp_path / "out.jsonl"), "--scorer", "math")
    assert ran.code == exits.USER
    assert "response: column 'solution' (guessed; --response-column chooses another)" in ran.err
    assert "no column looks like a reference" in ran.err


def test_a_mistake_is_one_paragraph(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> None:
    out = str(tmp_path / "scores.jsonl")
    ran = adjudge("label", rows, out, "--scorer", f"{toys}:Toy", "--limit", "0")
    assert (ran.code, ran.err.count("\n")) == (exits.USER, 1)
    assert "--limit is 0" in ran.err
    ran = adjudge("label", rows, out, "--scorer", f"{toys}:Toy", "--response-column", "respnse")
    assert ran.code == exits.USER
    assert "Did you mean 'response'?" in ran.err
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("name", "text"), [("rows.jsonl", ""), ("rows.json", "[]"), ("rows.csv", "prompt,response,reference\n")]
)
def test_an_input_without_rows_is_said_and_no_table_is_shown(
    adjudge: Adjudge, toys: str, name: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    ran = adjudge("label", str(tmp_path / name), str(tmp_path / "scores.jsonl"), "--scorer", f"{toys}:Toy")
    assert ran.code == exits.FINE
    assert "holds no rows" in ran.err
    assert ran.out.startswith("0 scores of 0 rows")


def test_an_output_that_exists_is_not_replaced(adjudge: Adjudge, toys: str, rows: str, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    out.write_text("precious")
    assert adjudge("label", rows, str(out), "--scorer", f"{toys}:Toy").code == exits.USER
    assert out.read_text() == "precious"


def test_interrupted_says_how_to_go_on(
    adjudge: Adjudge, toys: str, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise JobStopped("stopped; make the same call again to go on")

    monkeypatch.setattr("adjudge.data_pipelines.label.run_label", stop)
    ran = adjudge("label", rows, str(tmp_path / "scores.jsonl"), "--scorer", f"{toys}:Toy")
    assert (ran.code, ran.err) == (exits.INTERRUPTED, "adjudge: stopped; make the same call again to go on\n")


def test_every_option_of_the_job_is_a_flag() -> None:
    ours = {item.name: item.default for item in dataclasses.fields(LabelCommand)}
    theirs = {item.name: item.default for item in dataclasses.fields(LabelConfig)}
    assert theirs["scorer"] == "auto"
    assert ours == theirs | {"as_json": False, "scorer": ()}, "what is given is appended to a default"
