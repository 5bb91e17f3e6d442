"""Weights of tokens equal their formulas written as loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import token_batch

from adjudge.rl_integration.trainer.algorithms.objectives.tokens import (
    ImportanceSampling,
    RelativeEntropy,
    Steer,
    TopEntropy,
)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.05, 0.2, 0.5, 1.0]))
def test_the_tokens_of_highest_entropy(seed: int, share: float) -> None:
    tokens = token_batch(seed)
    assert tokens.entropy is not None
    kept = TopEntropy(share=share)(tokens).bool()
    values = tokens.entropy[tokens.mask].numpy()
    np.testing.assert_array_equal(kept[tokens.mask].numpy(), values >= np.quantile(values, 1 - share, method="linear"))
    assert not kept[~tokens.mask].any()


@settings(max_examples=30)
@given(seed=st.integers(0, 1000))
def test_steer_equals_its_formula(seed: int) -> None:
    tokens = token_batch(seed)
    assert tokens.old_logp is not None
    assert tokens.entropy is not None
    omegas = []
    for row, place in tokens.mask.nonzero().tolist():
        p = math.exp(tokens.logp[row, place])
        change = float(tokens.advantages[row, place]) / min(1.0, math.exp(tokens.old_logp[row, place])) * p * (1 - p)
        omegas.append(abs(change * (math.log(p) + float(tokens.entropy[row, place]))))
    k = -math.log(0.8) / max(max(omegas), 0.02)
    np.testing.assert_allclose(Steer()(tokens)[tokens.mask], [math.exp(-k * omega) for omega in omegas], rtol=1e-6)
    low, high = min(omegas), max(omegas)
    wanted = [1.2 - 0.4 * (omega - low) / (high - low) for omega in omegas]
    np.testing.assert_allclose(Steer(max_weight=1.2)(tokens)[tokens.mask], wanted, rtol=1e-6)


def test_steer_weighs_equal_changes_alike() -> None:
    tokens = replace(token_batch(0), advantages=torch.zeros(6))
    assert (Steer()(tokens)[tokens.mask] == 1).all()
    torch.testing.assert_close(Steer(max_weight=1.2)(tokens)[tokens.mask], torch.ones(int(tokens.mask.sum())).double())


@settings(max_examples=30)
@given(seed=st.integers(0, 1000))
def test_the_relative_entropy_equals_its_formula(seed: int) -> None:
    tokens = token_batch(seed)
    assert tokens.entropy is not None
    assert tokens.counted is not None
    found = RelativeEntropy()(tokens)
    for members in (range(3), range(3, 6)):
        own = {}
        for row in members:
            values = [float(tokens.entropy[row, place]) for place in range(5) if tokens.mask[row, place]]
            if tokens.counted[row] and values:
                own[row] = sum(values) / len(values)
        average = sum(own.values()) / len(own)
        for row, value in own.items():
            wanted = 1 + (average - value) / average
            np.testing.assert_allclose(found[row][tokens.mask[row]], wanted, rtol=1e-10)
    assert not found[~tokens.mask].any()
    certain = replace(tokens, entropy=torch.zeros_like(tokens.entropy))
    assert (RelativeEntropy()(certain)[tokens.mask] == 1).all(), "where all are certain, none is surer"


def test_a_token_whose_sampler_did_not_say_is_not_reweighed() -> None:
    tokens = token_batch(11)
    assert tokens.sampler_logp is not None
    gone = tokens.sampler_logp.clone()
    gone[:, 0] = math.nan
    weights = ImportanceSampling(high=1.2)(replace(tokens, sampler_logp=gone))
    assert (weights[:, 0] == 1).all()
    torch.testing.assert_close(weights[:, 1:], ImportanceSampling(high=1.2)(tokens)[:, 1:])
