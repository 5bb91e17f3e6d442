"""A lesson's first steps, and what the log says of a reward that is gamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.trainer.small_runs import Digits, small_config, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.demo import subjects
from adjudge.rl_integration.trainer.demo.lesson import LEARNING, Method, draw, one_thread, teach
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.run_logger import ALARMS, STEPS, read_journal
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig
from adjudge.rl_integration.watch.hacking import WatchConfig


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    with one_thread():
        yield


WATCH = WatchConfig(window=256, baseline=128, enough=64, block=16)


class Length(Digits):
    """Longer is better."""

    name = "length"
    fingerprint = "length:2"

    def _share(self, text: str) -> float:
        return len(text) / 24


@pytest.mark.parametrize("method", ["grpo", pytest.param("ppo", marks=pytest.mark.full)])
def test_the_first_steps_of_a_lesson_rise(tmp_path: Path, method: Method) -> None:
    lesson = replace(subjects.sums(0), learning=replace(LEARNING, warmup_steps=1, decay="constant"))
    learnt = teach(lesson, tmp_path / "run", method=method, steps=16)
    assert 0.1 < learnt.before < 0.5
    rewards = [line["reward"] for line in read_journal(tmp_path / "run", STEPS)]
    assert len(rewards) == 16
    assert sum(rewards[-4:]) > sum(rewards[:4]) + 0.1  # 0.19 to 0.24 by seed and processor
    assert learnt.report.is_file()


def hacked_lesson(guard: GuardConfig | None) -> Any:
    lesson = subjects.hacked(0, Length(), guarded=False)
    rollouts = RolloutsConfig(tasks=16, num_generations=8, sampling=SamplingConfig(max_new_tokens=24))
    return replace(lesson, rollouts=rollouts, learning=LEARNING, enough=0.3, guard=guard)


def test_a_reward_for_length_is_hacked_and_the_guard_puts_the_better_policy_back(tmp_path: Path) -> None:
    alone = teach(hacked_lesson(None), tmp_path / "alone", steps=13)
    lines = read_journal(tmp_path / "alone", STEPS)
    assert lines[-1]["reward"] > 1.5 * lines[0]["reward"]
    assert alone.after < alone.before / 2
    assert alone.stopped == ""

    guard = GuardConfig(gold=RewardConfig(scorer="math"), every=1, samples=128, window=2)
    guarded = teach(hacked_lesson(guard), tmp_path / "guarded", steps=13)
    assert "the gold scorer fell" in guarded.stopped
    assert guarded.steps < 13
    assert guarded.rolled_back is not None
    assert guarded.after > 2 * alone.after
    assert "the gold scorer fell" in guarded.report.read_text(encoding="utf-8")


def test_the_watch_tells_of_longer_answers_without_any_other_scorer(tmp_path: Path) -> None:
    config = small_config(scorer=Length(), steps=30, tasks=8, num_generations=8, watch=WATCH, save_steps=100)
    small_run(tmp_path, config).train()
    told = read_journal(tmp_path, ALARMS)
    assert "follows_length" in {line["kind"] for line in told if line["standing"]}
    looks = [line["alarms"] for line in read_journal(tmp_path, STEPS) if "alarms" in line]
    assert len(looks) == 6
    assert looks[-1] >= 1


def test_a_watch_goes_on_where_it_was(tmp_path: Path) -> None:
    config = small_config(scorer=Length(), steps=20, tasks=8, num_generations=8, watch=WATCH, save_steps=1)
    small_run(tmp_path / "whole", config).train()
    small_run(tmp_path / "cut", config).train(on_step=lambda numbers, *_: numbers["step"] == 7)
    small_run(tmp_path / "cut", config).train(resume=True)
    assert read_journal(tmp_path / "cut", ALARMS) == read_journal(tmp_path / "whole", ALARMS)
    assert [line.get("alarms") for line in read_journal(tmp_path / "cut", STEPS)] == [
        line.get("alarms") for line in read_journal(tmp_path / "whole", STEPS)
    ]


def test_without_a_watch_nothing_is_looked_for(tmp_path: Path) -> None:
    small_run(tmp_path, small_config(scorer=Length(), steps=5, watch=None)).train()
    assert read_journal(tmp_path, ALARMS) == []
    assert all("alarms" not in line for line in read_journal(tmp_path, STEPS))


class Never:
    """Gives nothing, ever."""

    name = "never"
    fingerprint = "never:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.scored(0.0) for _ in samples]


def test_held_out_answers_are_measured_by_another_scorer_if_there_is_one(tmp_path: Path) -> None:
    from tests.rl_integration.trainer.small_runs import TASKS

    config = small_config(steps=1, measured_by=RewardConfig(scorer=Never()))
    (line,) = small_run(tmp_path, config, held_out=TASKS[:4]).train().history
    assert line["held_out"] == 0.0
    assert line["reward"] > 0.0


def test_the_picture_has_a_line_for_each_run(tmp_path: Path) -> None:
    for name in ("one", "two"):
        small_run(tmp_path / name, small_config(steps=3, eval_steps=1)).train()
    draw({name: tmp_path / name for name in ("one", "two")}, {"one": 0.1, "two": 0.2}, tmp_path / "c.svg", title="<&>")
    text = (tmp_path / "c.svg").read_text(encoding="utf-8")
    assert text.count("#2f7ed8") > 1
    assert text.count("#d9730d") > 1
    assert "#2a9d5c" not in text
