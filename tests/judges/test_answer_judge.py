from __future__ import annotations

import asyncio
import math
import re
from typing import Any

import pytest
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of

from adjudge.engines.interface import Prompt
from adjudge.judges.pointwise import AnswerJudge, accepted_answers
from adjudge.protocol import Sample, Score
from adjudge.scoring.compose import Cascade, Part
from adjudge.verifiers.math.verifier import MathVerifier

OPEN = ("no_answer", "unparsable_answer", "undecided")


def says(verdict: str) -> ScriptedEngine:
    return ScriptedEngine(lambda prompt, index: f"Verdict {key_of(prompt)}: {verdict}")


def score(engine: ScriptedEngine, response: str, reference: Any = "4", **options: Any) -> Score:
    sample = Sample(prompt="2+2?", response=response, reference=reference)
    return asyncio.run(AnswerJudge(engine=engine, **options).score([sample]))[0]


@pytest.mark.parametrize(
    ("verdict", "value", "reason"),
    [("same", 1.0, ""), ("different", 0.0, "wrong"), ("invalid", 0.0, "no_answer")],
)
def test_verdicts(verdict: str, value: float, reason: str) -> None:
    one = score(says(verdict), "4")
    assert (one.value, one.reason, one.evidence["verdict"]) == (value, reason, verdict)


def test_probabilities() -> None:
    engine = ScriptedEngine(labels=lambda prompt: {"same": 0.7, "different": 0.2})
    assert score(engine, "4", readout="probabilities").value == pytest.approx(7 / 9, abs=1e-12)
    engine = ScriptedEngine(labels=lambda prompt: {"same": 0.2, "different": 0.3, "invalid": 0.4})
    one = score(engine, "4", readout="probabilities")
    assert one.value == pytest.approx(2 / 9, abs=1e-12)
    assert one.reason == "no_answer"


def test_all_accepted_answers_are_shown() -> None:
    engine = says("same")
    score(engine, "4", ["4", 4.0, "four"])
    assert field_of(engine.asked[0], "reference") == "4\n4.0\nfour"


@pytest.mark.parametrize("reference", ["", " ", [], ["4", ""], {"answer": 4}, [["4"]], math.nan, ["4", math.inf]])
def test_references_without_an_answer(reference: Any) -> None:
    with pytest.raises(ValueError, match=re.escape("must be the accepted answer")):
        accepted_answers(reference)
    assert score(says("same"), "", reference).status == "failed"


def test_it_is_asked_only_about_what_rules_leave_open() -> None:
    """The math scorer settles what it can read; an answer in words goes to the judge."""

    def answer(prompt: Prompt, index: int) -> str:
        same = "twelve" in field_of(prompt, "response")
        return f"Verdict {key_of(prompt)}: {'same' if same else 'different'}"

    engine = ScriptedEngine(answer)
    judge: Any = AnswerJudge(engine=engine)
    cascade = Cascade(
        stages=(Part(MathVerifier()), Part(judge)), pass_on=("no_answer", "unparsable_answer", "undecided")
    )
    responses = [
        r"So it is \boxed{12}.",
        r"So it is \boxed{13}.",
        "It must be a dozen, so twelve of them in all!",
        "It must be a score of them in all!",
    ]
    scores = asyncio.run(
        cascade.score([Sample(prompt="How many?", response=text, reference="12") for text in responses])
    )
    assert [(one.value, one.evidence["stage"]) for one in scores] == [
        (1.0, "math"),
        (0.0, "math"),
        (1.0, "answer_judge"),
        (0.0, "answer_judge"),
    ]
    assert [field_of(prompt, "response") for prompt in engine.asked] == responses[2:]


def test_a_judge_that_is_down_does_not_turn_an_open_answer_into_a_0() -> None:
    judge: Any = AnswerJudge(engine=ScriptedEngine(lambda prompt, index: fault()))
    cascade = Cascade(stages=(Part(MathVerifier()), Part(judge)), pass_on=OPEN)
    sample = Sample(prompt="How many?", response="It must be a dozen, so twelve of them!", reference="12")
    (one,) = asyncio.run(cascade.score([sample]))
    assert (one.status, one.reason) == ("failed", "engine_unavailable")
