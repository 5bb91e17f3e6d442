"""The numbers from 0 on as rows, for makers that read no input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from adjudge.io.row import Cursor, Place, Row


@dataclass(frozen=True, slots=True)
class NumberSource:
    """Rows {"index": 0}, {"index": 1}, ...: a source for `run_job`.

    Attributes:
        rows_in_all: how many.
        name: what errors and the card call it.

    Raises:
        ValueError: fewer than none.
    """

    rows_in_all: int
    name: str = "numbers"

    def __post_init__(self) -> None:
        """Reject a negative number."""
        if self.rows_in_all < 0:
            raise ValueError(f"there cannot be {self.rows_in_all} rows; give 0 or more")

    def identity(self) -> dict[str, Any]:
        """Return the number of rows."""
        return {"name": self.name, "rows": self.rows_in_all}

    def columns(self) -> list[str] | None:
        """Return the one column."""
        return ["index"]

    def count(self) -> int | None:
        """Return how many rows there are."""
        return self.rows_in_all

    def fraction(self, cursor: Cursor) -> float | None:
        """Return the share before a place, from 0 to 1."""
        return cursor.row / self.rows_in_all if self.rows_in_all else 1.0

    def rows(self, start: Cursor) -> Iterator[Row]:
        """Yield the rows behind a place."""
        for index in range(start.row, self.rows_in_all):
            yield Row({"index": index}, "", Place(index + 1), 16, index=index)
