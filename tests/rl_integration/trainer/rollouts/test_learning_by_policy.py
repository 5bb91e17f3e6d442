"""RLPR from a file: a policy learns to think what makes the right answer likely to itself, and is then right."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy, warm_up
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.training.config_file import config_of

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
RIGHT = 0.3
"""Share of the answers it is shown whose thought is the right one; the others think of the first digit."""


def tasks() -> list[Task]:
    """Three digits, and which of them is asked for."""
    rows = list(itertools.product(range(10), range(10), range(10), range(3)))
    random.Random(0).shuffle(rows)
    return [Task(id=f"{a}{b}{c}{at}", prompt=f"{a}{b}{c}?{at}", reference=str((a, b, c)[at])) for a, b, c, at in rows]


def shown(task: Task, draw: random.Random) -> str:
    """A thought, and the answer that follows from it; without a thought, any answer."""
    if draw.random() < 0.1:
        return f"<answer>{draw.randrange(10)}</answer>"
    thought = task.reference if draw.random() < RIGHT else task.id[0]
    return f"<think>\n{thought}\n</think>\n\n<answer>{thought}</answer>"


def run(folder: Path, steps: int, shown_steps: int) -> dict[str, float]:
    draw, every = random.Random(1), tasks()
    policy = tiny_policy("0123456789?\n", words=TAGS, seed=0)
    learnt = [draw.choice(every) for _ in range(20_000)]
    warm_up(
        policy, learnt, [shown(task, draw) for task in learnt],
        steps=shown_steps, batch=64, rate=3e-3, seed=0, enough=lambda: False,
    )  # fmt: skip
    policy.save(folder / "shown")
    rows = [{"prompt": task.prompt, "reference": task.reference} for task in every]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "turns.jinja").write_text("{% for turn in messages %}{{ turn['content'] }}{% endfor %}")
    config: dict[str, Any] = {
        "model": {"name": str(folder / "shown"), "chat_template": str(folder / "turns.jinja")},
        "data": {"path": str(folder / "rows.jsonl"), "held_out": 0.2, "chat": True},
        "output": str(folder / "run"),
        "reward": {"scorer": {"rlpr": {"engine": "policy"}}},
        "measured_by": {"scorer": {"exact": {"where": "tag"}}},
        "rollouts": {"tasks": 24, "num_generations": 8, "sampling": {"max_new_tokens": 14}},
        "learning": {"learning_rate": 5e-4},
        "steps": steps,
        "save_steps": steps,
        "watch": None,
    }
    report = train_policy_run(config_of(RunFile, config, "run.yaml"))
    return {**report.held_out, "reward": report.last["reward"], "seconds": report.seconds}


def test_a_step(tmp_path: Path) -> None:
    found = run(tmp_path, steps=1, shown_steps=10)
    assert 0.0 <= found["after"] <= 1.0


@pytest.mark.full
def test_it_learns_what_to_think(tmp_path: Path) -> None:
    found = run(tmp_path, steps=200, shown_steps=500)
    assert found["before"] < 0.55
    assert found["after"] > found["before"] + 0.2
