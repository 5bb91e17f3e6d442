"""Batches, sharding and groups: nothing lost, nothing twice, groups whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.label.plan import Batch, Batcher
from adjudge.data_pipelines.label.samples import Sampler
from adjudge.io.columns import Column, ColumnMap
from adjudge.io.row import Cursor, Place, Row
from adjudge.protocol import Sample

BAD = "bad"


def accept(sample: Sample) -> None:
    """Any sample will do."""


def batcher(groups: list[str], *, size: int = 4, row_bytes: int = 10) -> Batcher:
    """Rows with these groups; `BAD` stands for a row that cannot be read."""

    def read(start: Cursor) -> Iterator[Row]:
        for index in range(start.row, len(groups)):
            data = None if groups[index] == BAD else {"r": "x", "g": groups[index]}
            yield Row(data, "" if data else "no JSON", Place(index + 1), row_bytes, index=index)

    columns = ColumnMap(responses=(Column("r"),), group=Column("g"))
    return Batcher(read=read, sampler=Sampler(columns=columns, validate=accept), size=size)


def rows_of(batches: list[Batch]) -> list[int]:
    return [item.row for batch in batches for item in batch.items]


GROUPS = st.lists(st.sampled_from(["", BAD, "a", "b", "c"]), max_size=30)


@given(groups=GROUPS, size=st.integers(1, 6), whole=st.booleans(), shards=st.integers(1, 4))
def test_shards_cover_every_row_once_and_can_go_on_behind_any_batch(
    groups: list[str], size: int, whole: bool, shards: int
) -> None:
    seen: list[int] = []
    for shard in range(shards):
        job = replace(batcher(groups, size=size), whole_groups=whole, shard=shard, shards=shards)
        batches = list(job.batches(Cursor()))
        mine = rows_of(batches)
        assert mine == sorted(mine)
        assert sum(batch.rows for batch in batches) == len(mine)
        seen += mine
        for done in range(len(batches)):
            assert rows_of(batches[: done + 1]) + rows_of(list(job.batches(batches[done].after))) == mine
    assert sorted(seen) == list(range(len(groups)))


@given(groups=GROUPS, size=st.integers(1, 6), shards=st.integers(1, 3))
def test_a_run_of_one_group_is_never_cut(groups: list[str], size: int, shards: int) -> None:
    where: dict[int, tuple[int, int]] = {}
    for shard in range(shards):
        job = replace(batcher(groups, size=size), whole_groups=True, shard=shard, shards=shards)
        for number, batch in enumerate(job.batches(Cursor())):
            where |= {item.row: (shard, number) for item in batch.items}
    for row in range(1, len(groups)):
        if groups[row] == groups[row - 1] and groups[row] not in ("", BAD):
            assert where[row] == where[row - 1]


def test_batches_are_full_and_no_larger_than_asked_without_groups() -> None:
    sizes = [len(batch.items) for batch in batcher([""] * 10, size=4).batches(Cursor())]
    assert sizes == [4, 4, 2]


def test_long_rows_close_a_batch_early() -> None:
    sizes = [len(batch.items) for batch in batcher([""] * 5, size=100, row_bytes=3 << 20).batches(Cursor())]
    assert sizes == [2, 2, 1]


def test_the_limit_counts_rows_of_all_shards() -> None:
    taken = []
    for shard in range(2):
        job = replace(batcher([""] * 10), limit=5, shard=shard, shards=2)
        taken.append(rows_of(list(job.batches(Cursor()))))
        (*_, last) = job.batches(Cursor())
        assert rows_of(list(job.batches(last.after))) == []
    assert taken == [[0, 2, 4], [1, 3]]


def test_scattered_groups_are_found_before_any_work() -> None:
    batcher(["a", "a", BAD, "a", "", "b", "", "c"]).check_groups()
    with pytest.raises(ValueError, match=r"the group 'a' goes on at row 3 after other rows; sort the input"):
        batcher(["a", "b", "b", "a"]).check_groups()
