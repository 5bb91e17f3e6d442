"""`adjudge train prm` with `model: ngrams`: from labelled steps to a report and a scorer that agrees with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reward_models.baselines.demo_solutions import solutions

from adjudge.protocol import Sample
from adjudge.reward_models.baselines.step_model import StepModel, chances
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_rows import read_split
from adjudge.reward_models.training.process_training import train_process
from adjudge.training.config_file import config_of


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ngrams") / "steps.jsonl"
    found = [
        {"prompt": one.prompt, "steps": one.steps, "labels": one.labels, "outcome": one.outcome}
        for one in solutions(120, seed=1)
    ]
    path.write_text("\n".join(map(json.dumps, found)), encoding="utf-8")
    return path


def config(rows: Path, output: Path, **more: Any) -> ProcessTraining:
    record = {"model": "ngrams", "data": {"path": str(rows), "held_out": 0.25}, "output": str(output), **more}
    return config_of(ProcessTraining, record)


def test_from_labelled_steps_to_a_scorer_that_agrees_with_the_report(rows: Path, tmp_path: Path) -> None:
    chosen = config(rows, tmp_path / "model")
    report = train_process(chosen)
    assert (report.what, report.data["trained_on"], report.data["measured_on"]) == ("ngrams", 90, 30)
    assert report.metrics["step_auc"].known > 0.95
    assert report.metrics["step_accuracy"].known > 0.9
    assert "step_accuracy of calling every step right" in report.baselines
    held = read_split(chosen.data, seed=chosen.seed).held_out
    scorer = StepModel(model=str(tmp_path / "model"), split="line")
    scores = asyncio.run(scorer.score([Sample(prompt=one.prompt, response="\n".join(one.steps)) for one in held]))
    told = [
        ((step.value or 0.0) > 0.5) == (label > 0.5)
        for score, one in zip(scores, held, strict=True)
        for step, label in zip(score.steps, one.labels, strict=True)
        if label is not None
    ]
    assert float(np.mean(told)) == pytest.approx(report.metrics["step_accuracy"].known)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "step_model:" in card
    assert "not a reward to optimise" in card


def test_a_finished_training_is_not_repeated(rows: Path, tmp_path: Path) -> None:
    first = train_process(config(rows, tmp_path / "model"))
    assert train_process(config(rows, tmp_path / "model"), resume=True) == first
    with pytest.raises(ValueError, match="which holds a trained model"):
        train_process(config(rows, tmp_path / "model"))
    with pytest.raises(ValueError, match="normalize"):
        train_process(config(rows, tmp_path / "model", normalize="step"), resume=True)


def test_options_of_the_loss_reach_the_fit(rows: Path, tmp_path: Path) -> None:
    options: dict[str, dict[str, Any]] = {
        "plain": {},
        "again": {},
        "by step": {"normalize": "step"},
        "wrong ones weigh more": {"loss": {"bad": 4.0}},
        "right ones weigh more": {"loss": {"good": 4.0}},
    }
    for name, more in options.items():
        train_process(config(rows, tmp_path / name, **more))
    models = {name: StepModel.load(tmp_path / name) for name in options}
    assert models["plain"].fingerprint == models["again"].fingerprint
    assert len({model.fingerprint for model in models.values()}) == len(options) - 1
    one = solutions(2, seed=2)[1]
    said = {name: np.mean(chances(model.fitted, one.prompt, one.steps)) for name, model in models.items()}
    assert said["wrong ones weigh more"] < said["plain"] < said["right ones weigh more"]


MISTAKES: dict[str, dict[str, Any]] = {
    "another loss": {"loss": "squared_error"},
    "the answer's label": {"outcome": 0.5},
    "the implicit objective": {"objective": "implicit"},
    "a head": {"head": {"hidden": 8}},
    "a layout": {"layout": {"marker": "", "chat": False}},
}


@pytest.mark.parametrize("more", MISTAKES.values(), ids=MISTAKES)
def test_options_of_networks_are_refused(rows: Path, tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="model is ngrams, which learns labels of steps"):
        config(rows, tmp_path / "model", **more)


def test_labels_without_a_difference_are_refused(rows: Path, tmp_path: Path) -> None:
    right = tmp_path / "right.jsonl"
    found = [{**json.loads(line), "labels": [1, 1]} for line in rows.read_text(encoding="utf-8").splitlines()]
    right.write_text("\n".join(map(json.dumps, found)), encoding="utf-8")
    with pytest.raises(ValueError, match=r"have the label 1\.0, which teaches nothing"):
        train_process(config(right, tmp_path / "model"))
    assert not (tmp_path / "model").exists()
