"""What a job over rows says about itself, live and at the end; its counts, its pace, and when a scorer is given up.

A sample that cannot be judged stops nothing.  A scorer that cannot judge any would go through the whole input, and
cost time and money for no number; `Patience` stops it with its own words instead.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from adjudge.io.errors import JobError
from adjudge.io.jobs.groups import RowSource
from adjudge.io.jobs.lines import Lines
from adjudge.io.row import Cursor
from adjudge.protocol import NO_COST, Cost

_LOG = logging.getLogger(__name__)


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


S_contra = TypeVar("S_contra", contravariant=True)


class Watcher(Protocol[S_contra]):
    """Who watches a job.  Calls come from the thread the job runs on and must be quick."""

    def note(self, text: str) -> None:
        """Take one sentence about how the input was understood, or about an earlier run."""
        ...

    def update(self, snapshot: S_contra) -> None:
        """Take the state after rows were written."""
        ...


JobProgress: TypeAlias = Watcher[JobSnapshot]
"""Who watches a job over rows."""


def tell(progress: Watcher[Any] | None, text: str) -> None:
    """Log a sentence, and hand it to whoever watches."""
    _LOG.info(text)
    if progress is not None:
        progress.note(text)


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
        return asdict(self) | {"seconds": round(self.seconds, 3), "notes": list(self.notes)}


@dataclass(slots=True)
class JobTally:
    """Running counts over everything written so far; exact across interruptions."""

    rows: int = 0
    made: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    counts: dict[str, float] = field(default_factory=dict)
    cost: Cost = NO_COST
    kinds: dict[str, str] = field(default_factory=dict)

    def add(self, lines: Lines) -> None:
        """Count what one unit came to."""
        self.made += lines.rows
        self.dropped.update(lines.dropped)
        for name, number in lines.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        self.cost = self.cost + lines.cost

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal tally."""
        return {
            "rows": self.rows,
            "made": self.made,
            "dropped": dict(self.dropped),
            "counts": self.counts,
            "cost": self.cost.to_dict(),
            "kinds": self.kinds,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the tally that `to_dict` wrote."""
        return cls(
            rows=data["rows"],
            made=data["made"],
            dropped=Counter(data["dropped"]),
            counts=dict(data["counts"]),
            cost=Cost.from_dict(data["cost"]),
            kinds=dict(data["kinds"]),
        )


class Pace:
    """The pace of one run."""

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


MAX_IN_A_ROW: Final = 512
_SHOWN: Final = 300


class Judged(Protocol):
    """What a scorer said about one sample."""

    @property
    def status(self) -> str:
        """Either "scored", "abstained" or "failed"."""
        ...

    @property
    def reason(self) -> str:
        """Why there is no number: a code from `adjudge.reasons`."""
        ...

    @property
    def error(self) -> str:
        """The same in words; "" where nobody said."""
        ...


class Patience:
    """Watches what a scorer gives.

    Args:
        name: of the scorer.
        after: the end of the message: what the same call does when the scorer is repaired.
        most: so many newest scores may have failed, all of them, before it is given up.
    """

    def __init__(self, name: str, *, after: str, most: int = MAX_IN_A_ROW) -> None:
        self._name = name
        self._after = after
        self._most = most
        self._began = False
        self.failed_in_a_row = 0

    def watch(self, judged: Sequence[Judged], *, first: bool) -> None:
        """Look at the scores of one batch.

        Args:
            judged: the scores.
            first: whether it is given up now if neither these nor any before could be judged.

        Raises:
            ValueError: none of the first samples could be judged.
            JobError: nothing could be judged any more.
        """
        asked = [one for one in judged if one.reason != "out_of_scope"]
        alive = any(one.status != "failed" for one in asked)
        self._began = self._began or alive
        self.failed_in_a_row = 0 if alive else self.failed_in_a_row + len(asked)
        if first and judged and not self._began:
            count = max(self.failed_in_a_row, len(judged))
            raise ValueError(f"the scorer {self._name!r} could judge none of the first {count} samples: {_why(judged)}")
        if self.failed_in_a_row >= self._most:
            raise JobError(
                f"the scorer {self._name!r} could judge none of the last {self.failed_in_a_row} samples: "
                f"{_why(judged)}. When it is repaired, the same call {self._after}"
            )


def _why(judged: Sequence[Judged]) -> str:
    first = next((one for one in judged if one.error), judged[0])
    return f"{first.reason} ({' '.join(first.error.split())[:_SHOWN]})" if first.error else first.reason
