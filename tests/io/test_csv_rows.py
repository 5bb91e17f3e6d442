"""Delimited text: quoting, bad rows, and a stray quote that must not swallow the file."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge.io import text_rows
from adjudge.io.row import Place, Row
from adjudge.io.text_rows import CsvFile, Line, read_lines

LIMIT = 1 << 16
CELLS = st.text(st.sampled_from('ab,;"\n\r\t é\u2028'), max_size=8)


def read(path: Path, start: Place = Place(), delimiter: str = ",", limit: int = LIMIT) -> list[Row]:  # noqa: B008
    return list(CsvFile(path, limit, delimiter).rows(start))


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(table=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=8), packed=st.booleans(), data=st.data())
def test_what_csv_writes_is_read_back_and_can_be_entered_behind_any_row(
    tmp_path: Path, table: list[tuple[str, str, str]], packed: bool, data: Any
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("a", "b", "c"), *table])
    raw = text.getvalue().encode()
    file = tmp_path / ("in.csv.gz" if packed else "in.csv")
    file.write_bytes(gzip.compress(raw) if packed else raw)
    rows = read(file)
    assert [row.error for row in rows] == [""] * len(table)
    assert [tuple(row.data.values()) for row in rows if row.data is not None] == table
    if rows:
        at = data.draw(st.integers(0, len(rows) - 1))
        assert read(file, rows[at].place) == rows[at + 1 :]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(body=st.binary(max_size=200).map(lambda raw: raw.replace(b"\x00", b'"')), data=st.data())
def test_any_bytes_give_rows_in_order_that_cover_the_file(tmp_path: Path, body: bytes, data: Any) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes(b"a,b\n" + body)
    rows = read(file, limit=64)
    assert all((row.data is None) == bool(row.error) for row in rows)
    offsets = [row.place.offset for row in rows]
    assert offsets == sorted(set(offsets))
    if rows:
        assert not file.read_bytes()[offsets[-1] :].strip(b"\r\n")
        at = data.draw(st.integers(0, len(rows) - 1))
        assert read(file, rows[at].place, limit=64) == rows[at + 1 :]


def test_bad_rows(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_bytes(
        b'\xef\xbb\xbfa,b\r\n1,2\r\n\r\n1\r\n1,2,3\r\ncaf\xe9,2\r\nnul\x00,2\r\n"x"y,2\r\n"two\nlines",2\r\nlast,'
    )
    rows = read(file)
    assert [row.error for row in rows] == [
        "",
        "the row has 1 cells; the header has 2",
        "the row has 3 cells; the header has 2",
        "not UTF-8: byte 0xe9 at position 3",
        "a NUL byte in the row",
        "malformed row: ',' expected after '\"'",
        "",
        "",
    ]
    assert [row.line for row in rows] == [2, 4, 5, 6, 7, 8, 9, 11]
    assert [row.data for row in rows if row.data] == [
        {"a": "1", "b": "2"},
        {"a": "two\nlines", "b": "2"},
        {"a": "last", "b": ""},
    ]


def test_a_stray_quote_costs_one_row(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    good = [f"{index},{'x' * 60}" for index in range(5000)]
    file.write_text("\n".join(["a,b", *good[:10], '"oops,1', *good[10:]]))
    rows = read(file)
    bad = [row for row in rows if row.error]
    assert [(row.line, row.data) for row in bad] == [(12, None)]
    assert "more than the limit" in bad[0].error
    assert [row.data["a"] for row in rows if row.data] == [str(index) for index in range(5000)]

    file.write_text('a,b\n1,2\n"oops,1\n3,4\n')
    rows = read(file)
    assert [row.error for row in rows] == ["", "malformed row: unexpected end of data", ""]


class _Counted(bytes):
    """A line that counts how often it is looked at."""

    looks = 0

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        _Counted.looks += 1
        return super().decode(encoding, errors)


def test_quotes_that_never_close_cost_no_more_than_so_many_looks_at_each_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line closes the quote of the one before and opens one, so a row begins at each and ends with the file."""
    lines = 3000
    file = tmp_path / "in.csv"
    file.write_text("a,b\n" + 'x","z\n' * lines + "1,2\n")

    def counted(stream: IO[bytes], limit: int, *, path: Path) -> Iterator[Line]:
        for line in read_lines(stream, limit, path=path):
            yield line._replace(raw=_Counted(line.raw))

    monkeypatch.setattr(text_rows, "read_lines", counted)
    monkeypatch.setattr(_Counted, "looks", 0)
    rows = read(file)
    assert _Counted.looks < 50 * lines
    assert [row.line for row in rows] == list(range(2, lines + 3))
    assert "a quote in it does not close" in rows[0].error
    assert rows[-1].data == {"a": "1", "b": "2"}


def test_a_cell_of_many_lines_is_read_whatever_it_holds(tmp_path: Path) -> None:
    cell = 'x,y,"z"\n' * 5000
    file = tmp_path / "in.csv"
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([("a", "b"), (cell, "1"), ("2", cell)])
    assert [row.data for row in read(file, limit=1 << 20)] == [{"a": cell, "b": "1"}, {"a": "2", "b": cell}]


def test_a_huge_line_costs_its_row(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"a,b\n1,2\n3,{'x' * 500_000}\n5,6\n")
    rows = read(file)
    assert [bool(row.data) for row in rows] == [True, False, True]
    assert rows[1].error.startswith("the row takes 500003 bytes")


def test_a_cell_above_the_default_of_csv_is_read(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"a,b\n1,{'x' * 300_000}\n")
    (row,) = read(file, limit=1 << 20)
    assert row.data == {"a": "1", "b": "x" * 300_000}


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_usual_delimiters(tmp_path: Path, mark: str) -> None:
    file = tmp_path / "in.csv"
    file.write_text(f"a{mark}b\n1{mark}2\n")
    assert [row.data for row in read(file)] == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no header"),
        ("\n1,2\n", "has no header"),
        ("a,b,a\n", "names the column 'a' twice"),
        ('"a,b\n', "header of .* cannot be read"),
        ("a,b\x00\n", "NUL"),
    ],
)
def test_headers_that_will_not_do(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "in.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=told):
        read(file)
