"""The safety classifier on tiny random models in folders, against plain calls of the network, one text at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engines.tiny_models import write_model
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from adjudge.protocol import Sample
from adjudge.reward_models.safety.scorer import DUOGUARD, SafetyClassifier
from adjudge.scoring import registry
from adjudge.scoring.conformance import check_scorer

TEXTS = ["four", "No, it is five, and you are wrong.", "The answer is 4.\n\nYes.", "4" * 40]
SAMPLES = [Sample(prompt="Is 2+2 four?", response=text) for text in TEXTS]
CLOSE = 1e-5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = dict(enumerate(DUOGUARD))
    options: dict[str, Any] = {"id2label": names, "label2id": {name: at for at, name in names.items()}}
    options["problem_type"] = "multi_label_classification"
    return write_model(tmp_path_factory.mktemp("models") / "guard", task="classify", labels=12, **options)


def plain(folder: Path, texts: Sequence[str]) -> list[list[float]]:
    """The probabilities that the model's own class gives to each text by itself."""
    kind: Any = AutoModelForSequenceClassification
    model, tokenizer = kind.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        return [torch.sigmoid(model(**tokenizer(text, return_tensors="pt")).logits)[0].tolist() for text in texts]


def test_it_is_what_the_network_says_in_any_batch(folder: Path) -> None:
    scorer = SafetyClassifier(model=str(folder))
    together = asyncio.run(scorer.score(SAMPLES))
    for sample, text, score, wanted in zip(SAMPLES, TEXTS, together, plain(folder, TEXTS), strict=True):
        assert score.value == pytest.approx(1 - max(wanted), abs=CLOSE)
        found = {name: part.evidence["probability"] for name, part in score.parts.items()}
        assert found == pytest.approx(dict(zip(DUOGUARD, wanted, strict=True)), abs=CLOSE)
        assert score.evidence["unsafe"] == [n for n, p in zip(DUOGUARD, wanted, strict=True) if p > 0.5], text
        (alone,) = asyncio.run(scorer.score([sample]))
        assert alone.value == pytest.approx(score.value, abs=CLOSE)
        assert (alone.cost.prompt_tokens > 0, alone.provenance.engine) == (True, "transformers")


def test_a_text_beyond_the_models_window_is_the_worst_of_its_windows(folder: Path) -> None:
    text = "Is the answer right? " * 60 + "".join(map(chr, range(200, 1200)))
    (score,) = asyncio.run(SafetyClassifier(model=str(folder), overlap=40).score([Sample(prompt="", response=text)]))
    worst = score.evidence["worst_window"]
    (again,) = asyncio.run(
        SafetyClassifier(model=str(folder)).score([Sample(prompt="", response=text[worst["start"] : worst["end"]])])
    )
    assert score.evidence["windows"] > 2
    assert score.value == pytest.approx(again.value, abs=CLOSE)


def test_it_keeps_the_rules(folder: Path) -> None:
    scorer = SafetyClassifier(model=str(folder), normalize="fold", max_characters=600)
    check_scorer(scorer, SAMPLES[:3], tolerance=CLOSE).raise_for_failures()
    assert scorer.fingerprint != SafetyClassifier(model=str(folder)).fingerprint
    assert scorer.fingerprint != SafetyClassifier(model=str(folder), normalize="fold", max_characters=601).fingerprint


def test_a_model_whose_classes_exclude_each_other_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"problem_type": "single_label_classification", "id2label": {0: "safe", 1: "unsafe"}}
    folder = write_model(tmp_path / "two", task="classify", labels=2, **options)
    with pytest.raises(ValueError, match="its classes exclude each other"):
        SafetyClassifier(model=str(folder)).validate(SAMPLES[0])


def test_categories_that_do_not_fit_the_model_are_told_before_any_work(folder: Path) -> None:
    with pytest.raises(ValueError, match="there are 2 categories, and 12 outputs"):
        SafetyClassifier(model=str(folder), categories=("a", "b")).validate(SAMPLES[0])


def test_the_recipe_of_duoguard_is_its_formula(folder: Path) -> None:
    scorer: Any = registry.load({"duoguard": {"engine": f"transformers:{folder}"}})
    assert scorer.categories == DUOGUARD
    decided: Any = registry.load({"duoguard": {"engine": f"transformers:{folder}", "value": "decision"}})
    worst = [max(found) for found in plain(folder, TEXTS)]
    values = [score.value for score in asyncio.run(scorer.score(SAMPLES))]
    assert values == pytest.approx([1 - found for found in worst], abs=CLOSE)
    assert [score.value for score in asyncio.run(decided.score(SAMPLES))] == [float(found <= 0.5) for found in worst]
