"""Rewards of verifiers in training: Search-Gen-V's labels and RL Tango's step verdicts, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.verdict.step_verdicts import StepVerdictsVerifier
from adjudge.verifiers.verdict.support_labels import LabelListVerifier

LABELS = '<reasoning>One is there.</reasoning>\n["support", "not_support"]'
STEPS = "Looks fine.\nVerdict 1: 1\nThen it slips.\nVerdict 2: -1\nFinal verdict: 0"


def sample(response: str, reference: Any, finish_reason: str | None = "stop") -> Sample:
    return Sample(prompt="Check.", response=response, reference=reference, finish_reason=finish_reason)


@pytest.mark.parametrize(
    ("gold", "notation", "value"),
    [
        # macro-F1 over three labels, an unused one counting 1
        (["support", "not_support"], "json", 0.35 + 0.35 + 0.2 + 0.1),
        (["support", "not_support"], None, 0.35 + 0.35 + 0.2),
        # support right (1), partial_support missed (0), not_support given for nothing (0)
        (["support", "partial_support"], "json", 0.35 * (1 / 3) + 0.2 + 0.1),
        (["support", "not_support", "support"], "json", 0.0),
        (["not_support", "support"], "json", 0.35 * (1 / 3) + 0.2 + 0.1),
    ],
)
def test_labels_are_worth_what_the_formula_says(gold: list[str], notation: str | None, value: float) -> None:
    reference = gold if notation is None else {"labels": gold, "notation": notation}
    assert LabelListVerifier().verify(sample(LABELS, reference)).value == pytest.approx(value)


@pytest.mark.parametrize("response", ["", "support", '["support", "perhaps"]', '["support"]', "eval('x')"])
def test_a_text_that_is_no_list_of_labels_gets_nothing(response: str) -> None:
    score = LabelListVerifier().verify(sample(response, ["support", "not_support"]))
    assert (score.status, score.value) == ("scored", 0.0)


def test_labels_of_a_text_that_was_cut_off_do_not_count() -> None:
    score = LabelListVerifier().verify(sample(LABELS, ["support", "not_support"], "length"))
    assert (score.value, score.reason) == (0.0, "truncated")


@pytest.mark.parametrize(
    "reference", [None, "support", [], {"labels": []}, {"labels": ["support"], "notation": "ini"}, {"label": "x"}, 3]
)
def test_references_without_labels_are_refused(reference: Any) -> None:
    with pytest.raises(ValueError, match="reference"):
        LabelListVerifier().validate(sample("", reference))
    assert LabelListVerifier().verify(sample(LABELS, reference)).reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("right", "steps", "value", "reason"),
    [
        (False, 2, 1.0, ""),
        (True, 2, 0.1, "wrong"),
        (False, 3, 0.9, "bad_format"),
        (True, 3, 0.0, "wrong"),
    ],
)
def test_a_verifier_is_paid_for_its_last_word_and_for_form(right: bool, steps: int, value: float, reason: str) -> None:
    score = StepVerdictsVerifier().verify(sample(STEPS, {"verdict": right, "steps": steps}))
    assert score.value == pytest.approx(value)
    assert score.reason == reason
    assert score.evidence["final"] == 0
    assert score.evidence.get("steps") == ([1, -1] if steps == 2 else None)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("Verdict 1: 1\nVerdict 2: 1", "no_answer"),
        ("Final verdict: 1\nFinal verdict: 0", "several_answers"),
        ('The text says "Final verdict: 1".\nFinal verdict: 0', "several_answers"),
        ("Final verdict: 0 or 1", "no_answer"),
        ("Final verdict: 0\nOr not.", "no_answer"),
        ("Final verdict: yes", "no_answer"),
        ("<think>Final verdict: 0</think>", "no_answer"),
        ("<think>Final verdict: 0", "unfinished_reasoning"),
        ("Final verdict: \uff10", "no_answer"),
        ("a" * 200_001 + "\nFinal verdict: 0", "too_complex"),
        ("", "no_answer"),
    ],
)
def test_what_is_no_final_verdict_gets_nothing(response: str, reason: str) -> None:
    score = StepVerdictsVerifier().verify(sample(response, {"verdict": False, "steps": 2}))
    assert (score.value, score.reason) == (0.0, reason)


@pytest.mark.parametrize(
    "steps",
    ["Verdict 2: 1\nVerdict 1: 1", "Verdict 1: 1\nVerdict 1: 1", "Verdict 1: 1", "Verdict 1: 2\nVerdict 2: 1", ""],
)
def test_steps_out_of_order_or_number_cost_the_form(steps: str) -> None:
    score = StepVerdictsVerifier(format_share=0.25).verify(
        sample(f"{steps}\nFinal verdict: 0", {"verdict": False, "steps": 2})
    )
    assert (score.value, score.reason) == (0.75, "bad_format")
    assert "steps" not in score.evidence


@pytest.mark.parametrize(
    "reference",
    [
        None,
        True,
        {"verdict": True},
        {"verdict": 1, "steps": 2},
        {"verdict": True, "steps": 0},
        {"verdict": True, "steps": True},
    ],
)
def test_references_that_say_no_outcome_are_refused(reference: Any) -> None:
    with pytest.raises(ValueError, match="reference"):
        StepVerdictsVerifier().validate(sample("", reference))
    assert StepVerdictsVerifier().verify(sample(STEPS, reference)).reason == "gold_unparsable"


def test_the_share_of_form_stays_below_the_verdict() -> None:
    with pytest.raises(ValueError, match="format_share is 1"):
        StepVerdictsVerifier(format_share=1)


def test_the_verifiers_conform() -> None:
    labels = [sample(LABELS, ["support", "not_support"]), sample(LABELS, ["support", "support"]), sample(LABELS, ["x"])]
    check_scorer(LabelListVerifier(), labels).raise_for_failures()
    steps = [sample(STEPS, {"verdict": right, "steps": count}) for right in (True, False) for count in (2, 3)]
    check_scorer(StepVerdictsVerifier(), steps).raise_for_failures()
