"""Pairs of steps train a policy as they are: what both texts share cancels, and margins are advantages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engines.tiny_models import write_model

from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.maker import build_pairs
from adjudge.reward_models.training.policy_config import PolicyTraining
from adjudge.reward_models.training.policy_training import train_policy
from adjudge.training.config_file import config_of


def nodes(count: int) -> list[dict[str, Any]]:
    """Trees of two steps: the careful first step is worth more, and so is the second one that gives a verdict."""
    found = []
    for number in range(count):
        tree = (
            ("a", "", f"careful answer {number}", 0.6),
            ("b", "", f"question {number}", 0.1),
            ("c", "a", "verdict yes", 0.9),
            ("d", "a", "judge no", 0.3),
        )
        for name, parent, text, value in tree:
            row = {"prompt": f"Problem {number}", "node": name, "parent": parent, "response": text, "score": value}
            found.append(row)
    return found


def test_step_pairs_train_a_policy_with_step_apo(tmp_path: Path) -> None:
    (tmp_path / "tree.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in nodes(12)), encoding="utf-8")
    output = tmp_path / "pairs.jsonl"
    build_pairs(PairsConfig(input=str(tmp_path / "tree.jsonl"), output=str(output), rule="step_apo"))
    pairs = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(pairs) == 24
    assert {round(pair["margin"], 6) for pair in pairs} == {0.5, 0.6}
    write_model(tmp_path / "model")
    report = train_policy(
        config_of(
            PolicyTraining,
            {
                "model": str(tmp_path / "model"),
                "data": {"path": str(output), "held_out": 0.25},
                "output": str(tmp_path / "policy"),
                "loss": "step_apo",
                "whole": False,
                "schedule": {"epochs": 4, "learning_rate": 1e-3, "batch_size": 6},
            },
        )
    )
    assert report.data["left_out_of_training"] == {}
    assert report.metrics["accuracy"].value == pytest.approx(1.0)
