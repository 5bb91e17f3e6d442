"""Who wins a pair: of two scores the higher one, of two orders their sum.

A scorer of single responses gives each its own number.  A scorer whose reference is the other response gives each
response's share against the other one, and so sees the pair twice, in both orders; a win counts 1, a loss -1, a tie 0,
and the sign of the sum decides (JudgeBench, arXiv 2410.12784).

Not covered: rates of each order alone (`adjudge.evals.pairs.pair_accuracy`), and lists
(`adjudge.evals.pairs.pair_accuracy`).
"""

from __future__ import annotations

from adjudge.evals.benchmarks.outcome import Outcome
from adjudge.evals.pairs.pair_accuracy import BothOrders

EVEN = 0.5
"""Share of a response that is as good as the other one."""


def verdict(outcome: Outcome) -> int | None:
    """Return 1 if a pair's first response wins, -1 if its second does, 0 if neither, None without a verdict.

    Of scores, one that is missing leaves no verdict.  Of shares in two orders, one that is missing counts nothing and
    the other decides, as in JudgeBench; orders that contradict each other are a tie.

    Raises:
        ValueError: the case has other than two samples.
    """
    first, second = _two(outcome)
    if outcome.compared:
        wins = [side for side in (_sign(first, EVEN), _sign(EVEN, second)) if side is not None]
        return _sign(sum(wins), 0) if wins else None
    return _sign(first, second)


def both_orders(outcome: Outcome, gold: float) -> BothOrders:
    """Return a pair of shares as a judge saw it twice.

    Args:
        outcome: whose values are shares (`Outcome.compared`).
        gold: 1 if the first response is better, 0 if the second is, 0.5 for a tie.

    Raises:
        ValueError: the case has other than two samples, or its values are no shares.
    """
    first, second = _two(outcome)
    if not outcome.compared:
        raise ValueError(f"the case {outcome.id!r} was not seen in two orders; its scores are of single responses")
    return BothOrders(gold=gold, straight=first, swapped=None if second is None else 2 * EVEN - second)


def _two(outcome: Outcome) -> tuple[float | None, float | None]:
    if len(outcome.values) != 2:
        raise ValueError(f"the case {outcome.id!r} has {len(outcome.values)} samples; a pair has two")
    return outcome.values[0], outcome.values[1]


def _sign(one: float | None, other: float | None) -> int | None:
    return None if one is None or other is None else (one > other) - (one < other)
