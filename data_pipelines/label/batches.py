"""Batches of items: whole rows, and for a groupwise scorer whole groups.

A unit is a run of rows that name the same group, or a single row that names none; a row that cannot be read
belongs to the unit it stands in.  Sharding deals out units in turn: shard i of n takes those whose number
leaves the rest i, so all rows of a group reach the same shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.data_pipelines.label.stages import Column
from adjudge.io.row import Cursor, Row

_BATCH_BYTES = 4 << 20  # a batch of long rows closes early, so that memory does not follow the row length


@dataclass(slots=True)
class Batch:
    """Items scored in one call.

    Attributes:
        after: the place behind the last row read, other shards' rows included.
        items: in input order; may be empty at the end of a shard.
        rows: how many rows they come from.
        earlier: of a job that judges again what failed: what an earlier run came to, for the items with a sample.
    """

    after: Cursor
    items: list[Item] = field(default_factory=list)
    rows: int = 0
    earlier: Mapping[str, Column] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batcher:
    """Cuts a stream of rows into batches.

    Attributes:
        read: yields the rows behind a place.
        sampler: makes items of rows.
        size: items after which a batch closes.
        whole_groups: whether a group must not be cut.
        shard: this job's shard.
        shards: how many shards there are.
        limit: rows to read, all shards together; None reads all.
    """

    read: Callable[[Cursor], Iterator[Row]]
    sampler: Sampler
    size: int
    whole_groups: bool = False
    shard: int = 0
    shards: int = 1
    limit: int | None = None

    def batches(self, start: Cursor) -> Iterator[Batch]:
        """Yield the batches behind a place; the last one, maybe empty, ends where the input ends."""
        batch, taken = Batch(after=start), 0
        size = self.size if self.limit is None else 1  # a first batch alone shows what starting takes
        for row, before, after in self._placed(start):
            begins = after.unit != before.unit
            full = len(batch.items) >= size or taken >= _BATCH_BYTES
            if full and (begins or not self.whole_groups):
                yield batch
                batch, taken, size = Batch(after=before), 0, self.size
            if (after.unit - 1) % self.shards == self.shard:
                batch.items += self.sampler.items(row, after.group)
                batch.rows += 1
                taken += row.size
            batch.after = after
        yield batch

    def check_groups(self) -> None:
        """Read the input once and see that the rows of each group stand together.

        Keeps 8-byte hashes of the groups, about 60 bytes of memory for each.

        Raises:
            ValueError: a group goes on after another one began.
        """
        seen: set[int] = set()
        for row, before, after in self._placed(Cursor()):
            if after.unit == before.unit or not after.group:
                continue
            key = hash(after.group)
            if key in seen:
                raise ValueError(
                    f"the scorer compares the samples of a group, and the group {after.group!r} goes on at row "
                    f"{row.index} after other rows; sort the input by its group column"
                )
            seen.add(key)

    def _placed(self, start: Cursor) -> Iterator[tuple[Row, Cursor, Cursor]]:
        """Yield each row with the places before and behind it."""
        before = start
        if self.limit is not None and before.row >= self.limit:
            return
        for row in self.read(start):
            group = self.sampler.group_of(row)
            joins = before.unit > 0 and (row.data is None or (group != "" and group == before.group))
            unit = before.unit if joins else before.unit + 1
            kept = before.group if row.data is None else group
            after = Cursor(row.index + 1, row.part, row.place, unit, kept)
            yield row, before, after
            if after.row == self.limit:
                return
            before = after
