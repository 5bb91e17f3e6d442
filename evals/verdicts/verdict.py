"""What one rater said about one row: a number, a label, or why there is neither.

The options of evaluations that read such verdicts stand here too.

Not covered: evidence, steps and parts of a score.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from adjudge.evals.results.config import EvalConfig
from adjudge.protocol import STATUSES

Said: TypeAlias = float | str
"""A number or a label."""

MISSING = "missing"
"""The status of a rater that was not asked, or whose cell is empty."""


class Verdict(NamedTuple):
    """What a rater said.

    Attributes:
        value: a finite number, a label, or None.
        status: "scored", "abstained", "failed", or "missing" where nothing is written.
        reason: why there is no value, or what the response did; "" if nobody said.
    """

    value: Said | None
    status: str
    reason: str = ""

    @property
    def number(self) -> float | None:
        """The number; None where there is none."""
        return self.value if isinstance(self.value, float) else None

    @property
    def shown(self) -> str:
        """The verdict as text for people."""
        text = f"{self.number:.6g}" if self.number is not None else str(self.value or self.status)
        return f"{text} ({self.reason})" if self.reason else text


NOTHING = Verdict(None, MISSING)


def verdict_of(cell: Any) -> Verdict:
    """Return what a cell says: a score that `adjudge label` wrote, a number, a truth value, a label, or nothing.

    A number that is not finite is a failure to judge.  Text that is a number is one, as all cells of a .csv are text.

    Raises:
        ValueError: the cell holds something else, or a score that contradicts itself.
    """
    if isinstance(cell, Mapping):
        return _of_score(cell)
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return NOTHING
    if isinstance(cell, str):
        try:
            number = float(cell.replace("_", "x"))  # Python takes 1_0 for 10; here it is a label
        except ValueError:
            return Verdict(cell.strip(), "scored")
    elif isinstance(cell, int | float):
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
    else:
        raise ValueError(f"it holds a {type(cell).__name__}; a verdict is a number, a label, or a score")
    return Verdict(number, "scored") if math.isfinite(number) else Verdict(None, "failed", "not_finite")


def _of_score(score: Mapping[str, Any]) -> Verdict:
    if "value" not in score:
        raise ValueError(f"it is an object without `value`; its fields are {', '.join(map(str, list(score)[:12]))}")
    inner = NOTHING if isinstance(score["value"], Mapping) else verdict_of(score["value"])
    status = score.get("status") or ("scored" if inner.value is not None else inner.status)
    if status not in (*STATUSES, MISSING) or (status == "scored") != (inner.value is not None):
        if inner.reason:
            return inner
        value = reprlib.repr(score["value"])
        raise ValueError(f"its status is {status!r} and its value {value}; a score is one exactly if scored")
    return Verdict(inner.value, status, str(score.get("reason") or inner.reason))


@dataclass(frozen=True, kw_only=True)
class VerdictConfig(EvalConfig):
    """Options of an evaluation of stored verdicts.

    Raises:
        ValueError: an option is out of range.
    """

    id_column: str = ""
    """Column of the id; without it the usual names, and then the row's number.
    Of every column: a.b.c reaches into nested objects."""

    group_column: str = ""
    """Column that rows of one prompt share; they are drawn together.
    Without it the usual names; "-" takes every row for itself."""

    prompt_column: str = ""
    """Column of the prompt, for the cases to read."""

    response_column: str = ""
    """Column of the response, for the cases to read."""
