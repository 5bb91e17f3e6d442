"""Filters, budgets and curricula of prompts: each rule as its formula says, on hand-made and on random groups."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rl_integration.trainer.algorithms.objectives.batches import UNIT, batches, in_groups, mean, spread

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rewards.groups import Groups
from adjudge.rl_integration.trainer.rollouts.curricula.curriculum import PromptRecord, Record
from adjudge.rl_integration.trainer.rollouts.curricula.filters import Dars, PfPpo, ReinforceAda, RestGrpo, Rlpr
from adjudge.rl_integration.trainer.rollouts.curricula.sources import Dump, Mopps, Posterior, Sec, nearest


@settings(max_examples=60)
@given(groups=batches())
def test_groups_of_little_spread_are_left_out(groups: Groups) -> None:
    kept = RestGrpo(min_std=0.5).kept(groups)
    wanted = in_groups(groups, lambda rs: [float(spread(rs) >= 0.5)] * len(rs))
    assert kept[groups.valid].tolist() == [one == 1.0 for one, v in zip(wanted, groups.valid, strict=True) if v]


def test_the_spread_filter_compares_with_the_batches_before() -> None:
    rule = Rlpr(beta=0.5, decay=0.9, first_average=2, first_filter=4)
    wide, narrow = [1.0, 0.0, 1.0], [0.6, 0.5]
    groups = Groups.of([*wide, *narrow, 1.0, None], ["w", "w", "w", "n", "n", "alone", "alone"])
    memory: dict[str, Any] = {}
    seen = []
    for _ in range(4):
        kept = rule.kept(groups, memory)
        seen.append((kept.tolist(), memory["spread"]))
    both = mean([spread(wide), spread(narrow)])
    everything = [True] * 5 + [False] * 2
    assert [kept for kept, _ in seen] == [everything] * 3 + [[True] * 3 + [False] * 4]
    assert [value for _, value in seen[:3]] == [None] * 3
    assert math.isclose(seen[3][1], both)
    rule.kept(Groups.of(narrow, ["n", "n"]), memory)
    after = memory["spread"]
    assert math.isclose(after, 0.9 * both + 0.1 * spread(narrow))
    rule.kept(Groups.of([None], ["n"]), memory)
    assert memory["spread"] == after


def test_the_published_spread_filter_begins_with_the_mean_of_five_batches() -> None:
    """beta 0.5 and decay 0.99 by hand: pairs of rewards d apart have a deviation of d / sqrt(2)."""
    rule, bars = Rlpr(), []
    memory: dict[str, Any] = {}
    for batch in range(1, 14):
        apart = {6: 0.5, 7: 0.4, 8: 0.3, 9: 0.2}.get(batch, 0.1) * math.sqrt(2)
        at, under = (0.1500001, 0.1499999) if batch == 11 else (1.0, 1.0)
        rewards = [0.0, apart] if batch != 11 else [0.0, at * math.sqrt(2), 0.0, under * math.sqrt(2)]
        kept = rule.kept(Groups.of(rewards, ["a", "a", "b", "b"][: len(rewards)]), memory)
        assert kept.tolist() == {11: [True, True, False, False], 12: [False] * 2, 13: [False] * 2}.get(
            batch, [True] * 2
        )
        bars.append(memory["spread"])
    assert bars[:10] == [None] * 10
    np.testing.assert_allclose(bars[10:], [0.2985, 0.296515, 0.29454985])


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("best", [0, 0.5, 0, 0.5, 0]),
        ("best_random", [0.1 / 0.6, 0.2 / 0.6, 0.1 / 0.6, 0.2 / 0.6, 0]),
        ("best_worst", [0.5, 0.25, 0, 0.25, 0]),
        ("power", [1 / 33, 16 / 33, 0, 16 / 33, 0]),
    ],
)
def test_pf_ppo_weighs_by_the_ends_of_a_group(policy: str, wanted: list[float]) -> None:
    groups = Groups.of([-1.0, 4.0, 0.0, 4.0, None], ["q"] * 5)
    rule = PfPpo(policy=policy)  # type: ignore[arg-type]
    np.testing.assert_allclose(rule.weights(groups), wanted)


@pytest.mark.parametrize("policy", ["best", "best_random", "best_worst", "power"])
@settings(max_examples=30)
@given(groups=batches())
def test_pf_ppo_draws_from_valid_samples_of_each_group(policy: str, groups: Groups) -> None:
    rule = PfPpo(policy=policy)  # type: ignore[arg-type]
    weights = rule.weights(groups)
    assert not weights[~groups.valid].any()
    known = set(groups.ids[groups.valid].tolist())
    for group in set(groups.ids.tolist()):
        assert math.isclose(weights[groups.ids == group].sum(), float(group in known), abs_tol=1e-12)
    drawn = rule.draw(groups, 3, np.random.default_rng(0))
    assert Counter(groups.ids[drawn].tolist()) == dict.fromkeys(known, 3)
    assert (weights[drawn] > 0).all()


def test_reinforce_ada_draws_until_both_kinds_are_there() -> None:
    rule = ReinforceAda()
    assert not rule.done([1.0, 0.0, 0.0, 0.5], 1), "0.5 is not right, and one right answer is not two"
    assert rule.done([1.0, 0.8, 0.0, 0.7], 1)
    assert not rule.done([1.0, 1.0, None, None], 1)
    assert rule.done([0.0] * 32, 4)
    assert ReinforceAda(stop="positive").done([1.0, None], 1)
    assert not ReinforceAda(stop="positive").done([0.0], 3)


@settings(max_examples=60)
@given(rewards=st.lists(st.none() | UNIT, max_size=20), seed=st.integers(0, 9))
def test_reinforce_ada_keeps_a_balance(rewards: list[float | None], seed: int) -> None:
    rule = ReinforceAda()
    places = rule.pick(rewards, np.random.default_rng(seed))
    judged = [reward for reward in rewards if reward is not None]
    assert len(set(places.tolist())) == len(places) == (min(4, len(judged)) if len(judged) > 1 else 0)
    kept = [rewards[place] for place in places]
    right = sum(reward is not None and reward > 0.7 for reward in kept)
    all_right = sum(reward > 0.7 for reward in judged)
    if len(places):
        assert right >= min(2, all_right)
        assert len(places) - right >= min(2, len(judged) - all_right)


@pytest.mark.parametrize(
    ("rewards", "right"),
    [([1.0, 1.0, 1.0, 1.0, 0.0], 3), ([1.0] * 6, 4), ([0.0] * 6, 0), ([1.0, 0.0, 0.0, 0.0, 0.0], 1), ([1.0, 0.0], 1)],
)
def test_reinforce_ada_fills_up_with_the_other_kind(rewards: list[float], right: int) -> None:
    places = ReinforceAda().pick(rewards, np.random.default_rng(0))
    assert len(places) == min(4, len(rewards))
    assert sum(rewards[place] for place in places) == right


def test_harder_prompts_get_more_samples() -> None:
    even, hard = Dars(), Dars(totals=(48, 24, 12, 9))
    assert [even.total(right / 8) for right in range(9)] == [32, 18, 11, 9, 8, 8, 8, 8, 8]
    assert [hard.total(right / 8) for right in range(9)] == [48, 24, 12, 9, 8, 8, 8, 8, 8]
    assert even.further(8, [1.0] + [0.0] * 7, 1) == 10
    assert even.further(8, [None], 1) == 0
    assert even.further(8, [sum([0.1] * 10) / 8] * 7 + [None], 1) == 10, "sums of rewards are not exact"


def observed(memory: float = 1.0) -> Record:
    record = Record(memory=memory, window=3, rate=0.25)
    groups = Groups.of([1.0, 0.0, None, 1.0, 0.5, 1.0], ["a", "a", "a", "b", "b", "c"])
    for _ in range(2):
        record.observe(["a", "a", "a", "b", "b", "c"], groups)
        record.observe_sources(["x", "x", "x", "y", "y", "x"], groups, np.array([1.0, -0.5, 0.0, 0.25, -0.25, 9.0]))
    return record


def test_records_count_what_was_judged_and_compare_what_was_compared() -> None:
    record = observed(memory=0.5)
    assert record.prompt("a") == PromptRecord(seen=4, right=1.5, wrong=1.5)
    assert record.prompt("b") == PromptRecord(seen=4, right=2.25, wrong=0.75)
    assert record.prompt("new") == PromptRecord()
    assert record.source("x").recent == (0.5, 1.0, 0.5), "the sample that is alone in its group was compared with none"
    assert record.source("x").seen == 4
    assert math.isclose(record.source("x").value, 0.25 * 0.75 + 0.75 * (0.25 * 0.75))
    again = Record.from_dict(json.loads(json.dumps(record.to_dict())))
    assert again.to_dict() == record.to_dict()
    before = again.prompt("a")
    again.observe(["a"], Groups.of([None], ["a"]))
    assert again.prompt("a") == before
    again.observe(["a"], Groups.of([1.0], ["a"]))
    assert again.prompt("a").right == 0.5 * 1.5 + 1


def test_mopps_prefers_prompts_that_are_neither_easy_nor_hard() -> None:
    record = Record()
    for name, right in (("easy", 1.0), ("middle", 0.5), ("hard", 0.0)):
        record.observe([name] * 64, Groups.of([right] * 64, [name] * 64))
    random = np.random.default_rng(0)
    tasks = [Task(id=name, prompt=name) for name in ("easy", "middle", "hard", "new")]
    known = Posterior(Mopps().prior, record)
    chosen = Counter(tasks[nearest(known.draw(tasks, random), 1)[0]].id for _ in range(200))
    assert chosen["middle"] > 100
    assert chosen["new"] > 5, "what was never seen is tried"
    assert chosen["easy"] + chosen["hard"] == 0
    assert nearest(known.draw(tasks[:1], random), 5).tolist() == [0]


@given(estimates=st.lists(st.floats(0, 1), max_size=12), count=st.integers(0, 12))
def test_the_nearest_estimates_are_taken(estimates: list[float], count: int) -> None:
    places = nearest(np.array(estimates), count).tolist()
    gaps = [abs(one - 0.5) for one in estimates]
    assert [gaps[place] for place in places] == sorted(gaps)[:count]
    assert all(before < after for before, after in pairwise(sorted(places)))


def test_sources_are_drawn_by_what_is_learnt_from_them() -> None:
    record = observed()
    x, y = record.source("x"), record.source("y")
    powers = [math.exp(one.value / 0.2) for one in (x, y)]
    np.testing.assert_allclose(Sec().chances(record, ["x", "y"]), [power / sum(powers) for power in powers])
    scores = [mean(list(one.recent)) + math.sqrt(2 * math.log(9) / (one.seen + 1)) for one in (x, y)]
    powers = [math.exp(score / 0.1) for score in [*scores, math.sqrt(2 * math.log(9))]]
    wanted = [power / sum(powers) for power in powers]
    np.testing.assert_allclose(Dump().chances(record, ["x", "y", "new"]), wanted)
    np.testing.assert_allclose(Dump().chances(Record(), ["x", "y"]), [0.5, 0.5])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Record(memory=2.0), "memory=2.0"),
        (lambda: Record(window=0), "window=0"),
        (lambda: Record().observe(["a"], Groups.of([2.0], ["a"])), "sample 0 has the reward 2.0"),
        (lambda: Record().observe([], Groups.of([1.0], ["a"])), "prompts has the shape"),
        (lambda: Record().observe_sources(["x"], Groups.of([1.0], ["a"]), np.zeros(2)), "advantages has the shape"),
        (lambda: Record.from_dict({"prompts": {}}), "not a record of prompts"),
        (lambda: Record.from_dict({"options": {"size": 1}}), "not a record of prompts"),
        (lambda: Rlpr(first_filter=6), "first_filter=6; it must be a whole number, at least 7"),
        (lambda: RestGrpo(min_std=-1.0), "min_std=-1.0"),
        (lambda: PfPpo(policy="worst"), "policy='worst'"),  # type: ignore[arg-type]
        (lambda: PfPpo().draw(Groups.of([], []), 0, np.random.default_rng(0)), "count=0"),
        (lambda: ReinforceAda(keep=3), "keep=3; it must be even"),
        (lambda: Dars(totals=(0,)), "totals=0"),
        (lambda: nearest(np.array([math.nan]), 1), "not finite"),
        (lambda: Mopps(prior=(0.0, 1.0)), "prior=0.0"),
        (lambda: Sec(temperature=0.0), "temperature=0.0"),
        (lambda: Dump().chances(Record(), []), "no sources"),
    ],
)
def test_mistakes_name_the_value(made: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made()
