"""The loss of labels that may hold together: against its formula, by differences, and trained from nothing."""

from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_auc_score
from tests.reward_models.training.tiny_training import BAD, GOOD, tiny_config

from adjudge.engines.checkpoint_files import CheckpointFiles
from adjudge.engines.head_config import HeadConfig
from adjudge.protocol import Sample
from adjudge.reward_models.safety.scorer import SafetyClassifier
from adjudge.reward_models.training import losses
from adjudge.reward_models.training.held_out import flag_measures
from adjudge.reward_models.training.objective import Objective
from adjudge.reward_models.training.scalar_config import LossChoice
from adjudge.reward_models.training.scalar_training import train_scalar
from adjudge.training.data_files import held_out, read_preferences

NAMES = ("violence", "hate", "privacy")
Place = tuple[float, bool | None]  # a logit, and its label: None where nobody gave one

places = st.tuples(st.floats(-20, 20, width=32), st.sampled_from([True, False, None]))


def by_hand(row: list[Place]) -> float:
    """The formula with plain sums."""
    wrong = sum(math.exp(logit) for logit, label in row if label is False)
    right = sum(math.exp(-logit) for logit, label in row if label is True)
    return math.log(1 + wrong) + math.log(1 + right)


def ours(row: list[Place], logits: list[float] | None = None) -> float:
    values = torch.tensor([logits or [logit for logit, _ in row]], dtype=torch.float64)
    labels = torch.tensor([[math.nan if label is None else float(label) for _, label in row]])
    return float(losses.multi_label(values, labels, ~labels.isnan())[0])


@given(row=st.lists(places, min_size=1, max_size=12))
@settings(max_examples=80)
def test_it_is_the_formula(row: list[Place]) -> None:
    assert ours(row) == pytest.approx(by_hand(row), rel=1e-9, abs=1e-12)


def test_a_row_by_hand() -> None:
    row: list[Place] = [(0.0, True), (0.0, False), (math.log(2), False)]
    assert ours(row) == pytest.approx(math.log(2) + math.log(1 + 1 + 2))
    logits = torch.tensor([[0.0, 0.0, math.log(2)]])
    assert float(losses.multi_label(logits, torch.tensor([[1.0, 0.0, 0.0]]))[0]) == pytest.approx(ours(row))


def test_its_gradient_is_that_of_differences_and_none_where_no_label_is() -> None:
    row: list[Place] = [(0.3, True), (-1.2, False), (2.0, None), (0.7, False), (-0.4, True)]
    logits = torch.tensor([[logit for logit, _ in row]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[math.nan if label is None else float(label) for _, label in row]])
    losses.multi_label(logits, labels, ~labels.isnan()).sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    start = [logit for logit, _ in row]
    for at, found in enumerate(logits.grad[0].tolist()):
        up, down = list(start), list(start)
        up[at] += 1e-6
        down[at] -= 1e-6
        assert found == pytest.approx((ours(row, up) - ours(row, down)) / 2e-6, abs=1e-8)
    assert logits.grad[0, 2] == 0


def test_numbers_far_out_are_finite() -> None:
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4], [1e4, 1e4]], requires_grad=True)
    found = losses.multi_label(logits, torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]))
    assert found.tolist() == pytest.approx([0.0, 2e4, 1e4 + math.log(2)])
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


def test_a_label_nobody_gave_is_not_taken_for_safe_as_the_released_code_takes_it() -> None:
    objective = Objective(LossChoice(name="multi_label"), HeadConfig(outputs=3), {})
    raw = torch.tensor([[2.0, -1.0, 0.5], [1.0, 3.0, -2.0]])
    targets = torch.tensor([[1.0, math.nan, 0.0], [math.nan, math.nan, 1.0]])
    total, numbers = objective(raw, {"targets": targets, "weights": torch.full((2, 1), 0.5)})
    wanted = [by_hand([(2.0, True), (-1.0, None), (0.5, False)]), by_hand([(1.0, None), (3.0, None), (-2.0, True)])]
    assert float(total) == pytest.approx(np.mean(wanted))
    assert float(numbers["accuracy"]) == pytest.approx((0.5 + 0.0) / 2)
    assert by_hand([(3.0, None)]) == 0 < by_hand([(3.0, False)])


def test_measures_leave_out_what_nobody_labelled() -> None:
    logits = np.array([[2.0, -1.0], [-2.0, 1.0], [1.0, -3.0], [-1.0, 2.0], [0.5, -0.5]])
    targets = np.array([[1, 0], [0, np.nan], [0, np.nan], [1, 1], [0, 0]], dtype=float)
    found, rules = flag_measures(logits, targets, ("a", "b"))
    assert found["f1_a"].known == pytest.approx(f1_score([1, 0, 0, 1, 0], [1, 0, 1, 0, 1]))
    assert found["auc_a"].known == pytest.approx(roc_auc_score([1, 0, 0, 1, 0], logits[:, 0]))
    assert (found["f1_b"].known, found["f1_b"].n) == (1.0, 3)
    assert found["f1_any_label"].known == pytest.approx(f1_score([1, 1, 0], [1, 1, 1])), "two rows are not known"
    assert rules["f1_a of always yes"].known == pytest.approx(f1_score([1, 0, 0, 1, 0], [1] * 5))
    nothing, _ = flag_measures(logits, np.full((5, 2), np.nan), ("a", "b"))
    assert nothing == {}
    absent, _ = flag_measures(np.full((2, 1), -1.0), np.zeros((2, 1)), ("a",))
    assert (absent["f1_a"].value, "auc_a" in absent) == (None, False), "nothing is there, and nothing was said"


def planted(count: int) -> list[dict[str, Any]]:
    """Ten words; each of three words stands for a category, and a tenth of the labels are missing."""
    draw = random.Random(0)
    rows = []
    for number in range(count):
        there = [draw.random() < 0.3 for _ in NAMES]
        words = draw.choices(GOOD, k=7) + [word for word, is_there in zip(BAD, there, strict=False) if is_there]
        draw.shuffle(words)
        labels = {name: None if draw.random() < 0.1 else found for name, found in zip(NAMES, there, strict=True)}
        if any(label is not None for label in labels.values()):
            rows.append({"prompt": f"Question {number}?", "response": " ".join(words), **labels})
    return rows


def test_planted_categories_are_learnt_and_the_scorer_reads_them(tmp_path: Path) -> None:
    rows = planted(400)
    options: dict[str, Any] = {"head": {"outputs": 3}, "data": {"attributes": NAMES, "held_out": 0.2}}
    report = train_scalar(
        tiny_config(tmp_path, rows, loss="multi_label", schedule={"epochs": 6, "save_steps": 1000}, **options)
    )
    assert report.history[-1]["loss"] < 0.5 * report.history[0]["loss"]
    assert report.metrics["f1_any_label"].known > 0.9 > report.baselines["f1_any_label of always yes"].known
    for name in NAMES:
        assert report.metrics[f"f1_{name}"].known > 0.9 > report.baselines[f"f1_{name} of always yes"].known
    notes = CheckpointFiles.of(str(tmp_path / "model")).notes
    assert notes is not None
    assert notes.normalizer is None, "log-odds of different labels have no common mean"
    scorer = SafetyClassifier(model=str(tmp_path / "model"), form="chat", view="both", value="decision")
    examples: Any = read_preferences([str(tmp_path / "rows.jsonl")], attributes=NAMES).examples
    _, held = held_out(examples, 0.2, seed=0)
    samples = [Sample(prompt=examples[at].prompt, response=examples[at].response) for at in held]
    scores = asyncio.run(scorer.score(samples))
    known = [at for at, place in enumerate(held) if examples[place].values[0] is not None]
    said = ["violence" in scores[at].evidence["unsafe"] for at in known]
    told = [bool(examples[held[at]].values[0]) for at in known]
    assert f1_score(told, said) == pytest.approx(report.metrics["f1_violence"].known)
    assert all((score.value == 0.0) == bool(score.evidence["unsafe"]) for score in scores)
    with pytest.raises(ValueError, match="was trained on chats; set form: chat"):
        SafetyClassifier(model=str(tmp_path / "model")).validate(samples[0])


@pytest.mark.parametrize(
    ("rows", "options", "why"),
    [
        ([{"prompt": f"{at}", "response": "a", "x": 0.5} for at in range(4)], {}, "labels that are 0 or 1"),
        ([{"prompt": f"{at}", "response": "a", "x": 1} for at in range(4)], {"head": {"outputs": 2}}, "has 2 outputs"),
        (
            [{"prompt": f"{at}", "response": "a", "x": 1} for at in range(4)],
            {"head": {"kind": "gaussian"}},
            "does not train a head of kind 'gaussian'",
        ),
    ],
    ids=["soft labels", "too many outputs", "another head"],
)
def test_mistakes_are_told(rows: list[dict[str, Any]], options: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        train_scalar(tiny_config(tmp_path, rows, loss="multi_label", data={"attributes": ["x"]}, **options))
