"""One number that somebody gave a sample, whoever it was: a scorer, a file of scores, or the benchmark's own file.

Not covered: what it means for a case (`outcomes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from adjudge.evals.benchmarks.case import Case, Stored
from adjudge.protocol import NO_COST, Cost, Score, Status

NOT_FINITE: Final = "not_finite"
NO_VERDICT: Final = "no_verdict"
_CUT: Final = "truncated"
_SEEN_IN_PART: Final = (_CUT, "kept")  # what scorers write into the evidence


class Given(NamedTuple):
    """What is kept of a score.

    Attributes:
        value: the number; None if there is none.
        status: "scored", "abstained" or "failed".
        reason: why there is none, or the candidate's reason.
        steps: values of the steps.
        cut_off: whether the scorer saw only a part of the response, or was told that it ends at a limit.
        cost: of the score.
        error: what went wrong, in words, where somebody said so.
        places: first character of each step in the response, and one past its last; () where nobody said.
    """

    value: float | None
    status: Status
    reason: str = ""
    steps: tuple[float | None, ...] = ()
    cut_off: bool = False
    cost: Cost = NO_COST
    error: str = ""
    places: tuple[tuple[int, int], ...] = ()

    @property
    def said(self) -> str:
        """The score as text for people."""
        shown = self.status if self.value is None else f"{self.value:.6g}"
        return f"{shown} ({self.reason})" if self.reason else shown


def of_score(verdict: Score) -> Given:
    """Return what is kept of a scorer's answer."""
    evidence = verdict.evidence
    return Given(
        value=verdict.value,
        status=verdict.status,
        reason=verdict.reason,
        steps=tuple(step.value for step in verdict.steps),
        cut_off=is_cut(verdict.reason, evidence),
        cost=verdict.cost,
        error="" if verdict.value is not None else str(evidence.get("error") or evidence.get("fault") or ""),
        places=tuple((step.start, step.end) for step in verdict.steps),
    )


def is_cut(reason: str, evidence: Mapping[str, Any]) -> bool:
    """Return whether a score says that the scorer saw only a part of the response, or that it ends at a limit."""
    return reason == _CUT or any(evidence.get(name) for name in _SEEN_IN_PART)


def of_stored(stored: Stored) -> Given:
    """Return what is kept of a score that stands in the benchmark's file; one that is not finite is none."""
    if stored.value is None:
        return Given(None, "failed", stored.reason or NO_VERDICT, stored.steps)
    value = finite(stored.value)
    if value is None:
        return Given(None, "failed", stored.reason or NOT_FINITE, stored.steps)
    return Given(value, "scored", stored.reason, stored.steps)


def finite(value: float) -> float | None:
    """Return a number as a float; None for one that is none or does not fit, as JSON may hold."""
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def stored_of(case: Case) -> list[Given]:
    """Return what the file stores of each sample of a case; one of which nothing is stored has no verdict."""
    return [of_stored(stored) for stored in case.stored] or [Given(None, "failed", NO_VERDICT)] * len(case.samples)
