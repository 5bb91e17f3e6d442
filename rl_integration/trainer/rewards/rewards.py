"""Scores of rollouts, asked for while others are still being written.

In this process the scorers live in a reward service, with its queues, batches and limits; elsewhere a reward server is
asked.  Either way each rollout goes out as soon as it is there, or, for scorers that compare the members of a group, as
soon as its group or cohort is.

Not covered: what a score is worth (`objectives`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Self

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.contract.rollout import Rollout
from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rewards.asked import Asked, Outside
from adjudge.rl_integration.trainer.rewards.other_server import OtherServer
from adjudge.rl_integration.trainer.rewards.own_service import OwnService
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig


class Rewards:
    """Asks for scores; to be closed.

    Args:
        config: where they come from.

    Raises:
        ValueError: there is no such scorer.
    """

    def __init__(self, config: RewardConfig) -> None:
        self._outside: Outside = OwnService(config) if not config.server else OtherServer(config)
        self.by_group = self._outside.by_group
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
