"""The options of measuring drift: between two scorings of the same rows, and along a log."""

from __future__ import annotations

import math
from dataclasses import dataclass

from adjudge.evals.results.config import EvalConfig
from adjudge.evals.verdicts.verdict import VerdictConfig


@dataclass(frozen=True, kw_only=True)
class DriftConfig(VerdictConfig):
    """Compare two scorings of the same rows: what changed, and whether the order did.

    Raises:
        ValueError: an option is out of range, or it is not said what to compare with.
    """

    against: str = ""
    """A file with later verdicts on the same ids."""

    scorer: str = ""
    """Score the rows again with this, in place of a second file."""

    rows: str = ""
    """The rows that were labelled, for --scorer. Without it, the columns that
    adjudge label --keep-columns kept."""

    column: str = ""
    """Column of the score; without it, where adjudge label writes it."""

    tolerance: float = 0.0
    """Two numbers that differ by no more than this are the same."""

    allowed: float = 0.0
    """Share of changed rows with which the check still passes."""

    threshold: float | None = None
    """Numbers from this one on count as right, for the share of verdicts that flip."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if bool(self.against) == bool(self.scorer):
            given = "both are given" if self.scorer else "neither is given"
            raise ValueError(f"drift compares with a file or with a scorer, and {given}; give --against or --scorer")
        if self.rows and not self.scorer:
            raise ValueError(f"rows is {self.rows!r}, which only --scorer reads; leave it out")
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise ValueError(f"tolerance is {self.tolerance!r}; give 0 or more")
        if not 0 <= self.allowed <= 1:
            raise ValueError(f"allowed is {self.allowed!r}; it is a share, so from 0 to 1")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"threshold is {self.threshold!r}; give a finite number")


@dataclass(frozen=True, kw_only=True)
class LiveDriftConfig(EvalConfig):
    """Watch the scores of a service or a run over time: has anything changed since the beginning?

    The input has a row for each score, as a log writes them.

    Raises:
        ValueError: an option is out of range.
    """

    value_column: str = "value"
    """Column of the score; status and reason stand beside it, as adjudge label
    writes them. Without such a column, only lengths and latencies are watched."""

    time_column: str = ""
    """Column of the time: seconds, a step, or an ISO date; without it the usual
    names, and then the order of the rows."""

    length_column: str = ""
    """Column of the response's length; without it the usual names, and then the
    characters of the response."""

    latency_column: str = ""
    """Column of how long a score took; without it the usual names."""

    group_column: str = ""
    """Column that rows of one prompt share, which are alike; without it the usual
    names; "-" takes every row for itself."""

    where: tuple[str, ...] = ()
    """COLUMN=TEXT: only rows that say so, such as scorer=math; give it several
    times."""

    reference: str = ""
    """Another log to compare with; without it, the first rows of this one."""

    reference_rows: int = 2_000
    """How many first rows the others are compared with."""

    window: int = 500
    """Rows of a window."""

    alarm: float = 0.01
    """Chance of any false alarm in the whole log."""

    psi: float = 0.1
    """A window whose numbers have less than this population stability index
    is no alarm, however sure the difference is."""

    share: float = 0.02
    """A share (of failures, of zeros) that changes by less than this is no alarm."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if self.window < 20:
            raise ValueError(f"window is {self.window!r}; give 20 rows or more")
        if self.reference_rows < 2 * self.window and not self.reference:
            raise ValueError(
                f"reference_rows is {self.reference_rows!r}; give two windows of {self.window} rows at least"
            )
        if not 0 < self.alarm < 1:
            raise ValueError(f"alarm is {self.alarm!r}; it is a chance, so between 0 and 1")
        for name in ("psi", "share"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise ValueError(f"{name} is {getattr(self, name)!r}; give 0 or more")
        for given in self.where:
            if "=" not in given:
                raise ValueError(f"where is {given!r}; give COLUMN=TEXT")
