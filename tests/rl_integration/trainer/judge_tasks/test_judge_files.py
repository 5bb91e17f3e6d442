"""Judges are trained from files: pairs stay together on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.judge_tasks.pairs import Pair, in_both_orders, write_tasks
from adjudge.rl_integration.trainer.loop.config import RunConfig
from adjudge.rl_integration.trainer.loop.run import Run
from adjudge.rl_integration.trainer.rewards.reward_config import RewardConfig
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig, SamplingConfig, TaskFiles
from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks

ORDERS: dict[str, Any] = {
    "adjudge.verifiers.verdict.pair_scorer:BothOrdersScorer": {"thought": 0, "form": "[{answer}]"}
}


def short(question: Any, first: str, second: str) -> str:
    return f"{first}{second}"


def pairs(count: int) -> list[Pair]:
    return [Pair(id=f"p{n}", prompt="x", chosen=f"{n + 1}", rejected=f"{n}") for n in range(count)]


def read(path: Path, **options: Any) -> Any:
    files = TaskFiles(path=(str(path),), id="id", extra=("order",), cohort="cohort", **options)
    return read_tasks(files, accept=lambda sample: None)


def test_tasks_come_back_from_their_file(tmp_path: Path) -> None:
    tasks = in_both_orders(pairs(10), short)
    assert write_tasks(tmp_path / "tasks.jsonl", tasks) == 20
    found = read(tmp_path / "tasks.jsonl", held_out=0.2)
    assert sorted((*found.train, *found.held_out), key=lambda task: task.id) == sorted(tasks, key=lambda task: task.id)
    assert {task.cohort for task in found.train}.isdisjoint(task.cohort for task in found.held_out)
    assert len(found.held_out) == 4


def test_a_pair_whose_one_prompt_is_too_long_is_left_out_whole(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks.jsonl", in_both_orders(pairs(4), short))
    found = read(tmp_path / "tasks.jsonl", held_out=0.0)
    fitting = found.fitting(lambda task: [0] * (99 if task.id == "p2:swapped" else 1), 10)
    assert [task.cohort for task in fitting.train] == ["p0", "p0", "p1", "p1", "p3", "p3"]
    assert fitting.left_out.counts == {"longer than 10 tokens": 1, "another of its cohort is left out": 1}


def test_a_cohort_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "1", "prompt": "x", "order": "given"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"data\.cohort"):
        read(tmp_path / "tasks.jsonl")


def test_tasks_that_are_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="extra field 'id'"):
        write_tasks(tmp_path / "x", [Task(id="1", prompt="x", extra={"id": 2})])
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        write_tasks(tmp_path / "x", [Task(id="1", prompt="x", reference=object())])


def test_a_run_over_pairs_scores_both_orders_together(tmp_path: Path) -> None:
    tasks = in_both_orders(pairs(6), short)
    config = RunConfig(
        reward=RewardConfig(scorer=ORDERS),
        rollouts=RolloutsConfig(tasks=4, num_generations=2, staleness=1, sampling=SamplingConfig(max_new_tokens=4)),
        steps=2,
    )
    policy = tiny_policy("0123456789AB[]", seed=0, width=16, layers=1)
    seen: list[Any] = []
    run = Run(policy, tasks, config, tmp_path, held_out=tasks[:4])
    result = run.train(on_step=lambda numbers, rollouts, scores: seen.extend(scores))
    assert len(seen) == 16
    assert all(score.status == "scored" for score in seen)
    assert all(line["no_verdict"] > 0 for line in result.history), "a new policy writes anything"
    assert result.history[-1]["held_out_unscored"] == 0.0
