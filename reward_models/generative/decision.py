"""P(Yes) out of the probabilities of the two words.

    P(Yes) = p_yes / (p_yes + p_no), with a temperature T: 1 / (1 + exp(-(log p_yes - log p_no) / T))

All usual spellings of a word are summed.  Where both words together are unlikely, the model was about to say something
else, and there is no P(Yes): see `Unsure`.

The mean of K sampled chances is an unbiased estimate of what the model says on average, and the mean of K verdicts is
one too, with more noise.  The majority is not: it is what a vote decides, drawn to 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from adjudge.engines.interface import Fault, LabelLogprobs, Labels
from adjudge.prompts.scorer import Unsure
from adjudge.protocol import NO_COST, Cost
from adjudge.statistics.logistic import sigmoid

Combine: TypeAlias = Literal["mean", "majority"]
COMBINES: tuple[Combine, ...] = get_args(Combine)


def combined(chances: Sequence[float], how: Combine) -> float:
    """Return the mean, or 1 where more chances lie above 1/2 than below, 0 where fewer do, and 1/2 for a draw.

    Raises:
        ValueError: there is no chance.
    """
    if not chances:
        raise ValueError("there is no chance to combine; a chain without a verdict has none")
    if how == "mean":
        return math.fsum(chances) / len(chances)
    above, below = sum(chance > 0.5 for chance in chances), sum(chance < 0.5 for chance in chances)
    return 0.5 if above == below else float(above > below)


YES, NO = "Yes", "No"
LABELS = (YES, NO)
YES_NO: Labels = {
    word: tuple(blank + case for case in (word, word.lower(), word.upper()) for blank in ("", " ")) for word in LABELS
}

_SMALLEST = 1e-12  # a probability below this counts as this in log-odds, which keeps them within +-27.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A model's chance of Yes.

    Attributes:
        chance: P(Yes), in [0, 1].
        mass: the probability of both words together; None where a written verdict was counted instead.
        cost: what it took.
    """

    chance: float
    mass: float | None = None
    cost: Cost = NO_COST


def decision_of(result: LabelLogprobs | Fault, *, min_mass: float, temperature: float = 1.0) -> Decision | Fault:
    """Return P(Yes), or why there is none.

    Args:
        result: the log-probabilities of `YES_NO`.
        min_mass: how likely both words together must be, in [0, 1].
        temperature: T, above 0; larger values draw P(Yes) towards 1/2.
    """
    if isinstance(result, Fault):
        return result
    if result.mass < min_mass or result.mass <= 0:
        detail = f"Yes and No together have the probability {result.mass:.3g}, and {min_mass:g} is asked for"
        return Unsure(reason="low_confidence", detail=detail, mass=result.mass, cost=result.cost)
    chance = sigmoid((result.logprobs[YES] - result.logprobs[NO]) / temperature)
    return Decision(chance=chance, mass=min(result.mass, 1.0), cost=result.cost)


def log_odds(chance: float) -> float:
    """Return log P - log(1 - P), with both held at 1e-12 or more."""
    return math.log(max(chance, _SMALLEST)) - math.log(max(1.0 - chance, _SMALLEST))
