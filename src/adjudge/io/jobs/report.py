"""What a job over rows says about itself: live, and at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from adjudge.protocol import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSnapshot:
    """How far a running job is.

    Attributes:
        rows: input rows done, those of earlier runs included.
        made: rows written.
        dropped: how often something was left out, by reason.
        rows_per_second: input rows, over this run.
        fraction: share of the input done, 0 to 1, or None if its size is unknown.
        eta_seconds: seconds left at this rate, or None.
    """

    rows: int
    made: int
    dropped: Mapping[str, int]
    rows_per_second: float
    fraction: float | None
    eta_seconds: float | None


class JobProgress(Protocol):
    """Who watches a job.  Calls come from the thread the job runs on and must be quick."""

    def note(self, text: str) -> None:
        """Take one sentence about how the input was understood, or about an earlier run."""
        ...

    def update(self, snapshot: JobSnapshot) -> None:
        """Take the state after rows were written."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """What a finished job did, over all its runs.

    Attributes:
        output: what was written.
        maker: name of the maker.
        fingerprint: fingerprint of the maker.
        rows: input rows read.
        made: rows written.
        dropped: how often something was left out, by reason.
        counts: what the maker counted.
        cost: seconds and tokens of models and scorers.
        seconds: wall time.
        resumed_rows: input rows done by earlier runs.
        notes: how the input was understood.
    """

    output: str
    maker: str
    fingerprint: str
    rows: int
    made: int
    dropped: Mapping[str, int]
    counts: Mapping[str, float]
    cost: Cost
    seconds: float
    resumed_rows: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "output": self.output,
            "maker": self.maker,
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "made": self.made,
            "dropped": dict(self.dropped),
            "counts": dict(self.counts),
            "cost": self.cost.to_dict(),
            "seconds": round(self.seconds, 3),
            "resumed_rows": self.resumed_rows,
            "notes": list(self.notes),
        }
