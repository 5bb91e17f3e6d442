"""Training finds planted labels, resumes with the same bits, and what it saves scores as it was measured."""

from __future__ import annotations

import asyncio
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import write_model
from tests.reward_models.training.tiny_training import Killed, kill_at

from adjudge.engines.checkpoint_notes import CheckpointNotes
from adjudge.protocol import Sample
from adjudge.reward_models.process.likelihood import ImplicitRewardScorer
from adjudge.reward_models.process.step_scorer import ProcessRewardScorer
from adjudge.reward_models.training.process_config import ProcessTraining
from adjudge.reward_models.training.process_rows import read_split
from adjudge.reward_models.training.process_training import train_process
from adjudge.scoring import registry
from adjudge.training.backbones import ModelChoice
from adjudge.training.config_file import config_of, load_config
from adjudge.training.step_data import StepExample

WORDS = ("Is", "the", "answer", "question", "judge", "verdict", "Score", "careful", "says", "read")


def planted(count: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Solutions whose steps are right unless they hold the word "wrong"; some labels are unknown."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        labels = [draw.random() < 0.6 for _ in range(draw.randint(1, 4))]
        steps = [
            " ".join([*draw.sample(WORDS, 3), "correct" if right else "wrong", *draw.sample(WORDS, 2)])
            for right in labels
        ]
        known = [None if draw.random() < 0.2 else right for right in labels]
        rows.append({"prompt": f"Problem {number}", "steps": steps, "labels": known, "outcome": all(labels)})
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("process")
    write_model(folder / "model")
    (folder / "steps.jsonl").write_text("\n".join(map(json.dumps, planted(160))))
    return folder


def options(home: Path, output: str, **more: Any) -> ProcessTraining:
    record: dict[str, Any] = {
        "model": str(home / "model"),
        "data": {"path": str(home / "steps.jsonl"), "held_out": 0.25},
        "output": str(home / output),
        "schedule": {"epochs": 8, "learning_rate": 3e-3, "batch_size": 8},
    }
    return config_of(ProcessTraining, {**record, **more})


KINDS: dict[str, dict[str, Any]] = {
    "two classes at a marker": {},
    "one number at the last token, with the outcome": {
        "layout": {"marker": "", "chat": False},
        "head": {"two_class": False},
        "outcome": 0.5,
        "normalize": "step",
    },
    "a value head with a hidden layer": {
        "loss": "squared_error",
        "head": {"two_class": False, "hidden": 32},
        "schedule": {"epochs": 10, "learning_rate": 2e-3, "batch_size": 8},
    },
    "low-rank factors, activations computed again": {
        "schedule": {
            "epochs": 6,
            "learning_rate": 1e-2,
            "batch_size": 8,
            "lora": 8,
            "checkpointing": True,
        }
    },
}


@pytest.mark.parametrize("more", KINDS.values(), ids=KINDS)
def test_planted_labels_are_found_in_problems_never_seen(
    home: Path, more: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    report = train_process(options(home, request.node.callspec.id, **more))
    assert report.metrics["step_auc"].known > 0.9
    if "loss" not in more:
        accuracy, trivial = (
            report.metrics["step_accuracy"],
            report.baselines["step_accuracy of calling every step right"],
        )
        assert accuracy.low is not None
        assert trivial.high is not None
        assert accuracy.low > trivial.high
    if "outcome" in more:
        assert report.metrics["outcome_auc"].known > 0.7
    new_marker = [text for text in report.warnings if "its embedding is not trained" in text]
    assert len(new_marker) == ("lora" in more.get("schedule", {}))
    counts = report.data
    assert counts["train"] + counts["held_out"] == 160
    assert counts["left_out_of_training"].get("too long") is None


def test_a_checkpoint_scores_as_it_was_measured(home: Path) -> None:
    """The scorer finds the format in the notes, and its numbers are those behind the report."""
    config = options(home, "scored", outcome=0.3, schedule={"epochs": 2, "learning_rate": 3e-3, "batch_size": 8})
    report = train_process(config)
    notes = CheckpointNotes.read(home / "scored")
    assert notes is not None
    assert (notes.what, notes.marker, notes.labels) == ("process", "<extra_0>", ("bad", "good"))
    held = read_split(config.data, seed=config.seed).held_out
    scorer = registry.load(str(home / "scored"))
    assert scorer == ProcessRewardScorer(engine=f"transformers:{home / 'scored'}")
    scores = asyncio.run(scorer.score([Sample(prompt=item.prompt, response="\n\n".join(item.steps)) for item in held]))
    told = [
        (step.value, label)
        for item, score in zip(held, scores, strict=True)
        for step, label in zip(score.steps, item.labels, strict=True)
        if label is not None
    ]
    assert report.metrics["step_accuracy"].n == len(told)
    squares = [((value or 0.0) - label) ** 2 for value, label in told]
    assert report.metrics["step_brier"].value == pytest.approx(sum(squares) / len(squares), abs=1e-6)


def test_an_implicit_model_scores_as_it_was_measured(home: Path) -> None:
    config = options(home, "implicit", objective="implicit", beta=0.2)
    report = train_process(config)
    assert report.metrics["auc"].known > 0.8
    held = read_split(config.data, seed=config.seed).held_out
    scorer = registry.load({str(home / "implicit"): {"floor": -100.0}})
    assert scorer == ImplicitRewardScorer(
        engine=f"transformers:{home / 'implicit'}",
        reference_engine=f"transformers:{home / 'model'}",
        beta=0.2,
        floor=-100.0,
    )
    scores = asyncio.run(scorer.score([Sample(prompt=item.prompt, response="\n\n".join(item.steps)) for item in held]))
    squares = []
    for item, score in zip(held, scores, strict=True):
        assert score.value is not None
        assert item.outcome is not None
        assert score.value == pytest.approx(sum(step.value or 0.0 for step in score.steps), abs=1e-4)
        squares.append((1 / (1 + math.exp(-score.value)) - item.outcome) ** 2)
    assert report.metrics["brier"].value == pytest.approx(sum(squares) / len(squares), abs=1e-5)


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.safetensors"))}


@pytest.mark.parametrize("objective", ["steps", "implicit"])
def test_a_resumed_training_ends_with_the_same_bits(home: Path, objective: str) -> None:
    schedule = {"epochs": 1, "learning_rate": 3e-3, "batch_size": 8, "save_steps": 5, "log_steps": 5}
    more: dict[str, Any] = {"objective": objective, "schedule": schedule}
    if objective == "steps":
        more["outcome"] = 0.5
    whole = train_process(options(home, f"{objective}_whole", **more))
    broken = options(home, f"{objective}_broken", **more)

    with pytest.raises(Killed):
        train_process(broken, progress=kill_at(8))
    with pytest.raises(ValueError, match="resume"):
        train_process(broken)
    resumed = train_process(broken, resume=True)
    assert resumed.resumed == 5
    assert resumed.steps == whole.steps
    found = weights(home / f"{objective}_broken")
    assert found
    assert found == weights(home / f"{objective}_whole")
    assert resumed.metrics == whole.metrics
    again = train_process(broken, resume=True)
    assert again.to_dict() == resumed.to_dict()
    logged = {**more, "schedule": {**schedule, "log_steps": 1}}  # which another model would not come of
    assert train_process(options(home, f"{objective}_broken", **logged), resume=True) == again
    other = {**more, "schedule": {**schedule, "learning_rate": 1e-3}}
    with pytest.raises(ValueError, match=r"trained with other options \(schedule.learning_rate\)"):
        train_process(options(home, f"{objective}_broken", **other), resume=True)


def test_a_start_of_which_half_was_kept_is_kept_whole(home: Path) -> None:
    """A new model is nowhere else: scoring needs it beside the trained one, whenever the training was killed."""
    schedule = {"epochs": 1, "batch_size": 40, "save_steps": 1}
    config = options(home, "start", model={"from_scratch": "tiny"}, objective="implicit", schedule=schedule)

    with pytest.raises(Killed):
        train_process(config, progress=kill_at(1))
    (home / "start" / "reference" / "model.safetensors").unlink()
    train_process(config, resume=True)
    (made,) = (home / "start").glob("training_model_*")
    assert weights(home / "start" / "reference") == weights(made)
    scorer = registry.load(str(home / "start"))
    assert isinstance(scorer, ImplicitRewardScorer)
    assert scorer.reference_engine == f"transformers:{home / 'start' / 'reference'}"


def test_another_option_is_not_resumed(home: Path) -> None:
    schedule = {"save_steps": 2, "batch_size": 8}
    with pytest.raises(Killed):
        train_process(options(home, "changed", schedule=schedule), progress=kill_at(3))
    with pytest.raises(ValueError, match="normalize"):
        train_process(options(home, "changed", schedule=schedule, normalize="step"), resume=True)


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "n-grams with a network's options": ({"model": "ngrams", "head": {"hidden": 8}}, "has no network"),
    "a head for the implicit objective": ({"objective": "implicit", "outcome": 0.5}, "leave out loss, head"),
    "an implicit objective on cut solutions": ({"objective": "implicit", "too_long": "cut"}, "set too_long to drop"),
    "a marker in plain text": ({"layout": {"chat": False}}, "set marker to ''"),
    "no end of a step": ({"layout": {"marker": "", "separator": ""}}, "both empty"),
    "weights for ranking": ({"loss": {"name": "ranking", "bad": 2.0}}, "weigh the cross-entropy"),
    "a weight of 0": ({"loss": {"bad": 0.0}}, "loss option bad=0"),
    "an unknown loss": ({"loss": "hinge"}, "cross_entropy"),
    "an unknown format": ({"data": {"path": "x", "format": "csv"}}, "data.format is 'csv'"),
    "no data": ({"data": {"path": []}}, "data.path is empty"),
    "an unknown option": ({"normalise": "step"}, "did you mean 'normalize'"),
    "no such file": ({"data": "nowhere.jsonl"}, "there is no file or folder"),
}


@pytest.mark.parametrize(("more", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_users_mistake_is_named(home: Path, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        train_process(options(home, "mistake", **more))


def test_too_short_a_window_says_what_was_left_out(home: Path) -> None:
    with pytest.raises(ValueError, match=r"no training example is left \(\d+ x too long\)"):
        train_process(options(home, "short", max_length=4))


@pytest.mark.parametrize("objective", ["steps", "implicit"])
def test_labels_without_a_difference_are_refused(home: Path, objective: str) -> None:
    path = home / "right.jsonl"
    path.write_text(
        "\n".join(json.dumps({**row, "labels": [1] * len(row["steps"]), "outcome": 1}) for row in planted(8))
    )
    with pytest.raises(ValueError, match=r"have the label 1\.0, which teaches nothing"):
        train_process(options(home, f"right_{objective}", data={"path": str(path)}, objective=objective))


def test_held_out_problems_are_never_trained_on(home: Path) -> None:
    again = home / "again.jsonl"
    rows = planted(160)[:40]
    again.write_text("\n".join(json.dumps({**row, "prompt": f"  {row['prompt']}\n"}) for row in rows))
    config = options(home, "x", data={"path": str(home / "steps.jsonl"), "held_out_path": str(again)})
    split = read_split(config.data, seed=0)
    assert (len(split.train), len(split.held_out)) == (120, 40)
    assert split.facts["problems_also_held_out"] == 40


def test_a_second_opinion_filters_what_is_trained_on(home: Path) -> None:
    judge = home / "judge.jsonl"
    rows = [{**row, "labels": [False for _ in row["labels"]]} for row in planted(160)]
    judge.write_text("\n".join(map(json.dumps, rows)))
    config = options(home, "x", data={"path": str(home / "steps.jsonl"), "judged": str(judge)})
    split = read_split(config.data, seed=0)
    agreed = [*split.train, *split.held_out]
    assert len(agreed) == split.facts["consensus"]["agreed"] > 0
    assert all(isinstance(item, StepExample) and item.labels[0] == 0.0 for item in agreed)
    assert split.facts["consensus"]["disagreed"] > 0


def test_examples_are_configurations(root: Path) -> None:
    found = sorted((root / "examples/training").glob("prm*.yaml"))
    assert len(found) == 4
    for path in found:
        config = load_config(ProcessTraining, str(path), ["output=x"])
        assert (config.objective == "implicit") == ("implicit" in path.name)


def test_the_shorthand_of_a_model_is_its_folder(home: Path) -> None:
    assert options(home, "x").model == ModelChoice(name=str(home / "model"))
