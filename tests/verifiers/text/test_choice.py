from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.choice_key import LABELS, comparable, read_choice_key

LABEL = st.sampled_from(LABELS[:5])
FORMS = (
    "{}",
    "({})",
    "{}.",
    "**{}**",
    r"\boxed{{{}}}",
    r"\boxed{{\text{{({})}}}}",
    "Answer: {}",
    "The answer is ({}).",
    "I think the correct option is {}.",
    "<answer>{}</answer>",
    "答案是{}",
    "故选{}。",
    "Work.\n\n{}",
    "Work.\nTherefore the answer is:\n\n**{}**",
)
TEXTS = st.lists(st.text(alphabet="abcdefgh 123", min_size=3, max_size=8), min_size=2, max_size=5)


def verdict(response: str, reference: Any, **options: Any) -> float | None:
    return ChoiceVerifier(**options).verify(Sample(prompt="", response=response, reference=reference)).value


@given(LABEL, LABEL, st.sampled_from(FORMS))
def test_every_form_names_its_label_and_no_other(label: str, gold: str, form: str) -> None:
    assert verdict(form.format(label), gold) == float(label == gold)


ARC = {"choices": {"text": ["dry", "wet", "7"], "label": ["1", "2", "3"]}, "answerKey": "3"}
AQUA = {"options": ["A)1 hour and 31 minutes", "B)2 hours"], "correct": "A"}
MEDQA = {"options": {"A": "Ampicillin", "B": "Ceftriaxone"}, "answer_idx": "B", "answer": "Ceftriaxone"}


@pytest.mark.parametrize(
    ("reference", "right", "wrong"),
    [
        (ARC, ["3", "The answer is (3)", r"\boxed{7}"], ["2", "C", "wet"]),
        (ARC | {"choices": {"text": ["dry", "wet"], "label": ["A", "B"]}, "answerKey": "B"}, ["B", "wet"], ["A", "2"]),
        (AQUA, ["A", r"\boxed{1 hour and 31 minutes}", "A) 1 hour and 31 minutes"], ["B", r"\boxed{2 hours}"]),
        (AQUA | {"correct": "A)1 hour and 31 minutes"}, ["A"], ["B"]),
        (MEDQA, ["B", "Ceftriaxone"], ["A"]),
        ({"options": MEDQA["options"], "label": 1}, ["B"], ["A"]),
        ({"choices": ["(A) x", "B. y"], "answer": "y"}, ["B", "y"], ["A", "x"]),
        ({"choices": ["A. x", "C. y"], "answer": "B"}, ["B", "C. y"], ["y"]),
    ],
)
def test_rows_of_published_data_sets_are_references(reference: Any, right: list[str], wrong: list[str]) -> None:
    assert [verdict(response, reference) for response in (*right, *wrong)] == [1.0] * len(right) + [0.0] * len(wrong)


@given(
    LABEL,
    LABEL,
    st.sampled_from(["{} or {}", "{} and {}", "{}, {}", "{}/{}", "({}) or ({})", "{} ... maybe {}", "{}或{}"]),
)
def test_two_labels_are_no_answer(one: str, other: str, form: str) -> None:
    assume(one != other)
    for wrapped in ("{}", "The answer is {}", r"\boxed{{{}}}"):
        response = wrapped.format(form.format(one, other))
        assert verdict(response, one) == verdict(response, other) == 0.0


@given(st.text(max_size=120), LABEL)
def test_any_response_scores_zero_or_one(response: str, gold: str) -> None:
    assert verdict(response, gold) in (0.0, 1.0)


@given(st.text(max_size=120))
def test_a_response_is_right_for_one_option_at_most(response: str) -> None:
    assert sum(verdict(response, gold) or 0.0 for gold in LABELS) <= 1.0


@given(TEXTS, st.data())
def test_an_option_may_be_named_by_its_text(texts: list[str], data: st.DataObject) -> None:
    assume(len({comparable(text) for text in texts}) == len(texts) and all(len(comparable(text)) > 2 for text in texts))
    right = data.draw(st.integers(0, len(texts) - 1))
    said = data.draw(st.integers(0, len(texts) - 1))
    for answer in (LABELS[right], right, texts[right]):
        reference = {"choices": texts, "answer": answer}
        assert verdict(texts[said], reference) == float(said == right)
        assert verdict(f"{LABELS[said]}. {texts[said]}", reference) == float(said == right)
        other = (said + 1) % len(texts)
        assert verdict(f"{LABELS[said]}. {texts[other]}", reference) == 0.0


@pytest.mark.parametrize("word", ["A", "I"])
def test_english_words_of_one_letter_are_no_labels(word: str) -> None:
    for response in (f"{word} think so", f"The answer is {word} guess away.", f"{word} was not sure\n{word} am done"):
        assert verdict(response, word) == 0.0


@pytest.mark.parametrize(
    ("reference", "mistake"),
    [
        (None, True),
        (5, True),
        (["A"], True),
        ({"choices": ["x", "y"]}, True),
        ({"choices": "xy", "answer": "A"}, True),
        ({"choices": ["x"], "answer": "A"}, True),
        ({"choices": ["x"] * 11, "answer": "A"}, True),
        ({"choices": ["x", 2], "answer": "A"}, True),
        ({"choices": ["x", "y"], "answer": None}, True),
        ({"choices": ["x", "y"], "answer": True}, True),
        ({"choices": ["x", "y"], "answer": -1}, False),
        ({"choices": ["x", "y"], "answer": "z"}, False),
        ({"choices": ["B", "A"], "answer": "B"}, False),
        ("Q", False),
        ("", False),
    ],
)
def test_bad_references_are_ours(reference: Any, mistake: bool) -> None:
    verifier = ChoiceVerifier()
    sample = Sample(prompt="", response="A", reference=reference)
    score = verifier.verify(sample)
    assert (score.value, score.reason) == (None, "gold_unparsable")
    if mistake:
        with pytest.raises(ValueError, match="choice"):
            verifier.validate(sample)
    else:
        verifier.validate(sample)


def test_a_position_is_zero_based() -> None:
    assert read_choice_key({"choices": ["x", "y", "z"], "answer": 0}).answer == "A"
    assert read_choice_key({"choices": ["x", "y", "z"], "answer": 2}).answer == "C"


@pytest.mark.parametrize("labels", ["", "A", "AA", "Aa", "A B", "A-"])
def test_labels_must_be_told_apart(labels: str) -> None:
    with pytest.raises(ValueError, match="different letters or digits"):
        ChoiceVerifier(labels=labels)


@pytest.mark.parametrize(
    "unit", ["C ", "(C) ", "C\n", "option ", "the ", "选", "answer is C or ", "choose ", "(", "\\text{", "C"]
)
def test_a_quarter_million_characters_score_at_once(unit: str) -> None:
    assert verdict(unit * (250_000 // len(unit)), "D") == 0.0
