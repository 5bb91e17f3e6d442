"""An answer that was begun: the policy goes on with it, the reward sees all of it, and the rest alone is learnt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.trainer.rollouts.chat_policy import chat_policy
from tests.rl_integration.trainer.small_runs import Digits, small_config, small_policy, small_run

from adjudge.protocol import Sample, Score
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.rl_integration.trainer.rollouts.rollouts_config import TaskFiles
from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks
from adjudge.training.config_file import config_of


class Seen(Digits):
    """Keeps what it was asked about."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        self.samples += samples
        return await super().score(samples)


def test_a_prompt_ends_with_what_was_begun() -> None:
    chat = chat_policy()
    turns = [{"role": "user", "content": "2+2?"}]
    plain, begun = (chat.encode(Task(id="a", prompt=turns, begun=text)) for text in ("", "12"))
    assert begun == (*plain, *chat.tokens.text("12"))
    policy = small_policy()
    assert policy.encode(Task(id="a", prompt="2+2=", begun="1")) == policy.encode(Task(id="b", prompt="2+2=1"))


def test_a_reward_sees_the_whole_answer_and_the_rest_is_learnt(tmp_path: Path) -> None:
    seen = Seen()
    tasks = [Task(id=f"{n}", prompt=f"{n}+{n}=", reference="r", begun="=7=") for n in range(4)]
    run = small_run(tmp_path, small_config(scorer=seen, steps=1), tasks=tasks)
    run.train()
    assert len(seen.samples) == 16
    assert all(str(sample.response).startswith("=7=") for sample in seen.samples)
    assert {sample.prompt for sample in seen.samples} == {task.prompt for task in tasks}
    assert {sample.extra["completion_tokens"] <= 8 for sample in seen.samples} == {True}


def written(path: Path, rows: Sequence[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_rows_with_other_beginnings_are_other_tasks_of_one_prompt(tmp_path: Path) -> None:
    rows = [{"prompt": f"{n}", "begun": begun} for n in range(10) for begun in ("", "1", "12", "12", None)]
    path = written(tmp_path / "rows.jsonl", [*rows, {"prompt": "x", "begun": 1}])
    tasks = read_tasks(TaskFiles(path=(path,), begun="begun", held_out=0.2), accept=lambda sample: None)
    assert len(tasks.train) + len(tasks.held_out) == 30
    assert not {task.prompt for task in tasks.train} & {task.prompt for task in tasks.held_out}
    assert not any(task.begun for task in tasks.held_out), "they are never helped"
    assert "what was begun is not text" in tasks.left_out.sentence()
    with pytest.raises(ValueError, match=r"data\.begun 'begin'"):
        read_tasks(TaskFiles(path=(path,), begun="begin"), accept=lambda sample: None)


def test_answers_of_several_turns_cannot_be_begun(tmp_path: Path) -> None:
    described = {
        "model": "m",
        "data": {
            "path": written(tmp_path / "rows.jsonl", [{"prompt": "?", "answer": "2", "begun": "1"}]),
            "begun": "begun",
        },
        "reward": "math",
        "rollouts": {"tools": {"offered": [{"kind": "python"}]}},
        "output": str(tmp_path / "out"),
    }
    with pytest.raises(ValueError, match=r"data\.begun begins an answer of one turn"):
        train_policy_run(config_of(RunFile, described))
