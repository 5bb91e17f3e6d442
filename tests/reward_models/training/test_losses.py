"""Losses against formulas written down a second time in NumPy and SciPy, gradients, and numbers far out of range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from adjudge.reward_models.training import losses

Numbers = Any

rewards = st.floats(-30, 30, allow_nan=False, width=32)
pairs = st.lists(st.tuples(rewards, rewards), min_size=1, max_size=8)


def log_sigmoid(x: Numbers) -> Numbers:
    return -np.logaddexp(0, -np.asarray(x, dtype=float))


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def backward(loss: Any) -> None:
    loss.sum().backward()


def focal(w: Numbers, losing: Numbers) -> Numbers:
    p = special.expit(w - losing)
    return -((1 - 2 * np.maximum(0, p - 0.5)) ** 2) * log_sigmoid(w - losing)


PAIRED: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., Numbers]]] = {
    "bt": (losses.bt, lambda w, x: -log_sigmoid(w - x)),
    "margin": (lambda w, x: losses.margin(w, x, 0.7), lambda w, x: -log_sigmoid(w - x - 0.7)),
    "scaled": (lambda w, x: losses.scaled(w, x, 3.0), lambda w, x: -3 * log_sigmoid(w - x)),
    "soft": (
        lambda w, x: losses.soft(w, x, 0.8),
        lambda w, x: -0.8 * log_sigmoid(w - x) - 0.2 * log_sigmoid(x - w),
    ),
    "tempered": (lambda w, x: losses.tempered(w, x, 0.5), lambda w, x: -log_sigmoid((w - x) / 0.5)),
    "hinge": (losses.hinge, lambda w, x: np.maximum(0, 1 - (w - x))),
    "focal": (losses.focal, focal),
    "margin_mse": (lambda w, x: losses.margin_mse(w, x, 2.0), lambda w, x: (w - x - 2) ** 2),
    "centering": (losses.centering, lambda w, x: (w + x) ** 2),
    "consistency": (losses.consistency, lambda w, x: (w - x) ** 2),
}


@pytest.mark.parametrize("name", PAIRED)
@given(given=pairs)
def test_losses_of_pairs(name: str, given: list[tuple[float, float]]) -> None:
    ours, formula = PAIRED[name]
    better, worse = np.array(given).T
    np.testing.assert_allclose(ours(tensor(better), tensor(worse)), formula(better, worse), rtol=1e-9, atol=1e-12)


@given(given=pairs, eta=st.floats(0.05, 5))
def test_rao_kupper(given: list[tuple[float, float]], eta: float) -> None:
    better, worse = np.array(given).T
    theta = math.exp(eta)
    win = np.exp(better) / (np.exp(better) + theta * np.exp(worse))
    lose = np.exp(worse) / (np.exp(worse) + theta * np.exp(better))
    for tied, chance in ((False, win), (True, 1 - win - lose)):
        seen = losses.rao_kupper(tensor(better), tensor(worse), torch.full((len(given),), tied), eta)
        np.testing.assert_allclose(torch.exp(-seen), chance, rtol=1e-6, atol=1e-9)


@given(given=pairs, log_nu=st.floats(-3, 3))
def test_davidson(given: list[tuple[float, float]], log_nu: float) -> None:
    better, worse = np.array(given).T
    nu = math.exp(log_nu)
    total = np.exp(better) + np.exp(worse) + nu * np.exp((better + worse) / 2)
    for tied, share in ((False, np.exp(better)), (True, nu * np.exp((better + worse) / 2))):
        seen = losses.davidson(tensor(better), tensor(worse), torch.full((len(given),), tied), log_nu)
        np.testing.assert_allclose(seen, -np.log(share / total), rtol=1e-7, atol=1e-9)


lists = st.lists(st.tuples(st.floats(-20, 20, width=32), st.integers(0, 3)), min_size=1, max_size=6)


@given(given=lists, padding=st.integers(0, 3))
def test_lists(given: list[tuple[float, int]], padding: int) -> None:
    values = tensor([[value for value, _ in given] + [7.0] * padding])
    ranks = torch.tensor([[rank for _, rank in given] + [-1] * padding])
    logsumexp: Any = special.logsumexp
    below = [[other for other, lower in given if lower > rank] for _, rank in given]
    terms = [logsumexp([value, *rest]) - value for (value, _), rest in zip(given, below, strict=True) if rest]
    assert losses.plackett_luce(values, ranks).item() == pytest.approx(sum(terms), abs=1e-9)


def test_a_strict_order_is_the_product_of_choices() -> None:
    """Plackett-Luce the slow way: the best is chosen of all, the next of the rest, and so on."""
    values = [0.3, -1.0, 2.0, 0.7]
    order = [2, 0, 3, 1]
    chance, left = 1.0, list(order)
    for best in order:
        chance *= math.exp(values[best]) / sum(math.exp(values[other]) for other in left)
        left.remove(best)
    ranks = [order.index(at) for at in range(4)]
    seen = losses.plackett_luce(tensor([values]), torch.tensor([ranks])).item()
    assert seen == pytest.approx(-math.log(chance))


@given(given=pairs, data=st.data())
def test_labels(given: list[tuple[float, float]], data: st.DataObject) -> None:
    said = np.array(given)
    labels = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(given), max_size=len(given))))
    expected = -labels * log_sigmoid(said[:, 0]) - (1 - labels) * log_sigmoid(-said[:, 0])
    np.testing.assert_allclose(losses.bce(tensor(said[:, 0]), tensor(labels)), expected, rtol=1e-9, atol=1e-12)


def test_missing_labels_count_nothing_and_have_no_gradient() -> None:
    said = tensor([[1.0, 5.0], [2.0, -3.0]]).requires_grad_()
    told = tensor([[0.0, math.nan], [math.nan, math.nan]])
    loss = losses.regression(said, told, tensor([3.0, 1.0]))
    assert loss.tolist() == [3.0, 0.0]
    backward(loss)
    assert said.grad is not None
    assert said.grad.tolist() == [[6.0, 0.0], [0.0, 0.0]]
    others: tuple[Callable[[], Any], ...] = (
        lambda: losses.gaussian_nll(said, torch.zeros_like(said), told),
        lambda: losses.pinball(said.unsqueeze(2).expand(2, 2, 3), told),
    )
    for other in others:
        said.grad = None
        found = other()
        backward(found)
        assert torch.isfinite(found).all()
        assert said.grad is not None
        assert (said.grad != 0).tolist() == [[True, False], [False, False]]


@given(
    mean=st.floats(-9, 9),
    log_std=st.floats(-3, 3),
    told=st.floats(-9, 9),
    levels=st.integers(1, 9),
    shift=st.floats(-3, 3),
)
def test_distributions(mean: float, log_std: float, told: float, levels: int, shift: float) -> None:
    nll = losses.gaussian_nll(tensor([[mean]]), tensor([[log_std]]), tensor([[told]])).item()
    assert nll == pytest.approx(-stats.norm.logpdf(told, mean, math.exp(log_std)), rel=1e-6)
    quantiles = mean + np.arange(levels) * abs(shift)
    taus = np.linspace(0, 1, levels + 2)[1:-1]
    rho = [max(tau * (told - q), (tau - 1) * (told - q)) for tau, q in zip(taus, quantiles, strict=True)]
    seen = losses.pinball(tensor(quantiles.reshape(1, 1, -1)), tensor([[told]])).item()
    assert seen == pytest.approx(float(np.mean(rho)), rel=1e-9, abs=1e-12)
    kl = losses.latent_kl(tensor([[mean, shift]]), tensor([[log_std, 0.0]])).item()
    variance = math.exp(2 * log_std)
    assert kl == pytest.approx((mean**2 + variance - 1) / 2 - log_std + shift**2 / 2, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("gap", "one", "other"), [(0.0, -1, -1), (2.0, 0, 0.5), (-3.0, 0.7, 1.0), (8.0, 1.2, 1.2)])
def test_purm_is_the_integral(gap: float, one: float, other: float) -> None:
    spread = math.hypot(math.exp(one), math.exp(other))
    chance, _ = integrate.quad(
        lambda z: special.expit(z) * stats.norm.pdf(z, gap, spread), gap - 12 * spread, gap + 12 * spread, limit=500
    )
    logs = tensor([one]), tensor([other])
    seen = losses.purm(tensor([gap]), logs[0], tensor([0.0]), logs[1]).item()
    assert math.exp(-seen) == pytest.approx(chance, abs=1e-5)


def test_bins_and_two_hot_labels() -> None:
    centres = tensor([0.0, 1.0, 3.0])
    labels = losses.two_hot(tensor([-2.0, 0.25, 2.0, 9.0]), centres)
    assert labels.tolist() == [[1, 0, 0], [0.75, 0.25, 0], [0, 0.5, 0.5], [0, 0, 1]]
    logits = tensor([[0.0, math.log(3), 0.0]])
    seen = losses.bins(logits, tensor([[0.0, 0.5, 0.5]])).item()
    assert seen == pytest.approx(-(math.log(3 / 5) + math.log(1 / 5)) / 2)


def test_the_minimum_of_pinball_is_the_quantile() -> None:
    told = np.random.default_rng(0).normal(size=1001)

    def mean_loss(q: Numbers) -> float:
        said = tensor(np.full((1001, 1, 3), 0.0))
        said[:, 0, :] = tensor(q)
        return float(losses.pinball(said, tensor(told[:, None])).mean())

    found = optimize.minimize(mean_loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9}).x
    np.testing.assert_allclose(found, np.quantile(told, [0.25, 0.5, 0.75]), atol=0.01)


GRADIENTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    **{name: ours for name, (ours, _) in PAIRED.items()},
    "rao_kupper win": lambda a, b: losses.rao_kupper(a, b, torch.zeros(len(a), dtype=torch.bool), 0.5),
    "rao_kupper tie": lambda a, b: losses.rao_kupper(a, b, torch.ones(len(a), dtype=torch.bool), 0.5),
    "davidson win": lambda a, b: losses.davidson(a, b, torch.zeros(len(a), dtype=torch.bool), 0.3),
    "davidson tie": lambda a, b: losses.davidson(a, b, torch.ones(len(a), dtype=torch.bool), 0.3),
    "plackett_luce": lambda a, b: losses.plackett_luce(
        torch.stack([a, b, a * b], 1), torch.tensor([[0, 2, 1]] * len(a))
    ),
    "bce": lambda a, b: losses.bce(a, torch.sigmoid(b)),
    "gaussian_nll": lambda a, b: losses.gaussian_nll(a[:, None], b[:, None], torch.ones(len(a), 1)),
    "purm": lambda a, b: losses.purm(a, b / 9, b, a / 9),
    "latent_kl": lambda a, b: losses.latent_kl(a[:, None], b[:, None] / 9),
    "length_split": lambda a, b: losses.length_split(a, b, torch.arange(len(a))).reshape(1),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    draw = torch.Generator().manual_seed(3)
    one, other = (torch.randn(5, generator=draw, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(GRADIENTS[name], (one, other))


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("size", [0.0, 50.0, 1e4])
def test_far_out_rewards_stay_finite_in_32_bits(name: str, size: float) -> None:
    one = torch.tensor([size, -size, size, -size], requires_grad=True)
    other = torch.tensor([-size, size, size, -size], requires_grad=True)
    found = GRADIENTS[name](one, other)
    backward(found)
    assert torch.isfinite(found).all()
    for side in (one, other):
        assert side.grad is not None
        assert torch.isfinite(side.grad).all()


def test_focal_keeps_its_digits_where_a_pair_is_clearly_right() -> None:
    """1 - P has no digits left at Δ = 40 in 32 bits; 2σ(-Δ) has."""
    seen = losses.focal(torch.tensor([40.0]), torch.tensor([0.0]), gamma=1.0).item()
    assert seen == pytest.approx(2 * math.exp(-40) * math.exp(-40), rel=1e-4)


def test_a_constant_side_has_no_correlation_and_no_gradient() -> None:
    flat = torch.full((4,), 2.0, requires_grad=True)
    found = losses.correlation(flat, torch.arange(4.0))
    backward(found)
    assert found.item() == 0.0
    assert flat.grad is not None
    assert flat.grad.tolist() == [0.0] * 4


@given(given=st.lists(st.tuples(rewards, rewards), min_size=3, max_size=9))
def test_correlation(given: list[tuple[float, float]]) -> None:
    one, other = np.array(given).T
    if min(one.std(), other.std()) < 1e-3:
        return
    seen = losses.correlation(tensor(one), tensor(other)).item()
    assert seen == pytest.approx(float(np.corrcoef(one, other)[0, 1]), abs=1e-6)


def test_orthogonality() -> None:
    assert losses.orthogonality(tensor([1.0, 0.0]), tensor([0.0, 5.0])).item() == 0.0
    assert losses.orthogonality(tensor([1.0, 1.0]), tensor([-2.0, -2.0])).item() == pytest.approx(1.0)


def test_text_is_the_mean_over_each_rows_targets() -> None:
    logits = torch.log(tensor([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]]))
    seen = losses.text_loss(logits, torch.tensor([0, 1, 1]), torch.tensor([0, 0, 2]), 3)
    expected = [-(math.log(0.5) + math.log(0.75)) / 2, 0.0, -math.log(0.1)]
    assert seen.tolist() == pytest.approx(expected, rel=1e-6)
