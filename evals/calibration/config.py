"""The options of measuring calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from adjudge.evals.verdicts.verdict import VerdictConfig

Map = Literal["auto", "none", "isotonic", "platt", "temperature"]


@dataclass(frozen=True, kw_only=True)
class CalibrationConfig(VerdictConfig):
    """Measure how well scores match outcomes, as probabilities and as an order.

    Raises:
        ValueError: an option is out of range.
    """

    score_column: str = "value"
    """Column of the score; "value" is where adjudge label writes it."""

    gold_column: str = "gold"
    """Column of what is right: 1 or 0."""

    gold: str = ""
    """Another file that holds the gold column, joined by id."""

    gold_threshold: float | None = None
    """For a graded gold: from this grade on a row is right."""

    threshold: float = 0.5
    """From this probability on a row is called right."""

    bins: int = 10
    """Bins of the calibration error, which depends on them."""

    map: Map = "auto"
    """How scores become probabilities: isotonic, platt, temperature (of log-odds),
    each fitted without the rows it is used on; or none. "auto" takes
    scores in [0, 1] as they are, and isotonic for others."""

    folds: int = 5
    """Parts that the map is fitted without, in turn; groups stay whole."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if self.bins < 1:
            raise ValueError(f"bins is {self.bins!r}; give 1 or more")
        if self.folds < 2:
            raise ValueError(f"folds is {self.folds!r}; give 2 or more")
        if self.map not in get_args(Map):
            raise ValueError(f"map is {self.map!r}; it must be one of {', '.join(get_args(Map))}")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is {self.threshold!r}; it is a probability, so from 0 to 1")
        if self.gold_threshold is not None and not math.isfinite(self.gold_threshold):
            raise ValueError(f"gold_threshold is {self.gold_threshold!r}; give a finite grade")
