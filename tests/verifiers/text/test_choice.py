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


DRUG = {"choices": ["Aspirin", "Clopidogrel", "Warfarin", "Rivaroxaban"], "answer": "C"}
ENERGY = {"choices": ["10^-11 eV", "10^-8 eV", "10^-4 eV", "x² eV"], "answer": "C"}
REFUSED = [
    "C. Warfarin is contraindicated.",
    "C. Warfarin should be avoided.",
    "C. Warfarin (incorrect)",
    "(C) is a trap",
]


@pytest.mark.parametrize(
    "response",
    [
        *REFUSED,
        "**C. Warfarin** is wrong.",
        "The answer is C. Warfarin is wrong.",
        "C. Warfarin isn't the right choice.",
        "C. Warfarin can be ruled out.",
        "(C) is contraindicated",
        "C. Warfarin was my first thought, but D is better.",
        "C. Warfarin looks right at first, but the correct drug is rivaroxaban.",
        "C. Warfarin is tempting, but rivaroxaban is the right choice.",
        "The patient should avoid **C. Warfarin**.",
        "The next step is not **C**.",
        "The patient should receive **C. Rivaroxaban**.",
        "Warfarin is the second best choice.",
        "Warfarin is the best choice or rivaroxaban.",
        "If the valve were biological, warfarin is the best choice.",
        "所以不选C选项",
    ],
)
def test_an_option_that_is_denied_or_given_up_behind_its_text_is_no_answer(response: str) -> None:
    assert verdict(response, DRUG) == 0.0


@pytest.mark.parametrize(
    "response",
    [
        "C. Warfarin does not need a new dose.",
        "C. Warfarin is the only drug that is not contraindicated.",
        "C. Warfarin is contraindicated in pregnancy, which does not matter here.",
        "C. Warfarin is not the only option, but the best.",
        "C. Warfarin, but not D.",
        "C. Warfarin is preferred over D.",
        "C. Warfarin is best, but rivaroxaban is an alternative in others.",
        "The most appropriate drug is **C. Warfarin**.",
        "The patient should receive **C. Warfarin**.",
        "He has a mechanical valve.\n\nTherefore he should be given (C) Warfarin.",
        "The diagnosis is **C. Warfarin** because D is too new.",
        "The next step is **C**.",
        "Warfarin is the best choice.",
        "So warfarin is the right answer because of the valve.",
        "所以选C选项",
        "C选项正确",
    ],
)
def test_what_else_is_said_of_the_option_denies_nothing(response: str) -> None:
    assert verdict(response, DRUG) == 1.0


@pytest.mark.parametrize(
    "question",
    [
        "Which drug is contraindicated?",
        "All are platelet inhibitors EXCEPT:",
        "He does not smoke. What is to be avoided?",
    ],
)
def test_where_the_question_looks_for_a_wrong_option_calling_it_so_denies_nothing(question: str) -> None:
    for response in REFUSED[:3]:
        assert ChoiceVerifier().verify(Sample(prompt=question, response=response, reference=DRUG)).value == 1.0
    given_up = "C. Warfarin was my first thought, but D is better."
    assert ChoiceVerifier().verify(Sample(prompt=question, response=given_up, reference=DRUG)).value == 0.0


@pytest.mark.parametrize("raised", ["10⁻{}", "$10^{{-{}}}$", "10^-{}", "10^{{-{}}}"])
def test_raised_digits_are_powers(raised: str) -> None:
    for form in ("**C) {} eV**", "**C** ({} eV)", "C. {} eV", "{} eV"):
        assert verdict(form.format(raised.format("⁴" if "⁻" in raised else "4")), ENERGY) == 1.0
    assert verdict(f"C) {raised.format('⁸' if '⁻' in raised else '8')} eV", ENERGY) == 0.0


CITIES = [
    "A. Paris\nB. London\nC. Rome",
    "- A) Paris\n- B) London\n- C) Rome",
    "**A.** Paris\n\n**B.** London\n\n**C.** Rome",
]


@pytest.mark.parametrize("listed", CITIES)
def test_a_letter_alone_is_a_label_of_the_options_that_the_prompt_lists(listed: str) -> None:
    for prompt in (
        f"Which?\n{listed}\nAnswer:",
        [{"role": "user", "content": f"Old?\nA. 1\nB. 2\n\nWhich?\n{listed}"}],
    ):
        for response in ("C", "C. Rome", "(C) Rome", "Rome", "The answer is Rome.", "C. Because of the Vatican."):
            assert ChoiceVerifier().verify(Sample(prompt=prompt, response=response, reference="C")).value == 1.0
        for response in ("C. London", "(C) Paris", r"\boxed{C. London}", "The answer is London.", "C. Rome is wrong."):
            assert ChoiceVerifier().verify(Sample(prompt=prompt, response=response, reference="C")).value == 0.0


@pytest.mark.parametrize("prompt", ["", "Which vitamin?", "A. Paris is old.", "A. Paris\nB. London", "B. x\nC. y"])
def test_without_such_a_list_the_text_behind_a_letter_is_not_looked_at(prompt: str) -> None:
    for response in ("C", "C. London"):
        assert ChoiceVerifier().verify(Sample(prompt=prompt, response=response, reference="C")).value == 1.0
