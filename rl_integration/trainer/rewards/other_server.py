"""Scores from a reward server.

Not covered: what the server does with a request (`rl_integration.server`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from adjudge.protocol import Score
from adjudge.rl_integration.client.client import AsyncClient
from adjudge.rl_integration.client.config import ClientConfig
from adjudge.rl_integration.trainer.rewards.asked import Asked
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig


class OtherServer:
    """A reward server, asked from a loop of its own.

    Args:
        config: names the server, and the scorer there.
    """

    by_group = True  # its scorer may be one of groups, and fewer requests are better ones

    def __init__(self, config: RewardConfig) -> None:
        self._scorer = config.scorer
        self._client = AsyncClient(ClientConfig(url=config.server))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="adjudge-reward-client", daemon=True)
        self._thread.start()

    def send(self, together: Sequence[Asked]) -> None:
        """Send a request for each."""
        for asked in together:
            answer = asyncio.run_coroutine_threadsafe(self._client.score(asked.samples, self._scorer), self._loop)
            answer.add_done_callback(partial(_given, asked))

    def close(self) -> None:
        """Give up what is under way."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


def _given(asked: Asked, answer: Future[list[Score]]) -> None:
    error = answer.exception()
    if error is not None:
        asked.fail(error)
    else:
        asked.answer(answer.result())
