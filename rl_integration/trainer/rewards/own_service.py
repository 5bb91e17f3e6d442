"""Scores from scorers in this process, through a reward service with its queues, batches and limits.

Not covered: scorers elsewhere (`other_server`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from adjudge.protocol import Score
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.refusals import Refused
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.trainer.rewards.asked import Asked
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.runtime.contract import is_groupwise

_NAME = "reward"


class OwnService:
    """A reward service of this process's own, with one scorer.

    Args:
        config: names the scorer.

    Raises:
        ValueError: there is no such scorer.
    """

    def __init__(self, config: RewardConfig) -> None:
        lane = LaneConfig(scorer=config.scorer, batch=config.batch, concurrency=config.concurrency, cache=config.cache)
        self._service = RewardService({_NAME: lane})
        self._timeout = config.timeout
        self._closed = threading.Event()
        self.by_group = is_groupwise(self._service.scorer(_NAME))

    def send(self, together: Sequence[Asked]) -> None:
        """Submit them as one request; while the service refuses, whoever comes later waits too."""
        if self.by_group:  # two batches may hold the same prompt, and so groups of the same name
            for asked in together:
                self._send([asked])
        elif together:
            self._send(together)

    def close(self) -> None:
        """Fail what is under way."""
        self._closed.set()
        self._service.close()

    def _send(self, together: Sequence[Asked]) -> None:
        samples = [sample for asked in together for sample in asked.samples]
        until = time.monotonic() + self._timeout
        while True:
            try:
                submitted = self._service.submit(_NAME, samples)
            except Refused as refused:
                pause = refused.retry_after
                if pause is None or time.monotonic() + pause > until:
                    score = Score.failed("engine_unavailable", error=str(refused))
                    for asked in together:
                        asked.answer([score] * len(asked.samples))
                    return
                self._closed.wait(pause)
            except ValueError as error:  # a sample that is none
                for asked in together:
                    asked.fail(error)
                return
            else:
                submitted.add_done_callback(partial(_shared, together))
                return


def _shared(together: Sequence[Asked], submitted: Future[list[Score]]) -> None:
    """Give each its part of the answer."""
    error = submitted.exception()
    begin = 0
    for asked in together:
        end = begin + len(asked.samples)
        if error is not None:
            asked.fail(error)
        else:
            asked.answer(submitted.result()[begin:end])
        begin = end
