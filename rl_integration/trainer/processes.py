"""The processes of a run: one, or those that `accelerate launch` or `torchrun` started.

Not covered: what they compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Processes:
    """This process and the others.

    Attributes:
        rank: of this process; 0 writes the files.
        count: of all.
    """

    rank: int = 0
    count: int = 1

    def share(self, things: Sequence[T]) -> list[T]:
        """Return this process's part of things that all processes know; the parts are side by side and cover all."""
        edges = [len(things) * place // self.count for place in range(self.count + 1)]
        return list(things[edges[self.rank] : edges[self.rank + 1]])

    def gathered(self, things: Sequence[T]) -> list[T]:
        """Return what all processes have, in the order of their ranks."""
        return list(things)
