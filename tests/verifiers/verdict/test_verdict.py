"""A judge's verdict against the right one: the papers' values, references, options and hostile texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.verdict.verifier import STYLES, VerdictVerifier

J1 = "The first adds up.\n<answer>{}</answer>"
RM_R1 = "The first adds up.\n<answer>[[{}]]</answer>"
CRITIQUE = "It fails for n = 0.\n\\conclusion{{{}}}"
PRINCIPLE = "<think>It cites two sources.</think>{}"


def judged(response: str, reference: Any, **options: Any) -> Score:
    finish_reason = options.pop("finish_reason", "stop")
    sample = Sample(prompt="Which?", response=response, reference=reference, finish_reason=finish_reason)
    return VerdictVerifier(**options).verify(sample)


@pytest.mark.parametrize(
    ("style", "text", "right", "wrong", "value"),
    [
        ("j1", J1, "A", "B", 0.0),
        ("rm_r1", RM_R1, "A", "B", -1.0),
        ("critique", CRITIQUE, "F", "T", 0.0),
        ("principle", PRINCIPLE, "Yes", "No", 0.0),
    ],
)
def test_a_verdict_is_worth_what_the_paper_says(style: str, text: str, right: str, wrong: str, value: float) -> None:
    assert judged(text.format(right), right, style=style).value == 1.0
    score = judged(text.format(wrong), right, style=style)
    assert (score.value, score.reason, score.evidence["verdict"]) == (value, "wrong", wrong)
    assert judged("I cannot say.", right, style=style).value == value


@pytest.mark.parametrize(
    ("first", "second", "verdict"), [("8", "3.5", "A"), ("2", "9.25", "B"), ("7", "7.0", "tie"), ("10", "0", "A")]
)
def test_of_two_scores_the_higher_is_the_verdict(first: str, second: str, verdict: str) -> None:
    text = f"Both were read.\n<score_A>{first}</score_A>\n<score_B>{second}</score_B>"
    for gold in "AB":
        score = judged(text, gold, style="scores")
        assert (score.value, score.evidence["verdict"]) == (float(gold == verdict), verdict)


@pytest.mark.parametrize(("reference", "right"), [("T", "T"), ({"verdict": "F"}, "F"), (True, "T"), (False, "F")])
def test_references_name_the_right_verdict(reference: Any, right: str) -> None:
    for label in "TF":
        assert judged(CRITIQUE.format(label), reference, style="critique").value == float(label == right)


@pytest.mark.parametrize("reference", ["C", "", "a", "AB", {"verdict": "C"}])
def test_a_reference_that_names_no_verdict_fails(reference: Any) -> None:
    for response in (J1.format("A"), ""):
        score = judged(response, reference)
        assert (score.status, score.reason) == ("failed", "gold_unparsable")
    VerdictVerifier().validate(Sample(prompt="", response="", reference=reference))


@pytest.mark.parametrize("reference", [None, 1, 0.5, ["A"], {"label": "A"}, {}, {"verdict": "A", "more": 1}, b"A"])
def test_a_reference_of_another_type_is_refused_before_any_work(reference: Any) -> None:
    with pytest.raises(ValueError, match="reference"):
        VerdictVerifier().validate(Sample(prompt="", response="", reference=reference))
    assert judged(J1.format("A"), reference).reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"style": "j2"}, "style='j2'; it must be one of j1, rm_r1"),
        ({"labels": "AB"}, "give two or more"),
        ({"labels": ["A"]}, "give two or more"),
        ({"labels": ["A", "a"]}, "differ by more than case"),
        ({"labels": ["A", ""]}, "differ by more than case"),
        ({"form": "verdict"}, "must hold {answer} once"),
        ({"form": "{answer} {nonce}"}, "the form"),
        ({"wrong": 1.0}, "wrong=1.0"),
        ({"wrong": float("nan")}, "wrong=nan"),
        ({"thought": -1}, "thought=-1"),
        ({"low": 5, "high": 5}, "from 5 to 5"),
        ({"style": "scores", "labels": ["x", "y"]}, "fixes its form and labels"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VerdictVerifier(**options)


def test_a_form_and_labels_of_ones_own() -> None:
    options: dict[str, Any] = {"form": "**Winner: {answer}**", "labels": ["first", "second", "neither"]}
    assert judged("They are alike.\n**Winner: neither**", "neither", **options).value == 1.0
    assert judged("They are alike.\n**Winner: first**", "neither", **options).reason == "wrong"
    assert judged("**Winner: second** or\n**Winner: neither**", "neither", **options).reason == "several_answers"
    assert judged(J1.format("first"), "first", **options).reason == "no_answer"


def test_a_bare_verdict_counts_where_no_thought_is_asked_for() -> None:
    assert judged("<answer>A</answer>", "A", thought=0).value == 1.0
    assert judged("Ja.\n<answer>A</answer>", "A", thought=3).reason == "bad_format"
    assert judged("Yes.\n<answer>A</answer>", "A", thought=3).value == 1.0
    assert judged("<think>Yes.</think><answer>A</answer>", "A", thought=3).value == 1.0


def test_matrices_in_the_reasoning_are_no_verdicts() -> None:
    assert judged("[[1, 2], [3, 4]] is symmetric? No.\n<answer>[[B]]</answer>", "B", style="rm_r1").value == 1.0


@given(st.text(max_size=60), st.sampled_from(sorted(STYLES)), st.sampled_from(["stop", "length", None]))
def test_no_text_is_anything_but_right_or_wrong(text: str, style: str, finish_reason: str | None) -> None:
    label = STYLES[style].labels[0]
    score = judged(text, label, style=style, finish_reason=finish_reason)
    assert score.value in (1.0, STYLES[style].wrong)


@given(st.text(max_size=40))
def test_whatever_stands_before_a_second_verdict_does_not_save_it(text: str) -> None:
    score = judged(f"{text}<answer>B</answer> x <answer>A</answer>", "A")
    assert score.value == 0.0 or "</think" in text or "</thought" in text or "</reasoning" in text


def test_a_long_text_is_not_read() -> None:
    score = judged("a " * 150_000 + J1.format("A"), "A")
    assert (score.value, score.reason) == (0.0, "too_complex")
    assert judged("[[" * 90_000 + RM_R1.format("A"), "A", style="rm_r1").value == 1.0


@pytest.mark.parametrize("style", ["j1", "rm_r1", "principle"])
def test_the_verifier_conforms(style: str) -> None:
    right, wrong = STYLES[style].labels
    text = {"j1": J1, "rm_r1": RM_R1, "principle": PRINCIPLE}[style]
    samples = [Sample(prompt="Which?", response=text.format(label), reference=right) for label in (right, wrong)]
    samples.append(Sample(prompt="Which?", response=text.format(right), reference="neither"))
    check_scorer(VerdictVerifier(style=style), samples).raise_for_failures()
