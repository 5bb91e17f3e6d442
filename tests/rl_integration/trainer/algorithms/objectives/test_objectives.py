"""The table of objectives, what is done to rewards first, and advantages from values of states."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import UNIT, batches

from adjudge.rl_integration.trainer.algorithms.objectives.advantages import GroupRelative
from adjudge.rl_integration.trainer.algorithms.objectives.objective import Critic, Gae, Objective
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES, objective
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import TokenBatch
from adjudge.rl_integration.trainer.rewards.groups import Groups, Overlong, kl_penalty, token_rewards

RELATIVE = [name for name, one in OBJECTIVES.items() if one.rule is not None and one.rule.min_size == 2]

SEEN = np.array([[True]])


def learned(name: str, groups: Groups) -> torch.Tensor:
    """The gradient of each response, of three tokens each, for some rewards."""
    one = OBJECTIVES[name]
    width = 3
    shape = (len(groups), width)
    point = torch.full(shape, -1.0, dtype=torch.float64, requires_grad=True)
    tokens = TokenBatch(
        logp=point,
        mask=torch.ones(shape),
        advantages=torch.tensor(one.advantages(groups)),
        counted=torch.tensor(one.counted(groups)),
        reference_logp=torch.full(shape, -1.5, dtype=torch.float64),
        entropy=torch.ones(shape, dtype=torch.float64),
        next_value=torch.zeros(shape, dtype=torch.float64),
        group=torch.tensor(groups.ids),
    )
    (found,) = torch.autograd.grad(one.loss(tokens).loss, point)
    return found


def with_parts(groups: Groups) -> Groups:
    return Groups(
        rewards=groups.rewards,
        ids=groups.ids,
        valid=groups.valid,
        strata=groups.strata,
        parts=groups.rewards[:, None],
    )


@pytest.mark.parametrize("name", RELATIVE)
@settings(max_examples=15)
@given(groups=batches(UNIT))
def test_lost_samples_and_groups_of_one_have_no_gradient(name: str, groups: Groups) -> None:
    found = learned(name, with_parts(groups))
    counts = [sum(bool(v) for v, g in zip(groups.valid, groups.ids, strict=True) if g == own) for own in groups.ids]
    for row in range(len(groups)):
        if not groups.valid[row] or counts[row] < 2:
            assert not found[row].any()


@pytest.mark.parametrize("name", [name for name, one in OBJECTIVES.items() if one.rule is not None])
def test_every_objective_raises_the_better_answer_above_the_worse(name: str) -> None:
    groups = with_parts(Groups.of([1.0, 0.0, 0.0, None], ["a", "a", "a", "a"]))
    if name == "san":
        groups = Groups(rewards=groups.rewards, ids=groups.ids, valid=groups.valid, strata=np.zeros(4, dtype=np.int64))
    found = -learned(name, groups).sum(dim=1)
    assert found[0] > found[1]
    assert found[0] > found[2] or name in ("dpo", "rpo"), "of equals, a pair takes the first"
    assert not found[3]


def test_objectives_are_plain_data_that_can_be_changed_and_sent() -> None:
    for name, one in OBJECTIVES.items():
        assert pickle.loads(pickle.dumps(one)) == one, name
        assert hash(one) == hash(objective(name))
    changed = objective("dapo").but(
        {"policy.clip_ratio_high": 0.3, "policy.importance_sampling.high": 5.0, "resample": False}
    )
    assert isinstance(changed.policy, PolicyLoss)
    assert changed.policy.clip_ratio_high == 0.3
    assert changed.policy.importance_sampling.high == 5.0
    assert objective("dapo").resample
    assert not changed.resample


def test_what_an_objective_needs_is_said() -> None:
    assert {name for name, one in OBJECTIVES.items() if one.needs_reference} == {
        "rloo", "reinforce_plus_plus", "ppo", "dpo", "rpo", "rapo",
    }  # fmt: skip
    assert objective("grpo").but({"policy.beta": 0.1}).needs_reference


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: objective("gppo"), r"unknown objective 'gppo' \(did you mean 'ppo'\?\); there are grpo"),
        (lambda: objective("grpo").but({"policy.clip": 1}), "no option 'policy.clip'; at this place there are surr"),
        (lambda: objective("grpo").but({"policy.clip_high": 0.3}), "did you mean 'policy.clip_ratio_high'?"),
        (lambda: objective("grpo").but({"beta": 0.1}), r"did you mean 'policy.beta'\?"),
        (lambda: objective("REINFORCE++"), r"did you mean 'reinforce_plus_plus'\?"),
        (lambda: objective("grpo").but({"resample.on": 1}), "there are none"),
        (
            lambda: objective("grpo").but({"policy.clip_ratio_low": 2.0}),
            r"^policy\.clip_ratio_low: .*clip_ratio_low=2\.0",
        ),
        (
            lambda: objective("grpo").but({"policy.clip_ratio_low": "0.2"}),
            "clip_ratio_low='0.2'; it must be",
        ),
        (lambda: objective("dapo").but({"resample": "no"}), "resample='no'; it must be true or false"),
        (lambda: objective("dapo").but({"overlong": True}), "overlong=True; it must be Overlong or None; single"),
        (
            lambda: objective("dapo").but({"policy.importance_sampling": 2.0}),
            "importance_sampling=2.0; it must be ImportanceSampling",
        ),
        (lambda: objective("dapo").but({"policy": "clipped"}), "policy='clipped'; it must be PolicyLoss or Rover"),
        (lambda: objective("dapo").but({"rule": "grpo"}), "rule='grpo'; it must be an advantage rule"),
        (lambda: objective("passk").but({"rule.scale": 1}), "scale=1; it must be true or false"),
        (lambda: objective("ppo").advantages(Groups.of([], [])), "from a critic"),
        (lambda: Objective(rule=None, policy=PolicyLoss()), "either a rule"),
        (lambda: Objective(rule=GroupRelative(), policy=PolicyLoss(), critic=Critic()), "either a rule"),
        (lambda: Objective(rule=GroupRelative(), policy=PolicyLoss(), reward_beta=-1), "reward_beta=-1"),
        (lambda: Overlong(limit=10, buffer=11), "buffer=11 is more than limit=10"),
        (lambda: Overlong(limit=0), "limit=0"),
        (lambda: Gae(gamma=1.1), "gamma=1.1"),
        (lambda: Gae(lam=-0.1), "lam=-0.1"),
        (lambda: Gae()(np.ones((1, 2)), np.ones((1, 2)), np.array([[True, False]])), "where it would be lost"),
        (lambda: Gae()(np.full((1, 1), np.nan), np.ones((1, 1)), SEEN), "rewards hold a number"),
        (lambda: Gae()(np.zeros((1, 1)), np.ones((1, 2)), SEEN), r"values has the shape \(1, 2\)"),
        (lambda: token_rewards(np.ones(1), SEEN, beta=0.1), "needs logp and reference_logp"),
        (lambda: kl_penalty(np.ones((1, 1)), np.ones((1, 1)), SEEN, -1.0), "beta=-1.0"),
        (lambda: kl_penalty(np.ones((1, 1)), np.ones((1, 2)), SEEN, 1.0), "reference_logp has"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()


def test_overlong_answers_cost_more_towards_the_limit() -> None:
    lengths = np.array([0, 16384, 16385, 18432, 20480, 30000])
    np.testing.assert_allclose(Overlong()(lengths), [0, 0, -1 / 4096, -0.5, -1, -1])
    np.testing.assert_allclose(Overlong(limit=10, buffer=5, factor=2.0)(np.array([6, 10])), [-0.4, -2])


def test_rewards_stand_at_the_last_token_of_the_policy_and_penalties_at_each() -> None:
    mask = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]], dtype=np.bool_)
    logp = np.array([[-1.0, -2.0, np.nan], [-1.0, np.nan, -1.0], [0, 0, 0]])
    reference = np.array([[-2.0, -1.0, np.nan], [-1.0, np.nan, -4.0], [0, 0, 0]])
    found = token_rewards(np.array([1.0, 2.0, np.nan]), mask, logp=logp, reference_logp=reference, beta=0.1)
    np.testing.assert_allclose(found, np.array([[-0.1, 1.1, 0], [0, 0, 1.7], [0, 0, 0]]))
    np.testing.assert_allclose(kl_penalty(logp, reference, mask, 0.1), [0.0, -0.3, 0.0])
    np.testing.assert_allclose(token_rewards(np.array([1.0, 2.0, 3.0]), mask), [[0, 1, 0], [0, 0, 2], [0, 0, 0]])


@settings(max_examples=60)
@given(data=st.data(), gamma=st.sampled_from([0.0, 0.9, 1.0]), lam=st.sampled_from([0.0, 0.95, 1.0]))
def test_gae_equals_the_sum_of_its_definition(data: st.DataObject, gamma: float, lam: float) -> None:
    rows, width = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5))
    numbers = st.lists(st.floats(-2, 2, width=16), min_size=rows * width, max_size=rows * width)
    mask = np.array(data.draw(numbers)).reshape(rows, width) < 1
    rewards = np.where(mask, np.array(data.draw(numbers)).reshape(rows, width), 0.0)
    values = np.where(mask, np.array(data.draw(numbers)).reshape(rows, width), np.nan)
    advantages, returns = Gae(gamma=gamma, lam=lam, whiten=False)(rewards, values, mask)
    for row in range(rows):
        places = np.flatnonzero(mask[row]).tolist()
        v = [float(values[row, place]) for place in places] + [0.0]
        deltas = [float(rewards[row, place]) + gamma * v[at + 1] - v[at] for at, place in enumerate(places)]
        for at, place in enumerate(places):
            wanted = math.fsum((gamma * lam) ** (later - at) * deltas[later] for later in range(at, len(places)))
            assert math.isclose(advantages[row, place], wanted, rel_tol=1e-9, abs_tol=1e-9)
            assert math.isclose(returns[row, place], wanted + v[at], rel_tol=1e-9, abs_tol=1e-9)
    assert not advantages[~mask].any()
    assert not returns[~mask].any()


def test_whitened_advantages_have_mean_zero_and_variance_one_under_the_mask() -> None:
    draw = np.random.default_rng(0)
    mask = draw.random((4, 6)) < 0.7
    rewards = np.where(mask, draw.random((4, 6)), 0)
    found, returns = Gae()(rewards, draw.random((4, 6)), mask)
    raw, same = Gae(whiten=False)(rewards, draw.random((4, 6)) * 0, mask)
    assert abs(found[mask].mean()) < 1e-12
    assert math.isclose(found[mask].std(ddof=1), 1, rel_tol=1e-6)
    assert not np.array_equal(returns, same)
    assert raw[mask].std() > 0


def test_advantages_need_no_torch() -> None:
    program = (
        "import sys\n"
        "from adjudge.rl_integration.trainer.algorithms.objectives import advantages\n"
        "from adjudge.rl_integration.trainer.rewards import groups\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=1200)
