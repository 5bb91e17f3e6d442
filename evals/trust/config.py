"""The options of measuring agreement, calibration and drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from adjudge.evals.reports.config import EvalConfig
from adjudge.evals.trust.verdicts import VerdictConfig
from adjudge.options import Range

Scale = Literal["auto", "nominal", "ordinal", "interval"]


@dataclass(frozen=True, kw_only=True)
class AgreementConfig(VerdictConfig):
    """Measure how far raters agree: judges, verifiers, people."""

    column: tuple[str, ...] = ()
    """Column of a rater, or NAME=COLUMN; give it several times. Without it, the
    scores that adjudge label wrote, by their names."""

    file: tuple[str, ...] = ()
    """Another file with verdicts on the same ids, or NAME=FILE; give it several
    times."""

    gold_column: str = ""
    """Column of what is right, if anybody knows; of the input."""

    scale: Scale = "auto"
    """nominal (equal or not), ordinal (ranks) or interval (distances). "auto" takes
    nominal for text and for two values, ordinal up to ten numbers, else interval."""

    threshold: float | None = None
    """Numbers from this one on are 1, and others 0; gold of 0 and 1 stays what it is."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("column", "file"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} is the text {given!r}; give a tuple of names")


Map = Literal["auto", "none", "isotonic", "platt", "temperature"]


@dataclass(frozen=True, kw_only=True)
class CalibrationConfig(VerdictConfig):
    """Measure how well scores match outcomes, as probabilities and as an order."""

    score_column: str = "value"
    """Column of the score; "value" is where adjudge label writes it."""

    gold_column: str = "gold"
    """Column of what is right: 1 or 0."""

    gold: str = ""
    """Another file that holds the gold column, joined by id."""

    gold_threshold: float | None = None
    """For a graded gold: from this grade on a row is right."""

    threshold: Annotated[float, Range(ge=0, le=1)] = 0.5
    """From this probability on a row is called right."""

    bins: Annotated[int, Range(ge=1)] = 10
    """Bins of the calibration error, which depends on them."""

    map: Map = "auto"
    """How scores become probabilities: isotonic, platt, temperature (of log-odds),
    each fitted without the rows it is used on; or none. "auto" takes
    scores in [0, 1] as they are, and isotonic for others."""

    folds: Annotated[int, Range(ge=2)] = 5
    """Parts that the map is fitted without, in turn; groups stay whole."""


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

    tolerance: Annotated[float, Range(ge=0)] = 0.0
    """Two numbers that differ by no more than this are the same."""

    allowed: Annotated[float, Range(ge=0, le=1)] = 0.0
    """Share of changed rows with which the check still passes."""

    threshold: float | None = None
    """Numbers from this one on count as right, for the share of verdicts that flip."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.against) == bool(self.scorer):
            given = "both are given" if self.scorer else "neither is given"
            raise ValueError(f"drift compares with a file or with a scorer, and {given}; give --against or --scorer")
        if self.rows and not self.scorer:
            raise ValueError(f"rows is {self.rows!r}, which only --scorer reads; leave it out")


@dataclass(frozen=True, kw_only=True)
class LiveDriftConfig(EvalConfig):
    """Watch the scores of a service or a run over time: has anything changed since the beginning?

    The input has a row for each score, as a log writes them.
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

    window: Annotated[int, Range(ge=20)] = 500
    """Rows of a window."""

    alarm: Annotated[float, Range(gt=0, lt=1)] = 0.01
    """Chance of any false alarm in the whole log."""

    psi: Annotated[float, Range(ge=0)] = 0.1
    """A window whose numbers have less than this population stability index
    is not an alarm, however sure the difference is."""

    share: Annotated[float, Range(ge=0)] = 0.02
    """A share (of failures, of zeros) that changes by less than this is not an alarm."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference_rows < 2 * self.window and not self.reference:
            raise ValueError(
                f"reference_rows is {self.reference_rows!r}; give two windows of {self.window} rows at least"
            )
        for given in self.where:
            if "=" not in given:
                raise ValueError(f"where is {given!r}; give COLUMN=TEXT")
