"""Several values of the same response, reduced to one that is harder to fool than any of them: the formulas.

For values r_1..r_n on one scale, with mean m, population variance v and standard deviation s = sqrt(v):

    mean            m
    median          the middle value, or the mean of the two middle ones
    min             min(r_i)                      worst case (WCO, arXiv 2310.02743)
    lower_bound     m - k * s
    variance_bound  m - k * v                     UWO of the same paper; k has the unit 1 / reward
    soft_min        -beta * log(mean(exp(-r_i / beta)))   from min (beta near 0) to mean (large beta), arXiv 2606.09073
    nominal_min     share * nominal + (1 - share) * min(r_i)   BRME of reward-robust RLHF, arXiv 2409.15360

`nominal` is the mean, or the value of the surest member: the one with the smallest standard deviation of its own.

Not covered: where values come from: scorers (`adjudge.scoring.compose.mixtures`), reward models, or heads of one model
(`adjudge.reward_models`); and members on different scales: z-score them first.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from adjudge.options import Options, Range

Rule = Literal["mean", "median", "min", "lower_bound", "variance_bound", "soft_min", "nominal_min"]
Nominal = Literal["mean", "surest"]


@dataclass(frozen=True, kw_only=True)
class Combination(Options, what="option"):
    """How the values of members become one.

    Attributes:
        rule: the module docstring has the formulas.
        k: "lower_bound" and "variance_bound": how far below the mean, >= 0.
        beta: "soft_min": its temperature, in units of the reward, > 0.
        share: "nominal_min": the share of the nominal reward, from 0 to 1.
        nominal: "nominal_min": "mean" or "surest".
    """

    rule: Rule = "mean"
    k: Annotated[float, Range(ge=0)] = 1.0
    beta: Annotated[float, Range(gt=0)] = 1.0
    share: Annotated[float, Range(ge=0, le=1)] = 0.5
    nominal: Nominal = "mean"

    @property
    def needs_spreads(self) -> bool:
        """Whether members must tell how sure each is by itself."""
        return self.rule == "nominal_min" and self.nominal == "surest"

    def of(
        self, rewards: Sequence[float], spreads: Sequence[float | None] = (), *, nominal: float | None = None
    ) -> float:
        """Return one value.

        Args:
            rewards: one for each member, at least one, finite.
            spreads: each member's own standard deviation, in the same order; () or None where it has none.
            nominal: in place of the nominal value that the option `nominal` names.

        Raises:
            ValueError: there is no reward, or the surest member is asked for and none tells its standard deviation.
        """
        if not rewards:
            raise ValueError("a combination was given no rewards; it needs at least one member")
        mean = math.fsum(rewards) / len(rewards)
        match self.rule:
            case "mean":
                return mean
            case "median":
                return statistics.median(rewards)
            case "min":
                return min(rewards)
            case "lower_bound":
                return mean - self.k * spread_of(rewards)
            case "variance_bound":
                spread = spread_of(rewards)
                return mean - self.k * spread * spread
            case "soft_min":
                return soft_min(rewards, self.beta)
            case "nominal_min":
                if nominal is None:
                    nominal = mean if self.nominal == "mean" else _surest(rewards, spreads)
                return self.share * nominal + (1 - self.share) * min(rewards)


def spread_of(rewards: Sequence[float]) -> float:
    """Return the population standard deviation of rewards: how far members disagree; 0 for one member."""
    mean = math.fsum(rewards) / len(rewards)
    return math.hypot(*(reward - mean for reward in rewards)) / math.sqrt(len(rewards))


def total_spread(rewards: Sequence[float], spreads: Sequence[float | None]) -> float:
    """Return the standard deviation of the mixture of members: how far they disagree, and what each is unsure of.

    The variance of the means, and the mean of those variances that members tell.
    """
    own = [spread for spread in spreads if spread is not None]
    return math.hypot(spread_of(rewards), math.hypot(*own) / math.sqrt(len(own)) if own else 0.0)


def soft_min(rewards: Sequence[float], beta: float) -> float:
    """Return -beta * log(mean(exp(-r / beta))), computed from the smallest reward so that nothing overflows."""
    lowest = min(rewards)
    total = math.fsum(math.exp(-(reward - lowest) / beta) for reward in rewards)
    return lowest - beta * math.log(total / len(rewards))


def _surest(rewards: Sequence[float], spreads: Sequence[float | None]) -> float:
    known = [(spread, place) for place, spread in enumerate(spreads) if spread is not None]
    if not known:
        raise ValueError(
            'nominal is "surest", and no member tells how sure it is (Gaussian and quantile heads do); '
            'give nominal="mean"'
        )
    return rewards[min(known)[1]]
