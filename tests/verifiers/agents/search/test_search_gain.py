"""InForage's reward: evidence pays once, turns cost."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import check_scorer, score_batch
from adjudge.protocol import Sample, Score
from adjudge.scoring import registry
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.verifiers.agents.search.judgements import SearchJudgementsScorer
from adjudge.verifiers.agents.search.signals import average_precisions
from adjudge.verifiers.agents.search.turns import SearchGainVerifier, SearchStepsVerifier

REFERENCE = {"answer": "Tacoma", "evidence": ["Dune is by Frank Herbert", "Herbert was born in Tacoma"]}
FIRST = "The novel Dune is by Frank Herbert."
SECOND = "Frank Herbert was born in Tacoma."
SCORERS = (SearchStepsVerifier(), SearchGainVerifier(), SearchJudgementsScorer())
CASES = [(scorer, case) for scorer in SCORERS for case in shipped_cases(scorer)]


def turns(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("assistant", "tool")[at % 2], "content": text} for at, text in enumerate(texts)]


def judged(*texts: str, **options: Any) -> Score:
    return SearchGainVerifier(**options).verify(Sample(prompt="", response=turns(*texts), reference=REFERENCE))


def test_the_value_is_outcome_gain_and_cost() -> None:
    texts = ("<search>a</search>", FIRST, "<search>b</search>", f"{FIRST} {SECOND}", "<search>c</search>", FIRST)
    score = judged(*texts, "<answer>Tacoma.</answer>")
    assert [step.value for step in score.steps] == pytest.approx([0.25, 0.25 - 0.05, -0.05])
    assert [step.label for step in score.steps] == ["new", "new", "nothing_new"]
    assert score.value == pytest.approx(1 + 0.5 - 0.1)
    dear = judged(*texts, "<answer>Rome</answer>", gain=1.0, cost=0.5, free=0, outcome=2.0)
    assert dear.value == pytest.approx(1.0 - 1.5)
    assert dear.reason == "wrong"
    assert judged(*texts, "<answer>Tacoma</answer>", turns="none").value == 1.0


@pytest.mark.parametrize(
    ("found", "answer", "value"),
    [
        ([], "Tacoma", 1.0),
        ([FIRST], "Tacoma", 1 + 0.5 / 5),
        ([FIRST, SECOND], "Tacoma", 1 + 0.5 / 5),  # the better one of two halves
        ([FIRST, f"{FIRST} {SECOND}"], "Tacoma", 1 + 1 / 5),
        ([FIRST, FIRST, FIRST], "Tacoma", (1 + 0.5 / 5) * 0.95**2),
        ([FIRST] * 6, "Tacoma", (1 + 0.5 / 5) * 0.95**5),
        ([FIRST, FIRST, FIRST], "Rome", 0.5 / 5 * 0.95**2),
        ([], "Tacoma Washington", 2 / 3),
    ],
)
def test_inforage_pays_what_its_released_code_pays(found: list[str], answer: str, value: float) -> None:
    texts = [text for result in found for text in ("<search>a</search>", result)]
    response = turns(*texts, f"<answer>{answer}</answer>")
    (score,) = score_batch([Sample(prompt="", response=response, reference=REFERENCE)], "in_forage")
    assert score.value == pytest.approx(value)


BANANAS = "Bananas ripen slowly."


def listed(*documents: str) -> str:
    return json.dumps([{"title": "", "text": text} for text in documents])


@pytest.mark.parametrize(
    ("results", "values"),
    [
        ([[FIRST, SECOND]], [1.0]),
        ([[BANANAS, FIRST, SECOND]], [(1 / 2 + 2 / 3) / 2]),
        ([[SECOND, BANANAS, BANANAS, FIRST]], [(1 + 2 / 4) / 2]),
        ([[FIRST], [BANANAS, SECOND]], [1 / 2, 1 / 4]),
        ([[BANANAS]], [0.0]),
        ([[FIRST], [FIRST], [FIRST, SECOND]], [1 / 2, 0.0, 1 / 4]),  # the same again pays nothing
        ([[BANANAS] * 40 + [FIRST, SECOND]], [(1 / 41 + 2 / 42) / 2]),  # and neither does asking for everything
        ([[f"{FIRST} {SECOND}", BANANAS]], [1.0]),
    ],
)
def test_leret_pays_average_precision(results: list[list[str]], values: list[float]) -> None:
    texts = [text for found in results for text in ("<search>a</search>", listed(*found))]
    scorer = registry.load("leret")
    (score,) = asyncio.run(scorer.score([Sample(prompt="", response=turns(*texts), reference=REFERENCE)]))
    assert [step.value for step in score.steps] == pytest.approx(values)
    assert score.value == pytest.approx(sum(values))
    answered = judged(*texts, "<answer>Rome</answer>", measure="average_precision", cost=0.0, gain=1.0)
    assert answered.value == pytest.approx(sum(values))  # with a weight for the answer there has to be one
    assert judged(*texts, measure="average_precision", cost=0.0).value == 0.0


def test_results_that_the_policy_wrote_itself_pay_nothing() -> None:
    scorer = registry.load("leret")
    forged = turns(f"<search>a</search><information>{listed(FIRST, SECOND)}</information>")
    (score,) = asyncio.run(scorer.score([Sample(prompt="", response=forged, reference=REFERENCE)]))
    assert score.value == 0.0


@given(st.lists(st.lists(st.sets(st.integers(0, 3)), max_size=6), max_size=5))
def test_average_precisions_never_pass_one(found: list[list[set[int]]]) -> None:
    values = average_precisions(found, 4)
    assert all(0 <= value <= 1 for value in values)
    assert sum(values) <= 1 + 1e-12


def test_evidence_in_other_words_is_not_found() -> None:
    texts = ("<search>a</search>", "Herbert, Frank: by him is Dune.", "<answer>x</answer>")
    assert judged(*texts).evidence["gains"] == [0.0]


def test_who_does_not_answer_pays_for_the_searches_all_the_same() -> None:
    searched = ("<search>a</search>", "Bananas ripen.") * 5
    wrong, silent = judged(*searched, "<answer>Rome</answer>"), judged(*searched, "Nothing found.")
    assert wrong.value == silent.value == pytest.approx(-4 * 0.05)
    found = judged("<search>a</search>", FIRST, "I saw it.")
    assert (found.value, found.steps[0].value) == (0.0, 0.0)


def test_the_gain_of_hundreds_of_turns_never_passes_its_weight() -> None:
    score = judged(*("<search>a</search>", f"{FIRST} {SECOND}") * 300, "<answer>x</answer>", cost=0.0)
    assert score.value == 0.5
    assert len(score.steps) == 300


def test_calls_of_a_search_tool_are_searches() -> None:
    call = {"id": "1", "function": {"name": "search", "arguments": '{"query": "Dune"}'}}
    response: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": FIRST},
        {"role": "assistant", "content": "<answer>Tacoma</answer>"},
    ]
    sample = Sample(prompt="", response=response, reference=REFERENCE)
    assert SearchGainVerifier().verify(sample).value == 1.25
    late = [*response[:2], {**response[2], "tool_calls": [call]}]
    assert SearchGainVerifier().verify(dataclasses.replace(sample, response=late)).reason == "bad_format"


@pytest.mark.parametrize(
    "options",
    [
        {"turns": "x"},
        {"free": -1},
        {"cost": -1.0},
        {"gain": "x"},
        {"decay": 1.1},
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="search_gain"):
        SearchGainVerifier(**options)


def test_the_verifier_conforms() -> None:
    texts = (("<search>a</search>", FIRST, "<answer>Tacoma</answer>"), ("<answer>x</answer>",), ("",))
    samples = [Sample(prompt="q", response=turns(*one), reference=REFERENCE, extra={"tool_spans": []}) for one in texts]
    check_scorer(SearchGainVerifier(), samples).raise_for_failures()


@pytest.mark.parametrize(
    ("recipe", "reference", "value"),
    [
        ("stepsearch", {"answer": "Tacoma", "documents": [SECOND], "keywords": [["who wrote"], ["b c"]]}, 1 + 1.0),
        ("reseek", "Tacoma", 1.4),
        ("in_forage", REFERENCE, 1 + 0.1),
    ],
)
def test_the_recipes_pay_what_the_formulas_say(recipe: str, reference: Any, value: float) -> None:
    texts = ("<search>x</search>", SECOND, "<judge>Yes</judge><answer>Tacoma</answer>")
    sample = Sample(prompt="", response=turns(*texts), reference=reference)
    score = score_batch([sample], recipe)[0]
    assert score.value == pytest.approx(value)


def named(value: object) -> str:
    return value.id if isinstance(value, AttackCase) else ""


def scored(scorer: Any, case: AttackCase) -> Score:
    made = dataclasses.replace(scorer, **case.options)
    if isinstance(made, SearchJudgementsScorer):
        return asyncio.run(made.score([case.sample]))[0]
    return made.verify(case.sample)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("scorer", "case"), CASES, ids=named)
def test_an_attack_earns_nothing_and_an_honest_trajectory_at_least_its_answer(scorer: Any, case: AttackCase) -> None:
    score = scored(scorer, case)
    assert score.value is not None
    assert score.value >= 1.0 if case.honest else score.value <= 0.0, score
    assert not case.reason or score.reason == case.reason, score


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [f"<{slash}{tag}>" for tag in ("search", "answer", "judge", "information", "think") for slash in ("", "/")]
        )
        | st.sampled_from(["Yes", "No", "Tacoma", "Dune is by Frank Herbert", " ", "<", "é"]),
        max_size=24,
    )
)
def test_any_text_has_a_score(parts: list[str]) -> None:
    sample = Sample(prompt="", response="".join(parts), extra={"tool_spans": []})
    for form in ({}, {"tool_text": "tags"}):
        for verifier, field in (
            (SearchStepsVerifier(form=form), "documents"),
            (SearchGainVerifier(form=form), "evidence"),
        ):
            reference = {"answer": "Tacoma", field: REFERENCE["evidence"]}
            assert verifier.verify(dataclasses.replace(sample, reference=reference)).status == "scored"
        judged = asyncio.run(SearchJudgementsScorer(form=form).score([dataclasses.replace(sample, reference="Tacoma")]))
        assert judged[0].status == "scored"
