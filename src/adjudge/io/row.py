"""What a reader yields: a row, or the reason why there is none, and the place where reading can go on behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from adjudge.io.values import without_absent


class Place(NamedTuple):
    """A place between two rows of one file.

    Attributes:
        record: rows of this file before it.
        offset: bytes of this file before it; 0 where the format cannot be entered by offset.
        line: text lines of this file before it; 0 where there are no lines.
    """

    record: int = 0
    offset: int = 0
    line: int = 0


class Cursor(NamedTuple):
    """A place between two rows of a dataset of several files, and what sharding must remember there.

    Attributes:
        row: rows of the dataset before it.
        part: index of the file.
        place: the place in that file.
        unit: groups and single rows before it (see `data_pipelines.label.plan`).
        group: group of the row before it, "" if none.
    """

    row: int = 0
    part: int = 0

    place: Place = Place()
    unit: int = 0
    group: str = ""

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the cursor that `json.dumps` wrote as a list."""
        row, part, place, unit, group = data
        return cls(row, part, Place(*place), unit, group)


@dataclass(slots=True)
class Row:
    """One row of the input.

    Attributes:
        data: its columns, or None when it cannot be read.
        error: why it cannot be read, else "".
        place: the place behind it in its file.
        size: bytes it took in the file, roughly.
        line: number of its first text line, from 1; 0 where there are no lines.
        index: its number in the dataset, from 0.
        part: index of its file.
        filled: whether nested objects may hold None for a field that only other rows have, as Arrow's do.
    """

    data: Mapping[str, Any] | None
    error: str
    place: Place
    size: int
    line: int = 0
    index: int = -1
    part: int = 0
    filled: bool = False

    def cells(self) -> Mapping[str, Any] | None:
        """Return its columns as they were before Arrow filled nested objects up, or None when it cannot be read."""
        if self.data is None or not self.filled:
            return self.data
        return {name: without_absent(value) for name, value in self.data.items()}


class Part(ABC):
    """One file, or one dataset, that can be entered at any row."""

    path: Any
    names: list[str] | None = None
    """The top-level columns, or None where only the rows tell."""

    def columns(self) -> list[str] | None:
        """Return the top-level columns, or None where only the rows tell."""
        return None if self.names is None else list(self.names)

    def count(self) -> int | None:
        """Return the number of rows, or None if unknown."""
        return None

    def select(self, columns: list[str] | None) -> None:
        """Read only these top-level columns where that saves work; None reads all."""
        return

    @abstractmethod
    def rows(self, start: Place) -> Iterator[Row]:
        """Yield the rows behind a place.

        Raises:
            JobError: the file is damaged, or the stream breaks off.
        """
