"""Parquet files, saved datasets, and the streaming loader of the hub on a local folder."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.io.arrow_rows import HubDataset, ParquetFile, SavedDataset
from adjudge.io.errors import JobError
from adjudge.io.row import Part, Place, Row


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def table(rows: int) -> list[dict[str, Any]]:
    return [{"id": index, "deep": {"text": f"t{index}", "list": [index]}, "note": None} for index in range(rows)]


def check_part(part: Part, expected: list[dict[str, Any]]) -> None:
    """All rows, and the same rows from the middle."""
    rows = list(part.rows(Place()))
    assert [row.data for row in rows] == expected
    for at in (0, 1, len(rows) // 2, len(rows) - 1):
        behind = list(part.rows(rows[at].place))
        assert [row.data for row in behind] == expected[at + 1 :]
        assert [row.place for row in behind] == [row.place for row in rows[at + 1 :]]


@pytest.mark.parametrize("row_group_size", [1, 7, 300, 10_000])
def test_parquet_can_be_entered_behind_any_row(tmp_path: Path, row_group_size: int) -> None:
    file = tmp_path / "in.parquet"
    rows = 20 if row_group_size == 1 else 1000
    pq.write_table(pa.Table.from_pylist(table(rows)), file, row_group_size=row_group_size)
    part = ParquetFile(file)
    assert part.count() == rows
    assert part.columns() == ["id", "deep", "note"]
    check_part(part, table(rows))


def test_parquet_reads_only_the_columns_selected(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(table(3)), file)
    part = ParquetFile(file)
    part.select(["deep"])
    assert [row.data for row in part.rows(Place())] == [{"deep": row["deep"]} for row in table(3)]


def test_values_become_plain_data(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    day = datetime.datetime(2026, 11, 21, 7, 30, tzinfo=datetime.UTC)
    row = {
        "when": day,
        "day": day.date(),
        "long": datetime.timedelta(seconds=90),
        "raw": b"\x00\xff",
        "exact": decimal.Decimal("1.50"),
        "deep": [{"when": day}],
    }
    pq.write_table(pa.Table.from_pylist([row]), file)
    (read,) = ParquetFile(file).rows(Place())
    iso = "2026-11-21T07:30:00+00:00"
    assert read.data == {
        "when": iso,
        "day": "2026-11-21",
        "long": "0:01:30",
        "raw": b"\x00\xff",
        "exact": decimal.Decimal("1.50"),
        "deep": [{"when": iso}],
    }


def test_what_arrow_holds_and_python_cannot_costs_its_row_alone(tmp_path: Path) -> None:
    text = pa.array([b"0", b"\xff", b"2", b"3"] * 100).cast(pa.string(), safe=False)
    day = pa.array([0, 1, 2, 10**14] * 100).cast(pa.timestamp("s"))
    pq.write_table(pa.table({"text": text, "day": day}), tmp_path / "in.parquet")
    rows = list(ParquetFile(tmp_path / "in.parquet").rows(Place()))
    assert [row.data and row.data["text"] for row in rows] == ["0", None, "2", None] * 100
    assert [row.place.record for row in rows] == list(range(1, 401))
    assert rows[1].error == "not UTF-8: byte 0xff at position 0"
    assert "out of range" in rows[3].error


def test_json_texts_that_are_none_cost_their_row_alone(tmp_path: Path) -> None:
    texts = ['{"a":[1]}', "{", "[" * 500 + "]" * 500, "[" * 100_000, None]
    column = pa.array(texts).cast(pa.json_(pa.string()))
    pq.write_table(pa.table({"any": column}), tmp_path / "in.parquet")
    rows = list(ParquetFile(tmp_path / "in.parquet").rows(Place()))
    assert [row.data for row in rows] == [{"any": {"a": [1]}}, None, None, None, {"any": None}]
    assert rows[1].error.startswith("the column 'any' is not JSON: ")
    assert "nested too deeply" in rows[2].error
    assert "nested too deeply" in rows[3].error


def test_values_in_a_map_become_plain_data_too(tmp_path: Path) -> None:
    day = datetime.date(2026, 11, 21)
    column = pa.array([[("x", day)]], pa.map_(pa.string(), pa.date32()))
    pq.write_table(pa.table({"map": column}), tmp_path / "in.parquet")
    (row,) = ParquetFile(tmp_path / "in.parquet").rows(Place())
    assert row.data == {"map": [("x", "2026-11-21")]}


def test_a_file_that_is_not_parquet_is_refused_before_any_work(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    file.write_bytes(b"PAR1 but no more")
    with pytest.raises(ValueError, match=r"in\.parquet is not a readable Parquet file"):
        ParquetFile(file)


def test_a_damaged_page_says_where(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    pq.write_table(pa.Table.from_pylist(table(1000)), file, row_group_size=500, compression="zstd")
    second = pq.ParquetFile(file).metadata.row_group(1).column(1)
    raw = bytearray(file.read_bytes())
    begin = second.dictionary_page_offset or second.data_page_offset
    raw[begin : begin + second.total_compressed_size] = bytes(second.total_compressed_size)
    file.write_bytes(raw)
    read: list[Row] = []  # a batch of 256 may span row groups
    with pytest.raises(JobError, match=r"in\.parquet is damaged behind row 256: "):
        read.extend(ParquetFile(file).rows(Place()))


def test_a_saved_dataset(tmp_path: Path) -> None:
    datasets.Dataset.from_list(table(600)).save_to_disk(tmp_path / "one")
    part = SavedDataset(tmp_path / "one", "")
    assert part.count() == 600
    assert part.columns() == ["id", "deep", "note"]
    check_part(part, table(600))
    part.select(["id"])
    assert [row.data for row in itertools.islice(part.rows(Place(598)), 5)] == [{"id": 598}, {"id": 599}]
    with pytest.raises(ValueError, match="without splits; drop --split train"):
        SavedDataset(tmp_path / "one", "train")


def test_splits_of_a_saved_dataset(tmp_path: Path) -> None:
    splits = {"train": datasets.Dataset.from_list(table(2)), "test": datasets.Dataset.from_list(table(1))}
    datasets.DatasetDict(list(splits.items())).save_to_disk(tmp_path / "two")
    assert SavedDataset(tmp_path / "two", "test").count() == 1
    with pytest.raises(ValueError, match="has several splits; choose one with --split: train, test"):
        SavedDataset(tmp_path / "two", "")
    with pytest.raises(ValueError, match="has no split 'dev'; choose one with --split: train, test"):
        SavedDataset(tmp_path / "two", "dev")
    datasets.DatasetDict([("only", splits["test"])]).save_to_disk(tmp_path / "single")
    assert SavedDataset(tmp_path / "single", "").count() == 1


def test_a_folder_that_is_no_saved_dataset(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ValueError, match="is not a readable datasets folder"):
        SavedDataset(tmp_path, "")


def test_the_streaming_loader_on_a_local_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{"id": index, "text": f"t{index}"} for index in range(50)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    part = HubDataset(str(folder))
    assert part.count() is None
    check_part(part, rows)
    assert HubDataset(str(folder), split="train").version == part.version != ""
    with pytest.raises(ValueError, match="dev"):
        HubDataset(str(folder), split="dev")
    part.select(["text"])
    assert [row.data for row in part.rows(Place(49))] == [{"text": "t49"}]
    with pytest.raises(ValueError, match="neither a file or folder here nor a dataset"):
        HubDataset(str(tmp_path / "none"))


def test_a_stream_that_breaks_off_says_where_and_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text("".join(json.dumps({"id": index}) + "\n" for index in range(5)))
    part = HubDataset(str(tmp_path / "data"))

    class ClientPayloadError(Exception):
        """Packages of the network derive theirs from Exception."""

    def broken(stream: datasets.IterableDataset) -> Iterator[dict[str, Any]]:
        yield {"id": 0}
        yield {"id": "long" * 1000}
        raise ClientPayloadError("not enough data")

    monkeypatch.setattr(datasets.IterableDataset, "__iter__", broken)
    rows: list[Row] = []
    with pytest.raises(JobError, match=r"broke off behind row 2 \(ClientPayloadError: not enough data\).* go on"):
        rows.extend(part.rows(Place()))
    assert [row.place.record for row in rows] == [1, 2]
    assert rows[0].size < 100 < 4000 <= rows[1].size
