"""The first error of a wrong solution by halving: log2(n) prefixes in place of n (OmegaPRM, arXiv 2406.06592).

The search keeps two prefixes: the longest from which a rollout ended right, and the shortest from which none did.  That
the first error lies between them takes two things for granted.

- What is reached from a prefix is reached from every shorter one.  This is so: the steps between and the rollout are a
  way.  So a right rollout is a proof, and all steps up to there are good in the sense of hard labels.
- What is not reached from a prefix is not reached from a longer one.  This fails where k rollouts missed the way,
  which happens with (1 - p)^k if one finds it with p; the search then stops too early.  `verify` asks again where the
  search stopped, and goes on behind if the answer changes.  It also fails in fact where a later step repairs an
  earlier one.

A solution that is right proves all its prefixes, and is not searched.

Not covered: errors behind the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.data_pipelines.steps.labelled import NO_ERROR, Label
from adjudge.data_pipelines.steps.rollouts import Estimate, Oracle, Prefix, certain, estimate_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a search ended.

    Attributes:
        steps: of the solution.
        good: so many first steps are known to lead to the right answer.
        first_error: place of the first error, from 0; -1 for none; None where it could not be told.
        asked: the estimates, by the length of the prefix.
    """

    steps: int
    good: int
    first_error: int | None
    asked: Mapping[int, Estimate]

    @property
    def labels(self) -> tuple[Label, ...]:
        """Hard labels: 1 for good steps, 0 for the first error, None for all others."""
        labels: list[Label] = [1.0] * self.good + [None] * (self.steps - self.good)
        if self.first_error is not None and self.first_error >= 0:
            labels[self.first_error] = 0.0
        return tuple(labels)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The votes behind each step; none where its prefix was not asked."""
        return tuple(self.asked.get(length, Estimate()) for length in range(1, self.steps + 1))


async def binary_search(oracle: Oracle, pieces: Prefix, *, k: int, outcome: bool | None, verify: int = 0) -> Found:
    """Return the first error of a solution; at most ceil(log2(n)) + 1 + `verify` prefixes are asked for n steps.

    Where a good prefix is overturned by `verify`, halving goes on behind it, and more are asked.

    Args:
        oracle: goes on from prefixes.
        pieces: of the solution, at least one.
        k: rollouts from each prefix that is asked.
        outcome: whether the solution is right; None where unknown, and then nothing is searched.
        verify: how often k more rollouts are asked where the search ended.
    """
    steps = len(pieces)
    if outcome is None:
        return Found(steps=steps, good=0, first_error=None, asked={})
    if outcome:
        return Found(steps=steps, good=steps, first_error=NO_ERROR, asked={steps: certain(outcome)})
    search = _Search(oracle, pieces, k)
    place = await search.halved()
    again = 0
    while place is not None and place < steps and again < verify:
        again += 1
        if await search.overturned(place, k * (again + 1)):
            place, again = await search.halved(), 0
    if place == 1 and not (await search.ask(0, k)).reached:
        place = None  # the first step is to blame only if the problem itself can be solved
    return Found(
        steps=steps,
        good=search.low,
        first_error=None if place is None else place - 1,
        asked={length: estimate for length, estimate in search.asked.items() if length},
    )


class _Search:
    """The two prefixes, and all answers so far."""

    def __init__(self, oracle: Oracle, pieces: Prefix, k: int):
        self._oracle = oracle
        self._pieces = pieces
        self._k = k
        self.low = 0
        self.asked: dict[int, Estimate] = {len(pieces): certain(False)}

    async def ask(self, length: int, n: int) -> Estimate:
        found = self.asked[length] = estimate_of(await self._oracle.rollouts(self._pieces[:length], n))
        return found

    async def halved(self) -> int | None:
        """Return the length of the shortest prefix with the error; None where unknown prefixes hide it."""
        while True:
            high = min(length for length, found in self.asked.items() if found.reached is False and length > self.low)
            between = [length for length in range(self.low + 1, high) if length not in self.asked]
            if not between:
                return high if high == self.low + 1 else None
            middle = (self.low + high) / 2
            length = min(between, key=lambda one: (abs(one - middle), one))
            if (await self.ask(length, self._k)).reached:
                self.low = length

    async def overturned(self, length: int, n: int) -> bool:
        """Ask a prefix more often, and return whether it is good after all."""
        if not (await self.ask(length, n)).reached:
            return False
        self.low = length
        return True
