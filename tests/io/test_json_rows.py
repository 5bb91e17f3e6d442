"""JSON Lines and JSON lists: what is a row, what is a bad row, and entering a file at any place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.io.errors import JobError
from adjudge.io.row import Place, Row
from adjudge.io.source import open_source
from adjudge.io.text_rows import JsonLines, JsonList, holds_list

LIMIT = 1 << 20


def read(path: Path, start: Place = Place(), limit: int = LIMIT) -> list[Row]:  # noqa: B008 a NamedTuple of ints
    return list(JsonLines(path, limit).rows(start))


def test_bad_rows_stand_in_their_place_with_line_number_and_reason(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(
        b"\xef\xbb\xbf"
        b'{"a":0}\n'
        b"\n"
        b'{"a":\n'
        b"[1,2]\n"
        b"null\n"
        b'{"a":"\xff"}\n'
        b'{"a":"\x00"}\n' + b"[" * 100_000 + b"\n"
        b'{"a":' + b"9" * 5000 + b"}\r\n"
        b"   \r\n"
        b'{"a":"last"}'
    )
    rows = read(file)
    assert [row.data for row in rows] == [{"a": 0}, None, None, None, None, None, None, None, {"a": "last"}]
    assert [row.line for row in rows] == [1, 3, 4, 5, 6, 7, 8, 9, 11]
    told = [row.error for row in rows]
    assert told[0] == told[8] == ""
    assert "malformed JSON" in told[1]
    assert "a list" in told[2]
    assert "null" in told[3]
    assert told[4] == "not UTF-8: byte 0xff at position 6"
    assert "Invalid control character" in told[5]
    assert "nested too deeply" in told[6]
    assert "malformed JSON" in told[7]


def test_a_huge_line_costs_its_row_and_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    with file.open("wb") as out:
        out.write(b'{"a":1}\n{"a":"')
        for _ in range(50):
            out.write(b"x" * (1 << 20))
        out.write(b'"}\n{"a":2}\n')
    rows = read(file, limit=1 << 20)
    assert [row.data for row in rows] == [{"a": 1}, None, {"a": 2}]
    assert rows[1].error == f"the row takes {(50 << 20) + 9} bytes, more than the limit of {1 << 20} (--max-row-mb)"
    assert [row.line for row in rows] == [1, 2, 3]


def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    line = b'{"a":"xxxx"}\n'
    file.write_bytes(line * 3)
    assert [row.error for row in read(file, limit=len(line))] == ["", "", ""]
    assert all("limit" in row.error for row in read(file, limit=len(line) - 2))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    lines=st.lists(
        st.one_of(
            st.dictionaries(st.text(max_size=3), st.text(max_size=8), max_size=3).map(
                lambda data: json.dumps(data).encode()
            ),
            st.binary(max_size=20).map(lambda raw: raw.replace(b"\n", b"")),
        ),
        max_size=12,
    ),
    packed=st.booleans(),
    data=st.data(),
)
def test_reading_can_go_on_behind_any_row(tmp_path: Path, lines: list[bytes], packed: bool, data: Any) -> None:
    text = b"\n".join(lines)
    file = tmp_path / ("in.jsonl.gz" if packed else "in.jsonl")
    file.write_bytes(gzip.compress(text) if packed else text)
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        with pytest.raises(ValueError, match=r"UTF-16"):
            read(file)
        return
    rows = read(file)
    assert len(rows) == sum(bool(line.strip()) for line in text.split(b"\n"))
    assert [row.place.record for row in rows] == list(range(1, len(rows) + 1))
    if rows:
        at = data.draw(st.integers(0, len(rows) - 1))
        assert read(file, rows[at].place) == rows[at + 1 :]


def test_a_cut_gzip_file_is_damage_and_not_a_short_file(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"a":%d}\n' % index for index in range(10_000)))
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(JobError, match=r"in\.jsonl\.gz is damaged or cut off.*--restart"):
        read(file)
    file.write_bytes(b"no gzip at all")
    with pytest.raises(ValueError, match="cannot be read"):
        read(file)


def test_a_gzip_file_with_wrong_bytes_in_it_is_damage(tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl.gz"
    good, bad = gzip.compress(b'{"a":1}\n'), bytearray(gzip.compress(b'{"a":2}\n'))
    bad[10] |= 0b110  # the first block behind the header is of a kind that does not exist
    file.write_bytes(good * 3 + bad)
    with pytest.raises(JobError, match=r"in\.jsonl\.gz is damaged or cut off.*invalid block type.*--restart"):
        read(file)
    file.write_bytes(bad)
    with pytest.raises(ValueError, match=r"in\.jsonl\.gz cannot be read: .*invalid block type"):
        read(file)


@pytest.mark.parametrize("name", ["in.json.gz", "in.csv.gz"])
def test_a_cut_file_that_is_read_when_it_is_opened_is_named(tmp_path: Path, name: str) -> None:
    whole = gzip.compress(b"[" + b"".join(b'{"a":%d},' % (index * index) for index in range(9000)))
    (tmp_path / name).write_bytes(whole[:-2000])
    with pytest.raises(ValueError, match=rf"{name} cannot be read: .*end-of-stream"):
        open_source(str(tmp_path / name), limit=LIMIT)


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels, itself the first."""
    value: Any = {} if levels % 2 else []
    for level in range(levels - 1, 0, -1):
        value = {"a": value} if level % 2 else [value]
    assert isinstance(value, dict)
    return value


def test_rows_nested_deeper_than_anything_downstream_can_walk_are_bad_rows(tmp_path: Path) -> None:
    rows = [nested(100), nested(101), nested(900), {"text": "{" * 1000}]
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = "nested too deeply: more than 100 levels"
    found = read(file)
    assert [(row.data is not None, row.error) for row in found] == [
        (True, ""),
        (False, told),
        (False, told),
        (True, ""),
    ]
    (tmp_path / "in.json").write_text(json.dumps(rows))
    assert [row.error for row in JsonList(tmp_path / "in.json").rows(Place())] == ["", told, told, ""]


def test_a_list_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_bytes(b'\xef\xbb\xbf [{"a":1}, 7,\n {"a":2}]')
    assert holds_list(file)
    part = JsonList(file)
    rows = list(part.rows(Place()))
    assert part.count() == 3
    assert [row.data for row in rows] == [{"a": 1}, None, {"a": 2}]
    assert list(part.rows(rows[1].place)) == rows[2:]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[{"a":1}', "is not a JSON list"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":1}', "one object"),
    ],
)
def test_a_file_that_is_no_list(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "in.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=told):
        JsonList(file)


def test_dot_json_with_one_object_per_line_is_read_by_lines(tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text('{"a":1}\n{"a":2}\n')
    assert not holds_list(file)
    file.write_text('{\n  "a": 1\n}\n')
    with pytest.raises(ValueError, match="one object over several lines"):
        holds_list(file)


ROW = {"prompt": "1 + 1?", "response": "2"}


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_under_a_key_of_one_object_are_named(tmp_path: Path, indent: int | None) -> None:
    file = tmp_path / "in.json"
    for whole in ({"data": [ROW, ROW]}, {"data": [ROW] * 5000}):
        file.write_text(json.dumps(whole, indent=indent))
        with pytest.raises(ValueError, match=r"its rows are under 'data'.*jq -c '\.\[\"data\"\]\[\]'"):
            holds_list(file)


@pytest.mark.parametrize(
    "row", [{"messages": [{"role": "user", "content": "hi"}]}, ROW | {"tests": [{"in": "1"}]}, {"responses": ["2"]}, {}]
)
def test_a_row_with_a_list_is_a_row(tmp_path: Path, row: dict[str, Any]) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps(row))
    assert not holds_list(file)
    file.write_text(f"{json.dumps({'tests': [{'in': '1'}]})}\n" * 2)
    assert not holds_list(file)


@pytest.mark.parametrize("name", ["UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE"])
def test_utf_16_and_utf_32_are_named_with_and_without_a_mark(name: str, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes('{"a":1}\n'.encode(name))
    with pytest.raises(ValueError, match=rf"UTF-16.*iconv -f {name} -t"):
        read(file)
