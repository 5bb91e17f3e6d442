"""Where a run's rewards come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Where scores come from.

    Attributes:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there, or None where there is one.
        server: a reward server's address; "" to score in this process.
        batch: samples, at most, of one call of the scorer in this process.
        concurrency: calls of the scorer in this process under way at once.  Answers end a few at a time; where there
            are too few calls for that, the last ones wait until the first ones have their scores, and a slow scorer
            takes twice as long.
        cache: path of a score cache for a scorer in this process: an answer that was scored before is not scored again,
            in this run or another; "" for none.  For scorers that take long, such as tests of programs.
        max_failed: the share of a batch's rollouts that may have no score; with more, the run stops, since what is
            left would be chance.
        timeout: seconds that a scorer in this process may refuse, because it is suspended or its queue is full, before
            the rollout counts as failed.
    """

    shorthand: ClassVar[str] = "scorer"

    scorer: Any = None
    server: str = ""
    batch: int = 256
    concurrency: int = 64
    cache: str = ""
    max_failed: float = 0.5
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.scorer is None and not self.server:
            raise ValueError("reward.scorer is missing; name a scorer, or the address of a server (reward.server)")
        if self.cache and self.server:
            raise ValueError(f"reward.cache is {self.cache!r}, and the server has its own cache; leave one of them out")
        if self.concurrency < 1:
            raise ValueError(f"reward.concurrency is {self.concurrency!r}; it must be 1 or more")
        if not 0 <= self.max_failed <= 1:
            raise ValueError(f"reward.max_failed is {self.max_failed!r}; it must be a share from 0 to 1")
        if not self.timeout >= 0:
            raise ValueError(f"reward.timeout is {self.timeout!r}; it must be 0 seconds or more")
