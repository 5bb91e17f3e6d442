"""Rows of training data, from whatever `adjudge.io.source` opens.

A row that cannot be read comes as a `ValueError` in its place, so that it can be counted and named.

Not covered: streaming; training keeps its data in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adjudge.io.errors import JobError
from adjudge.io.row import Cursor
from adjudge.io.source import open_source

Row = Mapping[str, Any] | ValueError

_ROW_BYTES = 64 << 20


def rows_of(path: str, *, split: str = "") -> Iterator[Row]:
    """Yield the rows of a file, a folder, a pattern, an address or a data set.

    Args:
        path: see `adjudge.io.source`.
        split: which part of a data set that has several; "" takes "train".

    Raises:
        ValueError: there is no such input, it cannot be read, or has no such split.
    """
    try:
        for row in open_source(path, limit=_ROW_BYTES, split=split, usual_split="train").rows(Cursor()):
            data = row.cells()
            yield data if data is not None else ValueError(row.error)
    except JobError as error:
        raise ValueError(f"the data {path!r} cannot be read: {error}") from error
