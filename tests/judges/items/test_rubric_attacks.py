"""The attacks of `tests/attacks/rubric_attacks.json`: none raises the reward.

Each is tried on a judge that looks at the response, whose value must be that of the row, and on two that are as easily
led as can be: one repeats the response, one repeats its last line.  From those two comes no positive number.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from adjudge.judges.items.citations import CitationScorer
from adjudge.judges.items.critic import CriticScorer
from adjudge.judges.items.nuggets import NuggetScorer
from adjudge.judges.items.principles import PrincipleScorer
from adjudge.judges.items.rubric import RubricScorer
from adjudge.protocol import Sample, Score, Verifier
from adjudge.verifiers.code.program import ProgramVerifier
from adjudge.verifiers.text.persona.verifier import PersonaVerifier

ROWS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "attacks" / "rubric_attacks.json").read_text(encoding="utf-8")
)
REFERENCES: dict[str, Any] = {
    "rubric": {"rubric": ["mentions red", "mentions green", "mentions blue"]},
    "nuggets": {"nuggets": ["mentions Paris", "mentions Seine", "mentions cheese"]},
    "principles": {"principles": ["Names something only the two of you know.", "Avoids stock phrases."]},
    "critic": None,
    "citations": {
        "rubric": ["<E0> is a fair in Rome.", "<E1> beat <E2> at <E0>.", "<E3> knows <E4>.", "<E4> knows <E3>."],
        "answer": "Grand Fair",
    },
    "persona": {"keys": [["Ron", "Ronald"]], "excluded": ["Percy", "Fred", "George"]},
}
SCORERS: dict[str, Callable[..., Any]] = {
    "rubric": RubricScorer,
    "items": RubricScorer,
    "nuggets": lambda **options: NuggetScorer(metric="all", **options),
    "principles": PrincipleScorer,
    "critic": CriticScorer,
    "citations": CitationScorer,
}
PAGES = {
    "https://a.org/bout": "Ada beat Bob at the Grand Fair.",
    "https://a.org/fair": "The Grand Fair was held in Rome.",
    "https://a.org/cat": "Cats sleep a lot.",
    "https://a.org/ring": "Cid knows Dot and Dot knows Cid.",
}


def rows(*families: str) -> list[Any]:
    return [pytest.param(family, row, id=f"{family}-{row['id']}") for family in families for row in ROWS[family]]


def sample_of(family: str, row: dict[str, Any]) -> Sample:
    reference = REFERENCES.get(family) or row.get("program") or ({"rubric": row["rubric"]} if "rubric" in row else None)
    response = row["response"] * row["times"] if "times" in row else row["response"]
    return Sample(prompt="The question.", response=response, reference=reference, extra={"pages": PAGES})


def value_of(row: dict[str, Any]) -> float:
    """The value, a number or sums and products of fractions as text."""
    if not isinstance(row["value"], str):
        return float(row["value"])
    total = Fraction(0)
    for term in row["value"].split(" + "):
        product = Fraction(1)
        for factor in term.split(" * "):
            product *= Fraction(factor)
        total += product
    return float(total)


@pytest.fixture
def looking(scripted: Any, honest: Callable[..., str], page_reader: Any) -> dict[str, Any]:
    """For each family a judge that looks at the response."""
    field, key = scripted.field_of, scripted.key_of
    names = {"E0": ["Grand Fair"], "E1": ["Ada"], "E2": ["Bob"], "E3": ["Cid"], "E4": ["Dot"]}
    needs = {"fair in Rome": ["held in Rome"], "beat": ["Ada beat Bob"], "knows": ["Dot knows Cid"]}
    return {
        "rubric": honest,
        "items": honest,
        "nuggets": honest,
        "principles": lambda prompt, index: (
            f"Verdict {key(prompt)}: {'good' if 'boat' in field(prompt, 'response') else 'bad'}"
        ),
        "critic": lambda prompt, index: f"Wrong {key(prompt)}: {'1' if '= 5' in field(prompt, 'steps') else 'none'}",
        "citations": page_reader(names, needs),
    }


def run(family: str, engine: Any, row: dict[str, Any], **options: Any) -> Score:
    scorer = SCORERS[family](engine=engine, **options)
    (score,) = asyncio.run(scorer.score([sample_of(family, row)]))
    assert isinstance(score, Score)
    return score


@pytest.mark.parametrize(("family", "row"), rows(*SCORERS))
def test_a_judge_that_looks_is_not_moved(
    scripted: Any, looking: dict[str, Any], family: str, row: dict[str, Any]
) -> None:
    for options in ({"per_call": 1}, {"per_call": 10}) if family in ("rubric", "items", "nuggets") else ({},):
        score = run(family, scripted.ScriptedEngine(looking[family]), row, **options)
        assert score.value == pytest.approx(value_of(row)), score
        assert score.reason == row.get("reason", score.reason)


@pytest.mark.parametrize("judge", ["parrot", "gullible"])
@pytest.mark.parametrize(("family", "row"), rows(*SCORERS))
def test_a_judge_that_repeats_pays_nothing(scripted: Any, family: str, row: dict[str, Any], judge: str) -> None:
    field = "steps" if family == "critic" else "response"
    score = run(family, scripted.ScriptedEngine(getattr(scripted, judge)(field)), row)
    assert not score.value, score
    assert score.status in ("failed", "scored")


@pytest.mark.parametrize(("family", "row"), rows("persona", "program"))
def test_a_program_is_not_moved(family: str, row: dict[str, Any]) -> None:
    verifier: Verifier = PersonaVerifier(max_words=0 if row["id"] == "flood" else 50)
    if family == "program":
        verifier = ProgramVerifier(seconds=1.0)
    score = verifier.verify(sample_of(family, row))
    assert (score.value, score.reason) == (value_of(row), row["reason"]), score.evidence


def test_there_are_enough_attacks() -> None:
    names = [(family, row["id"]) for family in ROWS if family != "about" for row in ROWS[family]]
    assert len(names) == len(set(names))
    assert len(names) >= 60
