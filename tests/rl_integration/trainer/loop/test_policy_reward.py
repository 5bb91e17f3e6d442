"""Rewards that ask the policy itself: of which version they are, what they do not go with, and that one is learnt."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.rl_integration.trainer import believing
from tests.rl_integration.trainer.believing import BELIEF
from tests.rl_integration.trainer.loop.test_resume import same, told
from tests.rl_integration.trainer.nursery import Nursery
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.small_runs import TASKS, small_config, small_run

from adjudge.protocol import Score
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.loop.config import LearningConfig, RunFile
from adjudge.rl_integration.trainer.loop.guard import GuardConfig
from adjudge.rl_integration.trainer.loop.policy_run import _tasks, train_policy_run
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rewards.rewards import Scoring
from adjudge.rl_integration.trainer.rollouts.writer import Writer
from adjudge.training.config_file import config_of

RLPR: dict[str, Any] = {"rlpr": {"engine": "policy"}}


@pytest.mark.parametrize("staleness", [0, 1])
def test_scores_are_of_the_policy_that_the_step_begins_with(
    tmp_path: Path, staleness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that was written ahead is scored by the policy that learns from it, and never while one is written."""
    writing: list[bool] = []
    plain = Writer.roll_out

    def roll_out(self: Writer, *given: Any, **named: Any) -> Any:
        writing.append(True)
        before = len(believing.asked)
        written = plain(self, *given, **named)
        assert len(believing.asked) == before
        return written

    monkeypatch.setattr(Writer, "roll_out", roll_out)
    monkeypatch.setattr(believing, "asked", [])
    begins: list[str] = []
    run = small_run(tmp_path, small_config(scorer=BELIEF, staleness=staleness))
    begins.append(run._engine.fingerprint)
    run.train(on_step=lambda *_: begins.append(run._engine.fingerprint) or False)  # type: ignore[func-returns-value]
    assert believing.asked == begins[:4], "one call a step: all answers of a batch together"
    assert len(set(begins)) == 5, "the name grows with each update"
    assert len(writing) == 4 + staleness


def test_a_resumed_run_asks_as_the_one_that_went_on(nursery: Nursery, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scorer": BELIEF, "steps": 5, "tasks": 2, "staleness": 1}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert nursery.run("train", folder=str(whole), **options) == [0]
    assert nursery.run("train", folder=str(cut), stop=2, **options) == [0]
    assert nursery.run("train", folder=str(cut), **options) == [0]
    same(cut, whole)


def test_two_processes_ask_each_its_own_copy(nursery: Nursery, tmp_path: Path) -> None:
    options: dict[str, Any] = {"scorer": BELIEF, "steps": 2, "learning": {"precision": "fp32"}}
    assert nursery.run("train", processes=2, folder=str(tmp_path / "two"), **options) == [0, 0]
    steps, _ = told(tmp_path / "two")
    assert len(steps) == 2
    assert all(0 < step["reward"] < 1 for step in steps)
    assert steps[-1]["held_out_unscored"] == 0


def test_the_score_is_the_policys_own_log_probability(tmp_path: Path) -> None:
    """What it thinks of the very tokens that it wrote is what it drew them with."""
    run = small_run(tmp_path, small_config(scorer=BELIEF))
    rollouts = run._writer.roll_out(
        TASKS[:4], 1, run.config.rollouts.sampling, seed=0, version=0, name="a", on_rollout=lambda *_: None
    )
    plain = [one for one in rollouts if [*one.ids[: len(one.text)]] == run.policy.tokens.text(one.text)]
    assert len(plain) >= 2, "the others hold a special token, which no text has"
    asking = [replace(one, task=replace(one.task, reference=one.text), text="") for one in plain]
    with run.rewards(run.config.reward) as rewards:
        scoring = Scoring(rewards, [one.task for one in asking], 1)
        for place, one in enumerate(asking):
            scoring.add(place, one)
        assert not scoring._asked, "nobody is asked before all are waited for"
        scores, _ = scoring.wait()
    chances = [float(one.logprobs[: len(one.text)].sum().item()) for one in plain]
    assert [score.value for score in scores] == pytest.approx(torch.tensor(chances).exp().tolist(), rel=1e-4)


def test_the_gold_scorer_and_the_measure_may_ask_it_too(tmp_path: Path) -> None:
    gold = GuardConfig(gold=RewardConfig(scorer=BELIEF), every=1, window=1, surely=1e9)
    config = small_config(steps=2, guard=gold, measured_by=RewardConfig(scorer=BELIEF))
    result = small_run(tmp_path, config, held_out=TASKS[:3]).train()
    assert 0 < result.history[-1]["gold"] < 1
    assert result.held_out is not None
    assert 0 < result.held_out < 1


def file_of(folder: Path, **more: Any) -> RunFile:
    """A run file whose model is nowhere."""
    rows = [{"prompt": f"{n}?", "reference": str(n)} for n in range(9)]
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    run = {
        "model": str(folder / "nowhere"),
        "data": {"path": str(folder / "data.jsonl"), "held_out": 0.2},
        "reward": {"scorer": {"weighted": [{"scorer": RLPR, "weight": 0.5}, {"scorer": "format", "weight": 0.5}]}},
        "rollouts": {"tasks": 2, "num_generations": 2, "sampling": {"max_new_tokens": 4}},
        "output": str(folder / "run"),
        "steps": 1,
    }
    return config_of(RunFile, {**run, **more}, "run.yaml")


def test_data_are_looked_at_without_a_model(tmp_path: Path) -> None:
    tasks = _tasks(file_of(tmp_path, measured_by={"scorer": RLPR}, guard={"gold": {"scorer": RLPR}}))
    assert tasks.rows == len(tasks.train) + len(tasks.held_out) == 9


SHARDS = {"learning": {"sharding": "full"}}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"reward": {"scorer": RLPR, "cache": "scores.db"}}, r"reward\.cache is 'scores.db', and .*; leave it out"),
        (SHARDS, r"reward\.scorer: .*set learning\.sharding to none"),
        ({**SHARDS, "reward": "format", "measured_by": {"scorer": RLPR}}, r"measured_by\.scorer: .*set learning"),
        ({"reward": {"scorer": RLPR, "server": "http://127.0.0.1:9"}}, "or leave out the server, as engine: policy"),
        ({"reward": {"scorer": {"rlpr": {"engine": "polic"}}}}, "'polic'"),
    ],
)
def test_what_cannot_be_had_with_it_is_refused_before_a_model_is_opened(
    tmp_path: Path, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        _tasks(file_of(tmp_path, **more))


def test_a_run_in_code_refuses_shards_and_caches_too(tmp_path: Path) -> None:
    run = small_run(tmp_path, small_config(scorer=BELIEF))
    with pytest.raises(ValueError, match=r"reward\.cache"):
        run.rewards(RewardConfig(scorer=BELIEF, cache=str(tmp_path / "scores.db")))
    run.config = replace(run.config, learning=LearningConfig(sharding="full"))
    with pytest.raises(ValueError, match="frozen copy"):
        run.rewards(RewardConfig(scorer=BELIEF))


def test_promed_values_facts_by_the_policy(tmp_path: Path) -> None:
    """ProMed's reward for a consultation; who plays the patient is not its matter."""
    facts = {"facts": [{"text": "12", "keys": ["12"]}, {"text": "34", "keys": ["34"]}], "answer": "7"}
    task = Task(id="a", prompt=[{"role": "user", "content": "I cough."}], reference=facts)
    turns = (
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "12"},
        {"role": "assistant", "content": "<answer>7</answer>"},
    )
    config = small_config(scorer={"promed": {"engine": "policy", "outcome": {"token_f1": {"where": "tag"}}}})
    run = Run(chat_policy(), [task], config, tmp_path)
    with run.rewards(config.reward) as rewards:
        score: Score = rewards.ask([task.sample(turns, id="a", finish_reason="stop")]).result(60)[0]
    assert score.value is not None, score
    assert len(score.evidence["shapley"]) == 2
    assert any(score.evidence["shapley"])


def thinking(folder: Path, *, lessons: int, steps: int) -> dict[str, float]:
    """RLPR from a file: the reference is the last of three digits, and the answer repeats the one that was thought.

    The policy has learnt to think of any of the three.
    """
    policy = tiny_policy("0123456789?", seed=0, words=["<think>", "</think>", "<answer>", "</answer>"], width=32)
    rows = [{"prompt": f"{a}{b}{c}?", "reference": str(c)} for a, b, c in itertools.product(range(10), repeat=3)]
    (folder / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    dice = random.Random(0)
    said = [(row["prompt"], row["prompt"][dice.randrange(3)]) for row in rows * 4]
    tasks = [Task(id=str(place), prompt=prompt) for place, (prompt, _) in enumerate(said)]
    answers = [f"<think>{digit}</think><answer>{digit}</answer>" for _, digit in said]
    warm_up(policy, tasks, answers, steps=lessons, batch=64, rate=3e-3, seed=0, enough=lambda: False)
    policy.save(folder / "start")
    run = {
        "model": str(folder / "start"),
        "data": {"path": str(folder / "data.jsonl"), "held_out": 0.1},
        "reward": {"scorer": RLPR},
        "measured_by": {"scorer": {"token_f1": {"where": "tag"}}},
        "objective": "grpo",
        "curriculum": "rlpr",
        "rollouts": {"tasks": 16, "num_generations": 8, "sampling": {"max_new_tokens": 8}},
        "learning": {"learning_rate": 3e-3},
        "steps": steps,
        "output": str(folder / "run"),
    }
    return dict(train_policy_run(config_of(RunFile, run, "run.yaml")).held_out)


def test_a_run_file_takes_a_step_by_the_policys_own_probability(tmp_path: Path) -> None:
    assert set(thinking(tmp_path, lessons=20, steps=1)) == {"before", "after"}


@pytest.mark.full
def test_a_policy_learns_by_its_own_probability_of_the_reference(tmp_path: Path) -> None:
    measured = thinking(tmp_path, lessons=150, steps=40)
    assert measured["before"] < 0.6  # 0.46 when this was written, and 1.00 behind it
    assert measured["after"] > 0.9
