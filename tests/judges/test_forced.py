"""A verdict that a model gave when it could give nothing else: in the evidence of every scorer that takes one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.engines.scripted import Choosing, key_of

from adjudge.protocol import Sample, Score
from adjudge.scoring import registry

CLAIMS = {"rubric": ["<E1> lost to <E2> in <E0>"], "answer": "1966"}
SCORERS: dict[str, tuple[dict[str, Any], Any]] = {
    "judge": ({}, None),
    "answer_judge": ({}, "4"),
    "pairwise_judge": ({}, "It is six, I think."),
    "yes_no": ({"questions": ["is it right?"], "readout": "text"}, None),
    "rubric": ({}, ["It says four."]),
    "nuggets": ({}, ["It is four."]),
    "principles": ({}, ["It is short."]),
    "critic": ({}, "4"),
    "think_prm": ({"readout": "votes"}, "4"),
    "genrm": ({"readout": "votes"}, "4"),
    "listwise_judge": ({}, None),
    "deepseek_grm": ({"samples": 2}, None),
}


def masses(evidence: Any) -> list[Any]:
    """Every forced mass anywhere in the evidence."""
    if isinstance(evidence, Mapping):
        own = [evidence["forced_mass"]] if "forced_mass" in evidence else []
        return own + [mass for value in evidence.values() for mass in masses(value)]
    return [mass for value in evidence for mass in masses(value)] if isinstance(evidence, list | tuple) else []


def scored(name: str, mass: float | None, **options: Any) -> list[Score]:
    given, reference = SCORERS[name]
    engine = Choosing(lambda choice: choice[0], mass)
    scorer: Any = registry.load({name: {**given, **options, "engine": engine}})
    said = ("It is four, I think.", "It is five, I think.")
    samples = [Sample(prompt="2+2?", response=text, reference=reference, group="g") for text in said]
    assert scorer.fingerprint.endswith("+forced") == (options.get("forced_mass", 0.5) is not None)
    return list(asyncio.run(scorer.score(samples)))


@pytest.mark.parametrize("name", SCORERS)
def test_it_is_in_the_evidence_and_counts_only_where_it_was_likely(name: str) -> None:
    for score in scored(name, 0.7):
        assert score.status == "scored"
        found = masses(score.evidence)
        assert found
        assert set(found[0] if isinstance(found[0], list) else found) == {0.7}
    assert {score.status for score in scored(name, 0.4)} == {"failed"}
    assert {score.status for score in scored(name, 0.7, forced_mass=None)} == {"failed"}
    assert all(masses(score.evidence) for score in scored(name, 0.01, forced_mass=0))


def test_the_outcome_of_an_answer_with_sources() -> None:
    engine = Choosing(lambda choice: choice[0], 0.7)
    names = {"E0": None, "E1": None, "E2": None}
    engine.answers = lambda prompt, index: json.dumps({**names, "key": key_of(prompt)})
    scorer: Any = registry.load({"citations": {"engine": engine}})
    sample = Sample(prompt="When?", response="It was in 1966, I think.", reference=CLAIMS)
    (score,) = asyncio.run(scorer.score([sample]))
    assert score.parts["outcome"].evidence["forced_mass"] == 0.7
