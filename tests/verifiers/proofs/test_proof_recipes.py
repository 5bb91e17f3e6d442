"""The presets of provers load, and mean what their papers say."""

from __future__ import annotations

import pytest

import adjudge
from adjudge.scoring import registry

PROOF = "Let n be even, so n = 2k and n squared is 4 k squared. "


def test_deepseek_prover_asks_a_server_for_three_hundred_seconds() -> None:
    scorer = registry.load("deepseek_prover")
    assert scorer.name == "lean_server"
    assert getattr(scorer, "seconds", None) == 300


@pytest.mark.parametrize(
    ("response", "label", "value"),
    [
        (f"{PROOF}<answer>\\boxed{{proved}}</answer>", "proved", 1.0),
        (f"{PROOF}<answer>\\boxed{{ Disproved }}</answer>", "disproved", 1.0),
        (f"{PROOF}<answer>\\boxed{{proved}}</answer>", "disproved", 0.0),
        (f"{PROOF}\\boxed{{proved}}", "proved", 0.0),
        ("x" * 400 + "<answer>\\boxed{proved}</answer>", "proved", 0.0),
        ("so " * 3000 + "<answer>\\boxed{proved}</answer>", "proved", 0.0),
    ],
    ids=["right", "normalised", "wrong", "no-tag", "no-blanks", "repeated"],
)
def test_deep_theorem_compares_labels_behind_its_gates(response: str, label: str, value: float) -> None:
    scorer = registry.load("deep_theorem")
    assert adjudge.score("Prove or disprove it.", response, label, scorer=scorer).value == value
