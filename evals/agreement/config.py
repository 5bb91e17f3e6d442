"""The options of measuring agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from adjudge.evals.verdicts.verdict import VerdictConfig

Scale = Literal["auto", "nominal", "ordinal", "interval"]


@dataclass(frozen=True, kw_only=True)
class AgreementConfig(VerdictConfig):
    """Measure how far raters agree: judges, verifiers, people.

    Raises:
        ValueError: an option is out of range.
    """

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
    """Numbers from this one on are 1, and others 0."""

    def __post_init__(self) -> None:
        """Reject options out of range."""
        super().__post_init__()
        if self.scale not in get_args(Scale):
            raise ValueError(f"scale is {self.scale!r}; it must be one of {', '.join(get_args(Scale))}")
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"threshold is {self.threshold!r}; give a finite number")
        for name in ("column", "file"):
            given = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} is the text {given!r}; give a tuple of names")
