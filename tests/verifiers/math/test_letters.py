"""Answers that name options by their labels."""

from __future__ import annotations

import pytest

import adjudge


@pytest.mark.parametrize(
    ("response", "gold", "value"),
    [
        (r"\boxed{\text{Option C}}", "C", 1),
        ("The correct option is C.", "C", 1),
        ("The answer is (C) Mitochondrion.", "C", 1),
        ("The correct choice is **C**.", "C", 1),
        (r"\boxed{B}", "Option B", 1),
        (r"\boxed{A, C, D}", "ACD", 1),
        (r"\boxed{\text{A, C, and D}}", "ACD", 1),
        (r"\boxed{ACD}", "A, C, D", 1),
        (r"\boxed{D, C, A}", "ACD", 1),
        (r"\boxed{①, ③}", "①③", 1),
        (r"\boxed{\text{Option C}}", "B", 0),
        (r"\boxed{\text{Option C is wrong}}", "C", 0),
        (r"\boxed{\text{C or D}}", "C", 0),
        (r"\boxed{C = 5}", "C", 0),
        (r"\boxed{A, C}", "ACD", 0),
        (r"\boxed{A, C, D}", "AC", 0),
        (r"\boxed{A \text{ or } D}", "AD", 0),
        (r"\boxed{①②}", "①③", 0),
    ],
)
def test_labels_of_options_are_compared_as_labels(response: str, gold: str, value: float) -> None:
    assert adjudge.score("", response, gold, scorer="math").value == value
