"""Rules that read more of a score than its value get it from real scorers' scores, by configuration alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.rl_integration.trainer.algorithms.objectives.batches import mean, spread
from tests.rl_integration.trainer.small_runs import small_policy

import adjudge
from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.rewards.groups import groups_of
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.training.config_file import config_of

TEXTS = ("12", "3", "12+", "2=24", "12", "")
TASK = Task(id="6+6", prompt="6+6=", reference="12")
SHORT = {"length": {"max_length": 4, "buffer": 3, "unit": "characters"}}
WEIGHTED = {"weighted": [{"scorer": "exact", "weight": 1.0}, {"scorer": SHORT, "weight": 0.5}]}


def rollout(policy: Policy, text: str, *, tools: int = 0) -> Rollout:
    """An answer, with a tool's token before its end for each time that one spoke."""
    written = [*policy.tokens.text(text), *[4, 5] * tools, min(policy.ends)]
    own = np.ones(len(written), dtype=np.bool_)
    own[[len(written) - 3 - 2 * at for at in range(tools)]] = False
    return Rollout(
        id=text,
        task=TASK,
        prompt_ids=policy.encode(TASK),
        ids=tuple(written),
        logprobs=np.zeros(len(written), dtype=np.float32),
        own=own,
        text=text,
        finish_reason="stop",
        version=0,
    )


@pytest.fixture(scope="module")
def weighted() -> list[Score]:
    """What a real scorer made of two says about the texts."""
    policy = small_policy()
    return adjudge.score_batch([rollout(policy, text).sample() for text in TEXTS], WEIGHTED)


def learnt(config: Mapping[str, Any], policy: Policy, rollouts: Sequence[Rollout], scores: Sequence[Score]) -> float:
    """The loss of one step of a run with this configuration."""
    made = config_of(RunConfig, {"reward": {"scorer": "exact"}, **config})
    objective = made.objective.made(max_new_tokens=8).but({"policy.aggregation": "token_mean"})
    learner = Learner(policy, objective, made.learning, temperature=1.0, steps=1, seed=0, credit=made.credit)
    return learner.learn(rollouts, scores)["loss"]


def loss_of(advantages: Sequence[float], rollouts: Sequence[Rollout]) -> float:
    """Of the first update, whose ratios are 1: minus the mean advantage of all own tokens."""
    tokens = [int(one.own.sum()) for one in rollouts]
    return -math.fsum(a * count for a, count in zip(advantages, tokens, strict=True)) / sum(tokens)


def z(values: Sequence[float], eps: float = 1e-4) -> list[float]:
    return [(value - mean(list(values))) / (spread(list(values)) + eps) for value in values]


def test_several_rewards_are_normalised_before_or_after_they_are_mixed(weighted: list[Score]) -> None:
    policy = small_policy()
    rollouts = [rollout(policy, text) for text in TEXTS]
    scores = weighted
    right = [float(text == "12") for text in TEXTS]
    short = [score.parts["length"].value for score in scores]
    assert len(set(short)) > 1, "the parts must differ for this test to say anything"
    assert all(value is not None for value in short)
    lengths = [value for value in short if value is not None]
    before = z([a + 0.5 * b for a, b in zip(z(right), z(lengths), strict=True)])
    weights = {"rule.weights": {"exact": 1.0, "length": 0.5}}
    found = learnt({"objective": {"name": "gdpo", "set": weights}}, policy, rollouts, scores)
    assert found == pytest.approx(loss_of(before, rollouts), rel=1e-4)
    after = z([a + 0.5 * b for a, b in zip(right, lengths, strict=True)])
    late = {"objective": {"name": "gdpo", "set": {**weights, "rule.normalize": "after"}}}
    assert learnt(late, policy, rollouts, scores) == pytest.approx(loss_of(after, rollouts), rel=1e-4)
    assert abs(loss_of(before, rollouts) - loss_of(after, rollouts)) > 1e-3
    with pytest.raises(ValueError, match="this one has none"):
        learnt({"objective": "gdpo"}, policy, rollouts, [Score.scored(value) for value in right])


def test_only_the_best_of_a_group_counts_for_pass_at_k(weighted: list[Score]) -> None:
    policy = small_policy()
    rollouts, scores = [rollout(policy, text) for text in TEXTS[:4]], weighted[:4]
    values = [score.value or 0.0 for score in scores]
    best, second = sorted(values, reverse=True)[:2]
    lead = [(best - second) / (spread(values) + 1e-6) if value == best else 0.0 for value in values]
    assert lead.count(0.0) == 3
    assert learnt({"objective": "passk"}, policy, rollouts, scores) == pytest.approx(loss_of(lead, rollouts), rel=1e-4)


def test_answers_are_compared_with_those_that_used_tools_as_often() -> None:
    policy = small_policy()
    rollouts = [rollout(policy, "12", tools=count) for count in (0, 0, 1, 1, 1, 2)]
    values = [1.0, 0.0, 1.0, 0.0, 0.5, 0.25]
    scores = [Score.scored(value) for value in values]
    whole = z(values)
    strata = [*z(values[:2]), *z(values[2:5]), whole[5]]
    mixed = [0.7 * a + 0.3 * b for a, b in zip(strata, whole, strict=True)]
    found = learnt({"objective": "san"}, policy, rollouts, scores)
    assert found == pytest.approx(loss_of(mixed, rollouts), rel=1e-4)


def test_what_rules_read_of_a_batch() -> None:
    policy = small_policy()
    rollouts = [rollout(policy, "12", tools=2), rollout(policy, "3"), rollout(policy, "4")]
    scores = [
        Score(value=1.0, parts={"b": Score.scored(0.5), "a": Score.scored(0.25)}),
        Score(value=0.0, parts={"b": Score.failed("engine_timeout")}),
        Score.failed("engine_timeout"),
    ]
    groups = groups_of(rollouts, scores)
    assert groups.names == ("a", "b")
    assert groups.parts is not None
    np.testing.assert_array_equal(groups.parts, [[0.25, 0.5], [math.nan] * 2, [math.nan] * 2])
    assert groups.strata is not None
    assert groups.strata.tolist() == [2, 0, 0]
    assert groups.valid.tolist() == [True, True, False]
