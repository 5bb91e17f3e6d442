"""Batches of rollouts with their scores, written ahead of the step that learns from them.

Each answer goes to the reward service the moment it ends, and with `rollouts.staleness` the next batch is written while
slow scores are out.  How far ahead is fixed, not left to who is quicker: so a run with the same seed has the same
numbers, on a busy machine and after a resumption.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from adjudge.protocol import Score
from adjudge.rl_integration.adapters.failures import TooManyFailures
from adjudge.rl_integration.trainer.data.arrays import Integers
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskSource
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rewards.rewards import Rewards, Scoring
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import Curriculum
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import Improver
from adjudge.rl_integration.trainer.rollouts.facts import Facts
from adjudge.rl_integration.trainer.rollouts.writer import Answered, Answering, Ask, Writer


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What one step learns from.

    Attributes:
        rollouts: whole groups.
        scores: one for each.
        copies: (n,) how often each is learnt from; one with 0 still has a vote in its group's mean.
        drawn: all that the policy wrote by itself for this step, what is not learnt from included: what a measurement
            of the policy looks at, since groups that were chosen by their scores say little about it.
        numbers: for the log.
    """

    rollouts: list[Rollout]
    scores: list[Score]
    copies: Integers
    drawn: Answered
    numbers: dict[str, float]


class Batches:
    """Writes batches and has them scored."""

    def __init__(
        self,
        source: TaskSource,
        writer: Writer,
        rewards: Rewards,
        config: RunConfig,
        *,
        processes: Processes,
        curriculum: Curriculum,
        facts: Facts,
        improver: Improver[Any] | None = None,
    ) -> None:
        self._source = source
        self._writer = writer
        self._rewards = rewards
        self._config = config
        self._processes = processes
        self._rounds = curriculum.rounds
        self._filter = curriculum.filter
        self._improver = improver
        self.facts = facts
        self._pending: deque[_Pending] = deque()
        self._drawn = 0

    def next(self, version: int) -> Batch:
        """Return the rollouts of one step with their scores, by the policy of so many updates.

        Raises:
            TooManyFailures: too many rollouts could not be judged.
        """
        config = self._config.rollouts
        rounds = config.max_num_gen_batches if self._filter is not None and self._filter.refills else 1
        kept: list[tuple[Answered, Integers]] = []
        told: list[dict[str, float]] = []
        drawn: list[Answered] = []
        room = config.tasks
        while len(told) < rounds and len(kept) < room:
            groups, own, numbers = self._one(version)
            told.append(numbers)
            drawn += own
            filtered = self._kept(groups)
            room += sum(bool(copies.any()) for _, copies in filtered[len(own) :])  # tasks that the improver added
            kept += [(group, copies) for group, copies in filtered if copies.any()]
        # Where nothing was kept, nothing is learnt from this step, and the run shows what there was.
        chosen = kept[:room] or filtered
        whole = _flat([group for group, _ in chosen])
        return Batch(
            rollouts=whole.rollouts,
            scores=whole.scores,
            copies=np.concatenate([copies for _, copies in chosen]),
            drawn=_flat(drawn),
            numbers=_summed(told),
        )

    def tasks(self, version: int) -> list[Task]:
        """Return the tasks of one step, in every process the same."""
        return self.facts.told(self._source.draw(self._config.rollouts.tasks), version)

    def answered(self, tasks: Sequence[Task], *, version: int, name: str) -> Answered:
        """Return this process's answers to tasks, with their scores."""
        config, named = self._config.rollouts, {"version": version, "name": name}
        seed = self._config.seed * 1_000_003 + version  # the same for all who answer in a step
        rollouts, scores = self._writer.scored(
            self._rewards, tasks, config.num_generations, config.sampling, seed=seed, **named
        )
        return Answered(rollouts=rollouts, scores=scores)

    def state(self) -> dict[str, Any]:
        """Return all that the next batch depends on, as plain JSON data; the same in every process."""
        pending = [
            {
                "number": one.number,
                "told": self._told(one.tasks),
                "rollouts": [each.to_dict() for each in self._processes.all_gather(one.rollouts)],
            }
            for one in self._pending
        ]
        state = {"drawn": self._drawn, "pending": pending, "source": self._source.state(), "facts": self.facts.state()}
        return state | ({} if self._filter is None else {"filter": self._filter.state()})

    def restore(self, state: Mapping[str, Any], tasks: Mapping[str, Task]) -> None:
        """Go on from a state; scores that were on their way are asked for again."""
        self._drawn = state["drawn"]
        self._source.restore(state["source"])
        if "facts" in state:  # not of a run that was begun before there were any
            self.facts.restore(state["facts"])
        if self._filter is not None:
            self._filter.restore(state["filter"])
        num_generations = self._config.rollouts.num_generations
        for record in state["pending"]:
            named = {key: replace(tasks[key], extra=extra) for key, extra in record.get("told", {}).items()}
            told = [Rollout.from_dict(one, {**tasks, **named}) for one in record["rollouts"]]
            groups = [told[at : at + num_generations] for at in range(0, len(told), num_generations)]
            mine = self._processes.share(groups, together=lambda members: members[0].task.cohort)
            rollouts = [one for members in mine for one in members]
            drawn = [rollout.task for rollout in rollouts[::num_generations]]
            scoring = Scoring(self._rewards, drawn, num_generations)
            for place, rollout in enumerate(rollouts):
                scoring.add(place, rollout)
            self._pending.append(
                _Pending(number=record["number"], tasks=drawn, rollouts=rollouts, scoring=scoring, seconds=0.0)
            )

    def _one(self, version: int) -> tuple[list[Answered], list[Answered], dict[str, float]]:
        """The oldest batch that is on its way: all processes' groups, with and without what the improver adds."""
        while len(self._pending) <= self._config.rollouts.staleness:
            self._pending.append(self._begun(version))
        pending = self._pending.popleft()
        scores, waited = pending.scoring.wait()
        own = _groups(pending.rollouts, scores, [self._config.rollouts.num_generations] * len(pending.tasks))
        answering = self._answering(pending.number, version)
        own = self._further(own, answering)
        groups = drawn = self._gathered(own)
        every = _flat(groups)
        try:
            self.checked(every.scores)
        except TooManyFailures:
            self._pending.appendleft(pending)  # its answers are judged again where a run goes on
            raise
        self.facts.scored(every.scores)
        numbers = dict(self._source.observe(every.rollouts, every.scores))
        if self._rounds is not None:
            numbers["answers"] = len(every.rollouts) / len(groups)
        if self._improver is not None:
            improved = self._improver.improve(own, answering)
            told = self._processes.all_gather([dict(improved.counts)])
            numbers |= {name: sum(one[name] for one in told) / len(groups) for name in told[0]}
            groups = self._gathered(improved.groups)
        numbers["seconds_waiting"] = waited + answering.seconds_waiting
        numbers["seconds_writing"] = pending.seconds + answering.seconds_writing
        return groups, drawn, numbers

    def _answering(self, number: int, version: int) -> Answering:
        rank = self._processes.rank
        return Answering(
            self._writer,
            self._rewards,
            self._config.rollouts.sampling,
            version=version,
            name=f"{number}.{rank}.more",
            seed=(self._config.seed % 2**32, number, rank),
        )

    def _further(self, groups: list[Answered], answering: Answering) -> list[Answered]:
        rounds = 1
        while self._rounds is not None:
            wanted = {place: self._rounds(group.values, rounds) for place, group in enumerate(groups)}
            asked = {place: count for place, count in wanted.items() if count > 0}
            if not asked:
                break
            asks = [Ask(task=groups[place].rollouts[0].task, count=count) for place, count in asked.items()]
            for place, more in zip(asked, answering.scored(asks), strict=True):
                groups[place] = answering.joined(groups[place], more)
            rounds += 1
        return groups

    def _gathered(self, own: Sequence[Answered]) -> list[Answered]:
        mine = _flat(own)
        rollouts, scores = self._processes.all_gather(mine.rollouts), self._processes.all_gather(mine.scores)
        return _groups(rollouts, scores, self._processes.all_gather([len(group.rollouts) for group in own]))

    def _kept(self, groups: Sequence[Answered]) -> list[tuple[Answered, Integers]]:
        """The groups, and how often each member is learnt from."""
        values = [value for group in groups for value in group.values]
        ids = [place for place, group in enumerate(groups) for _ in group.rollouts]
        copies = np.ones(len(values), dtype=np.int64)
        if self._filter is not None:
            copies = self._filter.copies(Groups.of(values, ids))
        return [(group, copies[np.array(ids) == place]) for place, group in enumerate(groups)]

    def _begun(self, version: int) -> _Pending:
        config, number = self._config.rollouts, self._drawn
        self._drawn += 1
        tasks = self._processes.share(self._source.draw(config.tasks), together=lambda task: task.cohort)
        tasks = self.facts.told(tasks, version)
        scoring = Scoring(self._rewards, tasks, config.num_generations)
        began = time.perf_counter()
        rollouts = self._writer.roll_out(
            tasks,
            config.num_generations,
            config.sampling,
            seed=(self._config.seed * 1_000_003 + number) * self._processes.world_size + self._processes.rank,
            version=version,
            name=f"{number}.{self._processes.rank}",
            on_rollout=scoring.add,
        )
        return _Pending(
            number=number, tasks=tasks, rollouts=rollouts, scoring=scoring, seconds=time.perf_counter() - began
        )

    def _told(self, tasks: Sequence[Task]) -> dict[str, Any]:
        """What the tasks of a batch have been told, in all processes."""
        if not self._config.rollouts.facts:
            return {}
        return dict(self._processes.all_gather([(one.id, dict(one.extra)) for one in tasks]))

    def checked(self, scores: Sequence[Score]) -> None:
        """Raise `TooManyFailures` if too many of a step's scores are none."""
        max_failed = self._config.reward.max_failed
        unknown = [score for score in scores if score.value is None]
        if len(unknown) > max_failed * len(scores):
            first = unknown[0]
            raise TooManyFailures(
                f"{len(unknown)} of {len(scores)} rollouts have no score, the first because of {first.reason!r} "
                f"({dict(first.evidence)}); at most {max_failed:.0%} may have none (reward.max_failed)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A batch whose scores are on their way: this process's part of it."""

    number: int
    tasks: Sequence[Task]
    rollouts: list[Rollout]
    scoring: Scoring
    seconds: float


def _flat(groups: Sequence[Answered]) -> Answered:
    """The members of all groups as one."""
    return Answered(
        rollouts=[rollout for group in groups for rollout in group.rollouts],
        scores=[score for group in groups for score in group.scores],
    )


def _groups(rollouts: Sequence[Rollout], scores: Sequence[Score], sizes: Sequence[int]) -> list[Answered]:
    """Groups of these sizes, one after the other."""
    edges = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).tolist()
    return [
        Answered(rollouts=list(rollouts[begin:end]), scores=list(scores[begin:end])) for begin, end in pairwise(edges)
    ]


def _summed(told: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The numbers of a step's batches: seconds are added up, and of the others the mean is taken."""
    metrics = {"batches": float(len(told))}
    for name in dict.fromkeys(name for numbers in told for name in numbers):
        values = [numbers[name] for numbers in told if name in numbers]
        metrics[name] = sum(values) / (1 if name.startswith("seconds_") else len(values))
    return metrics
