"""Counts of a job over rows, kept in the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from adjudge.io.jobs.lines import Lines
from adjudge.protocol import NO_COST, Cost


@dataclass(slots=True)
class JobTally:
    """Running counts over everything written so far; exact across interruptions.

    Attributes:
        rows: input rows.
        made: rows written.
        dropped: how often something was left out, by reason.
        counts: sums of what the maker counted.
        cost: sum of what models and scorers cost.
        kinds: what the columns whose kind only the rows tell have held so far.
    """

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
