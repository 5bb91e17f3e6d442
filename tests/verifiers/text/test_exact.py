from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import adjudge
from adjudge.protocol import Sample
from adjudge.verifiers.text.exact import ExactVerifier

WORDS = st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=20)


def verdict(response: str, reference: Any, **options: Any) -> float | None:
    return ExactVerifier(**options).verify(Sample(prompt="", response=response, reference=reference)).value


@given(WORDS)
def test_a_word_equals_itself_in_every_wrapping(word: str) -> None:
    for form in ("{}", " {}\n", "{}.", "**{}**", '"{}"', r"\boxed{{{}}}", "<answer>{}</answer>", "The answer is {}."):
        assert verdict(form.format(word), word) == 1.0


@given(WORDS, WORDS)
def test_two_different_words_are_different(one: str, other: str) -> None:
    assume(unicodedata.normalize("NFC", one) != unicodedata.normalize("NFC", other))
    assert verdict(one, other) == 0.0
    assert verdict(other, one) == 0.0


@given(st.text(max_size=40), st.text(max_size=40))
def test_equality_is_symmetric_and_never_fails_for_a_response(one: str, other: str) -> None:
    options = {"where": "response", "reasoning": "keep"}
    assume("__" not in one + other)  # an answer `__x__` may be bold, the reference `__x__` is a name
    assert verdict(one, [other, "x"], **options) in (0.0, 1.0, None)
    if one.strip() and verdict(other, one, **options) == 1.0:
        assert verdict(one, other, **options) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "answer: x",
        "The answer is: x",
        "Final answer: x",
        "A: B: C",
        "<answer>x</answer>",
        r"\boxed{x}",
        "x or y",
        "So x.",
    ],
)
@pytest.mark.parametrize("scorer", ["exact", "token_f1"])
def test_a_response_that_is_the_reference_is_right_whatever_it_looks_like(scorer: str, text: str) -> None:
    assert adjudge.score("", text, text, scorer=scorer).value == 1.0


@pytest.mark.parametrize(
    ("answer", "reference", "value"),
    [
        ("init", "__init__", 0.0),
        ("__init__", "__init__", 1.0),
        ("The method is `__init__`.", "__init__", 0.0),
        ("The answer is `__init__`.", "__init__", 1.0),
        (r"\boxed{\texttt{__init__}}", "__init__", 1.0),
        ("**__init__**", "__init__", 1.0),
        ("FILE", "__FILE__", 0.0),
        ("__Paris__", "Paris", 1.0),
        ("__paris__", "paris", 1.0),
        ("Paris", "__Paris__", 1.0),
        ("a name", "__a name__", 1.0),
    ],
)
def test_a_name_between_underscores_is_a_name_where_it_is_the_reference(
    answer: str, reference: str, value: float
) -> None:
    assert verdict(answer, reference) == value


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    verifier = ExactVerifier(ignore_case=True, unicode_form="NFKC", whitespace="collapse", strip_markup=False)
    once = verifier.normal(text)
    assert verifier.normal(once).strip() == once.strip()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"where": "somewhere"}, "where='somewhere'; it must be one of auto"),
        ({"unicode_form": "NFD"}, "unicode_form='NFD'"),
        ({"whitespace": "squeeze"}, "whitespace='squeeze'"),
        ({"reasoning": "drop"}, "reasoning='drop'"),
        ({"truncated": "skip"}, "truncated='skip'"),
    ],
)
def test_unknown_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExactVerifier(**options)


def test_validate_tells_mistakes_from_bad_values() -> None:
    verifier = ExactVerifier()
    with pytest.raises(ValueError, match="sample 'q1': the reference holds a int"):
        verifier.validate(Sample(prompt="", response="", reference=5, id="q1"))
    with pytest.raises(ValueError, match="has none; set"):
        verifier.validate(Sample(prompt="", response=""))
    with pytest.raises(ValueError, match="empty list"):
        verifier.validate(Sample(prompt="", response="", reference=[]))
    verifier.validate(Sample(prompt="", response="", reference=" "))  # one bad value is no mistake of the user


@pytest.mark.parametrize("scorer", ["exact", "token_f1", "numeric"])
def test_the_json_text_of_several_answers_is_no_answer(scorer: str) -> None:
    text = '["12", "12.0"]'
    with pytest.raises(ValueError, match="the reference is the JSON text of a list"):
        adjudge.score("q", "12", text, scorer=scorer)
    assert adjudge.score("q", "12", ["12", "12.0"], scorer=scorer).value == 1.0
    if scorer != "numeric":
        assert adjudge.score("q", text, [text], scorer=scorer).value == 1.0
    assert adjudge.score("q", "12", '["12"]', scorer=scorer).value == 1.0  # of one, as Skywork-OR1 has them
    assert adjudge.score("q", "[12]", "[12]", scorer="exact").value == 1.0


def test_evidence_is_short_whatever_the_answer() -> None:
    score = ExactVerifier().verify(Sample(prompt="", response="x" * 10_000, reference="y"))
    assert len(score.evidence["answer"]) == 200
