"""What IN may be, its identity, and how much of it is done."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.io import source as source_module
from adjudge.io.row import Cursor, Place
from adjudge.io.source import Source, open_source

LIMIT = 1 << 20


def lines(first: int, last: int) -> str:
    return "".join(json.dumps({"n": index}) + "\n" for index in range(first, last))


def numbers(source: Source, start: Cursor = Cursor()) -> list[int]:  # noqa: B008 a NamedTuple of ints
    rows = list(source.rows(start))
    assert [row.index for row in rows] == list(range(start.row, start.row + len(rows)))
    return [int(row.data["n"]) for row in rows if row.data is not None]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.jsonl", lines(0, 3).encode()),
        ("in.NDJSON", lines(0, 3).encode()),
        ("in.json-lines", lines(0, 3).encode()),
        ("in.json", lines(0, 3).encode()),
        ("in.json", b'[{"n":0},{"n":1},{"n":2}]'),
        ("in.jsonl.gz", gzip.compress(lines(0, 3).encode(), mtime=0)),
        ("in.json.gz", gzip.compress(b'[{"n":0},{"n":1},{"n":2}]', mtime=0)),
        ("in.csv", b"n\n0\n1\n2\n"),
        ("in.csv.gz", gzip.compress(b"n\n0\n1\n2\n", mtime=0)),
        ("in.tsv", b"n\tm\n0\t\n1\t\n2\t\n"),
    ],
)
def test_text_files_by_suffix(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert numbers(open_source(str(tmp_path / name), limit=LIMIT)) == [0, 1, 2]


def test_a_name_without_its_suffix_is_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(name: str, **options: str) -> None:
        raise LookupError(name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_module, "HubDataset", asked)
    for name in ("math.jsonl", "math.csv.gz", "math.md", "maths.jsonl"):
        Path(name).write_text(lines(0, 3))
    with pytest.raises(ValueError, match=r"there is no math here; did you mean math\.csv\.gz or math\.jsonl\?"):
        open_source("math", limit=LIMIT)
    for name, split in (("hub:math", ""), ("math", "test"), ("mat", "")):
        with pytest.raises(LookupError):
            open_source(name, limit=LIMIT, split=split)


def test_a_folder_is_read_in_the_order_of_names_and_entered_anywhere(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.jsonl").write_text(lines(2, 5))
    (tmp_path / "a.jsonl").write_text(lines(0, 2))
    (tmp_path / "deep" / "c.jsonl").write_text(lines(5, 7))
    (tmp_path / "README.md").write_text("no rows")
    (tmp_path / ".hidden.jsonl").write_text(lines(90, 91))
    (tmp_path / "old.jsonl.partial").mkdir()
    (tmp_path / "old.jsonl.partial" / "data.jsonl").write_text(lines(90, 91))
    source = open_source(str(tmp_path), limit=LIMIT)
    assert numbers(source) == list(range(7))
    for row in list(source.rows(Cursor())):
        assert numbers(source, Cursor(row.index + 1, row.part, row.place)) == list(range(row.index + 1, 7))
    assert list(source.identity()["files"]) == ["a.jsonl", "b.jsonl", "deep/c.jsonl"]


def test_a_folder_of_parquet_knows_its_length_and_common_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [0, 1], "x": [1, 1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"n": [2]}), tmp_path / "1.parquet")
    source = open_source(str(tmp_path), limit=LIMIT)
    assert (source.count(), source.columns()) == (3, ["n"])
    source.select(["n"])
    assert numbers(source) == [0, 1, 2]
    assert source.fraction(Cursor(row=1)) == pytest.approx(1 / 3)


def test_the_share_done_of_text_is_by_bytes_and_of_gzip_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(lines(0, 2))
    (tmp_path / "b.jsonl").write_text(lines(2, 6))
    source = open_source(str(tmp_path), limit=LIMIT)
    shares = [source.fraction(Cursor(row.index + 1, row.part, row.place)) for row in source.rows(Cursor())]
    assert shares == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0])
    assert source.fraction(Cursor(0, 0, Place())) == 0.0
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(lines(0, 2).encode()))
    assert open_source(str(packed), limit=LIMIT).fraction(Cursor()) is None


def touch(file: Path) -> None:
    os.utime(file, ns=(1, file.stat().st_mtime_ns + 1))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda file: file.write_text(lines(0, 4)), "bytes"),
        (touch, "changed"),
        (lambda file: file.write_text(lines(1, 4)), "head"),
    ],
)
def test_the_identity_changes_with_the_file(tmp_path: Path, change: Callable[[Path], Any], field: str) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(lines(0, 3))
    source = open_source(str(file), limit=LIMIT)
    before = source.identity()
    assert source.identity() == before
    change(file)
    after = source.identity()
    assert before["files"]["in.jsonl"][field] != after["files"]["in.jsonl"][field]


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("none.jsonl", {}, r"there is no file or folder .*none\.jsonl"),
        ("none/deep/x", {}, "there is no file or folder"),
        ("in.xlsx", {}, r"suffix that says nothing about its format; one of \.jsonl, .*\.parquet"),
        ("in.jsonl", {"split": "train"}, "--split is for datasets"),
        ("in.jsonl", {"subset": "main"}, "--subset and --revision are for datasets of the hub"),
        ("in.jsonl", {"revision": "main"}, "--subset and --revision are for datasets of the hub"),
        ("empty", {}, r"holds no data files .* and is not a datasets folder"),
        ("mixed", {}, r"files of several kinds \(\.csv, \.jsonl\); take them one by one"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, name: str, options: dict[str, str], told: str) -> None:
    (tmp_path / "in.xlsx").write_text("")
    (tmp_path / "in.jsonl").write_text(lines(0, 1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed" / "a.jsonl").write_text("")
    (tmp_path / "mixed" / "b.csv").write_text("")
    with pytest.raises(ValueError, match=told):
        open_source(str(tmp_path / name), limit=LIMIT, **options)


def test_what_is_not_here_is_asked_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    class Hub:
        path = "someone/some-set"
        version = "abc123"

        def __init__(self, name: str, **options: str) -> None:
            asked.append((name, options))

    monkeypatch.setattr(source_module, "HubDataset", Hub)
    source = open_source("someone/some-set", limit=LIMIT, split="train", revision="abc")
    assert asked == [("someone/some-set", {"subset": "", "split": "train", "revision": "abc", "usual_split": ""})]
    assert source.identity() == {"name": "someone/some-set", "subset": "", "split": "train", "version": "abc123"}
    asked.clear()
    open_source("someone/some-set", limit=LIMIT, split="easy+hard")
    assert [options["split"] for _, options in asked] == ["easy", "hard"]


def rows_of(name: str) -> list[object]:
    source = open_source(name, limit=1 << 20)
    return [row.data["n"] for row in source.rows(Cursor()) if row.data is not None]


def test_patterns_lists_and_addresses_are_read_like_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "deep").mkdir()
    for name, number in (("b.jsonl", 2), ("a.jsonl", 1), ("deep/c.jsonl", 3)):
        (tmp_path / name).write_text(f'{{"n": {number}}}\n')
    assert rows_of(f"{tmp_path}/*.jsonl") == [1, 2]
    assert rows_of(f"{tmp_path}/**/*.jsonl") == [1, 2, 3]
    assert rows_of(f"{tmp_path}/b.jsonl, {tmp_path}/deep") == [2, 3]
    same = open_source(f"{tmp_path}/**/*.jsonl", limit=1).identity()
    assert len(same["files"]) == 3
    with pytest.raises(ValueError, match=r"no file fits the pattern .*\.csv"):
        rows_of(f"{tmp_path}/*.csv")
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/x.jsonl", b'{"n": 7}\n')
    files.pipe("/bucket/y.jsonl", b'{"n": 8}\n')
    assert rows_of("memory://bucket/x.jsonl") == [7]
    assert rows_of("memory://bucket/*.jsonl") == rows_of("memory://bucket") == [7, 8]
    first = open_source("memory://bucket/x.jsonl", limit=1).identity()
    assert first == open_source("memory://bucket/x.jsonl", limit=1).identity()
    files.pipe("/bucket/x.jsonl", b'{"n": 9}\n')
    assert rows_of("memory://bucket/x.jsonl") == [9], "a changed file is fetched again"
    with pytest.raises(ValueError, match=r"memory://nowhere/z\.jsonl.*check the address"):
        rows_of("memory://nowhere/z.jsonl")
    with pytest.raises(ValueError, match="nosuch://"):
        rows_of("nosuch://bucket/x.jsonl")
