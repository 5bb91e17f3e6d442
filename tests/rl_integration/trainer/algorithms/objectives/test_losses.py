"""Losses equal their formulas written as loops, their gradients finite differences, and parts sum up to the whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.rl_integration.trainer.algorithms.objectives.batches import token_batch
from torch import Tensor

from adjudge.rl_integration.trainer.algorithms.objectives.objective import ValueLoss
from adjudge.rl_integration.trainer.algorithms.objectives.policy_loss import (
    ESTIMATORS,
    PolicyLoss,
    Preference,
    Rover,
    kl_estimate,
    pairs,
)
from adjudge.rl_integration.trainer.algorithms.objectives.table import OBJECTIVES
from adjudge.rl_integration.trainer.algorithms.objectives.tokens import (
    ImportanceSampling,
    LossValue,
    RelativeEntropy,
    Steer,
    TokenBatch,
    TopEntropy,
    Totals,
)

Loss = Callable[[TokenBatch], LossValue]

LOSSES: dict[str, Loss] = {
    **{name: objective.policy for name, objective in OBJECTIVES.items()},
    "divergence k1": PolicyLoss(beta=0.2, kl_estimator="k1", use_bias_correction_kl=False),
    "divergence k2": PolicyLoss(beta=0.2, kl_estimator="k2", use_bias_correction_kl=False),
    "divergence k3": PolicyLoss(beta=0.2, aggregation="sequence_sum"),
    "entropy": PolicyLoss(entropy_coef=0.1, aggregation="constant", length=9),
    "dual clip": PolicyLoss(clip_ratio_c=1.3),
    "stale responses": PolicyLoss(
        importance_sampling=ImportanceSampling(level="sequence", mode="mask", low=0.5, high=1.5)
    ),
    "stale tokens": PolicyLoss(surrogate="plain", importance_sampling=ImportanceSampling(high=1.1)),
    "mirror descent": PolicyLoss(surrogate="plain", log_ratio_coef=0.3),
    "linear steer": PolicyLoss(weighting=Steer(max_weight=1.2)),
}
WEIGHED = ("top_entropy", "steer", "linear steer", "ettrl")
PIECEWISE = [name for name in LOSSES if name not in WEIGHED]


def slope(loss: Loss, tokens: TokenBatch, name: str = "logp") -> Tensor:
    point: Tensor = getattr(tokens, name).clone().requires_grad_()
    change: dict[str, Any] = {name: point}
    return torch.autograd.grad(loss(replace(tokens, **change)).loss, point, materialize_grads=True)[0]


@dataclass
class Numbers:
    """The same batch as lists, of the rows and tokens that count alone."""

    rows: list[list[dict[str, float]]]

    @classmethod
    def of(cls, tokens: TokenBatch) -> Numbers:
        assert tokens.counted is not None
        names = ["logp", "old_logp", "sampler_logp", "reference_logp", "entropy", "next_value", "advantages"]
        return cls(
            [
                [
                    {name: float(getattr(tokens, name)[row, place]) for name in names} | {"place": float(place)}
                    for place in range(tokens.mask.shape[1])
                    if tokens.mask[row, place]
                ]
                for row in range(len(tokens.mask))
                if tokens.counted[row]
            ]
        )

    def loss(self, options: PolicyLoss) -> float:
        """The formula, token by token."""
        tokens = sum(map(len, self.rows))
        total = 0.0
        for row in self.rows:
            logs = [token["logp"] - token["old_logp"] for token in row]
            if options.level == "sequence":
                logs = [sum(logs) / max(1, len(logs))] * len(logs)
            elif options.level == "whole":
                logs = [sum(logs)] * len(logs)
            elif options.level == "turn":
                logs = _of_turns(logs, [token["place"] for token in row])
            stale = [math.exp(token["old_logp"] - token["sampler_logp"]) for token in row]
            if options.importance_sampling.level == "sequence":
                stale = [math.prod(stale)] * len(stale)
            part = 0.0
            for token, log, weight in zip(row, logs, stale, strict=True):
                value = self._surrogate(options, token, math.exp(log)) * self._weight(
                    options.importance_sampling, weight
                )
                value += options.log_ratio_coef * (token["logp"] - token["old_logp"]) ** 2
                if options.beta:
                    x = token["reference_logp"] - token["logp"]
                    kl = {"k1": -x, "k2": x * x / 2, "k3": math.exp(x) - x - 1, "forward": (x - 1) * math.exp(x) + 1}[
                        options.kl_estimator
                    ]
                    value += options.beta * kl * (math.exp(log) if options.use_bias_correction_kl else 1)
                part += value
            match options.aggregation:
                case "sequence_mean":
                    total += part / max(1, len(row)) / len(self.rows)
                case "token_mean":
                    total += part / tokens
                case "sequence_sum":
                    total += part / len(self.rows)
                case "constant":
                    total += part / len(self.rows) / options.length
        entropy = sum(token["entropy"] for row in self.rows for token in row) / tokens
        return total - options.entropy_coef * entropy

    def _surrogate(self, options: PolicyLoss, token: dict[str, float], rho: float) -> float:
        worth = token["advantages"]
        if options.surrogate == "plain":
            return -worth * token["logp"] / (1 + options.tau)
        if options.surrogate == "masked":
            beyond = rho > 1 + options.clip_ratio_high if worth >= 0 else rho < 1 - options.clip_ratio_low
            return 0.0 if beyond else -worth * token["logp"]
        if options.surrogate == "detached":
            return -min(rho, options.clip_ratio_c or 0.0) * worth * token["logp"]
        inside = min(max(rho, 1 - options.clip_ratio_low), 1 + options.clip_ratio_high)
        bounded = rho if options.clip_ratio_c is None else min(rho, options.clip_ratio_c)
        return -min(bounded * worth, inside * worth)

    def _weight(self, options: ImportanceSampling, weight: float) -> float:
        if options.mode == "mask":
            return weight if options.low <= weight <= options.high else 0.0
        return min(max(weight, options.low), options.high)


def _of_turns(logs: list[float], places: list[float]) -> list[float]:
    """The mean of each stretch without a gap, at all of its tokens."""
    turns: list[list[float]] = []
    for at, log in enumerate(logs):
        if at and places[at] == places[at - 1] + 1:
            turns[-1].append(log)
        else:
            turns.append([log])
    return [sum(turn) / len(turn) for turn in turns for _ in turn]


@pytest.mark.parametrize("name", [name for name in PIECEWISE if isinstance(LOSSES[name], PolicyLoss)])
def test_a_policy_loss_equals_its_formula(name: str) -> None:
    options = LOSSES[name]
    assert isinstance(options, PolicyLoss)
    for seed in range(5):
        tokens = token_batch(seed)
        np.testing.assert_allclose(options(tokens).loss, Numbers.of(tokens).loss(options), rtol=1e-10)


@pytest.mark.parametrize("name", PIECEWISE)
def test_gradients_equal_finite_differences(name: str) -> None:
    tokens = token_batch(7, rows=3, width=4)
    loss = LOSSES[name]
    found = slope(loss, tokens)
    assert found.abs().sum() > 0
    assert not found[~tokens.mask].any()
    step = 1e-6
    for place in torch.nonzero(tokens.mask).tolist():
        moved = torch.zeros_like(tokens.logp)
        moved[tuple(place)] = step
        frozen = [replace(tokens, logp=tokens.logp + sign * moved) for sign in (1, -1)]
        high, low = (_held(loss, one, tokens) for one in frozen)
        assert math.isclose(found[tuple(place)].item(), (high - low) / (2 * step), rel_tol=1e-5, abs_tol=1e-7)


def _held(loss: Loss, moved: TokenBatch, start: TokenBatch) -> float:
    """The loss with its weights without gradient held where they were."""
    if isinstance(loss, PolicyLoss) and loss.surrogate == "detached":
        rho = (start.logp - start.old).exp().clamp(max=loss.clip_ratio_c)
        weights = rho * loss.importance_sampling(start)
        return float(moved.mean(-weights * moved.advantages * moved.logp))
    return float(loss(moved).loss)


@pytest.mark.parametrize("name", WEIGHED)
def test_weights_have_no_gradient(name: str) -> None:
    tokens = token_batch(3)
    loss = LOSSES[name]
    assert isinstance(loss, PolicyLoss)
    assert loss.weighting is not None
    held = loss.weighting(tokens)
    plain = replace(loss, weighting=None)
    weighed = slope(plain, tokens) * held
    torch.testing.assert_close(slope(loss, tokens), weighed)
    assert held.std() > 0
    assert tokens.entropy is not None
    points = [tokens.logp.clone().requires_grad_(), tokens.entropy.clone().requires_grad_()]
    value = loss(replace(tokens, logp=points[0], entropy=points[1])).loss
    assert not torch.autograd.grad(value, points, materialize_grads=True)[1].any()


@pytest.mark.parametrize(("ratio", "loss", "slope_there"), [(1.5, 0.75, 0.5), (0.5, 0.4, 0.0)])
def test_a_weight_below_0_turns_the_advantage_round_in_front_of_the_clip(
    ratio: float, loss: float, slope_there: float
) -> None:
    """L(wA) with A = 1 and w = -0.5, clipped at 0.8 and 1.2: max(0.5 ratio, 0.5 clipped); w L(A) is 0.6 and 0.25."""
    one = torch.ones(1, 1)
    logp = torch.log(one * ratio).requires_grad_()
    tokens = TokenBatch(logp=logp, old_logp=one * 0, mask=one.bool(), advantages=one, weight=one * -0.5)
    value = PolicyLoss(weighting=RelativeEntropy())(tokens).loss
    (found,) = torch.autograd.grad(value, logp)
    assert float(value.detach()) == pytest.approx(loss)
    assert float(found) / ratio == pytest.approx(slope_there)


@pytest.mark.parametrize("name", LOSSES)
def test_what_is_given_to_a_loss_has_no_gradient(name: str) -> None:
    tokens = token_batch(15)
    fields = ("advantages", "old_logp", "sampler_logp", "reference_logp", "next_value")
    points: dict[str, Any] = {field: getattr(tokens, field).clone().requires_grad_() for field in fields}
    logp = tokens.logp.clone().requires_grad_()
    loss = LOSSES[name](replace(tokens, logp=logp, **points)).loss
    found = torch.autograd.grad(loss, [logp, *points.values()], materialize_grads=True)
    assert found[0].any()
    assert not any(part.any() for part in found[1:])


@pytest.mark.parametrize("name", LOSSES)
def test_what_the_mask_hides_is_read_by_nothing(name: str) -> None:
    tokens = token_batch(1)
    spoilt: dict[str, Any] = {
        field: torch.where(tokens.mask, getattr(tokens, field), math.nan)
        for field in ("logp", "old_logp", "sampler_logp", "reference_logp", "entropy", "next_value", "advantages")
    }
    again = replace(tokens, **spoilt)
    expected, found = LOSSES[name](tokens), LOSSES[name](again)
    torch.testing.assert_close(found.loss, expected.loss, rtol=0, atol=0)
    assert all(torch.isfinite(value) for value in found.metrics.values())
    assert torch.isfinite(slope(LOSSES[name], again)).all()


@pytest.mark.parametrize("name", LOSSES)
def test_samples_that_do_not_count_change_nothing(name: str) -> None:
    tokens = token_batch(2)
    assert tokens.counted is not None
    rows = torch.nonzero(tokens.counted).flatten()
    fields = ("logp", "mask", "advantages", "old_logp", "sampler_logp", "reference_logp", "entropy", "next_value")
    without = TokenBatch(**{field: getattr(tokens, field)[rows] for field in (*fields, "group")})
    torch.testing.assert_close(LOSSES[name](tokens).loss, LOSSES[name](without).loss)
    assert not slope(LOSSES[name], tokens)[~tokens.counted].any()


@pytest.mark.parametrize("name", LOSSES)
def test_parts_of_an_update_sum_up_to_it(name: str) -> None:
    tokens, loss = token_batch(4), LOSSES[name]
    whole = loss(tokens)
    if isinstance(loss, PolicyLoss) and loss.weighting is not None:
        tokens = replace(tokens, weight=loss.weighting(tokens))
    parts = [LOSSES[name](tokens.part(rows)) for rows in (slice(0, 3), slice(3, 6))]
    torch.testing.assert_close(sum(part.loss for part in parts), whole.loss)
    for metric, value in whole.metrics.items():
        torch.testing.assert_close(sum(part.metrics[metric] for part in parts), value, msg=metric)


@pytest.mark.parametrize("name", [name for name in LOSSES if not isinstance(LOSSES[name], Preference)])
def test_a_part_of_an_update_never_waits_for_the_gpu(name: str) -> None:
    """Tensors on "meta" have no values: what wanted one would raise."""
    given = dict(vars(token_batch(4)))
    given |= {"weight": torch.ones_like(given["logp"]), "totals": Totals(sequences=6, tokens=20, groups=2)}
    names = [item.name for item in fields(TokenBatch) if item.init]
    tokens = {key: given[key].to("meta") if isinstance(given[key], Tensor) else given[key] for key in names}
    value = LOSSES[name](TokenBatch(**tokens))
    assert {one.device.type for one in (value.loss, *value.metrics.values())} == {"meta"}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("rows", [0, 4])
def test_without_a_sample_that_counts_the_loss_and_its_gradient_are_zero(name: str, rows: int) -> None:
    tokens = token_batch(5, rows=rows, counted=torch.zeros(rows, dtype=torch.bool))
    point = tokens.logp.clone().requires_grad_()
    loss = LOSSES[name](replace(tokens, logp=point)).loss
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss == 0
    assert point.grad is not None
    assert not point.grad.any()


def test_advantages_of_tokens_are_read_token_by_token() -> None:
    tokens = token_batch(6)
    spread = tokens.advantages.clone()
    torch.testing.assert_close(PolicyLoss()(replace(tokens, advantages=spread)).loss, PolicyLoss()(tokens).loss)
    spread[0, 0] += 1
    assert tokens.mask[0, 0]
    assert PolicyLoss()(replace(tokens, advantages=spread)).loss != PolicyLoss()(tokens).loss


def test_on_the_policy_that_sampled_a_ratio_is_one_and_clips_nothing() -> None:
    tokens = replace(token_batch(8), old_logp=None, sampler_logp=None)
    value = PolicyLoss()(tokens)
    assert value.metrics["ratio"] == 1
    assert value.metrics["clip_ratio_high"] == value.metrics["clip_ratio_low"] == 0
    torch.testing.assert_close(slope(PolicyLoss(), tokens), slope(PolicyLoss(surrogate="plain"), tokens))


def test_a_clipped_token_has_no_gradient_for_ppo_and_keeps_it_for_cispo() -> None:
    logp = torch.tensor([[0.0]], dtype=torch.float64)
    tokens = TokenBatch(logp=logp, mask=torch.ones(1, 1), advantages=torch.ones(1), old_logp=logp - math.log(1.25))
    assert slope(OBJECTIVES["grpo"].policy, tokens) == 0
    assert slope(OBJECTIVES["dapo"].policy, tokens) == -1.25
    assert slope(PolicyLoss(surrogate="detached", clip_ratio_c=1.1), tokens) == -1.1
    assert PolicyLoss()(tokens).metrics["clip_ratio_high"] == 1


def test_ratios_out_of_all_proportion_stay_finite() -> None:
    tokens = replace(token_batch(9), old_logp=torch.full((6, 5), -1e4, dtype=torch.float64))
    for name in PIECEWISE:
        assert torch.isfinite(LOSSES[name](tokens).loss), name
        assert torch.isfinite(slope(LOSSES[name], tokens)).all(), name


@pytest.mark.parametrize("how", ESTIMATORS)
def test_divergences_have_the_gradients_that_are_said(how: Any) -> None:
    """By sums over a vocabulary, which are expectations without noise."""
    policy = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    reference = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    logits = policy.log().requires_grad_()

    def expectation(weigh: bool) -> Tensor:
        logp = logits.log_softmax(dim=0)
        estimates = kl_estimate(logp, reference.log(), how)
        ratio = (logp - logp.detach()).exp() if weigh else 1.0
        (found,) = torch.autograd.grad((policy * estimates * ratio).sum(), logits)
        return found

    logp = logits.log_softmax(dim=0)
    (backward,) = torch.autograd.grad((logp.exp() * (logp - reference.log())).sum(), logits, retain_graph=True)
    (forward,) = torch.autograd.grad((reference * (reference.log() - logp)).sum(), logits)
    wanted = {"k1": torch.zeros(3, dtype=torch.float64), "k2": backward, "k3": forward}
    if how in wanted:
        torch.testing.assert_close(expectation(False), wanted[how])
    if how != "k2":
        torch.testing.assert_close(expectation(True), forward if how == "forward" else backward)


def test_the_forward_divergence_is_its_mean_over_the_policy() -> None:
    policy, reference = [0.2, 0.5, 0.3], [0.4, 0.4, 0.2]
    logp, reference_logp = torch.tensor(policy).log(), torch.tensor(reference).log()
    mean = float((torch.tensor(policy) * kl_estimate(logp, reference_logp, "forward")).sum())
    assert mean == pytest.approx(sum(q * math.log(q / p) for p, q in zip(policy, reference, strict=True)))


def test_the_entropy_bonus_raises_the_entropy() -> None:
    tokens = token_batch(10)
    found = slope(PolicyLoss(entropy_coef=0.5), tokens, "entropy")
    torch.testing.assert_close(found[tokens.mask], torch.full_like(found[tokens.mask], -0.5 / int(tokens.mask.sum())))


def test_a_value_loss_equals_its_formula_and_its_gradient() -> None:
    tokens = token_batch(12)
    values, old, returns = tokens.logp, tokens.old, tokens.advantages * 2
    total = 0.0
    for row, place in torch.nonzero(tokens.mask).tolist():
        v, o, r = (float(one[row, place]) for one in (values, old, returns))
        near = min(max(v, o - 0.2), o + 0.2)
        total += max((v - r) ** 2, (near - r) ** 2) / 2
    loss = ValueLoss(weight=0.5)
    found = loss(torch.where(tokens.mask, values, math.nan), old, returns, tokens.mask).loss
    assert math.isclose(float(found), 0.5 * total / int(tokens.mask.sum()), rel_tol=1e-12)
    unclipped = ValueLoss(clip=None)(values, old, returns, tokens.mask).loss
    assert math.isclose(float(unclipped), float(tokens.mean((values - returns) ** 2) / 2), rel_tol=1e-12)
    assert torch.autograd.gradcheck(
        lambda v: loss(v, old, returns, tokens.mask).loss, values.clone().requires_grad_(), eps=1e-7
    )
    totals = Totals(sequences=6, tokens=int(tokens.mask.sum()))
    halves = [
        loss(*(x[rows] for x in (values, old, returns, tokens.mask)), totals=totals).loss
        for rows in (slice(0, 2), slice(2, 6))
    ]
    torch.testing.assert_close(sum(halves), found)


def test_rover_equals_its_formula() -> None:
    tokens = token_batch(13)
    rows = Numbers.of(tokens).rows
    squares = [
        [(2 * (t["logp"] - t["old_logp"]) - t["advantages"] - 2 * t["next_value"]) ** 2 for t in row] for row in rows
    ]
    wanted = sum(sum(row) / max(1, len(row)) for row in squares) / len(squares)
    assert math.isclose(float(Rover(tau=2.0)(tokens).loss), wanted, rel_tol=1e-12)
    flat = [square for row in squares for square in row]
    whole = Rover(tau=2.0, aggregation="token_mean")(tokens).loss
    assert math.isclose(float(whole), sum(flat) / len(flat), rel_tol=1e-12)


def test_preferences_are_between_a_groups_best_and_worst() -> None:
    tokens = token_batch(14)
    chosen, rejected = pairs(tokens)
    worth = tokens.advantages.amax(dim=1).where(tokens.advantages.amax(dim=1) > 0, tokens.advantages.amin(dim=1))
    assert tokens.group is not None
    total = 0.0
    for best, worst in zip(chosen.tolist(), rejected.tolist(), strict=True):
        members = [row for row in range(6) if tokens.group[row] == tokens.group[best] and tokens.mask[row].any()]
        assert float(worth[best]) == max(float(worth[row]) for row in members)
        assert float(worth[worst]) == min(float(worth[row]) for row in members)
        assert tokens.reference_logp is not None
        ratios = (tokens.logp - tokens.reference_logp).sum(dim=1)
        z = 0.1 * float(ratios[best] - ratios[worst])
        total += math.log1p(math.exp(-z)) - 0.2 * float(tokens.logp[best].sum() / tokens.mask[best].sum())
    assert len(chosen) == 2
    assert math.isclose(float(Preference(eta=0.2)(tokens).loss), total / 2, rel_tol=1e-10)
    same = replace(tokens, advantages=torch.full((6,), 0.1))
    assert len(set(tokens.mask.sum(dim=1).tolist())) > 2, "0.1 summed and divided is not 0.1 for all lengths"
    assert len(pairs(same)[0]) == 0
    assert Preference()(same).loss == 0


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: PolicyLoss(beta=0.1)(replace(token_batch(0), reference_logp=None)),
            r"beta=0.1 needs TokenBatch\(reference",
        ),
        (lambda: PolicyLoss(entropy_coef=1.0)(replace(token_batch(0), entropy=None)), "entropy_coef=1.0 needs"),
        (lambda: Rover()(replace(token_batch(0), next_value=None)), "ROVER needs"),
        (lambda: Preference()(replace(token_batch(0), group=None)), "a preference loss needs"),
        (lambda: token_batch(0, advantages=torch.ones(5)), r"advantages has the shape \(5,\); it must be \(6,\)"),
        (lambda: token_batch(0, mask=torch.ones(6, 4)), "mask has the shape"),
        (lambda: token_batch(0, logp=torch.ones(6)), "responses, tokens"),
        (lambda: PolicyLoss(surrogate="detached"), "needs clip_ratio_c"),
        (lambda: PolicyLoss(clip_ratio_c=1.1), "clip_ratio_c=1.1; it must be a finite number, at least 1.2"),
        (lambda: PolicyLoss(clip_ratio_low=1.5), "clip_ratio_low=1.5"),
        (lambda: PolicyLoss(length=0), "length=0"),
        (lambda: PolicyLoss(aggregation="mean"), "aggregation='mean'"),  # type: ignore[arg-type]
        (lambda: Rover(aggregation="constant"), "aggregation='constant'"),  # type: ignore[arg-type]
        (lambda: ImportanceSampling(high=0.5), "high=0.5"),
        (lambda: ImportanceSampling(low=1.5), "low=1.5"),
        (lambda: TopEntropy(share=0.0), "share=0.0"),
        (lambda: Steer(min_weight=1.0), "min_weight=1.0"),
        (lambda: ValueLoss(clip=0.0), "clip=0.0"),
        (lambda: ValueLoss()(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 1), torch.ones(1, 2)), "returns has"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()
