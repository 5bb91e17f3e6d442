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
        ("A: red", "A", 1),
        ("**A: red**", "A", 1),
        ("<think>B? no</think>\nA: red", "A", 1),
        ("答案：A：blue", "A", 1),
        ("B：blue", "B", 1),
        ("A: red", "red", 1),
        ("Option D: 12", "D", 1),
        ("A: red", "B", 0),
        ("A: B", "A", 0),
        ("A: red\nB: blue", "A", 0),
        ("A: red\nSo B.", "A", 0),
        ("Answer: B\nA: red", "A", 0),
        ("Q: Which colour?\nA: red", "A", 0),
        ("Option A: 12. Option B: 13.", "A", 0),
        ("Option D: 12", "C", 0),
    ],
)
def test_labels_of_options_are_compared_as_labels(response: str, gold: str, value: float) -> None:
    assert adjudge.score("", response, gold, scorer="math").value == value
