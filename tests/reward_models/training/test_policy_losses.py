"""Losses of policies equal formulas written in NumPy, and move as they say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from adjudge.reward_models.training import policy_objective

GAPS = st.floats(-100, 100)


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def log_sigmoid(value: float) -> float:
    return float(-np.logaddexp(0, -value))


@given(GAPS, st.floats(0.01, 2), st.sampled_from([0.0, 0.1, 0.4]))
def test_dpo_and_its_kin_are_their_formulas(gap: float, beta: float, noise: float) -> None:
    up, down = log_sigmoid(beta * gap), log_sigmoid(-beta * gap)
    cases = {
        "dpo": (policy_objective.dpo(tensor(gap), beta, smoothing=noise), -(1 - noise) * up - noise * down),
        "robust": (
            policy_objective.robust_dpo(tensor(gap), beta, flipped=noise),
            (-(1 - noise) * up + noise * down) / (1 - 2 * noise),
        ),
        "ipo": (policy_objective.ipo(tensor(gap), beta), (gap - 1 / (2 * beta)) ** 2),
        "step_apo": (policy_objective.step_apo(tensor(gap), tensor(1.5), beta), -log_sigmoid(beta * gap - 1.5)),
    }
    for name, (found, expected) in cases.items():
        assert found.item() == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@given(st.floats(-8, -0.01), st.floats(-8, -0.01))
def test_losses_without_a_reference_compare_odds_or_means(chosen: float, rejected: float) -> None:
    odds = [math.exp(mean) / (1 - math.exp(mean)) for mean in (chosen, rejected)]
    found = policy_objective.log_odds(tensor([chosen, rejected]))
    ratio = 0.2 * math.log(1 + odds[1] / odds[0])  # -log σ(log a - log b) = log(1 + b / a)
    assert policy_objective.orpo(found[0] - found[1], 0.2).item() == pytest.approx(ratio, rel=1e-7)
    assert policy_objective.rrhf(tensor(chosen - rejected)).item() == max(0.0, rejected - chosen)


def test_odds_of_what_is_certain_are_finite() -> None:
    at = torch.tensor([0.0, -1e-9, -1e-3], requires_grad=True)
    found = policy_objective.log_odds(at)
    (gradient,) = torch.autograd.grad(found.sum(), at)
    assert torch.isfinite(found).all()
    assert torch.isfinite(gradient).all()


@given(GAPS, st.floats(-10, 10))
def test_the_reward_aware_loss_is_a_distance_of_beliefs(gap: float, reward: float) -> None:
    q = math.exp(log_sigmoid(reward))
    p, rest = log_sigmoid(0.1 * gap), log_sigmoid(-0.1 * gap)
    expected = q * (math.log(q) - p) + (1 - q) * (log_sigmoid(-reward) - rest)
    found = policy_objective.reward_aware(tensor(gap), tensor(reward)).item()
    assert found == pytest.approx(expected, abs=1e-9)
    assert found >= -1e-12


def test_the_reward_aware_loss_is_zero_where_the_beliefs_agree() -> None:
    assert policy_objective.reward_aware(tensor(30.0), tensor(3.0), 0.1).item() == pytest.approx(0, abs=1e-12)


def test_noise_in_labels_leaves_the_robust_loss_unbiased() -> None:
    gap, noise = tensor(1.7), 0.2
    clean = policy_objective.robust_dpo(gap, flipped=noise)
    flipped = policy_objective.robust_dpo(-gap, flipped=noise)
    assert ((1 - noise) * clean + noise * flipped).item() == pytest.approx(policy_objective.dpo(gap).item())


def test_smoothing_puts_the_minimum_where_labels_are_wrong_as_often_as_said() -> None:
    noise, beta = 0.2, 0.5
    gap = tensor(math.log((1 - noise) / noise) / beta).requires_grad_()
    policy_objective.dpo(gap, beta, smoothing=noise).backward()  # type: ignore[no-untyped-call]
    assert gap.grad is not None
    assert gap.grad.item() == pytest.approx(0, abs=1e-12)


BETAS: dict[str, tuple[float, float]] = {
    "no difference": (0.0, 0.1),
    "a clear one": (1e6, 0.1 * 1.5),
    "one unit": (1.0, 0.1 * (1 + 0.5 * (1 - math.exp(-2)))),
    "the wrong way": (-0.3, 0.1 * (1 + 0.5 * (1 - math.exp(0.6)))),
    "far the wrong way": (-50.0, 0.0),
}


@pytest.mark.parametrize(("margin", "expected"), BETAS.values(), ids=BETAS)
def test_beta_grows_with_the_margin_up_to_a_bound(margin: float, expected: float) -> None:
    found = policy_objective.scaled_beta(tensor(margin), 0.1, weight=0.5, rate=2.0)
    assert found.item() == pytest.approx(expected)


def test_the_supervised_term_is_a_mean_over_tokens() -> None:
    found = policy_objective.with_likelihood(tensor([1.0]), tensor([-12.0]), tensor([4.0]), weight=0.5)
    assert found.tolist() == [1.0 + 0.5 * 3.0]


def test_gradients_are_those_of_the_losses() -> None:
    gap = tensor([0.4, -2.0, 7.0]).requires_grad_()
    more = tensor([0.5, 1.0, -1.0])
    beta = policy_objective.scaled_beta(more)
    losses: list[Callable[[Tensor], Tensor]] = [
        lambda h: policy_objective.dpo(h, beta, smoothing=0.1),
        lambda h: policy_objective.robust_dpo(h, beta),
        lambda h: policy_objective.ipo(h, 0.3),
        lambda h: policy_objective.step_apo(h, more),
        lambda h: policy_objective.reward_aware(h, more),
        lambda h: policy_objective.orpo(h, beta),
        lambda h: policy_objective.rrhf(h),
        lambda h: policy_objective.log_odds(-h * h),
        lambda h: policy_objective.with_likelihood(policy_objective.dpo(h), h, tensor([1.0, 2.0, 3.0])),
    ]
    for loss in losses:
        assert torch.autograd.gradcheck(loss, (gap,))


@pytest.mark.parametrize("gap", [-1e4, 1e4])
def test_no_gap_is_too_large(gap: float) -> None:
    at = torch.tensor([gap], requires_grad=True)
    rewards = torch.tensor([1e4])
    for loss in (
        policy_objective.dpo(at),
        policy_objective.step_apo(at, rewards),
        policy_objective.reward_aware(at, rewards),
    ):
        (gradient,) = torch.autograd.grad(loss.sum(), at)
        assert torch.isfinite(loss).all()
        assert torch.isfinite(gradient).all()
