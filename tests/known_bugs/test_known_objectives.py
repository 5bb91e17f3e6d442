"""Where released code of trainers leaves its paper: MM-RLHF, PF-PPO in verl, Lite PPO in ROLL, IGPO, groups of one."""

from __future__ import annotations

import numpy as np
import pytest

from adjudge.rl_integration.trainer.algorithms.credit.credit import CREDITS, IGPO
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import PolicyLoss
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES, objective
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.filters import PfPpo


def test_mm_rlhf_replaces_the_rule_of_the_margin_by_one_of_the_batch() -> None:
    torch = pytest.importorskip("torch")
    from adjudge.reward_models.training.policy_objective import scaled_beta

    margins = torch.tensor([0.0, 1.0, 9.0])
    together = scaled_beta(margins).tolist()
    assert together == pytest.approx([scaled_beta(margins[place : place + 1]).item() for place in range(3)])
    assert together == pytest.approx([0.1 * (1 + 0.1 * (1 - np.exp(-0.5 * margin))) for margin in (0, 1, 9)])


@pytest.mark.parametrize("policy", ["best", "best_random", "best_worst"])
def test_pf_ppo_in_verl_looks_for_ends_in_the_whole_batch(policy: str) -> None:
    """There, no response of the second prompt would be drawn: the batch's best and worst are of the first."""
    rule = PfPpo(policy=policy)  # type: ignore[arg-type]
    both = rule.weights(Groups.of([9.0, -9.0, 1.0, 2.0], ["easy", "easy", "hard", "hard"]))
    alone = rule.weights(Groups.of([1.0, 2.0], ["hard", "hard"]))
    np.testing.assert_allclose(both[2:], alone)
    assert both[3] > 0


def test_lite_ppo_is_the_recipe_and_not_the_options_beside_it() -> None:
    """ROLL's page has generalised advantage estimation, one answer to a prompt, and the mean of responses' means."""
    lite = objective("lite_ppo")
    assert isinstance(lite.policy, PolicyLoss)
    assert lite.policy.aggregation == "token_mean"
    assert lite.overlong is None
    rewards = [1.0, 0.0, 0.0, 5.0]
    found = lite.advantages(Groups.of(rewards, ["a", "a", "b", "b"]))
    below = np.std(rewards, ddof=1) + 1e-4
    np.testing.assert_allclose(found, np.array([0.5, -0.5, -2.5, 2.5]) / below)


def test_igpo_compares_turns_with_turns_and_not_tokens_with_tokens() -> None:
    """Two releases take the mean of the returns at the same token; turns of other lengths are then compared."""
    groups = Groups.of([1.0, 0.0], ["q", "q"])
    rewards = [np.array([0.2, 0.8]), np.array([0.4, 0.0])]
    steps = np.array([[0, 0, 0, 1], [0, 1, -1, -1]])
    found = IGPO(rewards, steps, groups, np.zeros(2))
    z = (np.array([0.2, 0.8, 0.4, 0.0]) - 0.35) / (np.std([0.2, 0.8, 0.4, 0.0], ddof=1) + 1e-4)
    np.testing.assert_allclose(found[0], [*[z[0] + z[1]] * 3, z[1]])
    np.testing.assert_allclose(found[1], [z[2] + z[3], z[3], 0, 0])
    returns = np.array([[1.0, 1.0, 1.0, 0.8], [0.4, 0.0, 0.0, 0.0]])
    released = returns - returns.mean(axis=0)
    assert released[0, 0] != released[0, 1], "two tokens of one turn differ"
    assert CREDITS["igpo"].rule == IGPO


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_group_of_one_has_a_finite_advantage(name: str) -> None:
    """Trinity's REC uses a variable there that was never set."""
    rewards = np.array([1.0, 1.0, 0.0])
    ids, strata = np.array([0, 1, 1]), np.array([0, 0, 0])
    groups = Groups(rewards=rewards, ids=ids, valid=ids >= 0, strata=strata, parts=rewards[:, None], names=("math",))
    chosen = objective(name)
    if chosen.rule is not None:
        assert np.isfinite(chosen.advantages(groups)).all()
