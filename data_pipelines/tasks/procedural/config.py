"""The options of a file of procedural tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from adjudge.io.jobs.config import JobConfig

Part = Literal["all", "train", "test"]


@dataclass(frozen=True, kw_only=True)
class TasksConfig(JobConfig):
    """Write tasks with known answers, from programs that make them.

    A task depends on its family, its level, the seed, its number and the family's version, and on nothing else.
    Which part a task belongs to depends on its text and the test share alone, so files of different parts never
    share one if their test share is the same.

    Raises:
        ValueError: an option is out of its range.
    """

    input: str = ""
    """Not used: there is no input."""

    family: tuple[str, ...] = ("integers",)
    """integers, fractions, equation, remainder, bases or divisors; gym/NAME for a family of reasoning-gym, gym/* for
    all of those.  Several take turns."""

    level: tuple[int, ...] = ()
    """Levels of difficulty, from 1; several take turns.  Without one, each family's own default."""

    count: int = 1000
    """How many tasks are tried; repeated texts and those of the other part are left out of them."""

    seed: int = 0
    """Another seed gives other tasks."""

    part: Part = "all"
    """train or test: only the tasks of that part."""

    test_share: float = 0.1
    """Share of all texts that belongs to the part `test`."""

    repeats: bool = False
    """Keep tasks whose text came before; this spares looking at all of them first."""

    def __post_init__(self) -> None:
        """Reject options out of their range."""
        super().__post_init__()
        if self.input:
            raise ValueError(f"tasks are made from nothing, and the input is {self.input!r}; leave it out")
        if self.count < 1:
            raise ValueError(f"--count is {self.count}; it must be 1 or more")
        if not self.family:
            raise ValueError("there is no --family; name one, such as integers")
        if any(level < 1 for level in self.level):
            raise ValueError(f"--level is {min(self.level)}; levels are counted from 1")
        if self.part not in ("all", "train", "test"):
            raise ValueError(f"--part is {self.part!r}; it must be all, train or test")
        if not (math.isfinite(self.test_share) and 0 <= self.test_share < 1):
            raise ValueError(f"--test-share is {self.test_share}; it must be from 0 to below 1")
