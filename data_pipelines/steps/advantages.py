"""Process advantages under a prover (PAV, arXiv 2410.08146): how much a step adds to another policy's chance.

    A(k) = Q(k) - Q(k-1), with Q(k) the prover's chance of a right answer after step k, and Q(0) before the first

The prover is best-of-K of some policy: it draws K rollouts and takes a right one if there is one.  From n judged
rollouts with c right ones its chance is estimated without bias by 1 - C(n - c, K) / C(n, K); K = 1 is the policy
itself.  K = 4 of the base policy worked best in the paper; a prover must be neither too weak nor too strong.

`first_pit` looks at prefixes in order and stops at the first from which no rollout ends right, so that rollouts are
spent where advantages are learnt; the paper has no code, and this is how we read it.

Not covered: the reward that a trainer makes of it (`adjudge.solutions.refine.advantage_rewards`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.data_pipelines.steps.rollouts import (
    UNKNOWN,
    Estimate,
    Oracle,
    Prefix,
    certain,
    estimate_of,
    monte_carlo,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advantages:
    """What a prover says about a solution.

    Attributes:
        start: its chance before the first step; None where unknown.
        chances: after each step.
        advantages: of each step; None where one of the two chances is unknown.
        estimates: the votes behind each step.
    """

    start: float | None
    chances: tuple[float | None, ...]
    advantages: tuple[float | None, ...]
    estimates: tuple[Estimate, ...]


def chance_of(estimate: Estimate, best_of: int) -> float | None:
    """Return the chance that best-of-K is right, without bias; None with fewer than K judged rollouts."""
    if estimate.judged < best_of:
        return None
    wrong = estimate.judged - estimate.right
    return 1.0 - math.comb(wrong, best_of) / math.comb(estimate.judged, best_of)


async def advantages(
    oracle: Oracle, pieces: Prefix, *, k: int, best_of: int, outcome: bool | None, first_pit: bool = False
) -> Advantages:
    """Return the advantages of a solution's steps; n k calls for n steps, fewer with `first_pit`.

    Args:
        oracle: rollouts of the prover's policy.
        pieces: of the solution, at least one.
        k: rollouts from each prefix, at least `best_of`.
        best_of: K.
        outcome: whether the solution is right; None where unknown.
        first_pit: stop behind the first prefix from which no rollout ends right.
    """
    start = estimate_of(await oracle.rollouts((), k))
    if first_pit:
        estimates = await _until_pit(oracle, pieces, k=k, outcome=outcome, start=start)
    else:
        estimates = await monte_carlo(oracle, pieces, k=k, outcome=outcome)
    inner = [chance_of(estimate, best_of) for estimate in estimates[:-1]]
    return differences(chance_of(start, best_of), [*inner, estimates[-1].value], estimates)


def differences(start: float | None, chances: Sequence[float | None], estimates: Sequence[Estimate]) -> Advantages:
    """Return each chance less the one before it."""
    steps = tuple(
        None if before is None or after is None else after - before
        for before, after in itertools.pairwise([start, *chances])
    )
    return Advantages(start=start, chances=tuple(chances), advantages=steps, estimates=tuple(estimates))


async def _until_pit(
    oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None, start: Estimate
) -> tuple[Estimate, ...]:
    found: list[Estimate] = []
    before = start
    for length in range(1, len(pieces)):
        if before.reached is False:
            break
        before = estimate_of(await oracle.rollouts(pieces[:length], k))
        found.append(before)
    unasked = len(pieces) - 1 - len(found)
    return (*found, *[UNKNOWN] * unasked, certain(outcome))
