"""How often a judge is right about pairs that it saw in both orders, and about lists.

A missing verdict is never right, and it agrees with nothing, another missing one included; it is counted beside.

Sources: LLMBar (arXiv 2310.07641; accuracy of each order, of both, agreement), JudgeBench (arXiv 2410.12784; the sum of
two orders); lists: RewardMATH (arXiv 2410.01729; best of ten, reciprocal rank).  Not covered: intervals
(`adjudge.evals.statistics`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from adjudge.evals.agreement.coefficients import cohen_kappa


@dataclass(frozen=True, slots=True, kw_only=True)
class BothOrders:
    """One pair as a judge saw it twice.  Shares are those of the pair's own first response, whichever was shown first.

    Attributes:
        gold: 1 if the pair's first response is better, 0 if the second is, 0.5 for a tie.
        straight: the judge's share for it where it was shown first: above 0.5 is a win; None without a verdict.
        swapped: its share where it was shown second.
    """

    gold: float
    straight: float | None
    swapped: float | None


@dataclass(frozen=True, kw_only=True)
class PairAccuracy:
    """Rates over pairs, in [0, 1].

    Attributes:
        n: pairs.
        unjudged: verdicts that are missing, of 2 n.
        straight: right where the first response was shown first.
        swapped: right where it was shown second.
        both: right in both orders.
        summed: right when wins count 1, losses -1 and ties and missing verdicts 0, and the sum is not 0.
        agreement: the same winner in both orders.
        kappa: Cohen's, of the two orders, over pairs with two verdicts; None where it is undefined.
    """

    n: int
    unjudged: int
    straight: float
    swapped: float
    both: float
    summed: float
    agreement: float
    kappa: float | None

    @property
    def mean(self) -> float:
        """The mean accuracy of the two orders."""
        return (self.straight + self.swapped) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**asdict(self), "mean": self.mean}


def pair_accuracy(pairs: Sequence[BothOrders]) -> PairAccuracy:
    """Return how often a judge is right.

    Raises:
        ValueError: there are no pairs.
    """
    if not pairs:
        raise ValueError("there are no pairs; give one or more")
    rows = [(_sign(pair.gold), _sign(pair.straight), _sign(pair.swapped)) for pair in pairs]
    n = len(rows)
    judged = [(one, other) for _, one, other in rows if one is not None and other is not None]
    return PairAccuracy(
        n=n,
        unjudged=sum((one is None) + (other is None) for _, one, other in rows),
        straight=sum(one == gold for gold, one, _ in rows) / n,
        swapped=sum(other == gold for gold, _, other in rows) / n,
        both=sum(gold == one == other for gold, one, other in rows) / n,
        summed=sum(_sign_of_sum(one, other) == gold for gold, one, other in rows) / n,
        agreement=sum(one == other for one, other in judged) / n,
        kappa=cohen_kappa(*zip(*judged, strict=True)) if judged else None,
    )


def _sign(share: float | None) -> int | None:
    return None if share is None else (share > 0.5) - (share < 0.5)


def _sign_of_sum(one: int | None, other: int | None) -> int | None:
    """The winner of two orders; None where neither gave a verdict or they cancel."""
    total = (one or 0) + (other or 0)
    return (total > 0) - (total < 0) if total or (one == other == 0) else None


@dataclass(frozen=True, kw_only=True)
class BestOfN:
    """Rates over lists that hold one right answer, in [0, 1].

    Attributes:
        n: lists.
        strict: the right answer alone has the highest score.
        tied: it shares the highest score with others.
        credit: 1/k where it shares the highest score with k - 1 others: what picking one of them at random gets.
        reciprocal_rank: mean of 1/rank, where equal scores share the mean of their ranks.
        best_reciprocal_rank: the same with the best of their ranks, as RewardMATH reports it; a scorer that says the
            same of everything gets 1.
    """

    n: int
    strict: float
    tied: float
    credit: float
    reciprocal_rank: float
    best_reciprocal_rank: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)


def best_of_n(lists: Sequence[Sequence[float | None]], *, right: int = 0) -> BestOfN:
    """Return how often the right answer has the best score.

    Args:
        lists: the scores of each list; None where there is none, which loses against any score.
        right: the place of the right answer in every list.

    Raises:
        ValueError: there are no lists, a list does not have that place, or a score is not finite.
    """
    strict = tied = 0
    credit = shared = best = 0.0
    for index, scores in enumerate(lists):
        if not 0 <= right < len(scores):
            raise ValueError(f"list {index} has {len(scores)} scores, and place {right} holds the right answer")
        if not all(score is None or math.isfinite(score) for score in scores):
            raise ValueError(f"list {index} holds {list(scores)!r}; scores are finite, or None where there is none")
        own = scores[right]
        known = [score for place, score in enumerate(scores) if place != right and score is not None]
        if own is None:
            shared += 1 / len(scores)
            best += 1 / len(scores)
            continue
        above, equal = sum(score > own for score in known), sum(score == own for score in known)
        strict += above == equal == 0
        tied += above == 0 < equal
        credit += 0 if above else 1 / (1 + equal)
        shared += 1 / (1 + above + equal / 2)
        best += 1 / (1 + above)
    n = len(lists)
    if not n:
        raise ValueError("there are no lists; give one or more")
    return BestOfN(
        n=n,
        strict=strict / n,
        tied=tied / n,
        credit=credit / n,
        reciprocal_rank=shared / n,
        best_reciprocal_rank=best / n,
    )
