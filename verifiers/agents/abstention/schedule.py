"""When BAPO's early stage ends: the validation result has stopped improving.

The schedule is a value: `after` returns the next one, and a trainer that keeps it keeps it in its checkpoint as JSON.
The scorer itself remembers nothing; its option `stage`, or the column `bapo_stage` of a sample, says the stage.

The release (`Liushiyu-0709/BAPO-Reliable-Search` @ b8b1072) says "5 validations without improvement in a row", and
counts all checks below the best one, wherever they stand, until there are more than 5:
`BapoSchedule(patience=6, in_a_row=False, ties="improve")` does the same.

Not covered: what a validation result is.  The release takes the mean reward.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Self

_NAMES = ("patience", "in_a_row", "ties", "best", "stale", "stage")


@dataclass(frozen=True, slots=True, kw_only=True)
class BapoSchedule:
    """The stage of a run, by its validation results so far.

    Attributes:
        patience: checks without improvement that end the early stage.
        in_a_row: whether an improvement starts the count anew.
        ties: whether a result equal to the best one counts as an improvement ("improve") or as none ("stale").
        best: the best result so far; None before the first.
        stale: checks without improvement that count so far.
        stage: "early" or "late"; once late, always late.
    """

    patience: int = 5
    in_a_row: bool = True
    ties: Literal["improve", "stale"] = "stale"
    best: float | None = None
    stale: int = 0
    stage: Literal["early", "late"] = "early"

    def __post_init__(self) -> None:
        """Reject a state that no run can be in."""
        if type(self.patience) is not int or self.patience < 1:
            raise ValueError(f"schedule: patience is {self.patience!r}; it must be a whole number from 1")
        if type(self.in_a_row) is not bool:
            raise ValueError(f"schedule: in_a_row is {self.in_a_row!r}; it must be true or false")
        if self.ties not in ("improve", "stale"):
            raise ValueError(f"schedule: ties is {self.ties!r}; it must be improve or stale")
        if self.best is not None and not _is_number(self.best):
            raise ValueError(f"schedule: best is {self.best!r}; it must be a finite number, or none")
        if type(self.stale) is not int or self.stale < 0:
            raise ValueError(f"schedule: stale is {self.stale!r}; it must be a whole number from 0")
        if self.stage not in ("early", "late"):
            raise ValueError(f"schedule: stage is {self.stage!r}; it must be early or late")

    def after(self, result: float) -> Self:
        """Return the schedule after one more validation result.

        Raises:
            ValueError: the result is no finite number.
        """
        if not _is_number(result):
            raise ValueError(f"schedule: the validation result is {result!r}; it must be a finite number")
        if self.best is None or result > self.best:
            return replace(self, best=float(result), stale=0 if self.in_a_row else self.stale)
        if result == self.best and self.ties == "improve":
            return replace(self, stale=0 if self.in_a_row else self.stale)
        stale = self.stale + 1
        return replace(self, stale=stale, stage="late" if stale >= self.patience else self.stage)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data from which `from_dict` makes an equal schedule."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the schedule that `to_dict` wrote.

        Raises:
            ValueError: a key is unknown or missing, or a value is out of range.
        """
        known = {item.name for item in fields(cls)}
        if set(data) != known:
            raise ValueError(f"schedule: the state has {', '.join(map(str, data))}; it must have {', '.join(_NAMES)}")
        return cls(**data)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
