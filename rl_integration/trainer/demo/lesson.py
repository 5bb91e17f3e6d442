"""A policy made from nothing learns to add, from the math verifier's verdicts alone.

First it sees a few right answers, so that it writes in the right form and is right now and then; from there on it is
told nothing but whether an answer of its own is right.

Not covered: anything a user would train.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from adjudge.rl_integration.trainer.config import ObjectiveChoice, RolloutsConfig, RunConfig
from adjudge.rl_integration.trainer.demo.arithmetic import CHARACTERS, answers, sums
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.learning import LearningConfig
from adjudge.rl_integration.trainer.report import write_report
from adjudge.rl_integration.trainer.rewards import RewardConfig, Rewards
from adjudge.rl_integration.trainer.rollouts.sampling import SamplingConfig
from adjudge.rl_integration.trainer.run import Run
from adjudge.rl_integration.trainer.tasks import Task

Method: TypeAlias = Literal["grpo", "ppo"]

_METHODS: Mapping[Method, tuple[ObjectiveChoice, LearningConfig]] = {
    "grpo": (
        ObjectiveChoice(name="grpo"),
        LearningConfig(learning_rate=1e-3, decay="linear", warmup_steps=10, minibatches=2),
    ),
    # The tiny policy has nothing that would be worth staying near, so no divergence is taken off the reward.
    "ppo": (
        ObjectiveChoice(name="ppo", set={"reward_beta": 0.0}),
        LearningConfig(learning_rate=1e-3, critic_rate=2e-3, decay="linear", warmup_steps=10, minibatches=2),
    ),
}
_TERMS = 20  # below it
_ENOUGH = 0.25  # of the sums it is trained on, before it learns from verdicts
_WARM_UP = 400  # steps at most


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What came of it.

    Attributes:
        before: share of held-out sums that the policy had right after the warm-up.
        after: share that it has right at the end.
        steps: of reinforcement learning.
        seconds: in all.
        report: the page of the run.
    """

    before: float
    after: float
    steps: int
    seconds: float
    report: Path


def learn_sums(
    folder: Path,
    *,
    method: Method = "grpo",
    seed: int = 0,
    steps: int = 400,
    tell: Callable[[Mapping[str, float]], None] | None = None,
) -> Lesson:
    """Make a policy, warm it up, and train it.

    Args:
        folder: for the run; it must hold none yet.
        method: how it learns.
        seed: of everything random.
        steps: of reinforcement learning.
        tell: told the numbers of each step.
    """
    began = time.perf_counter()
    tasks, held_out = sums(_TERMS, held_out=0.25, seed=seed)
    policy = tiny_policy(CHARACTERS, seed=seed)
    objective, learning = _METHODS[method]
    config = RunConfig(
        reward=RewardConfig(scorer="math"),
        objective=objective,
        rollouts=RolloutsConfig(tasks=32, group=16, sampling=SamplingConfig(most_new_tokens=12)),
        learning=learning,
        steps=steps,
        seed=seed,
        eval_steps=25,
        save_steps=100,
    )
    run = Run(policy, tasks, config, folder, held_out=held_out)
    with Rewards(config.reward) as rewards:
        warm_up(
            policy,
            tasks,
            answers(tasks),
            steps=_WARM_UP,
            batch=64,
            rate=3e-3,
            seed=seed,
            enough=lambda: _right(run, tasks[:100], rewards) >= _ENOUGH,
        )
        before = _right(run, held_out, rewards)

    def on_step(numbers: Mapping[str, float], *_: Any) -> None:
        if tell is not None:
            tell(numbers)

    result = run.train(on_step=on_step)
    facts = {"policy": policy.name, "method": method, "seed": seed, "steps": steps}
    return Lesson(
        before=before,
        after=result.history[-1]["held_out"],
        steps=result.steps,
        seconds=time.perf_counter() - began,
        report=write_report(folder, title=f"Learning to add by {method.upper()}", facts=facts),
    )


def _right(run: Run, tasks: Sequence[Task], rewards: Rewards) -> float:
    """The share of tasks that the policy's likeliest answers have right."""
    return run.evaluate(tasks, rewards)["held_out"]
