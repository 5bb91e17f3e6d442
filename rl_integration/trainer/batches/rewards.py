"""Scores of rollouts, asked for while others are still being written.

In this process the scorers live in a reward service, with its queues, batches and limits; elsewhere a reward server is
asked.  Either way each rollout goes out as soon as it is there, or, for scorers that compare the members of a group, as
soon as its group or cohort is.

Not covered: what a score is worth (`objectives`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.client.client import AsyncClient
from adjudge.rl_integration.client.config import ClientConfig
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.refusals import Refused
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.trainer.rollouts.rollout import Rollout
from adjudge.rl_integration.trainer.tasks.task import Task
from adjudge.runtime.contract import is_groupwise

_NAME = "reward"


@dataclass(frozen=True, kw_only=True)
class RewardConfig:
    """Where scores come from.

    Attributes:
        scorer: anything `adjudge.load` takes; with `server`, the scorer's name there, or None where there is one.
        server: a reward server's address; "" to score in this process.
        batch: most samples of one call of the scorer in this process.
        cache: path of a score cache for a scorer in this process: an answer that was scored before is not scored again,
            in this run or another; "" for none.  For scorers that take long, such as tests of programs.
        most_failed: the share of a batch's rollouts that may have no score; with more, the run stops, since what is
            left would be chance.
        patience: seconds that a scorer in this process may refuse, because it is suspended or its queue is full, before
            the rollout counts as failed.
    """

    shorthand: ClassVar[str] = "scorer"

    scorer: Any = None
    server: str = ""
    batch: int = 256
    cache: str = ""
    most_failed: float = 0.5
    patience: float = 60.0

    def __post_init__(self) -> None:
        """Reject what cannot be meant."""
        if self.scorer is None and not self.server:
            raise ValueError("reward.scorer is missing; name a scorer, or the address of a server (reward.server)")
        if self.cache and self.server:
            raise ValueError(f"reward.cache is {self.cache!r}, and the server has its own cache; leave one of them out")
        if not 0 <= self.most_failed <= 1:
            raise ValueError(f"reward.most_failed is {self.most_failed!r}; it must be a share from 0 to 1")
        if not self.patience >= 0:
            raise ValueError(f"reward.patience is {self.patience!r}; it must be 0 seconds or more")


class Rewards:
    """Asks for scores; to be closed.

    Args:
        config: where they come from.

    Raises:
        ValueError: there is no such scorer.
    """

    def __init__(self, config: RewardConfig) -> None:
        self._config = config
        self._service: RewardService | None = None
        if config.server:
            self._client = AsyncClient(ClientConfig(url=config.server))
            self.by_group = True  # a server's scorer may be one of groups, and fewer requests are better ones
        else:
            lane = LaneConfig(scorer=config.scorer, batch=config.batch, cache=config.cache)
            self._service = RewardService({_NAME: lane})
            self.by_group = is_groupwise(self._service.scorer(_NAME))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="adjudge-rewards", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def ask(self, samples: Sequence[Sample]) -> Future[list[Score]]:
        """Ask for scores; return at once."""
        return asyncio.run_coroutine_threadsafe(self._scores(list(samples)), self._loop)

    def close(self) -> None:
        """Give up what nobody waits for, and end."""
        if self._service is not None:
            self._service.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _scores(self, samples: Sequence[Sample]) -> list[Score]:
        if self._service is None:
            return await self._client.score(samples, self._config.scorer)
        until = time.monotonic() + self._config.patience
        while True:
            try:
                return await self._service.score(_NAME, samples)
            except Refused as refused:
                pause = refused.retry_after
                if pause is None or time.monotonic() + pause > until:
                    return [Score.failed("engine_unavailable", error=str(refused)) for _ in samples]
            await asyncio.sleep(pause)


class Scoring:
    """The scores of one batch of rollouts, on their way.

    Args:
        rewards: who is asked.
        tasks: of the batch.
        group: rollouts of each task, side by side.
    """

    def __init__(self, rewards: Rewards, tasks: Sequence[Task], group: int) -> None:
        self._rewards = rewards
        self._keys = [task.cohort or task.id for task in tasks for _ in range(group)]
        self._together: dict[str, list[int]] = {}
        for place, key in enumerate(self._keys):
            self._together.setdefault(key, []).append(place)
        self._rollouts: list[Rollout | None] = [None] * len(self._keys)
        self._asked: list[tuple[list[int], Future[list[Score]]]] = []

    def add(self, place: int, rollout: Rollout) -> None:
        """Take a rollout that has just been finished."""
        self._rollouts[place] = rollout
        places = [place]
        if self._rewards.by_group:
            places = self._together[self._keys[place]]
        members = [self._rollouts[at] for at in places]
        if all(member is not None for member in members):
            judged = [(at, one.sample()) for at, one in zip(places, members, strict=True) if one and not one.fault]
            if judged:
                self._asked.append(([at for at, _ in judged], self._rewards.ask([sample for _, sample in judged])))

    def wait(self) -> tuple[list[Score], float]:
        """Return the scores, and the seconds that were spent waiting for them."""
        began = time.perf_counter()
        scores = {
            place: Score.failed("engine_unavailable", error=rollout.fault)
            for place, rollout in enumerate(self._rollouts)
            if rollout is not None and rollout.fault
        }
        for places, future in self._asked:
            scores.update(zip(places, future.result(), strict=True))
        waited = time.perf_counter() - began
        return [scores[place] for place in range(len(self._rollouts))], waited
