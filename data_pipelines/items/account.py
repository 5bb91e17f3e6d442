"""What one unit came to while it is worked on: what was left out and why, counts, and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adjudge.io.jobs.maker import Made
from adjudge.protocol import NO_COST, Cost


class Unusable(Exception):
    """A unit from which nothing can be made.

    Attributes:
        reason: why, in snake_case; counted in the job's report.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class Account:
    """Running counts of one unit.

    Attributes:
        dropped: how often something was left out, by reason.
        counts: numbers for the report.
        cost: of models and scorers.
    """

    dropped: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    cost: Cost = NO_COST

    def drop(self, reason: str, times: int = 1) -> None:
        """Count what was left out."""
        if times:
            self.dropped[reason] += times

    def made(self, rows: Sequence[Mapping[str, Any]]) -> Made:
        """Return what the unit came to."""
        return Made(rows=tuple(rows), dropped=dict(self.dropped), counts=dict(self.counts), cost=self.cost)
