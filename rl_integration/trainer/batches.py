"""Batches of rollouts with their scores, written ahead of the step that learns from them.

Each answer goes to the reward service the moment it ends, and with `rollouts.ahead` the next batch is written while
slow scores are out.  How far ahead is fixed, not left to who is quicker: so a run with the same seed has the same
numbers, on a busy machine and after a resumption.

Not covered: what is learnt from them.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.adapters.source import TooManyFailures
from adjudge.rl_integration.trainer.config import RunConfig
from adjudge.rl_integration.trainer.objectives.groups import Groups
from adjudge.rl_integration.trainer.objectives.resampling import informative
from adjudge.rl_integration.trainer.processes import Processes
from adjudge.rl_integration.trainer.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.rollout import Rollout
from adjudge.rl_integration.trainer.rollouts.writer import Writer
from adjudge.rl_integration.trainer.tasks import Task, TaskSource


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What one step learns from.

    Attributes:
        rollouts: whole groups.
        scores: one for each.
        numbers: for the log.
    """

    rollouts: list[Rollout]
    scores: list[Score]
    numbers: dict[str, float]


class Batches:
    """Writes batches and has them scored.

    Args:
        source: says which tasks come next.
        writer: answers them.
        rewards: where scores come from.
        config: of the run.
        resample: whether groups of equal rewards are drawn anew.
        processes: those that write.
    """

    def __init__(
        self,
        source: TaskSource,
        writer: Writer,
        rewards: Rewards,
        config: RunConfig,
        *,
        resample: bool,
        processes: Processes,
    ) -> None:
        self._source = source
        self._writer = writer
        self._rewards = rewards
        self._config = config
        self._resample = resample
        self._processes = processes
        self._pending: deque[_Pending] = deque()
        self._drawn = 0

    def next(self, version: int) -> Batch:
        """Return the rollouts of one step with their scores.

        Args:
            version: updates that the policy has seen.

        Raises:
            TooManyFailures: too many rollouts could not be judged.
        """
        rounds = self._config.rollouts.rounds if self._resample else 1
        size = self._config.rollouts.tasks * self._config.rollouts.group
        rollouts: list[Rollout] = []
        scores: list[Score] = []
        numbers = {"batches": 0.0, "seconds_waiting": 0.0, "seconds_writing": 0.0}
        while numbers["batches"] < rounds and len(rollouts) < size:
            one = self._one(version)
            for name, value in one.numbers.items():
                numbers[name] = numbers.get(name, 0.0) + value
            kept = _informative(one) if self._resample else range(len(one.rollouts))
            rollouts += [one.rollouts[place] for place in kept]
            scores += [one.scores[place] for place in kept]
        if not rollouts:  # every group was flat: nothing is learnt from this step, and the run says so
            rollouts, scores = one.rollouts, one.scores
        return Batch(rollouts=rollouts[:size], scores=scores[:size], numbers=numbers)

    def state(self) -> dict[str, Any]:
        """Return all that the next batch depends on, as plain JSON data; the same in every process."""
        pending = [
            {"number": one.number, "rollouts": [each.to_dict() for each in self._processes.gathered(one.rollouts)]}
            for one in self._pending
        ]
        return {"drawn": self._drawn, "pending": pending, "source": self._source.state()}

    def restore(self, state: Mapping[str, Any], tasks: Mapping[str, Task]) -> None:
        """Go on from a state; scores that were on their way are asked for again.

        Args:
            state: what `state` returned.
            tasks: by id.
        """
        self._drawn = state["drawn"]
        self._source.restore(state["source"])
        group = self._config.rollouts.group
        for record in state["pending"]:
            told = record["rollouts"]
            groups = self._processes.share([told[at : at + group] for at in range(0, len(told), group)])
            rollouts = [Rollout.from_dict(one, tasks) for members in groups for one in members]
            scoring = Scoring(self._rewards, len(rollouts), group)
            for place, rollout in enumerate(rollouts):
                scoring.add(place, rollout)
            self._pending.append(_Pending(number=record["number"], rollouts=rollouts, scoring=scoring, seconds=0.0))

    def _one(self, version: int) -> Batch:
        """The oldest batch that is on its way."""
        while len(self._pending) <= self._config.rollouts.ahead:
            self._pending.append(self._begun(version))
        pending = self._pending.popleft()
        own, seconds = pending.scoring.wait()
        rollouts, scores = self._processes.gathered(pending.rollouts), self._processes.gathered(own)
        self._checked(scores)
        numbers = {"batches": 1.0, "seconds_waiting": seconds, "seconds_writing": pending.seconds}
        numbers |= self._source.told(rollouts, scores)
        return Batch(rollouts=rollouts, scores=scores, numbers=numbers)

    def _begun(self, version: int) -> _Pending:
        """Write the next batch, and ask for its scores."""
        config, number = self._config.rollouts, self._drawn
        self._drawn += 1
        tasks = self._processes.share(self._source.draw(config.tasks))
        scoring = Scoring(self._rewards, len(tasks) * config.group, config.group)
        began = time.perf_counter()
        rollouts = self._writer.roll_out(
            tasks,
            config.group,
            config.sampling,
            seed=(self._config.seed * 1_000_003 + number) * self._processes.count + self._processes.rank,
            version=version,
            name=f"{number}.{self._processes.rank}",
            on_rollout=scoring.add,
        )
        return _Pending(number=number, rollouts=rollouts, scoring=scoring, seconds=time.perf_counter() - began)

    def _checked(self, scores: Sequence[Score]) -> None:
        most = self._config.reward.most_failed
        failed = [score for score in scores if score.status == "failed"]
        if len(failed) > most * len(scores):
            raise TooManyFailures(
                f"{len(failed)} of {len(scores)} rollouts could not be judged, the first because of "
                f"{failed[0].reason!r} ({dict(failed[0].evidence)}); more than {most:.0%} may not (reward.most_failed)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A batch whose scores are on their way: this process's part of it."""

    number: int
    rollouts: list[Rollout]
    scoring: Scoring
    seconds: float


def _informative(batch: Batch) -> list[int]:
    ids = [rollout.task.id for rollout in batch.rollouts]
    return [int(place) for place in np.flatnonzero(informative(Groups.of([one.value for one in batch.scores], ids)))]
