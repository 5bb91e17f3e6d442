"""How far what wrote the answers is from the policy that learns from them is a number of the log."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.rl_integration.trainer.small_runs import TASKS, small_policy

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.algorithms.choices import ObjectiveChoice
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.rollouts.rollouts_config import SamplingConfig
from adjudge.rl_integration.trainer.rollouts.transformers_generator import TransformersGenerator
from adjudge.rl_integration.trainer.rollouts.writer import Writer


@pytest.mark.parametrize("micro_tokens", [16, 16_384])
@pytest.mark.parametrize("minibatches", [1, 2])
def test_the_gap_is_a_mean_and_the_ratio_the_largest(micro_tokens: int, minibatches: int) -> None:
    policy = small_policy()
    rollouts = Writer(policy, TransformersGenerator(policy)).roll_out(
        TASKS[:2], 4, SamplingConfig(max_new_tokens=8), seed=1, version=0, name="0", on_rollout=lambda *_: None
    )
    shifts = [0.0, -0.5, 0.25, 0.1, 0.0, -0.5, 0.25, 0.1]
    moved = [replace(one, logprobs=one.logprobs + shift) for one, shift in zip(rollouts, shifts, strict=True)]
    learner = Learner(
        policy,
        ObjectiveChoice(name="grpo").made(max_new_tokens=8),
        LearningConfig(learning_rate=1e-9, micro_tokens=micro_tokens, minibatches=minibatches),
        temperature=1.0,
        steps=9,
        seed=0,
    )
    scores = [Score.scored(value) for value in (0.0, 1.0, 3.0, 5.0) * 2]  # none is its group's mean: all are read
    found = learner.learn(moved, scores, exact=False)
    lengths = [len(one.ids) for one in rollouts]

    def mean(places: range) -> float:
        total = sum(abs(shifts[at]) * lengths[at] for at in places)
        return total / sum(lengths[at] for at in places)

    expected = mean(range(8)) if minibatches == 1 else (mean(range(4)) + mean(range(4, 8))) / 2
    assert found["sampling_logp_difference"] == pytest.approx(expected, abs=1e-4)
    assert found["max_sampling_ratio"] == pytest.approx(math.exp(0.5), abs=1e-4)
    assert (
        not {"sampling_logp_difference", "max_sampling_ratio"}
        & learner.learn([replace(one, version=1) for one in moved], scores, exact=True).keys()
    )
