"""`adjudge train`: a model from a file, settings on the command line, and errors of one paragraph."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.reward_models.training.tiny_training import planted, write_rows

from adjudge.cli import exits
from adjudge.cli.train import _BY_REWARDS, TRAINERS, _named
from adjudge.protocol import Sample
from adjudge.reward_models.baselines.preference_model import PreferenceModel
from adjudge.scoring.conformance import check_scorer
from adjudge.training.config_file import keys_of, load_config

Adjudge = Callable[..., Any]
EXAMPLES = Path(__file__).parents[2] / "examples" / "training"


def config(folder: Path, **more: Any) -> str:
    rows = write_rows(folder / "rows.jsonl", planted(120))
    path = folder / "rm.yaml"
    path.write_text(
        yaml.safe_dump({"model": "ngrams", "data": rows, "output": str(folder / "model"), **more}), encoding="utf-8"
    )
    return str(path)


@pytest.mark.parametrize("kind", TRAINERS)
def test_every_kind_has_its_trainer(kind: Any) -> None:
    for home in TRAINERS[kind]:
        assert callable(_named(home))


def test_ngrams_from_file_to_scorer(adjudge: Adjudge, tmp_path: Path) -> None:
    ran = adjudge("train", "rm", config(tmp_path), "--set", "data.held_out=0.25")
    assert ran.code == exits.FINE, ran.err
    assert "accuracy" in ran.out
    assert "baseline: longer wins" in ran.out
    assert "fitted on 90 examples" in ran.out
    model = PreferenceModel.load(tmp_path / "model")
    samples = [Sample(prompt="Question?", response=text) for text in ("calm clear kind", "loud rude wrong endless")]
    report = check_scorer(model, samples)
    assert report.ok, report
    assert "preference_model:" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_a_transformer_with_progress_and_json(adjudge: Adjudge, tmp_path: Path) -> None:
    path = config(tmp_path, model={"from_scratch": "tiny"}, max_length=64)
    words = ("train", "rm", path, "--json", "--set", "schedule.batch_size=16", "--set", "schedule.learning_rate=1e-3")
    ran = adjudge(*words)
    assert ran.code == exits.FINE, ran.err
    assert ran.json["steps"] == 7
    assert ran.json["metrics"]["accuracy"]["n"] == 12
    assert "n-gram model" in ran.json["baselines"]
    report = json.loads((tmp_path / "model" / "report.json").read_text(encoding="utf-8"))
    assert {**report, "scorer": {"reward_model": {"model": str(tmp_path / "model")}}} == ran.json
    again = adjudge(*words, "--resume")
    assert again.json == ran.json


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("rm", "nowhere.yaml"), "'nowhere.yaml' cannot be read"),
        (("rm", "{config}", "--set", "lose=bt"), "did you mean 'loss'?"),
        (("rm", "{config}", "--set", "loss"), "not of the form key=value"),
        (("rm", "{config}", "--set", "data=nowhere.jsonl"), "there is no file or folder nowhere.jsonl"),
        (("rm", "{config}", "--set", "model=/no/such/model"), "there is no such folder"),
        (("rm", "{config}", "--set", "loss=hinge"), "the model ngrams has a loss of its own"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_mistakes_are_one_paragraph(adjudge: Adjudge, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    path = config(tmp_path)
    ran = adjudge("train", *(word.replace("{config}", path) for word in words))
    assert ran.code == exits.USER
    assert why in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "model" / "report.json").exists()


def test_ctrl_c_says_how_to_go_on(adjudge: Adjudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adjudge.reward_models.training import scalar_training

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(scalar_training, "train_scalar", stopped)
    ran = adjudge("train", "rm", config(tmp_path))
    assert ran.code == exits.INTERRUPTED
    assert (
        ran.err
        == "adjudge: stopped; the same command with --resume goes on from the newest checkpoint, if there is one\n"
    )


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_examples_are_configurations(path: Path) -> None:
    kind: Any = path.name.partition("_")[0].partition(".")[0]
    home = _BY_REWARDS if "reward" in keys_of(str(path)) else TRAINERS[kind][0]
    assert load_config(_named(home), str(path))
