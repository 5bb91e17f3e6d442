"""Labels of real solutions: of models on GSM8K, and beside what people said about other solutions (ProcessBench)."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.steps.config import StepsConfig
from adjudge.data_pipelines.steps.labeling import label_steps
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_training import train_process
from adjudge.training.config_file import config_of
from adjudge.training.data_files import read_steps

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


@pytest.fixture(scope="module")
def corpora() -> Path:
    if not os.environ.get("ADJUDGE_DATA"):
        pytest.skip("ADJUDGE_DATA names no folder with the corpora")
    return Path(os.environ["ADJUDGE_DATA"])


def read(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def gsm8k(corpora: Path, folder: Path, **options: Any) -> StepsConfig:
    return StepsConfig(
        input=str(corpora / "gsm8k" / "model_solutions.jsonl"),
        output=str(folder / "steps.jsonl"),
        prompt_column="question",
        response_column=tuple(f"{model}.solution" for model in MODELS),
        splitting="line",
        **options,
    )


def test_solutions_of_models_become_step_data_that_a_process_model_trains_on(corpora: Path, tmp_path: Path) -> None:
    options = gsm8k(
        corpora,
        tmp_path,
        method="worked",
        reference_column="ground_truth",
        outcome_column=tuple(f"{model}.is_correct" for model in MODELS),
        limit=60,
    )
    report = label_steps(options)
    made = read(options.output)
    assert report.made == len(made) >= 230
    assert 0.2 < sum(row["outcome"] for row in made) / len(made) < 0.6
    assert all(set(row["labels"]) == {1.0} for row in made if row["outcome"])
    wrong = [row for row in made if not row["outcome"]]
    assert all(0.0 in row["labels"] for row in wrong)
    assert len(read_steps(options.output).examples) == len(made)
    training = config_of(
        ProcessTraining,
        {
            "model": {"from_scratch": "tiny"},
            "data": {"path": options.output, "held_out": 0.25},
            "output": str(tmp_path / "model"),
            "max_length": 256,
            "schedule": {"epochs": 1, "learning_rate": 1e-3, "batch_size": 16},
        },
    )
    trained = train_process(training)
    assert "step_auc" in trained.metrics
    assert trained.data["bad_rows"] == {}


def test_the_models_calculator_is_nearly_always_right(corpora: Path, tmp_path: Path) -> None:
    """Their sums were worked out by a calculator, so arithmetic alone cannot find their errors."""
    options = gsm8k(corpora, tmp_path, method="arithmetic", limit=100)
    label_steps(options)
    labels = Counter(label for row in read(options.output) for label in row["labels"])
    assert labels[1.0] > 900
    assert labels[0.0] < 0.02 * labels[1.0]


def test_labels_from_worked_solutions_agree_with_people(corpora: Path, tmp_path: Path) -> None:
    worked = {}
    for line in (corpora / "gsm8k" / "test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        worked[" ".join(row["question"].split())] = row["answer"]
    people = json.loads((corpora / "processbench" / "gsm8k.json").read_text(encoding="utf-8"))
    given = tmp_path / "in.jsonl"
    rows = [{**row, "worked": worked[" ".join(row["problem"].split())]} for row in people]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = StepsConfig(
        input=str(given),
        output=str(tmp_path / "out.jsonl"),
        method="worked",
        prompt_column="problem",
        steps_column="steps",
        reference_column="worked",
        outcome_column=("final_answer_correct",),
        id_column="id",
    )
    label_steps(options)
    truth = {row["id"]: row["label"] for row in people}
    agreed: Counter[tuple[float, bool]] = Counter()
    for row in read(options.output):
        error = truth[row["id"]]
        for at, label in enumerate(row["labels"]):
            if label is not None and (error < 0 or at <= error):  # people said nothing about what follows an error
                agreed[label, at != error] += 1
    assert agreed[1.0, True] / (agreed[1.0, True] + agreed[1.0, False]) > 0.95
    assert agreed[0.0, False] / (agreed[0.0, True] + agreed[0.0, False]) > 0.6
