"""How far a job is, how fast, and how long it will take."""

from __future__ import annotations

import time

from adjudge.io.jobs.groups import RowSource
from adjudge.io.row import Cursor


class Pace:
    """The pace of one run.

    Args:
        source: the rows.
        limit: how many of them are read; None reads all.
        start: where this run begins.
    """

    def __init__(self, source: RowSource, limit: int | None, start: Cursor) -> None:
        self._source, self._limit = source, limit
        self._began = time.monotonic()
        self._share_before = self.share(start)

    def share(self, cursor: Cursor) -> float | None:
        """Return the share of the job before a place, from 0 to 1, or None if unknown."""
        share, total = self._source.fraction(cursor), self._source.count()
        if self._limit is None or (total is not None and total <= self._limit):
            return share
        return max(share or 0.0, cursor.row / self._limit)

    def seconds_left(self, share: float | None) -> float | None:
        """Return the seconds left at the rate of this run when a share of the job is done, or None if unknown."""
        if share is None or self._share_before is None or share <= self._share_before:
            return None
        return max(0.0, 1.0 - share) / (share - self._share_before) * (time.monotonic() - self._began)

    def per_second(self, rows: int) -> float:
        """Return the rate at which this run did so many rows."""
        return rows / max(time.monotonic() - self._began, 1e-9)
