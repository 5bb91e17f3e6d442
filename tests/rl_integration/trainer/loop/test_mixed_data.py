"""Sums, programs and a form in one data set train in this trainer in the five forms in which people have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.rl_integration.mixed_data import FORMS, completions, dataset

from adjudge.rl_integration.trainer.loop.config import RunFile
from adjudge.rl_integration.trainer.loop.policy_run import train_policy_run
from adjudge.rl_integration.trainer.rollouts.rollouts_config import TaskFiles
from adjudge.rl_integration.trainer.rollouts.task_reader import read_tasks
from adjudge.runtime.loop import run_blocking
from adjudge.scoring.api import load, score_rows
from adjudge.training.config_file import load_config

FORM = {"scorer": "format", "weight": 0.5}


def settings(form: str) -> tuple[dict[str, Any], Any]:
    """The columns and the reward that a user writes for a form; most of the columns are guessed."""
    if form == "kind":
        by_kind = {"by_kind": {"math": "math", "code": "code"}}
        return {"reference": "ref", "extra": ["kind"]}, {"weighted": [{"scorer": by_kind, "name": "right"}, FORM]}
    columns = {"reference": "ref"} if form in ("json_text", "struct") else {}
    return columns, {"weighted": [{"scorer": "auto", "name": "right"}, FORM]}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def saved(form: str, folder: Path, kind: str) -> str:
    if kind == "folder":
        dataset(form).save_to_disk(folder / "rows")
        return str(folder / "rows")
    dataset(form).to_parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


@pytest.mark.parametrize("kind", ["folder", "parquet"])
def test_every_right_answer_is_paid(form: str, kind: str, tmp_path: Path) -> None:
    columns, reward = settings(form)
    files = TaskFiles(path=(saved(form, tmp_path, kind),), held_out=0.0, **columns)
    scorer = load(reward)
    tasks = read_tasks(files, accept=lambda sample: None).train
    samples = [
        task.sample(text, id=task.id, finish_reason="stop") for task, text in zip(tasks, completions(form), strict=True)
    ]
    scores = run_blocking(score_rows(scorer, samples))
    assert [score.value for score in scores] == [1.5] * 4
    wrong = [task.sample("No idea.", id=task.id, finish_reason="stop") for task in tasks]
    assert [score.value for score in run_blocking(score_rows(scorer, wrong))] == [0.0] * 4


def test_it_trains(form: str, tmp_path: Path) -> None:
    columns, reward = settings(form)
    record = {
        "model": {"from_scratch": "tiny"},
        "data": {"path": saved(form, tmp_path, "parquet"), "held_out": 0.0, **columns},
        "output": str(tmp_path / "run"),
        "reward": {"scorer": reward},
        "rollouts": {"tasks": 4, "num_generations": 2, "sampling": {"max_new_tokens": 4}},
        "steps": 2,
    }
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(record))
    report = train_policy_run(load_config(RunFile, str(tmp_path / "run.yaml")))
    assert report.steps == 2
