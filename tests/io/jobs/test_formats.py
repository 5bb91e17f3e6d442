"""Outputs of each format hold the same rows, in the same bytes each time, and are inputs again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.io.jobs.toys import Doubler, Gives, config, jsonl, numbers, records

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.io.errors import JobError
from adjudge.io.jobs import formats, job
from adjudge.io.jobs.formats import format_of
from adjudge.io.jobs.job import run_job
from adjudge.io.jobs.journal import partial_of
from adjudge.io.jobs.maker import Kind
from adjudge.io.row import Cursor
from adjudge.io.source import open_source

TURNS = [{"role": "user", "content": "é"}, {"role": "assistant", "content": None}]
FIELDS: Mapping[str, Kind] = {
    "text": "text",
    "number": "number",
    "whole": "whole",
    "flag": "flag",
    "texts": "texts",
    "numbers": "numbers",
    "wholes": "wholes",
    "flags": "flags",
    "chat": "chat",
    "any": "any",
}
FULL = {
    "text": "a\ud800é\x00",
    "number": 2**60 + 1,
    "whole": -(2**63),
    "flag": False,
    "texts": ["x", None, ""],
    "numbers": [1, 0.5, None],
    "wholes": [],
    "flags": [True, None],
    "chat": TURNS,
    "any": {"z": [1, {"y": None}], "a": "\udfff"},
}
EMPTY = dict.fromkeys(FIELDS)
STORED = FULL | {"text": "a\\ud800é\x00", "number": float(2**60 + 1)}
ROWS = [EMPTY, FULL, EMPTY]


def make(folder: Path, name: str, made: list[Any], fields: Mapping[str, Kind] = FIELDS, **options: Any) -> Path:
    source = numbers(folder / f"in{len(made)}.jsonl", len(made))
    run_job(config(source, folder / name), Gives(fields, made, **options))
    return folder / name


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of an output, read by the packages that others read it with."""
    if path.is_dir():
        loaded = datasets.load_from_disk(str(path))
        assert isinstance(loaded, datasets.Dataset)
        return [dict(row) for row in loaded]
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        as_json = [field.name for field in table.schema if isinstance(field.type, pa.JsonType)]
        return [row | {name: json.loads(row[name] or "null") for name in as_json} for row in table.to_pylist()]
    if path.suffix == ".gz":
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return records(path)


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.name != "README.md"]
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


@pytest.mark.parametrize(
    ("name", "stored"), [("a.jsonl", FULL), ("a.jsonl.gz", FULL), ("a.parquet", STORED), ("folder", STORED)]
)
def test_each_format_holds_every_kind_of_field(tmp_path: Path, name: str, stored: dict[str, Any]) -> None:
    (tmp_path / "again").mkdir()
    path = make(tmp_path, name, ROWS)
    assert read(path) == [EMPTY, stored, EMPTY]
    assert content(make(tmp_path / "again", name, ROWS)) == content(path)
    again = open_source(str(path), limit=1 << 20)
    assert [row.data for row in again.rows(Cursor())] == [EMPTY, stored, EMPTY]
    assert not partial_of(path).exists()


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
def test_an_output_without_rows_has_its_columns(tmp_path: Path, name: str) -> None:
    path = make(tmp_path, name, [])
    assert read(path) == []
    names = pq.read_schema(path).names if name == "a.parquet" else datasets.load_from_disk(str(path)).column_names
    assert names == list(FIELDS)


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("text", TURNS, "as chat turns,"),
        (TURNS, "text", "as text,"),
        (None, [{"role": "user", "content": "x", "name": "y"}], "as chat turns of more than a role and a text,"),
        (None, [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "of more than a role and a text,"),
    ],
)
def test_chat_columns_of_two_shapes_name_the_row(tmp_path: Path, name: str, first: Any, second: Any, said: str) -> None:
    made = [{"c": None}, {"c": first}, {"c": second}]
    with pytest.raises(
        JobError, match=r"gives made the field 'c' of row 2 as .* Write \.jsonl, which holds both"
    ) as no:
        make(tmp_path, name, made, {"c": "chat"})
    assert said in str(no.value)
    assert read(make(tmp_path, "a.jsonl", made, {"c": "chat"})) == made


def test_what_chat_columns_hold_is_remembered_when_a_job_goes_on(tmp_path: Path) -> None:
    source = numbers(tmp_path / "in.jsonl", 3)
    made: list[Any] = [{"c": TURNS}, None, {"c": "text"}]
    with pytest.raises(JobError, match="must return a Made"):
        run_job(config(source, tmp_path / "a.parquet"), Gives({"c": "chat"}, made))
    made[1] = {"c": None}
    with pytest.raises(JobError, match="the field 'c' of row 2 as text"):
        run_job(config(source, tmp_path / "a.parquet"), Gives({"c": "chat"}, made))
    made[2] = {"c": TURNS}
    run_job(config(source, tmp_path / "a.parquet"), Gives({"c": "chat"}, made))
    assert [row["c"] for row in read(tmp_path / "a.parquet")] == [TURNS, None, TURNS]


KEPT = [
    {"f": 1, "n": 1, "mixed": 1, "list": [], "turns": [], "deep": {"a": 1}},
    {"f": 2, "n": 2.5, "mixed": "x", "list": [1, 2.5], "turns": TURNS, "late": "y"},
    {"f": 3, "n": None},
]


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
def test_kept_columns_get_the_kind_that_fits_all_their_values(tmp_path: Path, name: str) -> None:
    path = make(tmp_path, name, KEPT, {"f": "whole"}, keeps_columns=True)
    nothing = {"mixed": None, "list": None, "turns": None, "deep": None, "late": None}
    assert read(path) == [
        nothing | {"f": 1, "n": 1.0, "mixed": 1, "list": [], "turns": [], "deep": {"a": 1}},
        nothing | {"f": 2, "n": 2.5, "mixed": "x", "list": [1.0, 2.5], "turns": TURNS, "late": "y"},
        nothing | {"f": 3, "n": None},
    ]
    assert read(make(tmp_path, "a.jsonl", KEPT, {"f": "whole"}, keeps_columns=True)) == KEPT


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
def test_nan_in_a_kept_column_of_numbers_leaves_it_one(tmp_path: Path, name: str) -> None:
    made = [{"n": 1.5, "list": [2]}, {"n": float("nan"), "list": [float("-inf"), None]}, {"n": 2, "list": None}]
    path = make(tmp_path, name, made, {}, keeps_columns=True)
    stored = pq.read_table(path) if name == "a.parquet" else datasets.Dataset.load_from_disk(str(path)).data
    schema = stored.schema
    assert [schema.field("n").type, schema.field("list").type.value_type] == [pa.float64(), pa.float64()]
    rows = read(path)
    assert str([row["n"] for row in rows]) == "[1.5, nan, 2.0]"
    assert [row["list"] for row in rows] == [[2.0], [float("-inf"), None], None]


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
def test_kept_columns_of_odd_names_and_none_at_all(tmp_path: Path, name: str) -> None:
    odd = {"\ud800": "x", "": 1, "a.b": True, "é\n": None}
    assert read(make(tmp_path, name, [odd], {}, keeps_columns=True)) == [
        {"\\ud800": "x", "": 1, "a.b": True, "é\n": None}
    ]
    (tmp_path / "none").mkdir()
    assert read(make(tmp_path / "none", name, [], {}, keeps_columns=True)) == []


def test_rows_whose_keys_are_data_do_not_become_a_file_of_as_many_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_MAX_COLUMNS", 20)
    made = [{f"key{index}": index} for index in range(30)]
    with pytest.raises(JobError, match="more than 20 different columns"):
        make(tmp_path, "a.parquet", made, {}, keeps_columns=True)
    assert read(make(tmp_path, "a.jsonl", made, {}, keeps_columns=True)) == made


def test_rows_are_converted_a_block_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_BATCH_BYTES", 1000)
    made = [{"t": "x" * 100} for _ in range(100)]
    path = make(tmp_path, "a.parquet", made, {"t": "text"})
    assert read(path) == made
    assert pq.ParquetFile(path).metadata.num_row_groups == 10
    assert read(make(tmp_path, "folder", made, {"t": "text"})) == made


@pytest.mark.parametrize("kind", ["file", "folder", "dataset"])
def test_overwrite_puts_a_folder_in_the_place_of_a_file_or_of_another_dataset(tmp_path: Path, kind: str) -> None:
    source = numbers(tmp_path / "in.jsonl", 4)
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("old")
    elif kind == "folder":
        out.mkdir()
        (out / "precious").write_text("old")
    else:
        datasets.Dataset.from_dict({"old": [1]}).save_to_disk(str(out))
    with pytest.raises(ValueError, match=r"exists already|holds other things"):
        run_job(config(source, out), Doubler())
    if kind == "folder":
        with pytest.raises(ValueError, match="is a folder that holds other things; name a new folder"):
            run_job(config(source, out, overwrite=True), Doubler())
        assert [path.name for path in out.iterdir()] == ["precious"]
        return
    run_job(config(source, out, overwrite=True), Doubler())
    assert [row["x"] for row in read(out)] == [0, 0, 4, 4]


def test_other_packages_read_what_is_written(tmp_path: Path) -> None:
    path = make(tmp_path, "folder", ROWS)
    loaded = datasets.load_from_disk(str(path))
    assert isinstance(loaded, datasets.Dataset)
    assert loaded.features["chat"] == datasets.List(
        {"role": datasets.Value("string"), "content": datasets.Value("string")}
    )
    assert loaded.filter(lambda row: row["flag"] is False).num_rows == 1
    loaded.save_to_disk(str(tmp_path / "saved"))
    assert read(tmp_path / "saved") == read(path)
    table = pq.read_table(make(tmp_path, "a.parquet", ROWS))
    assert table.schema.field("wholes").type == pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.jsonl", "jsonl"),
        ("a.NDJSON", "jsonl"),
        ("a.jsonl.gz", "jsonl.gz"),
        ("b/a.parquet", "parquet"),
        ("folder", "folder"),
        ("data.v2/", "folder"),
        ("data.v2/x", "folder"),
    ],
)
def test_names_say_the_format(name: str, found: str) -> None:
    assert format_of(name) == found


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet.gz", "a.txt", ".", "data.v2", ""])
def test_names_that_say_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"must end in \.jsonl, \.ndjson, \.jsonl\.gz or \.parquet, or in a slash"):
        format_of(name)


def test_a_package_that_is_missing_is_named_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"writing a datasets folder needs the package 'datasets'; install it with"):
        make(tmp_path, "folder", ROWS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in3.jsonl"]


def test_labels_too_are_written_as_a_folder(tmp_path: Path) -> None:
    source = jsonl(tmp_path / "in.jsonl", [{"response": "a", "reference": "a"}, {"response": "b", "reference": "a"}])
    run_label(LabelConfig(input=source, output=str(tmp_path / "scores"), scorer="exact"))
    rows = read(tmp_path / "scores")
    assert [(row["row"], row["value"], row["provenance"]["scorer"]) for row in rows] == [
        (0, 1.0, "exact"),
        (1, 0.0, "exact"),
    ]


@pytest.mark.parametrize("written", ["parquet", "folder"])
def test_lines_that_do_not_fit_the_schema_name_the_rows(tmp_path: Path, written: formats.Format) -> None:
    jsonl(tmp_path / "lines", [{"a": 1}, {"a": "x"}])
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(JobError, match=r"the rows 0 to 1 that were made do not fit their columns: .* write \.jsonl"):
        formats.convert(tmp_path / "lines", tmp_path / "out", written, lambda: schema, json.loads)
