"""Scores on their way: asked for together, given to whoever asked, and never held up by those before."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Asked, OwnService, Rewards

SECONDS = 30.0  # that a test waits for what takes milliseconds


class Company:
    """Scores nothing before so many calls are under way."""

    name = "company"
    fingerprint = "company:1"

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.came = threading.Semaphore(0)
        self._here = 0
        self._enough: asyncio.Event | None = None

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self._enough = self._enough or asyncio.Event()
        self._here += 1
        self.came.release()
        if self._here == self._calls:
            self._enough.set()
        await self._enough.wait()
        return [Score.scored(float(len(str(sample.response)))) for sample in samples]


class Counting:
    """Scores the size of the group that it was shown; compares groups."""

    name = "counting"
    fingerprint = "counting:1"
    groupwise = True

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        sizes = {sample.group: 0 for sample in samples}
        for sample in samples:
            sizes[sample.group] += 1
        return [Score.scored(float(sizes[sample.group])) for sample in samples]


def sample(response: str, group: str = "") -> Sample:
    return Sample(prompt="p", response=response, group=group)


def test_a_slow_call_holds_up_no_later_answer() -> None:
    scorer = Company(5)
    with Rewards(RewardConfig(scorer=scorer)) as rewards:
        futures = []
        for length in range(1, 6):
            futures.append(rewards.ask([sample("x" * length)]))
            assert scorer.came.acquire(timeout=SECONDS)  # this one is with the scorer, and none before it has a score
        assert [future.result(SECONDS)[0].value for future in futures] == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_whoever_asked_gets_the_own_scores() -> None:
    service = OwnService(RewardConfig(scorer=Company(1)))
    together = [Asked([sample("a"), sample("aa")]), Asked([]), Asked([sample("aaa")])]
    service.send(together)
    assert [[score.value for score in asked.scores.result(SECONDS)] for asked in together] == [[1.0, 2.0], [], [3.0]]
    service.close()


def test_groups_of_one_name_that_were_asked_about_apart_stay_apart() -> None:
    service = OwnService(RewardConfig(scorer=Counting()))
    assert service.by_group
    together = [Asked([sample("a", "g"), sample("b", "g")]), Asked([sample("c", "g")])]
    service.send(together)
    assert [[score.value for score in asked.scores.result(SECONDS)] for asked in together] == [[2.0, 2.0], [1.0]]
    service.close()


def test_what_is_no_sample_is_told_to_whoever_asked() -> None:
    wrong: Any = "text"
    with Rewards(RewardConfig(scorer=Company(1))) as rewards, pytest.raises(ValueError, match="give an adjudge"):
        rewards.ask([wrong]).result(SECONDS)


def test_who_left_costs_nobody_else_the_scores() -> None:
    service = OwnService(RewardConfig(scorer=Company(1)))
    left, stayed = Asked([sample("a")]), Asked([sample("aa")])
    left.scores.cancel()
    service.send([left, stayed])
    assert stayed.scores.result(SECONDS)[0].value == 2.0
    service.close()


def test_after_the_end_nothing_is_accepted_and_nobody_waits() -> None:
    rewards = Rewards(RewardConfig(scorer=Company(1), timeout=0.0))
    rewards.close()
    with pytest.raises(RuntimeError, match="closed"):
        rewards.ask([sample("a")])


@pytest.mark.parametrize("calls", [0, -1])
def test_no_call_is_too_few(calls: int) -> None:
    with pytest.raises(ValueError, match=f"reward option concurrency={calls}"):
        RewardConfig(scorer="math", concurrency=calls)
