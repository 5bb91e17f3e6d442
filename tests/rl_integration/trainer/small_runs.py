"""Runs of a few seconds, for the tests of the loop."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunConfig
from adjudge.rl_integration.trainer.loop.processes import Processes
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig

TASKS = [Task(id=f"{n}+{n}", prompt=f"{n}+{n}=", reference=str(2 * n)) for n in range(10)]


class Digits:
    """The share of an answer's characters that are digits: a reward that a new policy can learn at once."""

    name = "digits"
    fingerprint = "digits:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(self._share(str(sample.response))) for sample in samples]

    def _share(self, text: str) -> float:
        return sum(character.isdigit() for character in text) / max(1, len(text))


class Unsure(Digits):
    """Cannot judge a third of the answers, by their text alone."""

    name = "unsure"
    fingerprint = "unsure:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        scores = await super().score(samples)
        return [
            Score.failed("engine_timeout") if crc32(str(sample.response).encode()) % 3 == 0 else one
            for sample, one in zip(samples, scores, strict=True)
        ]


def small_policy(seed: int = 0) -> Policy:
    """A new policy of a few thousand weights."""
    return tiny_policy("0123456789+= ", seed=seed, width=16, layers=1)


def small_config(
    *,
    scorer: Any = None,
    objective: str = "grpo",
    set: dict[str, Any] | None = None,
    steps: int = 4,
    tasks: int = 4,
    num_generations: int = 4,
    staleness: int = 0,
    **more: Any,
) -> RunConfig:
    learning = more.pop("learning", {})
    return RunConfig(
        reward=RewardConfig(scorer=scorer if scorer is not None else Digits(), **more.pop("reward", {})),
        objective=ObjectiveChoice(name=objective, set=set or {}),
        rollouts=RolloutsConfig(
            tasks=tasks,
            num_generations=num_generations,
            staleness=staleness,
            sampling=SamplingConfig(max_new_tokens=8),
            **more.pop("rollouts", {}),
        ),
        learning=LearningConfig(**{"learning_rate": 1e-2, **learning}),
        steps=steps,
        **{"save_steps": 1, **more},
    )


def small_run(
    folder: Path,
    config: RunConfig,
    *,
    tasks: Sequence[Task] = TASKS,
    held_out: Sequence[Task] = (),
    processes: Processes | None = None,
) -> Run:
    policy = small_policy()
    reference = None
    if config.objective.made(max_new_tokens=8).needs_reference and config.learning.lora is None:
        reference = Policy(copy.deepcopy(policy.model), policy.tokenizer, name="reference")
    return Run(policy, tasks, config, folder, held_out=held_out, reference=reference, processes=processes)
