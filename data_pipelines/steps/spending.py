"""What one row costs: rollouts against its budget, and everything else that is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from adjudge.protocol import NO_COST, Cost


@dataclass(slots=True, kw_only=True)
class Spending:
    """Counts of one row; grows while it is worked on.

    Attributes:
        most: rollouts that may be drawn; None for any number.
        counts: `calls` are rollouts drawn, `asks` requests for them; further ones say what went wrong.
        dropped: solutions left out, by reason.
        cost: of the models and scorers.
    """

    most: int | None = None
    counts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    cost: Cost = NO_COST

    def take(self, calls: int) -> bool:
        """Take rollouts from the budget, all or none, and return whether it covered them."""
        if self.most is not None and self.counts["calls"] + calls > self.most:
            self.counts["over_budget"] += 1
            return False
        self.counts["calls"] += calls
        self.counts["asks"] += 1
        return True
