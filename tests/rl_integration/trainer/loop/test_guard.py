"""A reward that is hacked is seen to part from the gold scorer; one that is not, is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.rl_integration.trainer.small_runs import TASKS, Digits, small_config, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Rollout, Task
from adjudge.rl_integration.trainer.loop.checkpoints import newest_checkpoint
from adjudge.rl_integration.trainer.loop.guard import Guard, GuardConfig, Measurement
from adjudge.rl_integration.trainer.loop.run_logger import STEPS, read_journal
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
        "since step 20 the reward went from 0.55 to 0.75 while the gold scorer fell from 0.5 to 0.35 "
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


def test_a_reward_that_cannot_rise_any_more_does_not_hide_the_fall() -> None:
    golds, rewards = [0.9, 0.9, 0.4, 0.4], [1.0, 1.0, 1.0, 1.0]
    assert guard_of(golds, rewards).parting() is not None
    assert guard_of(golds, [1.0, 1.0, 0.9, 0.9]).parting() is None, "harder tasks lower both"


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
    assert "since step 0 the reward went from 0.2 to 0.9" in found.sentence


@dataclass
class Known:
    """Gold scores that the rollouts' ids hold."""

    def ask(self, samples: Sequence[Sample]) -> Future[list[Score]]:
        told: Future[list[Score]] = Future()
        told.set_result([Score.scored(float(one.id)) for one in samples])
        return told


def told_rollouts(golds: NDArray[np.float64]) -> list[Rollout]:
    """The answers to each prompt, a row."""
    nothing = np.zeros(0, dtype=np.float32)
    common: Any = {"prompt_ids": (1,), "ids": (), "logprobs": nothing, "own": np.zeros(0, dtype=np.bool_)}
    return [
        Rollout(id=str(gold), task=task, text="", finish_reason="stop", version=0, **common)
        for place, row in enumerate(golds)
        for task in [Task(id=str(place), prompt="p")]
        for gold in row
    ]


def measured(guard: Guard, step: int, golds: NDArray[np.float64], rewards: NDArray[np.float64]) -> dict[str, float]:
    return guard.measure(step, told_rollouts(golds), [Score.scored(float(value)) for value in rewards.flat])


def known_guard(**options: Any) -> Guard:
    return Guard(config=GuardConfig(gold=RewardConfig(scorer=Digits()), **options), rewards=cast(Rewards, Known()))


@pytest.mark.parametrize(
    ("golds", "error"),
    [
        ([[0.0], [1.0], [1.0], [1.0]], 0.25),  # one answer for each prompt: the error of independent answers
        ([[0.0] * 8, [1.0] * 8, [1.0] * 8, [1.0] * 8], 0.25),  # answers that agree say nothing more
        ([[0.0, 1.0], [1.0, 0.0]], 0.0),
        ([[0.0, 1.0] * 4], None),  # how prompts differ is not seen in one
    ],
)
def test_answers_to_one_prompt_depend_on_each_other(golds: list[list[float]], error: float | None) -> None:
    values = np.array(golds)
    found = measured(known_guard(), 5, values, values)
    assert found.get("gold_error") == (None if error is None else pytest.approx(error))


def drawn(rng: np.random.Generator, right: float) -> NDArray[np.float64]:
    """Eight answers to each of eight prompts, which are easy or hard."""
    easy = rng.random(8) < right
    return rng.binomial(1, np.where(easy, 0.95, 0.05)[:, None], (8, 8)).astype(float)


def test_a_reward_that_rises_over_a_level_gold_is_no_parting() -> None:
    """Of 1,000 steps each, and the hardest case for a guard: of 200 such runs 7 were stopped."""
    stopped = 0
    for seed in range(6):
        rng, guard = np.random.default_rng(seed), known_guard()
        for step in range(5, 1001, 5):
            measured(guard, step, drawn(rng, 0.6), step + rng.random((8, 8)))
            if guard.parting() is not None:
                stopped += 1
                break
    assert stopped == 0


@pytest.mark.parametrize("fallen", [0.2, 0.0])
def test_a_late_fall_is_seen_as_soon_as_a_window_holds_it(fallen: float) -> None:
    rng, guard = np.random.default_rng(0), known_guard()
    steps = iter(range(5, 1001, 5))
    for step in steps:
        measured(guard, step, drawn(rng, 0.8 if step <= 500 else fallen), step + rng.random((8, 8)))
        if guard.parting() is not None:
            break
    assert 500 < step <= 530


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
    assert "since step 0 the reward went" in result.stopped
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
    assert first["start_proxy"] == pytest.approx(first["reward"]), "and so does the log"
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


def test_a_guard_begins_anew_where_another_scorer_judges(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tasks": 8, "num_generations": 8, "save_steps": 1}

    def config(steps: int, gold: Any) -> Any:
        guard = GuardConfig(gold=RewardConfig(scorer=gold), every=1, window=1, surely=1.0)
        return small_config(scorer=Digits(), steps=steps, guard=guard, **options)

    small_run(tmp_path, config(3, Digits())).train()
    found = small_run(tmp_path, config(8, Whole())).train(resume=True)
    assert (found.steps, found.stopped) == (8, ""), "what others measured was higher"
    assert [line["step"] for line in found.history if "start_gold" in line] == [1, 4]
    assert [line["step"] for line in found.history if line.get("parted")] == [3]
    again = small_run(tmp_path, config(9, Whole())).train(resume=True)
    assert [line["step"] for line in again.history if "start_gold" in line] == [1, 4]


@pytest.mark.parametrize(
    ("option", "value"), [("every", 0), ("window", 0), ("samples", 1), ("surely", 0.0), ("then", "wait")]
)
def test_options_out_of_range_are_named(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"guard option {option}="):
        GuardConfig(gold=RewardConfig(scorer=Digits()), **{option: value})
