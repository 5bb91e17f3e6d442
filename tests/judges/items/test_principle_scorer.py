"""The principle scorer: one word of verdict, or the share of several."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adjudge.judges.items.principles import PrincipleScorer
from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer

RULES = ("Names something only the two of you know.", "Avoids stock phrases.")


def run(scorer: PrincipleScorer, *samples: Sample) -> list[Score]:
    return asyncio.run(scorer.score(samples))


def sample(response: str, reference: Any = None) -> Sample:
    return Sample(prompt="Write a greeting.", response=response, reference=reference)


@pytest.fixture
def engine(scripted: Any) -> Any:
    """A judge that calls good what speaks of a boat."""

    def judge(prompt: Any, index: int) -> str:
        good = "boat" in scripted.field_of(prompt, "response")
        return f"It is personal or not.\nVerdict {scripted.key_of(prompt)}: {'Good' if good else 'Bad'}."

    return scripted.ScriptedEngine(judge)


def test_a_text_is_one_principle(engine: Any) -> None:
    one: Any = "Is honest."
    assert PrincipleScorer(engine=engine, principles=one).principles == ("Is honest.",)


def test_good_is_one_and_bad_is_zero(engine: Any) -> None:
    good, bad = run(PrincipleScorer(engine=engine, principles=RULES), sample("Our old boat"), sample("All the best"))
    assert (good.value, good.reason) == (1.0, "")
    assert (bad.value, bad.reason) == (0.0, "wrong")


def test_the_samples_own_principles_come_first(engine: Any, scripted: Any) -> None:
    run(PrincipleScorer(engine=engine, principles=RULES), sample("Our boat", {"principles": ["Is\nshort."]}))
    assert scripted.field_of(engine.asked[0], "principles") == "1. Is short."


def test_the_share_of_good_has_an_error(scripted: Any) -> None:
    judge = scripted.ScriptedEngine(
        lambda prompt, index: f"Verdict {scripted.key_of(prompt)}: {'bad' if index == 0 else 'good'}"
    )
    (score,) = run(PrincipleScorer(engine=judge, principles=RULES, samples=4, temperature=1.0), sample("Our boat"))
    assert (score.value, score.uncertainty) == (0.75, 0.25)


@pytest.mark.parametrize(
    "said",
    [
        "good",
        "Verdict: good",
        "Verdict KEY: good or bad",
        "Verdict KEY: mostly good",
        "Verdict KEY: good, Verdict KEY: bad",
    ],
)
def test_a_hedge_is_no_verdict(scripted: Any, said: str) -> None:
    judge = scripted.ScriptedEngine(lambda prompt, index: said.replace("KEY", scripted.key_of(prompt)))
    (score,) = run(PrincipleScorer(engine=judge, principles=RULES), sample("Our boat"))
    assert (score.status, score.reason) == ("failed", "judge_unparsable")


@pytest.mark.parametrize(
    "reference",
    [None, {"principles": []}, {"principles": ["a", "a"]}, {"principles": [3]}, {"principle": ["a"]}, ["a" * 1001]],
)
def test_principles_that_cannot_be_meant_are_refused(engine: Any, reference: Any) -> None:
    with pytest.raises(ValueError, match="principle"):
        PrincipleScorer(engine=engine).validate(sample("x", reference))


def test_it_keeps_the_rules(engine: Any) -> None:
    samples = [sample("Our old boat", {"principles": RULES}), sample("All the best", {"principles": RULES})]
    check_scorer(PrincipleScorer(engine=engine), samples).raise_for_failures()
