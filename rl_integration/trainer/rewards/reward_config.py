"""Where a run's rewards come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from adjudge.options import Count, Options, Range, Share


@dataclass(frozen=True, kw_only=True)
class RewardConfig(Options, what="reward option"):
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
    concurrency: Count = 64
    cache: str = ""
    max_failed: Share = 0.5
    timeout: Annotated[float, Range(ge=0, unit="seconds")] = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scorer is None and not self.server:
            raise ValueError("reward.scorer is missing; name a scorer, or the address of a server (reward.server)")
        if self.server and not isinstance(self.scorer, str | None):
            raise ValueError(
                f"reward.scorer is {self.scorer!r}, and with reward.server it is the name of a scorer there; give its "
                "name and start the server with these options, or leave out the server, as engine: policy asks for"
            )
        if self.cache and self.server:
            raise ValueError(f"reward.cache is {self.cache!r}, and the server has its own cache; leave one of them out")
