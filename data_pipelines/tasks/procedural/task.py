"""One task, and what makes tasks.

Not covered: which tasks go into a file (`maker`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

_SEED_BITS = 32  # NumPy's older generators, which some families of reasoning-gym use, take no larger seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A prompt with what its answers are checked against.

    Attributes:
        prompt: the text.
        answer: an answer that is right; None where the family knows how to check one but has none.
        reference: what the scorer takes: plain JSON data.
        fault: why there is no usable task, in snake_case; "" where there is one.
    """

    prompt: str
    answer: str | None
    reference: Any
    fault: str = ""


class Family(Protocol):
    """Tasks of one kind."""

    @property
    def name(self) -> str:
        """What `--family` calls it."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same seed could give another task."""
        ...

    @property
    def scorer(self) -> str:
        """The scorer that goes with its references."""
        ...

    @property
    def levels(self) -> int:
        """How many levels of difficulty it has; 0 for none."""
        ...

    @property
    def usual_level(self) -> int:
        """The level where none is asked for; 0 for a setting that is none of them."""
        ...

    def task(self, level: int, seed: int) -> Task:
        """Return the task of a seed.

        Args:
            level: 1 to `levels`, or `usual_level`.
            seed: 0 to 2**32 - 1; the same level and seed give the same task on every machine.
        """
        ...


def seed_of(family: Family, level: int, seed: int, index: int) -> int:
    """Return the seed of one row: a digest, so that seed 0 at row 5 and seed 5 at row 0 have nothing in common."""
    text = f"{family.name}\n{family.version}\n{level}\n{seed}\n{index}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: _SEED_BITS // 8], "big")
