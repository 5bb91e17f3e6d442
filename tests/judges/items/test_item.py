"""Rubrics as references: every published shape is read, and what cannot be meant is an error that says what to do."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.judges.items.item import Item, read_rubric
from adjudge.scoring.bad_reference import BadReferenceError

PROGRAM = "def check(prompt, response):\n    return True\n"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("is polite", Item(text="is polite", name="item_1")),
        ({"criterion": "is safe", "points": -5}, Item(text="is safe", weight=-5.0, name="item_1")),
        (
            {"title": "Dose", "description": "Essential: states the dose", "weight": 5},
            Item(text="Essential: states the dose", weight=5.0, name="Dose"),
        ),
        ({"text": "no guess", "importance": "Pitfall"}, Item(text="no guess", weight=0.9, name="item_1")),
        (
            {"text": "tone", "kind": "ordered", "choices": ["rude", "flat", "warm"]},
            Item(text="tone", kind="ordered", choices=("rude", "flat", "warm"), name="item_1"),
        ),
        ({"program": PROGRAM}, Item(text="item_1", kind="program", program=PROGRAM, name="item_1")),
        ({"check": "short", "gate": True}, Item(text="item_1", kind="check", check="short", gate=True, name="item_1")),
        (
            {"text": "brief", "kind": "rating", "program": PROGRAM},
            Item(text="brief", kind="rating", program=PROGRAM, name="item_1"),
        ),
    ],
    ids=["text", "HealthBench", "Rubrics as Rewards", "importance", "choices", "program", "check", "RLCF"],
)
def test_published_shapes_are_read(entry: Any, expected: Item) -> None:
    assert read_rubric({"rubric": [entry]}) == (expected,)
    assert read_rubric([entry]) == (expected,)


@pytest.mark.parametrize(
    ("reference", "complaint"),
    [
        (None, "give a mapping with the list 'rubric'"),
        ("is polite", "give a mapping with the list 'rubric'"),
        ({"rubrics": ["a"]}, "give a mapping with the list 'rubric'"),
        ({"rubric": []}, "empty list"),
        ({"rubric": ["a"] * 501}, "at most 500"),
        ({"rubric": [3]}, "must be a text or a mapping"),
        ({"rubric": [" "]}, "not empty"),
        ({"rubric": ["a" * 20_001]}, "at most 20000"),
        ({"rubric": [{"text": "a", "criterion": "b"}]}, "exactly one of"),
        ({"rubric": [{"weight": 1}]}, "exactly one of"),
        ({"rubric": [{"text": "a", "wieght": 2}]}, "the key 'wieght'"),
        ({"rubric": [{"text": "a", "weight": 0}]}, "weighs nothing"),
        ({"rubric": [{"text": "a", "weight": True}]}, "finite number"),
        ({"rubric": [{"text": "a", "weight": float("nan")}]}, "finite number"),
        ({"rubric": [{"text": "a", "weight": 1, "points": 2}]}, "give one of them"),
        ({"rubric": [{"text": "a", "importance": "high"}]}, "known are essential"),
        ({"rubric": [{"text": "a", "kind": "vibes"}]}, "must be one of yes_no"),
        ({"rubric": [{"text": "a", "kind": "ordered"}]}, "two or more"),
        ({"rubric": [{"text": "a", "kind": "ordered", "choices": ["x", "X"]}]}, "two or more different"),
        ({"rubric": [{"text": "a", "choices": ["x", "y"]}]}, 'choices are for "ordered"'),
        ({"rubric": [{"text": "a", "kind": "check"}]}, "needs a name"),
        ({"rubric": [{"text": "a", "gate": 1}]}, "true or false"),
        ({"rubric": [{"text": "a", "kind": "program"}]}, "no program"),
        ({"rubric": [{"check": "x", "program": PROGRAM}]}, "two items"),
        ({"rubric": [{"text": "a", "name": "n"}, {"text": "b", "name": "n"}]}, "have the name 'n'"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_rubric_that_cannot_be_meant_is_refused(reference: Any, complaint: str) -> None:
    with pytest.raises(BadReferenceError, match=complaint.replace("(", r"\(")):
        read_rubric(reference)


@pytest.mark.parametrize(
    ("item", "label", "value"),
    [
        (Item(text="a"), "yes", 1.0),
        (Item(text="a"), "no", 0.0),
        (Item(text="a"), "unsure", None),
        (Item(text="a", kind="support"), "partial_support", 0.5),
        (Item(text="a", kind="rating"), "37", 0.37),
        (Item(text="a", kind="ordered", choices=("x", "y", "z")), "1", 0.0),
        (Item(text="a", kind="ordered", choices=("x", "y", "z")), "2", 0.5),
        (Item(text="a", kind="ordered", choices=("x", "y", "z")), "3", 1.0),
    ],
)
def test_verdicts_have_their_worth(item: Item, label: str, value: float | None) -> None:
    assert item.value_of(label) == value


@pytest.mark.parametrize(
    ("item", "label"),
    [
        (Item(text="a"), "support"),
        (Item(text="a", kind="rating"), "101"),
        (Item(text="a", kind="ordered", choices=("1", "2")), "3"),
        (Item(text="a", kind="ordered", choices=("x", "y")), "x"),
    ],
)
def test_no_item_takes_the_verdict_of_another(item: Item, label: str) -> None:
    assert label not in item.worth
