"""What shapes advantages by the inside of a policy equals its formula, written as loops over maps and states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tests.rl_integration.trainer.loop.test_learner import rollouts_of, scores_of
from tests.rl_integration.trainer.small_runs import small_policy

from adjudge.rl_integration.trainer.algorithms.objectives.inside import (
    AttentionRhythm,
    EffectiveRank,
    Shaping,
    effective_rank,
)
from adjudge.rl_integration.trainer.algorithms.objectives.table import objective
from adjudge.rl_integration.trainer.data.task import Rollout
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.loop.config import LearningConfig
from adjudge.rl_integration.trainer.loop.learner import Learner
from adjudge.rl_integration.trainer.loop.learning_batch import read_inside
from adjudge.rl_integration.trainer.rollouts.policy import Policy, token_rows


def deep_policy() -> Policy:
    return tiny_policy("0123456789+= ", seed=0, width=16, layers=6, window=128)


def answer(prompt: int, length: int, *, gap: bool = False) -> Rollout:
    """An answer of so many tokens, of which a tool wrote the seventh to ninth."""
    draw = np.random.default_rng(prompt + length)
    own = np.ones(length, dtype=np.bool_)
    own[6:9] = not gap
    return Rollout(
        id=f"{prompt}.{length}", task=rollouts_of(small_policy())[0].task, own=own, text="", finish_reason="stop",
        prompt_ids=tuple(draw.integers(2, 14, prompt).tolist()), ids=tuple(draw.integers(2, 14, length).tolist()),
        logprobs=np.zeros(length, dtype=np.float32), version=0,
    )  # fmt: skip


def read(policy: Policy, rule: Shaping, rollouts: Sequence[Rollout]) -> list[Any]:
    with torch.no_grad():
        found = read_inside(rule, policy, token_rows(rollouts, pad=0)).double().numpy()
    return [row[: len(rollout.ids)] for row, rollout in zip(found, rollouts, strict=True)]


def test_the_attention_of_answers_is_read_head_by_head() -> None:
    policy = deep_policy()
    rollouts = [answer(5, 70), answer(9, 40, gap=True)]
    found = read(policy, AttentionRhythm(), rollouts)
    assert policy.model.config._attn_implementation == "sdpa"
    policy.model.set_attn_implementation("eager")
    for rollout, row in zip(rollouts, found, strict=True):
        ids = [*rollout.prompt_ids, *rollout.ids]
        with torch.no_grad():
            maps = policy.model(torch.tensor([ids]), output_attentions=True).attentions
        start = len(rollout.prompt_ids)
        own = [start + at for at in range(len(rollout.ids)) if rollout.own[at]]
        heads = [one[0, head].tolist() for one in maps[2:5] for head in range(4)]  # layers 6 / 3 to 2 * 6 / 3
        spans = [sum(look[t][s] * (t - s) for t in own for s in range(t + 1)) for look in heads]
        ranked = sorted(range(12), key=spans.__getitem__)
        local, far = [heads[at] for at in ranked[:3]], [heads[at] for at in ranked[-3:]]  # 0.3 of 12
        for t in own:
            waad = sum(look[t][s] * min(t - s, 10) for look in local for s in range(t + 1)) / 3
            later = [u for u in own if 10 <= u - t <= 50]
            fai = sum(look[u][t] for look in far for u in later) / 3 / max(1, len(later))
            np.testing.assert_allclose(row[t - start], [waad, fai], rtol=1e-4, atol=1e-6)


WAAD = [3.0, 1.0, 2.0, 5.0, 2.0, 2.5, 4.0, 4.0, 1.0, 0.5]
FAI = [0.1, 0.9, 0.2, 0.3, 0.8, 0.1, 0.7, 0.0, 0.6, 0.2]


def test_gamma_of_an_answer() -> None:
    waad, fai = np.array(WAAD), np.array(FAI)
    change = [2, 1, 3, 3, 0.5, 1.5, 0, 3, 0.5, 0]
    local = [1 + 0.5 * (one >= sorted(change)[-4]) for one in change]
    np.testing.assert_allclose(AttentionRhythm(how="local").factors(waad, fai), local)
    anchors = {1, 4, 6, 8}
    np.testing.assert_allclose(
        AttentionRhythm(how="global").factors(waad, fai), [1 + 0.5 * (at in anchors) for at in range(10)]
    )
    # Medians: waad 2.25, change 1.25.  1, 4 and 8 are led: planned by 0, 2 (before 3, of the same size) and 7.
    wanted = [1.0] * 10
    for at in anchors:
        wanted[at] += 0.5
    for at, by in ((1, 0), (4, 2), (8, 7)):
        wanted[at] -= 0.2
        wanted[by] += 0.2
    np.testing.assert_allclose(AttentionRhythm(back=0.4).factors(waad, fai), wanted)


def test_only_advantages_above_zero_are_amplified() -> None:
    found = np.stack([WAAD, FAI], axis=1)
    rule, own = AttentionRhythm(how="global"), np.ones(10, dtype=np.bool_)
    good, bad = rule.shaped([np.full(10, 2.0), np.full(10, -2.0)], [found, found], [own, own])
    np.testing.assert_allclose(good, 2 * rule.factors(np.array(WAAD), np.array(FAI)))
    np.testing.assert_allclose(bad, -2.0)


def rank_of(rows: Any) -> float:
    """By the eigenvalues of the Gram matrix, as the released code has it."""
    centred = np.array(rows) - np.mean(rows, axis=0)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(centred @ centred.T), 0))
    shares = [value / values.sum() for value in values if value > 0]
    return math.exp(-sum(share * math.log(share) for share in shares))


def test_rank_velocity_and_acceleration_of_an_answer() -> None:
    policy = deep_policy()
    rollouts = [answer(5, 33), answer(7, 26, gap=True), answer(3, 1)]
    found = read(policy, EffectiveRank(stride=8), rollouts)
    for rollout, row in zip(rollouts[:2], found, strict=False):
        with torch.no_grad():
            states = policy.model.base_model(torch.tensor([[*rollout.prompt_ids, *rollout.ids]])).last_hidden_state[0]
        start = len(rollout.prompt_ids)
        own = [states[start + at - 1].tolist() for at in range(len(rollout.ids)) if rollout.own[at]]
        ends = [8, 16, 24, 32] if len(own) == 33 else [8, 16, 23]  # 32 of 33 is the whole but for one
        ranks = [rank_of(own[:end]) for end in ends]
        changes = [ranks[at] - sum(ranks[:at]) / at for at in range(1, len(ranks))]
        steps = [after - before for before, after in pairwise(changes)]
        wanted = [rank_of(own), sum(changes) / len(changes), sum(steps) / len(steps)]
        np.testing.assert_allclose(row, [wanted] * len(row), rtol=1e-3)
    np.testing.assert_array_equal(found[2], 0)
    assert effective_rank(torch.eye(5)) == pytest.approx(4), "the mean takes one direction"


@pytest.mark.parametrize("tokens", ["last", "all"])
def test_the_bonus_of_a_rank(tokens: Any) -> None:
    values = [(4.0, 1.0, 0.5), (2.0, 3.0, -0.1), (3.0, -2.0, 0.2)]
    found = [np.tile(one, (3, 1)) for one in values]
    own = [np.array([True, True, False])] * 3
    rows = EffectiveRank(tokens=tokens).shaped([np.full(3, 2.0), np.full(3, -0.3), np.zeros(3)], found, own)
    means = [sum(column) / 3 for column in zip(*values, strict=True)]
    for value, row, before in zip(values, rows, (2.0, -0.3, 0.0), strict=True):
        rank, velocity, bend = (max(-5, min(5, (x - m) / abs(m))) for x, m in zip(value, means, strict=True))
        s = 1 / (1 + math.exp(-2 * bend))
        bonus = min(max(0.0, s * math.tanh(rank) + (1 - s) * math.tanh(velocity)), abs(before) / 2)
        np.testing.assert_allclose(row, [before + bonus * (tokens == "all"), before + bonus, before])


@pytest.mark.parametrize("name", ["attention_rhythm", "effective_rank"])
def test_a_learner_shapes_what_it_learns_from(name: str) -> None:
    policy = small_policy()
    rollouts = rollouts_of(policy)
    shaped = objective(name).but({"shaping.stride": 2, "shaping.tokens": "all"} if name == "effective_rank" else {})
    found = []
    for made in (objective("grpo"), shaped):
        learner = Learner(policy, made, LearningConfig(), temperature=1.0, steps=1, seed=0)
        found.append(learner._prepared(rollouts, scores_of(rollouts), exact=True).advantages)
    more = 0
    for plain, row in zip(*found, strict=True):
        assert (np.asarray(row) >= plain - 1e-12).all()
        assert plain != 0 or not np.any(row)
        more += int(np.any(np.asarray(row) > plain))
    assert more
