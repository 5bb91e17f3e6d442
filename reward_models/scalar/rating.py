"""What a reward model says of one finished chat, and the shapes a reward can be given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adjudge.engines.interface import Fault
from adjudge.protocol import NO_COST, Cost

Output = Literal["reward", "sigmoid", "log_sigmoid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A reward.

    Attributes:
        reward: finite; higher is better, on the model's own scale unless that is normalised.
        spread: standard deviation of the reward, where the model tells one.
        evidence: raw outputs and what was made of them.
        cost: what it took.
    """

    reward: float
    spread: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    cost: Cost = NO_COST

    def shaped(self, output: Output, less: float = 0.0) -> tuple[float, float | None]:
        """Return the value of a score and its standard deviation (to first order).

        Args:
            output: "reward" as it is; "sigmoid", in (0, 1); "log_sigmoid", below 0 (arXiv 2402.00742).
            less: what is subtracted first, such as the reward of a reference answer.
        """
        value = self.reward - less
        if output == "reward":
            return value, self.spread
        small = math.exp(-abs(value))
        share = 1 / (1 + small) if value >= 0 else small / (1 + small)
        other = small / (1 + small) if value >= 0 else 1 / (1 + small)
        if output == "sigmoid":
            return share, None if self.spread is None else share * other * self.spread
        return min(value, 0.0) - math.log1p(small), None if self.spread is None else other * self.spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Unratable(Fault):
    """A chat that the model cannot rate, though it rates others: in 16 bits, for example, some texts overflow it."""
