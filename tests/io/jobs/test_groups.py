"""Units: runs of rows with one value in the group column, wherever reading begins."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.io.columns import MISSING, Column
from adjudge.io.jobs import groups
from adjudge.io.jobs.groups import Piece, UnitReader, group_key
from adjudge.io.row import Cursor, Place, Row


@dataclass
class Listed:
    """Rows from a list of groups; "!" is a row that cannot be read, None one without a group."""

    marks: list[str | None]
    size: int = 1
    name: str = "listed"

    def identity(self) -> dict[str, Any]:
        return {}

    def columns(self) -> list[str] | None:
        return None

    def count(self) -> int | None:
        return None

    def fraction(self, cursor: Cursor) -> float | None:
        return None

    def rows(self, start: Cursor) -> Iterator[Row]:
        for index in range(start.row, len(self.marks)):
            mark = self.marks[index]
            data = None if mark == "!" else {"g": mark, "n": index}
            yield Row(data, "" if data else "bad", Place(index + 1), self.size, index=index)


def reader(source: Listed, limit: int | None = None) -> UnitReader:
    return UnitReader(source=source, group=Column("g"), limit=limit)


def told(pieces: Iterator[Piece]) -> list[Any]:
    return [
        (
            piece.unit and (piece.unit.group, piece.unit.first, [row["n"] for row in piece.unit.rows]),
            piece.rows,
            piece.dropped,
            piece.after.row,
        )
        for piece in pieces
    ]


def test_groups_rows_without_one_and_rows_nobody_can_read() -> None:
    marks: list[str | None] = ["!", "a", "!", "a", None, "!", "b", "!"]
    assert told(reader(Listed(marks)).pieces(Cursor())) == [
        (None, 1, {"unreadable": 1}, 1),
        (("a", 1, [1, 3]), 3, {"unreadable": 1}, 4),
        (None, 1, {"no_group": 1}, 5),
        (None, 1, {"unreadable": 1}, 6),
        (("b", 6, [6]), 2, {"unreadable": 1}, 8),
    ]


MARKS = st.lists(st.sampled_from(["a", "b", "c", "!", None, ""]), max_size=30)


@given(marks=MARKS, limit=st.none() | st.integers(0, 30))
def test_every_row_is_in_one_piece_and_units_are_runs(marks: list[str | None], limit: int | None) -> None:
    pieces = list(reader(Listed(marks), limit).pieces(Cursor()))
    count = len(marks) if limit is None else min(limit, len(marks))
    assert sum(piece.rows for piece in pieces) == count
    assert [piece.after.row for piece in pieces] == list(itertools.accumulate(piece.rows for piece in pieces))
    found = [(piece.unit.group, [row["n"] for row in piece.unit.rows]) for piece in pieces if piece.unit]
    runs: list[tuple[str, list[int]]] = []
    last: str | None = None
    for index, mark in enumerate(marks[:count]):
        if mark == "!":
            continue
        if mark and mark == last:
            runs[-1][1].append(index)
        elif mark:
            runs.append((mark, [index]))
        last = mark
    assert found == runs
    unreadable = sum(piece.dropped.get("unreadable", 0) for piece in pieces)
    nowhere = sum(piece.dropped.get("no_group", 0) for piece in pieces)
    assert unreadable == marks[:count].count("!")
    assert nowhere == sum(mark in (None, "") for mark in marks[:count])


@given(marks=MARKS)
def test_going_on_behind_any_piece_gives_the_rest(marks: list[str | None]) -> None:
    units = reader(Listed(marks))
    pieces = list(units.pieces(Cursor()))
    for index, piece in enumerate(pieces):
        assert told(units.pieces(piece.after)) == told(iter(pieces[index + 1 :]))


@given(marks=MARKS)
def test_the_check_refuses_exactly_what_would_be_cut(marks: list[str | None]) -> None:
    units = reader(Listed(marks))
    seen = [piece.unit.group for piece in units.pieces(Cursor()) if piece.unit]
    if len(set(seen)) == len(seen):
        units.check_groups()
    else:
        with pytest.raises(ValueError, match="goes on at row"):
            units.check_groups()


def test_a_group_that_does_not_fit_in_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUP_BYTES", 10 << 20)
    source = Listed(["a", "a", "b", "b", "b"], size=4 << 20)
    with pytest.raises(ValueError, match="the group 'b' takes more than 10 MiB"):
        reader(source).check_groups()
    reader(Listed(["a", "a", "b", "b", None, None, None], size=4 << 20)).check_groups()


def test_chunks_are_of_a_number_of_pieces_or_of_bytes() -> None:
    single = UnitReader(source=Listed(["a"] * 10))
    assert [len(chunk) for chunk in single.chunks(Cursor(), 4)] == [4, 4, 2]
    large = UnitReader(source=Listed(["a"] * 5, size=3 << 20))
    assert [len(chunk) for chunk in large.chunks(Cursor(), 4)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("a", "a"),
        (" ", " "),
        (3, "3"),
        (0, "0"),
        (2.5, "2.5"),
        ([{"role": "user", "content": "é"}], '[{"content":"é","role":"user"}]'),
        ([{"content": "é", "role": "user"}], '[{"content":"é","role":"user"}]'),
        (None, ""),
        ("", ""),
        ([], ""),
        (MISSING, ""),
        (float("nan"), ""),
        (b"x", "\"b'x'\""),
    ],
)
def test_what_names_a_group(value: Any, key: str) -> None:
    assert group_key(value) == key
