"""How far an evaluation is whose parts (attackers, probes) come one after another."""

from __future__ import annotations

import time
from collections.abc import Sequence

from adjudge.io.jobs.report import JobProgress, JobSnapshot


class PartsProgress:
    """Tells a watcher how far all parts together are, each an equal share; without a watcher it does nothing."""

    def __init__(self, progress: JobProgress | None, parts: Sequence[str]) -> None:
        self._progress = progress
        self._parts = list(parts)
        self._begun = time.monotonic()

    def __call__(self, part: str, share: float, *, rows: int, made: int) -> None:
        """Take the share that is done of a part, and how many rows are done and scores made in all."""
        if self._progress is None:
            return
        fraction = min((self._parts.index(part) + share) / len(self._parts), 1.0)
        seconds = max(time.monotonic() - self._begun, 1e-9)
        self._progress.update(
            JobSnapshot(
                rows=rows,
                made=made,
                dropped={},
                rows_per_second=rows / seconds,
                fraction=fraction,
                eta_seconds=seconds * (1 / fraction - 1) if fraction else None,
            )
        )
