"""A second file that a job looks things up in: tries, or a benchmark.

Not covered: files that change while the job runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adjudge.io.jobs.opening import glance
from adjudge.io.row import Cursor
from adjudge.io.source import open_source


class SideFile:
    """The rows of a file that is small beside the input.

    Args:
        name: anything `open_source` opens.
        limit: bytes one row of a text file may take.

    Attributes:
        name: as given.
        columns: its top-level columns.
        first: its first readable rows.

    Raises:
        ValueError: it cannot be read.
    """

    def __init__(self, name: str, *, limit: int) -> None:
        self.name = name
        self._source = open_source(name, limit=limit)
        seen = glance(self._source)
        self.columns, self.first = seen.columns, seen.rows

    def identity(self) -> dict[str, Any]:
        """Return what tells it from another file: what is in it, wherever it lies; of the hub's, name and revision."""
        path = Path(self.name)
        if not path.exists():
            return {"name": self.name, **self._source.identity()}
        found = hashlib.sha256()
        for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
            with file.open("rb") as stream:
                found.update(hashlib.file_digest(stream, "sha256").digest())
        return {"digest": found.hexdigest()}

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield its rows with their numbers, from 0.

        Raises:
            ValueError: a row cannot be read: what is looked up must be whole.
        """
        for row in self._source.rows(Cursor()):
            if row.data is None:
                where = f"line {row.line}" if row.line else f"row {row.index}"
                raise ValueError(f"{self.name}, {where}: {row.error}; repair it, or leave that row out")
            yield row.index, row.data
