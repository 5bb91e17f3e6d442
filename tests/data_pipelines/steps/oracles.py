"""Oracles that a test scripts, and that remember what they were asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from adjudge.data_pipelines.steps.rollouts import Prefix, Rollout

T = TypeVar("T")


class Scripted:
    """Answers rollout `index` of a prefix with what a function says; asked again, it repeats itself."""

    def __init__(self, answer: Callable[[Prefix, int], Rollout | bool | None]):
        self._answer = answer
        self.asked: list[tuple[Prefix, int]] = []
        self.calls = 0
        self._given: Counter[Prefix] = Counter()

    async def rollouts(self, prefix: Prefix, n: int) -> Sequence[Rollout]:
        self.asked.append((prefix, n))
        self.calls += max(0, n - self._given[prefix])
        self._given[prefix] = max(n, self._given[prefix])
        said = [self._answer(prefix, index) for index in range(n)]
        return [one if isinstance(one, Rollout) else Rollout(pieces=(), right=one) for one in said]

    @property
    def prefixes(self) -> list[Prefix]:
        return [prefix for prefix, _ in self.asked]


def planted(error: int | None) -> Scripted:
    """A perfect policy: it ends right as long as the prefix does not hold step `error`, from 0."""
    return Scripted(lambda prefix, index: error is None or len(prefix) <= error)


def pieces(count: int) -> Prefix:
    return tuple(f"step {number}\n" for number in range(count))


def run(work: Awaitable[T]) -> T:
    async def inside() -> T:
        return await work

    return asyncio.run(inside())
