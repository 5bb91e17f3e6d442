"""docs/rubrics.md names every kind, formula, metric and option of its scorers, with their defaults."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from adjudge.judges.items.citations import CitationScorer
from adjudge.judges.items.critic import CriticScorer
from adjudge.judges.items.formulas import COMBINES
from adjudge.judges.items.item import IMPORTANCE, KINDS
from adjudge.judges.items.nuggets import METRICS, NuggetScorer
from adjudge.judges.items.principles import PrincipleScorer
from adjudge.judges.items.rubric import IMPLICIT, RubricScorer
from adjudge.prompts.scorer import ModelScorer

PAGE = (Path(__file__).parents[3] / "docs" / "rubrics.md").read_text(encoding="utf-8")
SCORERS = (RubricScorer, NuggetScorer, CitationScorer, PrincipleScorer, CriticScorer)
LEFT_TO_THE_CLASS = {"isolation", "truncated", "page_characters", "all_characters", "max_steps"}


def test_everything_is_named() -> None:
    shared = {field.name for field in dataclasses.fields(ModelScorer)} - {"engine"}
    options = {field.name for scorer in SCORERS for field in dataclasses.fields(scorer)} - shared - LEFT_TO_THE_CLASS
    words = (*KINDS, *COMBINES, IMPLICIT, *METRICS, *options, *(scorer.name for scorer in SCORERS))
    assert [word for word in words if f"`{word}`" not in PAGE and f"`{word}: " not in PAGE] == []


def test_numbers_are_those_of_the_code() -> None:
    assert ", ".join(f"{name} {value}" for name, value in IMPORTANCE.items()) in PAGE
    defaults = {field.name: field.default for field in dataclasses.fields(CitationScorer)}
    for option in ("ratio", "normalize", "idle", "excess"):
        assert any(
            line.startswith(f"| `{option}` | ") and str(defaults[option]) in line.split(" | ")[1]
            for line in PAGE.splitlines()
        ), option
    assert f"`max_pages` ({defaults['max_pages']})" in PAGE
