"""RAIDEN-R1's reward by hand: keys and checkers that earned their place, the mix with form, and attacks."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import score_batch
from adjudge.protocol import Sample, Score
from adjudge.sandbox.bubblewrap import SandboxUnavailableError
from adjudge.sandbox.program import Program, RunLimits
from adjudge.sandbox.sandbox import Sandbox
from adjudge.scoring.attacks import AttackCase, shipped_cases
from adjudge.scoring.bad_reference import BadReferenceError
from adjudge.scoring.conformance import check_scorer
from adjudge.verifiers.text.persona import verifier as raiden
from adjudge.verifiers.text.persona.admission import TrialTimeoutError, try_checker
from adjudge.verifiers.text.persona.verifier import RaidenVerifier

KEYS = {"keys": [["Ron", "Ronald"]], "excluded": ["Percy"]}
SURE = ["It is Ron.", "Ronald, his brother.", "Percy"]
GOOD = ["That would be Ron.", "My brother Ronald.", "ron, of course", "Ron Weasley"]
BAD = ["Percy.", "I have no idea.", "Who asks?", "Fred"]
CHECKER = "def check(prompt, response):\n    return 'ron' in response.lower() and 'brother' in prompt\n"
YES = "def check(prompt, response):\n    return True\n"
PROMPT = "Who is your brother?"


@pytest.fixture(scope="module")
def sandbox() -> None:
    """Skip, saying what is missing, where there is no sandbox."""
    try:
        with Sandbox() as box:
            box.run(Program(command=("true",)), RunLimits())
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


def scored(response: str, reference: Any, **options: Any) -> Score:
    return RaidenVerifier(**options).verify(Sample(prompt=PROMPT, response=response, reference=reference))


# Keys


@pytest.mark.parametrize(
    ("references", "admitted"),
    [
        (SURE, True),
        (["Ron.", "Ronald.", "Percy.", "Fred."], False),
        (["Ron."], False),
        (["It is not Ron.", "Not Ron!", "Ron"], False),
    ],
    ids=["two of three", "two of four", "one alone", "denied"],
)
def test_a_key_judges_only_where_several_answers_agree_on_it(references: list[str], admitted: bool) -> None:
    reference = {**KEYS, "references": references}
    score = scored("It is Ron.", reference)
    assert (score.value, score.reason) == ((1.0, "") if admitted else (None, "gold_unparsable"))
    assert scored("It is Ron.", reference, admission="trusted").value == 1.0
    if not admitted:
        with pytest.raises(BadReferenceError, match="the key 'Ron' stands in too few"):
            RaidenVerifier().validate(Sample(prompt="q", response="", reference=reference))


def test_every_key_must_be_agreed_on() -> None:
    assert scored("Ron, Percy", {"keys": ["Ron", "George"], "references": SURE}).reason == "gold_unparsable"


@pytest.mark.parametrize("reference", ["Ron", ["Ron", "Ronald"], KEYS], ids=str)
def test_keys_without_references_are_taken_as_they_are(reference: Any) -> None:
    assert (scored("Ron", reference).value, scored("Nobody", reference).value) == (1.0, 0.0)


# Checkers


@pytest.mark.usefixtures("sandbox")
def test_a_checker_that_agrees_with_the_judge_judges() -> None:
    reference = {"program": CHECKER, "good": GOOD, "bad": BAD}
    score = scored("It is RON.", reference)
    assert (score.value, score.evidence["agreement"]) == (1.0, 1.0)
    assert scored("George", reference).value == 0.0


@pytest.mark.usefixtures("sandbox")
def test_a_checker_that_always_says_yes_is_no_gold_though_the_published_rule_takes_it() -> None:
    reference = {"program": YES, "good": GOOD, "bad": BAD[:1]}
    score = scored("anything", reference)
    assert score.reason == "gold_unparsable"
    assert "agrees with the judge on 0.8 of the answers (1.0 of the right ones, 0.0 of the wrong ones)" in str(
        score.evidence["error"]
    )
    assert scored("anything", reference, balanced=False).value == 1.0
    assert scored("anything", reference, balanced=False, min_agreement=0.8).value is None, "0.8 is not more than 0.8"
    assert scored("anything", {"program": YES}, admission="trusted").value == 1.0


@pytest.mark.usefixtures("sandbox")
def test_what_a_checker_does_not_answer_is_no_agreement() -> None:
    for short in ("len(response) <= 8", "0 < len(response) <= 8"):  # the second can take an empty response
        half = f"def check(prompt, response):\n    return None if {short} else 'ron' in response.lower()\n"
        found = try_checker(half, PROMPT, GOOD, BAD)
        assert (found.admitted, found.silent, found.on_wrong) == (False, 2 / 8, 2 / 4)
    degrees = "def check(prompt, response):\n    return 0.6 if 'ron' in response.lower() else 0.4\n"
    assert try_checker(degrees, PROMPT, GOOD, BAD).agreement == 1.0


@pytest.mark.usefixtures("sandbox")
def test_a_checker_is_tried_once_for_all_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = []

    def counted(*args: Any, **options: Any) -> Any:
        trials.append(args)
        return try_checker(*args, **options)

    monkeypatch.setattr(raiden, "try_checker", counted)
    reference = {"program": CHECKER, "good": GOOD[:2], "bad": BAD[:2]}
    assert [scored(text, reference).value for text in ("Ron", "ron!", "no")] == [1.0, 1.0, 0.0]
    assert len(trials) == 1


@pytest.mark.usefixtures("sandbox")
def test_a_trial_has_a_time_of_its_own() -> None:
    with pytest.raises(TrialTimeoutError, match="judged 0 of 8"):
        try_checker(CHECKER, PROMPT, GOOD, BAD, seconds=-1.0)


# The mix


FORM = "<think>My brother?</think><answer>{}</answer>"


@pytest.mark.parametrize(
    ("response", "expected", "when_right"),
    [
        (FORM.format("Ron"), 1.0, 1.0),
        ("Ron", 0.7, 0.7),
        (FORM.format("Harry"), 0.3, 0.0),
        (FORM.format("Ron or Percy"), 0.3, 0.0),
        ("Harry", 0.0, 0.0),
        ("<think>Ron</think><answer></answer> and more", 0.0, 0.0),
        (FORM.format("Ron " * 60_000), 0.0, 0.0),
        ("<think>Ron", 0.0, 0.0),
    ],
    ids=["both", "no form", "form alone", "several", "nothing", "bad form", "too long", "unfinished"],
)
def test_the_mix_is_that_of_its_re_implementation(response: str, expected: float, when_right: float) -> None:
    (score,) = score_batch([{"prompt": PROMPT, "response": response, "reference": KEYS}], "raiden_mixed")
    assert score.value == pytest.approx(expected)
    assert set(score.parts) == {"accuracy", "format"}
    assert scored(response, KEYS, format_weight=0.3, form_pays="when_right").value == pytest.approx(when_right)


def test_without_a_weight_the_form_is_no_matter() -> None:
    assert scored("Ron", KEYS).parts == {}
    assert scored(FORM.format("Harry"), KEYS).value == 0.0


# What a re-implementation does (whn09/RAIDEN-R1), and this does not


def test_an_empty_gold_answer_pays_nobody() -> None:
    """There, every text contains the empty answer: 0.7."""
    empty: list[Any] = ["", {"keys": [""]}, {"keys": []}]
    for reference in empty:
        assert scored("anything", reference).reason == "gold_unparsable"


def test_a_word_inside_another_word_is_not_the_keyword() -> None:
    """There, `in` finds Ann in annoyed."""
    assert scored("I am annoyed.", "Ann").value == 0.0


def test_an_answer_that_opens_with_so_is_read_whole() -> None:
    """There, what follows the first "so" or "thus" of a text is its answer."""
    assert scored("So I thought. Then I met Ron.", "Ron").value == 1.0


def test_a_half_open_tag_and_bold_letters_are_no_form() -> None:
    """There, `<answer>` without its end, two words of reasoning and bold text are form enough."""
    text = "1. First, because **it** is so.\n\n2. Therefore the answer is <answer>Harry"
    assert scored(text, KEYS, format_weight=0.3).value == 0.0


# Attacks, references that cannot be meant, rules


@pytest.mark.parametrize("case", shipped_cases(RaidenVerifier()), ids=lambda case: case.id)
def test_attacks_are_worth_nothing_and_honest_responses_everything(case: AttackCase) -> None:
    score = replace(RaidenVerifier(), **case.options).verify(case.sample)
    assert score.value == float(case.honest)
    assert score.reason == case.reason or not case.reason


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ({"program": CHECKER}, "good is None"),
        ({"program": CHECKER, "good": GOOD, "bad": "no"}, "bad is 'no'"),
        ({"program": CHECKER, "good": GOOD, "bad": []}, r"bad is \[\]; give a list of 1 to 200 answers"),
        ({"program": CHECKER, "good": GOOD, "bad": [7]}, "bad holds something that is not text"),
        ({"program": CHECKER, "good": ["a"] * 201, "bad": BAD}, "good is"),
        ({"program": CHECKER, "good": GOOD, "bad": BAD, "keys": []}, "keys"),
        ({"program": "import os", "good": GOOD, "bad": BAD}, "without a function"),
        ({"program": "def check(prompt, response):\n    return eval(response)", "good": GOOD, "bad": BAD}, "uses eval"),
        ({**KEYS, "references": "Ron"}, "references is 'Ron'"),
        ({**KEYS, "reference": SURE}, "reference"),
        (7, "the keyword is 7"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_references_that_cannot_be_meant_are_told(reference: Any, why: str) -> None:
    sample = Sample(prompt="q", response="Ron", reference=reference)
    with pytest.raises(BadReferenceError, match=why):
        RaidenVerifier().validate(sample)
    assert RaidenVerifier().verify(sample).reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"admission": "never"}, "admission='never'"),
        ({"form_pays": "often"}, "form_pays='often'"),
        ({"format_weight": 1.0}, "format_weight=1.0; it must be a finite number, at least 0 and below 1"),
        ({"min_agreement": float("nan")}, "min_agreement=nan"),
        ({"tags": ["<x>"]}, "is not a tag name"),
        ({"seconds": 0}, "seconds=0"),
        ({"credit": "some"}, "credit='some'"),
    ],
    ids=str,
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RaidenVerifier(**options)


def test_a_tower_of_accents_takes_no_time() -> None:
    """Sorting 200,000 accents of two kinds takes Unicode's own algorithm a minute."""
    start = time.process_time()
    assert scored("My brother is Ron" + "\u0301\u0316" * 90_000, KEYS).value == 1.0
    assert time.process_time() - start < 20


@given(response=st.text(max_size=200), other=st.sampled_from(["{}", "<think>{}</think>", "Ron {} <answer>"]))
@settings(max_examples=60)
def test_no_response_escapes_a_number(response: str, other: str) -> None:
    score = scored(other.replace("{}", response), KEYS, format_weight=0.3)
    assert score.value is not None
    assert 0 <= score.value <= 1


def test_it_keeps_the_rules() -> None:
    samples = [Sample(prompt=PROMPT, response=text, reference=KEYS) for text in ("Ron", "Percy", FORM.format("Ron"))]
    check_scorer(RaidenVerifier(format_weight=0.3), samples).raise_for_failures()
