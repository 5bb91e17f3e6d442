"""Every advantage rule equals its formula written as loops, on groups with missing, single and equal rewards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import ANY, UNIT, batches, in_groups, mean, spread

from adjudge.rl_integration.trainer.algorithms.objectives.advantages import (
    Asymmetric,
    BatchRelative,
    BestOfGroup,
    GroupRelative,
    LeaveOneOut,
    MaximumLikelihood,
    SeveralRewards,
    Signed,
    SoftMean,
    Stratified,
    Tilted,
)
from adjudge.rl_integration.trainer.algorithms.objectives.objective import AdvantageRule
from adjudge.rl_integration.trainer.rewards.groups import Groups, informative

Reference = Callable[[Groups], list[float]]


def valid_rewards(groups: Groups) -> list[float]:
    return [float(reward) for reward, valid in zip(groups.rewards, groups.valid, strict=True) if valid]


def lite_ppo(groups: Groups) -> list[float]:
    below = spread(valid_rewards(groups)) + 1e-4
    return in_groups(groups, lambda rs: [(r - mean(rs)) / below for r in rs])


def normalised_rloo(groups: Groups) -> list[float]:
    raw = in_groups(groups, rloo)
    counted = [row for row in range(len(groups)) if partners(groups, row) >= 2]
    values = [raw[row] for row in counted]
    return [(raw[row] - mean(values)) / (spread(values) + 1e-4) if row in counted else 0.0 for row in range(len(raw))]


def partners(groups: Groups, row: int) -> int:
    """How many valid members the group of a valid row has, the row included; 0 for a row that is not valid."""
    same = [groups.valid[other] and groups.ids[other] == groups.ids[row] for other in range(len(groups))]
    return sum(map(bool, same)) if groups.valid[row] else 0


def rloo(rewards: list[float]) -> list[float]:
    return [r - mean(rewards[:i] + rewards[i + 1 :]) for i, r in enumerate(rewards)]


def whitened(groups: Groups, least: int, *, per_token: bool, scale: bool = True) -> list[float]:
    centre = in_groups(groups, lambda rs: [r - mean(rs) for r in rs] if least == 2 else rs, least)
    rows = [row for row in range(len(groups)) if partners(groups, row) >= least]
    assert groups.lengths is not None
    copies = [centre[row] for row in rows for _ in range(int(groups.lengths[row]) if per_token else 1)]
    below = math.sqrt(spread(copies) ** 2 + 1e-8) if scale else 1.0
    return [(centre[row] - mean(copies)) / below if row in rows else 0.0 for row in range(len(groups))]


def best(rewards: list[float]) -> list[float]:
    first, second = sorted(rewards, reverse=True)[:2]
    return [(first - second) / (spread(rewards) + 1e-6) if r == first and first > second else 0.0 for r in rewards]


def maclaurin(rewards: list[float], order: int) -> list[float]:
    """By the sum over k of the share of sets of k samples, with the given failure among them, that all fail."""
    count, failed = len(rewards), rewards.count(0.0)
    weight = 0.0
    for k in range(2, order + 1):
        if failed >= k:
            weight -= math.comb(failed - 1, k - 1) / math.comb(count - 1, k - 1)
    return [1.0 if r == 1 else weight for r in rewards]


def soft_mean(rewards: list[float], tau: float) -> list[float]:
    return [r - tau * math.log(mean([math.exp(one / tau) for one in rewards])) for r in rewards]


DYADIC = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])  # which of them are below the mean is no matter of rounding


def kept_by_chance(rewards: list[float]) -> list[float]:
    """The mean of Trinity-RFT's rule over its draws, where the wrong ones are one value; else with a mean of means."""
    centre = mean(rewards)
    right, wrong = [r for r in rewards if r >= centre], [r for r in rewards if r < centre]
    if len(wrong) <= len(right):
        return [r - centre for r in rewards]
    kept_mean = (mean(right) + mean(wrong)) / 2  # as many of each
    return [(r - kept_mean) * (1 if r >= centre else len(right) / len(wrong)) for r in rewards]


def stratified(groups: Groups) -> list[float]:
    whole = in_groups(groups, lambda rs: [(r - mean(rs)) / (spread(rs) + 1e-4) for r in rs])
    assert groups.strata is not None
    found = list(whole)
    for row in range(len(groups)):
        rows = [
            other
            for other in range(len(groups))
            if groups.valid[other]
            and groups.ids[other] == groups.ids[row]
            and groups.strata[other] == groups.strata[row]
        ]
        if row in rows and len(rows) > 1:
            same = [float(groups.rewards[other]) for other in rows]
            found[row] = 0.7 * (groups.rewards[row] - mean(same)) / (spread(same) + 1e-4) + 0.3 * whole[row]
    return found


RULES: dict[str, tuple[AdvantageRule, st.SearchStrategy[float], Reference]] = {
    "grpo": (
        GroupRelative(),
        ANY,
        lambda g: in_groups(g, lambda rs: [(r - mean(rs)) / (spread(rs) + 1e-4) for r in rs]),
    ),
    "verl's eps": (
        GroupRelative(eps=1e-6),
        ANY,
        lambda g: in_groups(g, lambda rs: [(r - mean(rs)) / (spread(rs) + 1e-6) for r in rs]),
    ),
    "dr_grpo": (GroupRelative(scale="none"), ANY, lambda g: in_groups(g, lambda rs: [r - mean(rs) for r in rs])),
    "lite_ppo": (GroupRelative(scale="batch"), ANY, lite_ppo),
    "rloo": (LeaveOneOut(), ANY, lambda g: in_groups(g, rloo)),
    "normalised rloo": (LeaveOneOut(normalize=True), ANY, normalised_rloo),
    "reinforce": (BatchRelative(scale=False), ANY, lambda g: whitened(g, 1, per_token=False, scale=False)),
    "reinforce++": (BatchRelative(), ANY, lambda g: whitened(g, 1, per_token=False)),
    "reinforce++ over tokens": (BatchRelative(per_token=True), ANY, lambda g: whitened(g, 1, per_token=True)),
    "reinforce++ baseline": (BatchRelative(baseline="group"), ANY, lambda g: whitened(g, 2, per_token=False)),
    "maxrl": (
        MaximumLikelihood(),
        UNIT,
        lambda g: in_groups(g, lambda rs: [(r - mean(rs)) / (mean(rs) + 1e-6) for r in rs]),
    ),
    "maxrl of order 3": (
        MaximumLikelihood(order=3),
        st.sampled_from([0.0, 1.0]),
        lambda g: in_groups(g, lambda rs: maclaurin(rs, 3)),
    ),
    "asymre": (Asymmetric(), ANY, lambda g: in_groups(g, lambda rs: [r - (mean(rs) - 0.1) for r in rs])),
    "opmd": (SoftMean(), ANY, lambda g: in_groups(g, lambda rs: [r - mean(rs) for r in rs])),
    "opmd, logavgexp": (
        SoftMean(baseline="logavgexp", tau=0.5),
        ANY,
        lambda g: in_groups(g, lambda rs: soft_mean(rs, 0.5)),
    ),
    "red_drop": (Tilted(), DYADIC, lambda g: in_groups(g, kept_by_chance)),
    "red_weight": (
        Tilted(how="weight", temperature=0.5),
        UNIT,
        lambda g: in_groups(g, lambda rs: [(r - mean(rs)) * math.exp((r - mean(rs)) / 0.5) for r in rs]),
    ),
    "psr": (Signed(wrong=0.0), UNIT, lambda g: in_groups(g, lambda rs: rs, 1)),
    "nsr": (Signed(right=0.0), UNIT, lambda g: in_groups(g, lambda rs: [r - 1 for r in rs], 1)),
    "w_reinforce": (Signed(right=0.1), UNIT, lambda g: in_groups(g, lambda rs: [0.1 * r + r - 1 for r in rs], 1)),
    "passk": (BestOfGroup(), ANY, lambda g: in_groups(g, best)),
    "san": (Stratified(), ANY, stratified),
}


NOT_RELATIVE = ("asymre", "psr", "nsr", "w_reinforce", "maxrl of order 3")


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_rule_equals_its_formula(name: str, data: st.DataObject) -> None:
    rule, rewards, reference = RULES[name]
    groups = data.draw(batches(rewards))
    found = rule(groups)
    # A spread that is all rounding is 0 here, and divided by eps there.
    np.testing.assert_allclose(found, reference(groups), rtol=1e-6, atol=1e-7)
    assert not found[~groups.counted(rule.min_size)].any()


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=15)
@given(data=st.data())
def test_what_stands_at_lost_samples_and_the_order_change_nothing(name: str, data: st.DataObject) -> None:
    rule, rewards, _ = RULES[name]
    groups = data.draw(batches(rewards))
    order = np.array(data.draw(st.permutations(range(len(groups)))), dtype=np.int64)
    junk = np.where(groups.valid, groups.rewards, math.inf)
    names = np.array([40, 11, 3, 25, 8])
    moved = Groups(
        rewards=junk[order],
        ids=names[groups.ids][order],
        valid=groups.valid[order],
        strata=None if groups.strata is None else groups.strata[order],
        lengths=None if groups.lengths is None else groups.lengths[order],
    )
    np.testing.assert_allclose(rule(moved), rule(groups)[order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in RULES if name not in NOT_RELATIVE])
def test_equal_rewards_have_exactly_no_advantage(name: str) -> None:
    reward = 0.1  # its mean over three is not 0.1 in floating point
    assert not RULES[name][0](groups_of([reward] * 3)).any()


def test_the_mean_over_draws_of_surplus_wrong_answers_is_red_drop() -> None:
    """As Trinity-RFT's rec_advantage.py at 5b77c08, with `drop: balance`."""
    rewards, dice = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]), np.random.default_rng(0)
    total = np.zeros(7)
    for _ in range(4_000):
        kept = np.ones(7, dtype=np.bool_)
        kept[dice.permutation(np.flatnonzero(rewards < rewards.mean()))[:3]] = False
        total += np.where(kept, rewards - rewards[kept].mean(), 0.0)
    np.testing.assert_allclose(Tilted()(groups_of(rewards.tolist())), total / 4_000, atol=0.02)
    np.testing.assert_allclose(Tilted()(groups_of(rewards.tolist())), np.where(rewards == 1, 0.5, -0.2))


def groups_of(given: list[float | None], **more: Any) -> Groups:
    groups = replace(Groups.of(given, ["one"] * len(given)), **more)
    zeros = np.zeros(len(given), dtype=np.int64)
    return replace(groups, strata=zeros, lengths=zeros + 1)


@settings(max_examples=60)
@given(groups=batches(), gone=st.lists(st.booleans(), min_size=60, max_size=60))
def test_rewards_that_are_normalised_before_they_are_mixed(groups: Groups, gone: list[bool]) -> None:
    second = np.arange(len(groups)) % 3 * 10.0
    second[np.array(gone[: len(groups)], dtype=np.bool_)] = math.nan
    groups = replace(groups, parts=np.stack([groups.rewards, second], axis=1))
    total = [0.0] * len(groups)
    for column, weight in ((0, 1.0), (1, 0.25)):
        assert groups.parts is not None
        part = groups.parts[:, column]
        one = replace(groups, rewards=part, valid=groups.valid & ~np.isnan(part))
        scaled = in_groups(one, lambda rs: [(r - mean(rs)) / (spread(rs) + 1e-4) for r in rs])
        total = [a + weight * b for a, b in zip(total, scaled, strict=True)]
    rows = [row for row in range(len(groups)) if partners(groups, row) >= 2]
    values = [total[row] for row in rows]
    wanted = [(total[r] - mean(values)) / (spread(values) + 1e-4) if r in rows else 0.0 for r in range(len(groups))]
    np.testing.assert_allclose(SeveralRewards(weights=(1.0, 0.25))(groups), wanted, rtol=1e-6, atol=1e-7)


def test_a_sum_is_not_taken_over_rewards_that_are_not_there() -> None:
    parts = np.array([[1.0, math.nan], [0.0, 1.0], [math.nan, math.nan]])
    groups = groups_of([1.0, 1.0, None], parts=parts)
    assert SeveralRewards()(groups)[2] == 0
    with pytest.raises(ValueError, match="sample 0 is valid and lacks a reward"):
        SeveralRewards(normalize="after")(groups)
    with pytest.raises(ValueError, match="sample 2 is valid and lacks"):
        SeveralRewards()(replace(groups, valid=np.ones(3, dtype=np.bool_)))
    with pytest.raises(ValueError, match="there are 3 weights and 2 rewards"):
        SeveralRewards(weights=(1.0, 1.0, 1.0))(groups)
    with pytest.raises(ValueError, match="gdpo mixes the parts of a reward"):
        SeveralRewards()(groups_of([1.0]))


def test_rewards_are_weighed_by_name() -> None:
    parts = np.array([[1.0, 3.0, 0.0], [0.0, 5.0, 1.0], [0.0, 4.0, math.nan]])
    groups = groups_of([1.0, 1.0, 1.0], parts=parts, names=("format", "length", "math"))
    named = SeveralRewards(weights={"math": 1.0, "format": 0.5})
    listed = SeveralRewards(weights=(1.0, 0.5))(replace(groups, parts=parts[:, [2, 0]], names=("math", "format")))
    np.testing.assert_array_equal(named(groups), listed)
    with pytest.raises(
        ValueError, match="has 'maths', which is no part of the reward; its parts are format, length, math"
    ):
        SeveralRewards(weights={"maths": 1.0})(groups)
    with pytest.raises(ValueError, match="there are 2 names and 3 parts"):
        replace(groups, names=("format", "math"))
    with pytest.raises(ValueError, match="weights=inf"):
        SeveralRewards(weights={"math": math.inf})


def test_a_soft_mean_does_not_overflow() -> None:
    found = SoftMean(baseline="logavgexp", tau=1e-3)(groups_of([1000.0, 0.0, 1000.0]))
    np.testing.assert_allclose(found, [1e-3 * math.log(1.5), 1e-3 * math.log(1.5) - 1000, 1e-3 * math.log(1.5)])


@settings(max_examples=60)
@given(groups=batches())
def test_groups_worth_keeping(groups: Groups) -> None:
    wanted = in_groups(groups, lambda rs: [float(len(set(rs)) > 1)] * len(rs))
    kept = informative(groups)
    assert kept[groups.valid].tolist() == [bool(one) for one, valid in zip(wanted, groups.valid, strict=True) if valid]
    for group in set(groups.ids.tolist()):
        assert len(set(kept[groups.ids == group].tolist())) == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Groups.of([math.nan], ["a"]), "sample 0 is valid and has the reward nan"),
        (lambda: Groups.of([math.inf], ["a"]), "the reward inf"),
        (lambda: Groups.of([1.0, 2.0], ["a"]), "ids has the shape"),
        (lambda: Groups.of(["x"], ["a"]), "rewards cannot be read"),  # type: ignore[list-item]
        (lambda: groups_of([1.0], ids=np.array([-1])), "group -1 is negative"),
        (lambda: groups_of([1.0], ids=np.array([0.5])), "ids are float64; give whole numbers"),
        (lambda: groups_of([1.0], valid=np.array([0.5])), "valid are float64; give true and false"),
        (lambda: replace(groups_of([1.0]), strata=np.array(["a"])), "strata are <U1"),
        (lambda: groups_of([1.0], rewards=np.zeros((1, 1))), "one number for each sample"),
        (lambda: groups_of([1.0], parts=np.zeros(1)), "give a row for each of 1 samples"),
        (lambda: MaximumLikelihood()(groups_of([-1.0, 1.0])), "sample 0 has the reward -1.0"),
        (lambda: MaximumLikelihood(order=2)(groups_of([1.0, 0.5])), "rewards that are 0 or 1"),
        (lambda: Signed()(groups_of([0.0, 2.0])), "sample 1 has the reward 2.0"),
        (lambda: Stratified()(Groups.of([1.0], ["a"])), "need Groups"),
        (lambda: BatchRelative(per_token=True)(Groups.of([1.0], ["a"])), "need Groups"),
        (lambda: GroupRelative(scale="all"), "scale='all'"),  # type: ignore[arg-type]
        (lambda: GroupRelative(eps=-1.0), "eps=-1.0"),
        (lambda: LeaveOneOut(eps=math.nan), "eps=nan"),
        (lambda: SoftMean(tau=0.0), "tau=0.0"),
        (lambda: Stratified(share=1.5), "share=1.5"),
        (lambda: MaximumLikelihood(order=0), "order=0"),
        (lambda: Signed(right=0.0, wrong=0.0), "nothing is learned"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()
