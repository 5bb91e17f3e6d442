"""What searches know about a solution in the making: rollouts from a prefix, and whether they ended right.

A prefix is a tuple of pieces, steps with the gaps behind them, so that joining them gives the very text.

Monte-Carlo labels (Math-Shepherd, arXiv 2312.08935) are the share of rollouts from each prefix that end right; the last
prefix is the whole solution, whose outcome is known.  A wrong step from which the policy finds back has a high share,
and a right step of a problem that is too hard for it has none.

Not covered: where rollouts come from (`problem_oracle`), and what is made of them (one file for each search).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Prefix: TypeAlias = tuple[str, ...]
"""The first pieces of a solution; `()` before its first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One way on from a prefix to an end.

    Attributes:
        pieces: what follows the prefix, cut into steps; none where the model added nothing to see.
        right: whether the solution that came of it is right; None where that could not be judged.
        length: tokens of what was added.
    """

    pieces: Prefix
    right: bool | None
    length: int = 0


class Oracle(Protocol):
    """Whoever can go on from a prefix."""

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        """Return the first `n` rollouts from a prefix: those that were asked for before, and as many new ones as lack.

        Fewer come back where the budget does not cover the new ones, or the model cannot read the prefix.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """How often rollouts from one prefix ended right.

    Attributes:
        right: how many did.
        judged: how many were judged; those that could not be have no vote.
    """

    right: int = 0
    judged: int = 0

    @property
    def value(self) -> float | None:
        """The share that ended right (Math-Shepherd's soft estimate); None if none was judged."""
        return self.right / self.judged if self.judged else None

    @property
    def reached(self) -> bool | None:
        """Whether any ended right (its hard estimate); None if none was judged."""
        return self.right > 0 if self.judged else None


UNKNOWN = Estimate()


def estimate_of(rollouts: Iterable[Rollout]) -> Estimate:
    """Return the votes of rollouts; those that nobody could judge have none."""
    votes = [rollout.right for rollout in rollouts if rollout.right is not None]
    return Estimate(right=sum(votes), judged=len(votes))


def certain(outcome: bool | None) -> Estimate:
    """Return the estimate of a whole solution: its own outcome, with one vote."""
    return UNKNOWN if outcome is None else Estimate(right=int(outcome), judged=1)


async def monte_carlo(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None) -> tuple[Estimate, ...]:
    """Return an estimate for each step, in order; (n - 1) k calls for n steps.

    Args:
        oracle: goes on from prefixes.
        pieces: of the solution, at least one.
        k: rollouts from each prefix.
        outcome: whether the solution is right; None where unknown.
    """
    found = await asyncio.gather(*[oracle.rollouts(pieces[:length], k) for length in range(1, len(pieces))])
    return (*map(estimate_of, found), certain(outcome))
