"""Which cell of a row belongs to which of its responses: a row may hold one, a list of them, or several columns.

Not covered: what a cell says (`said`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from adjudge.data_pipelines.jobs.opening import Glance
from adjudge.io.columns import MISSING, Choice, Column
from adjudge.io.values import is_chat


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a response stands in its row.

    Attributes:
        column: which of the response columns, from 0.
        at: its place in the column's list; None where the column holds no list.
        place: among all responses of the row, from 0.
        count: responses of the row.
    """

    column: int = 0
    at: int | None = None
    place: int = 0
    count: int = 1


ALONE = Spot()


def spots(columns: Sequence[Column], row: Mapping[str, Any]) -> Iterator[Spot]:
    """Yield where the responses of a row stand, in the order in which samples are made of them."""
    lists = [value if _is_list(value := column.of(row)) else None for column in columns]
    count = sum(1 if each is None else len(each) for each in lists)
    place = 0
    for column, each in enumerate(lists):
        for at in [None] if each is None else range(len(each)):
            yield Spot(column=column, at=at, place=place, count=count)
            place += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """Columns that say something of responses.

    Attributes:
        columns: one for all responses of a row, or one for each response column.
    """

    columns: tuple[Column, ...]

    @classmethod
    def named(cls, names: str, seen: Glance, flag: str, *, responses: int) -> Self:
        """Return the cells of columns, named with commas.

        Raises:
            ValueError: a column is not there, or there are neither one nor as many as response columns.
        """
        columns = tuple(Column(name.strip()) for name in names.split(",") if name.strip())
        if len(columns) not in (1, max(responses, 1)):
            raise ValueError(
                f"{flag} names {len(columns)} columns for {responses} response columns; give one, or one for each"
            )
        choice = Choice(seen.columns, seen.rows, flag=lambda role: flag)
        for column in columns:
            choice.given("", column.name)
        return cls(columns=columns)

    def cell(self, row: Mapping[str, Any], spot: Spot) -> Any:
        """Return what a row says of a response: its own item where the cell holds one for each; MISSING if nothing."""
        first, *others = self.columns
        if others:
            value = self.columns[spot.column].of(row)
            return value if spot.at is None else _item(value, spot.at)
        value = first.of(row)
        if spot.at is None and spot.count == 1:
            return value
        return _item(value, spot.place) if isinstance(value, list) and len(value) == spot.count else MISSING


def _item(value: Any, at: int) -> Any:
    return value[at] if isinstance(value, list) and at < len(value) else MISSING


def _is_list(value: Any) -> bool:
    """Whether a cell holds several responses; the turns of a chat are one."""
    return isinstance(value, list) and bool(value) and not is_chat(value)
