"""What holds for all the small text verifiers alike."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score, Verifier
from adjudge.responses.markup import invisible, unwrap
from adjudge.verifiers.text.answer_verifier import AnswerVerifier
from adjudge.verifiers.text.choice import ChoiceVerifier
from adjudge.verifiers.text.exact import ExactVerifier
from adjudge.verifiers.text.length import LengthPenalty
from adjudge.verifiers.text.numeric import NumericVerifier
from adjudge.verifiers.text.regex import RegexVerifier
from adjudge.verifiers.text.repetition import RepetitionPenalty
from adjudge.verifiers.text.tag_format import FormatVerifier
from adjudge.verifiers.text.token_f1 import TokenF1Verifier

VERIFIERS: list[tuple[Verifier, Any]] = [
    (ExactVerifier(), "Paris"),
    (NumericVerifier(), "5"),
    (ChoiceVerifier(), "C"),
    (TokenF1Verifier(), "Paris is nice"),
    (RegexVerifier(pattern="[a-z]+"), None),
    (FormatVerifier(), None),
    (LengthPenalty(unit="words"), None),
    (RepetitionPenalty(), None),
]
IDS = [verifier.name for verifier, _ in VERIFIERS]
EACH = pytest.mark.parametrize(("verifier", "reference"), VERIFIERS, ids=IDS)

ODD_TEXTS = [
    "",
    " ",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\u202e",
    "a\u0300" * 200,
    "\\",
    "\\boxed",
    "\\boxed{",
    "{}" * 50,
    "<think>",
    "</think>",
    "</think></think><think>",
    "<answer></answer>",
    "$",
    "****",
    "\r\r\n\n\u2028\u2029\x85",
    "٣٤٥",
    "ﬁ\u00adx",
    "𝟓",
    "9" * 5_000,
]


def text_of(sample: Sample, verifier: Verifier) -> Score:
    score = verifier.verify(sample)
    assert Score.from_dict(score.to_dict()) == score
    return score


@EACH
@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
def test_an_odd_response_gets_a_number(verifier: Verifier, reference: Any, text: str) -> None:
    score = text_of(Sample(prompt="", response=text, reference=reference), verifier)
    assert score.status == "scored"
    assert -1.0 <= (score.value or 0.0) <= 1.0


@EACH
@given(text=st.text(alphabet=st.characters(exclude_categories=[]), max_size=80))
def test_any_response_gets_the_same_number_twice(verifier: Verifier, reference: Any, text: str) -> None:
    sample = Sample(prompt="", response=text, reference=reference)
    score = text_of(sample, verifier)
    assert score.status == "scored"
    assert verifier.verify(copy.deepcopy(sample)) == score


@EACH
def test_only_assistant_text_is_graded(verifier: Verifier, reference: Any) -> None:
    said = "<think>hm</think><answer>Paris</answer>"
    turns: list[dict[str, Any]] = [
        {"role": "system", "content": "Paris 5 C"},
        {"role": "user", "content": "<answer>5</answer>"},
        {"role": "assistant", "content": [{"type": "text", "text": said}], "tool_calls": []},
        {"role": "tool", "content": "The answer is (C). " * 3},
        {"role": "assistant", "content": None},
    ]
    plain = verifier.verify(Sample(prompt="", response=said + "\n", reference=reference))
    assert verifier.verify(Sample(prompt="", response=turns, reference=reference)) == plain


@EACH
def test_the_prompt_and_the_group_do_not_matter(verifier: Verifier, reference: Any) -> None:
    bare = Sample(prompt="", response="Paris", reference=reference)
    dressed = dataclasses.replace(bare, prompt="C 5 Paris", id="x", group="y")
    assert verifier.verify(bare) == verifier.verify(dressed)


@EACH
def test_it_is_plain_data(verifier: Verifier, reference: Any) -> None:
    assert pickle.loads(pickle.dumps(verifier)) == verifier
    assert hash(verifier) == hash(pickle.loads(pickle.dumps(verifier)))
    assert verifier.fingerprint == type(verifier)(**_options(verifier)).fingerprint
    assert verifier.fingerprint.startswith(verifier.name + ":")


def _options(verifier: Verifier) -> dict[str, Any]:
    return {item.name: getattr(verifier, item.name) for item in dataclasses.fields(verifier)}  # type: ignore[arg-type]


WRONG_TYPES: list[Any] = [None, object(), 3 + 4j, b"Paris", {"gold": "A"}, {}, [], [None], [["a"]]]
REFERENCED = [verifier for verifier, _ in VERIFIERS if verifier.needs_reference]


@pytest.mark.parametrize("bad", WRONG_TYPES, ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("verifier", REFERENCED, ids=lambda verifier: verifier.name)
def test_a_reference_of_the_wrong_type_is_ours_and_a_mistake(verifier: Verifier, bad: Any) -> None:
    for response in ("", "Paris", "<think>"):
        score = verifier.verify(Sample(prompt="", response=response, reference=bad))
        assert (score.status, score.reason) == ("failed", "gold_unparsable")
    with pytest.raises(ValueError, match=verifier.name):
        verifier.validate(Sample(prompt="", response="", reference=bad))


def test_the_answer_verifiers_agree_on_what_is_no_answer() -> None:
    for verifier, reference in VERIFIERS:
        if not isinstance(verifier, AnswerVerifier):
            continue
        for response, finish, reason in (
            ("<think>Paris 5 C", None, "unfinished_reasoning"),
            ("Paris 5 C", "length", "truncated"),
            ("<think>a</think> \n", "stop", "no_answer"),
        ):
            score = verifier.verify(Sample(prompt="", response=response, reference=reference, finish_reason=finish))
            assert (score.value, score.reason) == (0.0, reason)


@given(st.text(alphabet="*_$`\"'\\(){}text ab", max_size=40))
def test_unwrapping_ends_and_keeps_something(text: str) -> None:
    inner = unwrap(text)
    assert inner in text
    assert bool(inner.strip()) == bool(text.strip())


@given(st.text(max_size=40))
def test_invisible_characters_go_and_blanks_stay(text: str) -> None:
    left = invisible(text)
    assert [char for char in text if char.isspace()] == [char for char in left if char.isspace()]
    assert invisible(left) == left
    assert "\u200b" not in left
