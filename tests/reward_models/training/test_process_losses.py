"""Losses of steps equal formulas written in NumPy, and weigh steps and solutions as they say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from adjudge.reward_models.training import process_objective
from adjudge.reward_models.training.process_config import Normalize
from adjudge.reward_models.training.process_objective import label_weights

LOGITS = st.floats(-30, 30)
LABELS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


@given(st.lists(st.tuples(LOGITS, LABELS), min_size=1, max_size=6), st.floats(0.1, 5), st.floats(0.1, 5))
def test_cross_entropy_is_the_weighted_sum_of_logs(rows: list[tuple[float, float]], good: float, bad: float) -> None:
    logits, labels = zip(*rows, strict=True)
    found = process_objective.cross_entropy(tensor(logits), tensor(labels), good=good, bad=bad)
    expected = [
        -good * p * math.log(sigmoid(z)) - bad * (1 - p) * math.log(sigmoid(-z))
        for z, p in zip(logits, labels, strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.lists(st.tuples(LOGITS, LABELS), min_size=1, max_size=6))
def test_two_outputs_train_like_the_softmax_over_them(rows: list[tuple[float, float]]) -> None:
    logits, labels = (tensor(column) for column in zip(*rows, strict=True))
    pair = torch.stack([torch.full_like(logits, 0.7), logits + 0.7], dim=-1)
    expected = torch.nn.functional.cross_entropy(pair, torch.stack([1 - labels, labels], dim=-1), reduction="none")
    found = process_objective.cross_entropy(process_objective.step_logits(pair), labels)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-8)


@pytest.mark.parametrize("label", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    "loss", [process_objective.cross_entropy, process_objective.squared_error], ids=["cross_entropy", "squared_error"]
)
def test_a_soft_label_is_where_the_loss_is_flat(loss: Callable[[Tensor, Tensor], Tensor], label: float) -> None:
    at = tensor([math.log(label / (1 - label))]).requires_grad_()
    loss(at, tensor([label])).sum().backward()  # type: ignore[no-untyped-call]
    assert at.grad is not None
    assert at.grad.item() == pytest.approx(0, abs=1e-12)
    beside = loss(at.detach() + 0.1, tensor([label])) - loss(at.detach(), tensor([label]))
    assert beside.item() > 0


@pytest.mark.parametrize("logit", [-1e4, 1e4])
def test_no_logit_is_too_large(logit: float) -> None:
    at = torch.tensor([logit], requires_grad=True)
    for label in (0.0, 1.0):
        loss = process_objective.cross_entropy(at, torch.tensor([label]))
        (gradient,) = torch.autograd.grad(loss.sum(), at)
        assert torch.isfinite(loss).all()
        assert torch.isfinite(gradient).all()


def ranking_by_hand(values: list[float], right: list[bool], margin: float) -> float:
    chain = [0.0, *[value for value, good in zip(values, right, strict=True) if good]]
    wrong = [value for value, good in zip(values, right, strict=True) if not good]
    terms = []
    for t, value in enumerate(chain):
        below = sum(np.exp(chain[: t + 1])) + sum(np.exp(np.array(wrong) + margin))
        terms.append(-math.log(math.exp(value) / below))
    return sum(terms) / len(terms)


@given(
    st.lists(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), max_size=5), min_size=1, max_size=4),
    st.sampled_from([0.0, 4.0]),
)
def test_ranking_is_the_formula_for_each_solution(solutions: list[list[tuple[float, bool]]], margin: float) -> None:
    steps = [(value, good, owner) for owner, rows in enumerate(solutions) for value, good in rows]
    values = tensor([value for value, _, _ in steps])
    right = torch.tensor([good for _, good, _ in steps], dtype=torch.bool)
    owners = torch.tensor([owner for _, _, owner in steps], dtype=torch.long)
    found = process_objective.ranking(values, right, owners, len(solutions), margin=margin)
    expected = [ranking_by_hand([v for v, _ in rows], [g for _, g in rows], margin) for rows in solutions]
    assert found.tolist() == pytest.approx(expected, abs=1e-9)


def test_ranking_wants_wrong_steps_below_and_right_ones_rising() -> None:
    def loss(*values: float) -> float:
        owners = torch.zeros(3, dtype=torch.long)
        return process_objective.ranking(tensor(values), torch.tensor([True, True, False]), owners, 1).item()

    assert loss(1, 2, -5) < loss(1, 2, 0)
    assert loss(1, 2, -5) < loss(2, 1, -5)


def test_gradients_are_those_of_the_losses() -> None:
    values = tensor([0.3, -1.2, 2.0, 0.1]).requires_grad_()
    labels, owners = tensor([0.2, 1.0, 0.0, 0.7]), torch.tensor([0, 0, 1, 1])
    right = torch.tensor([True, False, True, False])
    losses: list[Callable[[Tensor], Tensor]] = [
        lambda z: process_objective.cross_entropy(z, labels, good=2.0, bad=0.5),
        lambda z: process_objective.squared_error(z, labels),
        lambda z: process_objective.ranking(z, right, owners, 2),
        lambda z: process_objective.implicit(z, labels, labels, beta=0.3),
    ]
    for loss in losses:
        assert torch.autograd.gradcheck(loss, (values,))


@given(st.lists(st.tuples(st.floats(-200, 0), st.floats(-200, 0), LABELS), min_size=1, max_size=5))
def test_the_implicit_reward_is_the_scaled_log_ratio(rows: list[tuple[float, float, float]]) -> None:
    policy, reference, outcomes = (tensor(column) for column in zip(*rows, strict=True))
    found = process_objective.implicit(policy, reference, outcomes, beta=0.05)
    rewards = [0.05 * (p - r) for p, r, _ in rows]
    expected = [
        -y * math.log(sigmoid(reward)) - (1 - y) * math.log(sigmoid(-reward))
        for reward, (_, _, y) in zip(rewards, rows, strict=True)
    ]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)


WEIGHTS: dict[str, tuple[list[int], Normalize, list[float]]] = {
    "every step alike": ([1, 3, 0], "step", [0.25, 0.25, 0.25]),
    "every solution alike": ([1, 3, 0], "solution", [0.5, 1 / 6, 0.0]),
    "no labels, by step": ([0, 0], "step", [0.0, 0.0]),
    "no labels, by solution": ([0, 0], "solution", [0.0, 0.0]),
}


@pytest.mark.parametrize(("counts", "normalize", "expected"), WEIGHTS.values(), ids=WEIGHTS)
def test_what_a_label_weighs(counts: list[int], normalize: Normalize, expected: list[float]) -> None:
    found = label_weights(counts, normalize)
    assert found == pytest.approx(expected)
    if any(counts):
        assert sum(count * weight for count, weight in zip(counts, found, strict=True)) == pytest.approx(1)


def test_a_head_of_three_outputs_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or 2 outputs"):
        process_objective.step_logits(torch.zeros(2, 3))
