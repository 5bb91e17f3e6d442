"""Formats of the output: the lines, compressed, and Parquet with every field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adjudge.data_pipelines.label.outputs import LineWriter, ScoreWriter, converter
from adjudge.data_pipelines.label.samples import Item
from adjudge.protocol import Cost, Provenance, Score, StepScore

WHO = Provenance(scorer="fake", fingerprint="fake:1")
SCORES = [
    Score(
        value=1.0,
        steps=(StepScore(value=0.5, label="ok", start=0, end=2), StepScore(value=None)),
        parts={"a": Score.scored(1.0)},
        evidence={"answer": "é", "odd": "\ud800"},
        uncertainty=0.1,
        provenance=WHO,
        cost=Cost(seconds=2.0, prompt_tokens=3),
    ),
    Score(value=None, status="failed", reason="bad_sample", provenance=WHO),
]


def write(folder: Path, *, timings: bool, columns: bool, keep: bool) -> Path:
    scores, writer = ScoreWriter(WHO, timings=timings), LineWriter(columns=columns)
    kept = {"q": "?", "deep": {"x": 1}} if keep else None
    items = [Item(row, f"i{row}\ud800", "", "r", None, "", 0, kept) for row in range(len(SCORES))]
    lines = folder / "lines"
    lines.write_bytes(
        b"".join(writer.line(item, scores.write(score)) for item, score in zip(items, SCORES, strict=True))
    )
    return lines


def test_json_lines_need_no_conversion() -> None:
    for name in ("out.jsonl", "out.NDJSON", "out.jsonlines"):
        assert converter(Path(name), timings=False, columns=False, keep=False) is None


def test_compressed_lines_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    lines = write(tmp_path, timings=False, columns=False, keep=False)
    convert = converter(tmp_path / "out.jsonl.gz", timings=False, columns=False, keep=False)
    assert convert is not None
    convert(lines, tmp_path / "one")
    convert(lines, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert gzip.decompress((tmp_path / "one").read_bytes()) == lines.read_bytes()


@pytest.mark.parametrize("full", [True, False])
def test_parquet_holds_every_field(tmp_path: Path, full: bool) -> None:
    lines = write(tmp_path, timings=full, columns=full, keep=full)
    convert = converter(tmp_path / "out.parquet", timings=full, columns=full, keep=full)
    assert convert is not None
    convert(lines, tmp_path / "one")
    convert(lines, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    rows = pq.read_table(tmp_path / "one").to_pylist()
    assert [row.pop("id") for row in rows] == ["i0\\ud800", "i1\\ud800"]
    assert [row.pop("row") for row in rows] == [0, 1]
    if full:
        assert [row.pop("column") for row in rows] == ["r", "r"]
        assert [json.loads(row.pop("input")) for row in rows] == [{"q": "?", "deep": {"x": 1}}] * 2
    for row, score in zip(rows, SCORES, strict=True):
        del row["group"], row["sample_hash"], row["prompt_hash"]
        row["evidence"], row["parts"] = json.loads(row["evidence"]), json.loads(row["parts"])
        if full:
            assert Score.from_dict(row) == score
        else:
            assert "seconds" not in row["cost"]
            assert Score.from_dict(row).value == score.value


def test_an_empty_parquet_has_its_columns(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"")
    convert = converter(tmp_path / "out.parquet", timings=False, columns=False, keep=False)
    assert convert is not None
    convert(tmp_path / "lines", tmp_path / "one")
    table = pq.read_table(tmp_path / "one")
    assert table.num_rows == 0
    assert table.column_names[:7] == ["row", "id", "group", "sample_hash", "prompt_hash", "value", "status"]


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.parquet.gz"])
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must end in \.jsonl, \.ndjson, \.jsonl\.gz or \.parquet"):
        converter(Path(name), timings=False, columns=False, keep=False)
