"""A reward that is hacked is seen to part from the gold scorer; one that is not, is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_run

from adjudge.rl_integration.trainer.loop.checkpoints import newest_checkpoint
from adjudge.rl_integration.trainer.loop.guard import Guard, GuardConfig, Measurement
from adjudge.rl_integration.trainer.loop.logbook import STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Rewards


def guard_of(golds: Sequence[float], rewards: Sequence[float], *, error: float = 0.01, **options: Any) -> Guard:
    config = GuardConfig(gold=RewardConfig(scorer=Digits()), **{"window": 2, **options})
    with Rewards(config.gold) as source:
        return Guard(
            config=config,
            rewards=source,
            measurements=[
                Measurement(step=5 * at, gold=(gold, error), reward=(reward, error))
                for at, (gold, reward) in enumerate(zip(golds, rewards, strict=True), start=1)
            ],
        )


def test_a_falling_gold_under_a_rising_reward_is_a_parting() -> None:
    guard = guard_of([0.2, 0.3, 0.5, 0.5, 0.4, 0.3], [0.2, 0.3, 0.5, 0.6, 0.7, 0.8])
    found = guard.parting()
    assert found is not None
    assert found.best == guard.best() == 20
    # Means of two: gold 0.5 then and 0.35 now; the joint error of two means of two is 0.01.
    assert found.sentence == (
        "since step 20 the reward rose from 0.55 to 0.75 while the gold scorer fell from 0.5 to 0.35 "
        "(15.0 standard errors)"
    )


@pytest.mark.parametrize(
    ("golds", "rewards"),
    [
        ([0.2, 0.3, 0.4, 0.5], [0.2, 0.3, 0.4, 0.5]),  # both rise
        ([0.5, 0.4, 0.3, 0.2], [0.5, 0.4, 0.3, 0.2]),  # both fall: bad luck or a bad rate, and no hacking
        ([0.50, 0.50, 0.49, 0.50], [0.2, 0.4, 0.6, 0.8]),  # less than noise
        ([0.5, 0.1], [0.1, 0.9]),  # a single window
        ([], []),
    ],
)
def test_anything_else_is_none(golds: list[float], rewards: list[float]) -> None:
    assert guard_of(golds, rewards).parting() is None


def test_a_difference_that_may_be_chance_is_none() -> None:
    golds, rewards = [0.5, 0.5, 0.4, 0.4], [0.2, 0.2, 0.8, 0.8]
    assert guard_of(golds, rewards, error=0.01).parting() is not None
    assert guard_of(golds, rewards, error=0.05).parting() is None


def test_a_hack_within_the_first_window_is_seen_by_what_was_measured_before_it() -> None:
    hacked = guard_of([0.1, 0.1, 0.1], [0.9, 0.9, 0.9])
    assert hacked.parting() is None, "a guard that looks late takes the hacked policy for the best"
    hacked.start = Measurement(step=0, gold=(0.8, 0.01), reward=(0.2, 0.01))
    found = hacked.parting()
    assert found is not None
    assert found.best == hacked.best() == 0
    assert "since step 0 the reward rose from 0.2 to 0.9" in found.sentence


def test_of_equal_windows_the_one_that_is_kept_is_the_one_that_is_told_of() -> None:
    guard = guard_of([0.5, 0.5, 0.5, 0.1, 0.1], [0.2, 0.2, 0.2, 0.9, 0.9])
    found = guard.parting()
    assert found is not None
    assert found.best == guard.best() == 15


class Length(Digits):
    """Longer is better: what a biased reward model says."""

    name = "length"
    fingerprint = "length:1"

    def _share(self, text: str) -> float:
        return len(text) / 8


class Brevity(Digits):
    """What was really wanted."""

    name = "brevity"
    fingerprint = "brevity:1"

    def _share(self, text: str) -> float:
        return 1 - len(text) / 8


@pytest.mark.parametrize("then", ["stop", "roll_back"])
def test_a_hacked_run_is_stopped(tmp_path: Path, then: Any) -> None:
    gold = GuardConfig(gold=RewardConfig(scorer=Brevity()), every=2, window=2, then=then)
    config = small_config(scorer=Length(), steps=60, tasks=8, num_generations=8, guard=gold, save_steps=100)
    run = small_run(tmp_path, config)
    result = run.train()
    assert "the gold scorer fell" in result.stopped
    assert result.steps < 60
    best = newest_checkpoint(tmp_path / "best")
    assert best is not None
    same = all(
        torch.equal(value, best.tensors[f"policy.{name}"]) for name, value in run.policy.model.named_parameters()
    )
    assert same == (then == "roll_back")
    assert result.rolled_back == (best.step if then == "roll_back" else None)


def test_a_run_goes_back_to_the_policy_that_it_began_with(tmp_path: Path) -> None:
    # The first whole window comes behind step 12, when answers have long been hacked.
    gold = GuardConfig(gold=RewardConfig(scorer=Brevity()), every=2, window=6, samples=32)
    run = small_run(
        tmp_path, small_config(scorer=Length(), steps=60, tasks=8, num_generations=8, guard=gold, save_steps=100)
    )
    began = {name: value.detach().clone() for name, value in run.policy.model.named_parameters()}
    result = run.train()
    assert "since step 0 the reward rose" in result.stopped
    assert result.rolled_back == 0
    assert all(torch.equal(value, began[name]) for name, value in run.policy.model.named_parameters())
    first, *others = read_journal(tmp_path, STEPS)
    assert first["start_gold"] > others[-1]["gold"]
    assert not any("start_gold" in line for line in others)


def test_the_guard_looks_at_what_was_drawn_and_not_at_what_a_filter_left(tmp_path: Path) -> None:
    gold = GuardConfig(gold=RewardConfig(scorer=Digits()), every=1, window=2, samples=1000)
    config = small_config(scorer=Whole(), objective="dapo", steps=2, num_generations=2, guard=gold)
    (first, second) = small_run(tmp_path, config).train().history
    assert first["batches"] > 1
    assert first["start_proxy"] != pytest.approx(first["reward"]), "groups of equal rewards are not learnt from"
    assert second["gold"] >= second["proxy"] > 0


class Whole(Digits):
    """1 for answers of digits alone."""

    name = "whole"
    fingerprint = "whole:1"

    def _share(self, text: str) -> float:
        return float(text.isdigit())


def test_without_a_guard_the_same_run_goes_on(tmp_path: Path) -> None:
    config = small_config(scorer=Length(), steps=20, tasks=8, num_generations=8, save_steps=100)
    result = small_run(tmp_path, config).train()
    assert result.stopped == ""
    assert result.history[-1]["reward"] > result.history[0]["reward"]


def test_an_honest_run_is_not_stopped(tmp_path: Path) -> None:
    gold = GuardConfig(gold=RewardConfig(scorer=Digits()), every=2, window=2)
    result = small_run(tmp_path, small_config(steps=12, guard=gold, tasks=8, num_generations=8)).train()
    assert result.stopped == ""
    assert result.steps == 12


def test_a_guard_remembers_after_a_resumption(tmp_path: Path) -> None:
    gold = GuardConfig(gold=RewardConfig(scorer=Brevity()), every=1, window=1)
    config = small_config(scorer=Length(), steps=60, tasks=8, num_generations=8, guard=gold, save_steps=1)
    expected = small_run(tmp_path / "whole", config, tasks=TASKS).train()
    small_run(tmp_path / "cut", config).train(on_step=lambda numbers, *_: numbers["step"] == 2)
    found = small_run(tmp_path / "cut", config).train(resume=True)
    starts = [
        [line["start_gold"] for line in read_journal(tmp_path / name, STEPS) if "start_gold" in line]
        for name in ("whole", "cut")
    ]
    assert len(starts[0]) == 1
    assert starts[0] == starts[1]
    assert (found.steps, found.stopped) == (expected.steps, expected.stopped)


@pytest.mark.parametrize(
    ("option", "value"), [("every", 0), ("window", 0), ("samples", 1), ("surely", 0.0), ("then", "wait")]
)
def test_options_out_of_range_are_named(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"guard option {option}="):
        GuardConfig(gold=RewardConfig(scorer=Digits()), **{option: value})
