"""Keywords of a role, and the rule that admits generated checkers."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge.protocol import Sample
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.text.persona.admission import admission, agreed_keyword
from adjudge.verifiers.text.persona.verifier import PersonaVerifier

BROTHER = {"keys": [["Ron", "Ronald"]], "excluded": ["Percy", "Fred", "George"]}


@pytest.mark.parametrize(
    ("response", "reference", "options", "value", "reason"),
    [
        ("My brother is Ron.", "Ron", {}, 1.0, ""),
        ("My brother is Ronald.", BROTHER, {}, 1.0, ""),
        ("My brother is Harry.", BROTHER, {}, 0.0, "wrong"),
        ("Ron and the owl", {"keys": ["Ron", "owl", "rat"]}, {"credit": "fraction"}, 2 / 3, "wrong"),
        ("Ron and the owl", {"keys": ["Ron", "owl", "rat"]}, {}, 0.0, "wrong"),
        ("<think>Ron</think> I do not know.", "Ron", {"reasoning": "keep"}, 1.0, ""),
        ("  ", "Ron", {}, 0.0, "no_answer"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_a_role_says_what_it_must_know(
    response: str, reference: Any, options: dict[str, Any], value: float, reason: str
) -> None:
    score = PersonaVerifier(**options).verify(Sample(prompt="q", response=response, reference=reference))
    assert score.value == pytest.approx(value)
    assert score.reason == reason


@pytest.mark.parametrize(
    "reference",
    [
        "",
        " \u200b",
        [],
        7,
        {"keys": []},
        {"keys": "Ron"},
        {"keys": ["Ron"], "key": 1},
        {"keys": ["Ron"], "excluded": [""]},
        '{"keys": ["Ron"]}',
        "['Ron']",
        {"keys": ['["Ron"]']},
    ],
)
def test_keys_that_cannot_be_meant_are_refused(reference: Any) -> None:
    sample = Sample(prompt="q", response="", reference=reference)
    with pytest.raises(BadReferenceError):
        PersonaVerifier().validate(sample)
    assert PersonaVerifier().verify(sample).reason == "gold_unparsable"


def test_an_excluded_answer_inside_a_key_would_forbid_every_answer() -> None:
    with pytest.raises(BadReferenceError, match="no response could be right"):
        PersonaVerifier().validate(
            Sample(prompt="q", response="", reference={"keys": ["Ron Weasley"], "excluded": ["Ron"]})
        )


def test_it_keeps_the_rules() -> None:
    samples = [Sample(prompt="q", response=text, reference=BROTHER) for text in ("Ron", "Percy", "nobody")]
    check_scorer(PersonaVerifier(), samples).raise_for_failures()


def test_a_checker_is_admitted_above_seventy_per_cent() -> None:
    judged = [True] * 5 + [False] * 5
    eight: list[bool | None] = [True, True, True, True, False, False, False, False, False, True]
    assert admission(eight, judged).admitted
    seven: list[bool | None] = [True, True, True, True, False, False, False, False, True, True]
    found = admission(seven, judged)
    assert (found.agreement, found.admitted) == (0.7, False), "70 % is not more than 70 %"


def test_a_checker_that_always_says_yes_is_not_admitted() -> None:
    judged = [True] * 8 + [False] * 2
    assert not admission([True] * 10, judged).admitted
    assert admission([True] * 10, judged, balanced=False).admitted, "the published rule lets it in"


def test_silence_is_no_agreement() -> None:
    found = admission([None, True, False], [False, True, False])
    assert found.agreement == pytest.approx(2 / 3)
    assert found.silent == pytest.approx(1 / 3)
    assert found.on_wrong == 0.5


@pytest.mark.parametrize(("verdicts", "judged"), [([], []), ([True], [])])
def test_nothing_admits_nothing(verdicts: Any, judged: Any) -> None:
    with pytest.raises(ValueError, match="at least one"):
        admission(verdicts, judged)


@pytest.mark.parametrize(
    ("answers", "agreed"),
    [
        (["It is Ron", "Ron!", "Harry"], True),
        (["It is Ron", "Harry", "not Ron"], False),
        (["It is Ron"], False),
    ],
)
def test_a_keyword_needs_several_models(answers: list[str], agreed: bool) -> None:
    assert agreed_keyword(answers, "Ron") is agreed
