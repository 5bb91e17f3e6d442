"""A writer that needs no model, and batches of what it writes."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from tests.rl_integration.trainer.rollouts.curricula.simulated import setting

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task, TaskOrder
from adjudge.rl_integration.trainer.loop.batches import Batch, Batches
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards
from adjudge.rl_integration.trainer.rollouts.curricula.choice import CurriculumChoice
from adjudge.rl_integration.trainer.rollouts.curricula.improvers import Improver
from adjudge.rl_integration.trainer.rollouts.facts import Facts
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.rl_integration.trainer.rollouts.writer import Answering, OnRollout, Writer

T = TypeVar("T")

Script = Callable[[Task, random.Random], str]


def by_rate(task: Task, dice: random.Random) -> str:
    """The right answer by the task's chance, or always if the prompt has help in it."""
    helped = "help" in str(task.prompt)
    return str(task.reference) if helped or dice.random() < float(task.extra["rate"]) else "0"


class Scripted(Writer):
    """Writes what a script says; the prompts that it was shown and its seeds are kept."""

    def __init__(self, script: Script = by_rate) -> None:
        self._script = script
        self.shown: list[Any] = []
        self.seeds: list[int] = []
        self.sizes: list[tuple[int, int]] = []

    def prompt(self, task: Task) -> tuple[int, ...]:
        return tuple(map(ord, str(task.prompt)))

    def roll_out(
        self,
        tasks: Sequence[Task],
        num_generations: int,
        sampling: SamplingConfig,
        *,
        seed: int,
        version: int,
        name: str,
        on_rollout: OnRollout,
    ) -> list[Rollout]:
        self.shown += [task.prompt for task in tasks]
        self.seeds.append(seed)
        self.sizes.append((len(tasks), num_generations))
        dice = random.Random(seed)
        found = []
        for place in range(len(tasks) * num_generations):
            task = tasks[place // num_generations]
            text = self._script(task, dice)
            found.append(
                Rollout(
                    id=f"{name}:{place}",
                    task=task,
                    prompt_ids=self.prompt(task),
                    ids=(*map(ord, text), 1),
                    logprobs=-np.arange(1, len(text) + 2, dtype=np.float32),
                    own=np.ones(len(text) + 1, dtype=np.bool_),
                    text=text,
                    finish_reason="stop",
                    version=version,
                )
            )
            on_rollout(place, found[-1])
        return found


class Same:
    """1 for the reference, 0 for anything else; nothing for answers that begin with a question mark."""

    name = "same"
    fingerprint = "same:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [self._one(sample) for sample in samples]

    def _one(self, sample: Sample) -> Score:
        if str(sample.response).startswith("?"):
            return Score.failed("engine_timeout")
        right = sample.response == sample.reference
        return Score.scored(float(right), rationale=f"{sample.response} is not it")


class Pair:
    """Two processes that are threads."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=1200)
        self._parts: dict[int, list[Any]] = {}

    def of(self, rank: int) -> Processes:
        pair = self

        class Thread(Processes):
            def all_gather(self, things: Sequence[T]) -> list[T]:
                pair._parts[rank] = list(things)
                pair._barrier.wait()
                found = [*pair._parts[0], *pair._parts[1]]
                pair._barrier.wait()
                return found

        return Thread(rank=rank, world_size=2)


@contextmanager
def batches_of(
    tasks: Sequence[Task],
    writer: Scripted,
    *,
    curriculum: CurriculumChoice | None = None,
    improver: Improver[Any] | None = None,
    scorer: Any = None,
    group: int = 4,
    processes: Processes | None = None,
    **rollouts: Any,
) -> Iterator[Batches]:
    """Batches of four groups, unless told otherwise."""
    reward = RewardConfig(scorer=scorer if scorer is not None else Same(), max_failed=1.0)
    sizes = RolloutsConfig(
        **{"tasks": 4, "num_generations": group, "sampling": SamplingConfig(max_new_tokens=8), **rollouts}
    )
    config = RunConfig(reward=reward, rollouts=sizes, seed=5)
    made = (curriculum or CurriculumChoice()).made(setting(tasks, group=group))
    with Rewards(reward) as rewards:
        yield Batches(
            made.source or TaskOrder(tasks, seed=5),
            writer,
            rewards,
            config,
            processes=processes or Processes(),
            facts=Facts((), config.steps, lambda tasks: []),
            curriculum=made,
            improver=improver,
        )


@contextmanager
def answering_of(writer: Scripted, *, scorer: Any = None) -> Iterator[Answering]:
    """What improvers write with."""
    with Rewards(RewardConfig(scorer=scorer if scorer is not None else Same())) as rewards:
        yield Answering(writer, rewards, SamplingConfig(max_new_tokens=8), version=3, name="more", seed=(5, 0, 0))


def told(batch: Batch) -> list[Any]:
    """All that a step learns from."""
    return [
        (one.id, one.text, one.version, one.origin, score.value, int(copies))
        for one, score, copies in zip(batch.rollouts, batch.scores, batch.copies, strict=True)
    ]
