"""How far a probing is, for whoever watches it.

Not covered: how long a probe takes; each counts the same, and few do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from adjudge.data_pipelines.jobs.report import JobProgress, JobSnapshot


class Telling:
    """Turns "so many samples of this probe" into the share of all probes.

    Args:
        progress: who is told.
        parts: names of what is asked, in order.
    """

    def __init__(self, progress: JobProgress, parts: Sequence[str]) -> None:
        self._progress = progress
        self._places = {name: place for place, name in enumerate(parts)}
        self._begun = time.monotonic()
        self._part = ""
        self._before = 0  # samples of the parts before this one
        self._done = 0

    def __call__(self, what: str, done: int, of: int) -> None:
        """Take so many samples done of a part."""
        if what != self._part or done <= self._done:
            self._before += self._done
            self._part = what
        self._done = done
        rows = self._before + done
        share = (self._places.get(what, 0) + done / max(of, 1)) / len(self._places)
        seconds = max(time.monotonic() - self._begun, 1e-9)
        self._progress.update(
            JobSnapshot(
                rows=rows,
                made=rows,
                dropped={},
                rows_per_second=rows / seconds,
                fraction=min(share, 1.0),
                eta_seconds=seconds * (1 / share - 1) if share > 0 else None,
            )
        )
