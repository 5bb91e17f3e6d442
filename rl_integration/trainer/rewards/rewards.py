"""Scores of rollouts, asked for while others are still being written.

In this process the scorers live in a reward service, with its queues, batches and limits; elsewhere a reward server is
asked.  Either way each rollout goes out as soon as it is there, or, for scorers that compare the members of a group, as
soon as its group or cohort is.  Scorers that ask the policy itself (`engine: policy`) are asked about all at once when
the scores are waited for: then nobody writes or learns, and the policy is the one that the step begins with.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from queue import SimpleQueue
from typing import Self

from adjudge.engines.interface import Engine
from adjudge.engines.loading import lent
from adjudge.protocol import Sample, Score
from adjudge.rl_integration.client.client import AsyncClient, ClientConfig, names_at
from adjudge.rl_integration.service.config import LaneConfig
from adjudge.rl_integration.service.service import RewardService
from adjudge.rl_integration.service.tickets import Refused
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.runtime.contract import is_groupwise, validate_sample
from adjudge.runtime.loop import BackgroundLoop, run_blocking
from adjudge.scoring.api import load


class Asked:
    """What was asked for in one call.

    Attributes:
        samples: the same.
        scores: one for each, in order, as soon as all are there.
    """

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples
        self.scores: Future[list[Score]] = Future()

    def answer(self, scores: Sequence[Score]) -> None:
        """Give the scores; whoever asked may have left."""
        if self.scores.set_running_or_notify_cancel():
            self.scores.set_result(list(scores))

    def fail(self, error: BaseException) -> None:
        """Say why there will be no scores."""
        if self.scores.set_running_or_notify_cancel():
            self.scores.set_exception(error)


_NAME = "reward"
UNLIKE = "the reward asks the policy, which answers differently after each step (engine: policy)"


class OwnService:
    """A reward service of this process's own, with one scorer."""

    def __init__(self, config: RewardConfig, policy: Engine | None = None) -> None:
        lane = LaneConfig(scorer=config.scorer, batch=config.batch, concurrency=config.concurrency, cache=config.cache)
        with nullcontext() if policy is None else lent(policy) as loan:
            self._service = RewardService({_NAME: lane})
        self.by_policy = loan is not None and loan.taken
        if self.by_policy and config.cache:
            self._service.close()
            raise ValueError(f"reward.cache is {config.cache!r}, and {UNLIKE}; leave it out")
        self._timeout = config.timeout
        self._closed = threading.Event()
        scorer = self._service.scorer(_NAME)
        self.by_group, self.fingerprint = is_groupwise(scorer), scorer.fingerprint

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
    error = submitted.exception()
    scores = iter(submitted.result() if error is None else ())
    for asked in together:
        if error is not None:
            asked.fail(error)
        else:
            asked.answer([next(scores) for _ in asked.samples])


class OtherServer:
    """A reward server, asked from a loop of its own."""

    by_policy = False
    fingerprint = ""  # it is not known here
    by_group = True  # its scorer may be one of groups, and fewer requests are better ones

    def __init__(self, config: RewardConfig) -> None:
        self._scorer = config.scorer
        self._client = AsyncClient(ClientConfig(url=config.server))
        self._loop = BackgroundLoop("adjudge-reward-client")

    def send(self, together: Sequence[Asked]) -> None:
        """Send a request for each."""
        for asked in together:
            work = self._client.score(asked.samples, self._scorer)
            answer = asyncio.run_coroutine_threadsafe(work, self._loop.started())
            answer.add_done_callback(partial(_shared, [asked]))

    def close(self) -> None:
        """Give up what is under way."""
        self._loop.close()


class Rewards:
    """Asks for scores; to be closed.

    Args:
        config: where they come from.
        policy: what `engine: policy` is to a scorer in this process; None where there is none.

    Raises:
        ValueError: there is no such scorer, or it asks the policy and its scores would be kept.
    """

    def __init__(self, config: RewardConfig, *, policy: Engine | None = None) -> None:
        self._outside = OtherServer(config) if config.server else OwnService(config, policy)
        self.by_group, self.by_policy = self._outside.by_group, self._outside.by_policy
        self.fingerprint = self._outside.fingerprint
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._send, name="adjudge-rewards", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def ask(self, samples: Sequence[Sample]) -> Future[list[Score]]:
        """Ask for scores; return at once.

        Raises:
            RuntimeError: it is closed.
        """
        if self._closed:
            raise RuntimeError("these rewards are closed; make others to ask for more scores")
        asked = Asked(list(samples))
        self._asked.put(asked)
        return asked.scores

    def close(self) -> None:
        """Give up what nobody waits for, and end."""
        self._closed = True
        self._asked.put(None)
        self._outside.close()
        self._thread.join(5.0)

    def _send(self) -> None:
        # To wake another thread for each answer would take longer than to write it, where the policy is small.  A queue
        # does not make its reader run at once, so this thread finds all answers that ended together.
        going = True
        while going:
            together = [self._asked.get()]
            while not self._asked.empty():
                together.append(self._asked.get())
            going = None not in together
            wanted = [asked for asked in together if asked is not None]
            try:
                self._outside.send(wanted)
            except BaseException as error:  # a mistake of ours; a run must not wait for ever for what will not come
                self._closed = True
                for asked in wanted:
                    asked.fail(error)
                raise


class Scoring:
    """The scores of one batch of rollouts, on their way.

    Args:
        rewards: who is asked.
        tasks: of the batch.
        num_generations: rollouts of each task, side by side.
    """

    def __init__(self, rewards: Rewards, tasks: Sequence[Task], num_generations: int) -> None:
        self._rewards = rewards
        self._keys = [task.cohort or task.id for task in tasks for _ in range(num_generations)]
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
        if not self._rewards.by_policy:
            self._ask(places)

    def _ask(self, places: Sequence[int]) -> None:
        """Ask about rollouts, if all of them are there."""
        members = [self._rollouts[at] for at in places]
        if all(member is not None for member in members):
            judged = [(at, one.sample()) for at, one in zip(places, members, strict=True) if one and not one.fault]
            if judged:
                self._asked.append(([at for at, _ in judged], self._rewards.ask([sample for _, sample in judged])))

    def wait(self) -> tuple[list[Score], float]:
        """Return the scores, and the seconds that were spent waiting for them."""
        began = time.perf_counter()
        if self._rewards.by_policy:
            together = self._together.values() if self._rewards.by_group else [range(len(self._rollouts))]
            for places in together:
                self._ask(places)
        scores = {
            place: Score.failed("engine_unavailable", error=rollout.fault)
            for place, rollout in enumerate(self._rollouts)
            if rollout is not None and rollout.fault
        }
        for places, future in self._asked:
            scores.update(zip(places, future.result(), strict=True))
        waited = time.perf_counter() - began
        return [scores[place] for place in range(len(self._rollouts))], waited


def reward_check(option: str, config: RewardConfig) -> Callable[[Sample], None]:
    """Return what raises `ValueError` for a sample that a reward cannot judge, whatever its response.

    A server is asked whether it has the scorer, and not about samples.

    Raises:
        ValueError: there is no such scorer, or the server does not answer.
    """
    if config.server:
        _ask_server(option, config)
        return lambda sample: None
    try:
        return partial(validate_sample, load(config.scorer))
    except ValueError as error:
        raise ValueError(f"{option}.scorer: {error}") from error


def _ask_server(option: str, config: RewardConfig) -> None:
    """Look whether the server is there and has the scorer."""
    url, wanted = config.server, config.scorer
    try:
        names = run_blocking(names_at(ClientConfig(url=url)))
    except ConnectionError as error:
        raise ValueError(
            f"{option}.server is {url!r}, which does not answer ({error}); start it with adjudge serve, or correct the "
            "address"
        ) from error
    if (wanted is None and len(names) != 1) or (wanted is not None and wanted not in names):
        raise ValueError(f"{option}.scorer is {wanted!r}; the server at {url} has {', '.join(names) or 'none'}")
