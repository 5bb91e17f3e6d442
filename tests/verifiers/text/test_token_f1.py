from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.token_f1 import TokenF1Verifier, token_f1

WORDS = st.lists(st.sampled_from(["cat", "dog", "sat", "mat", "red"]), min_size=1, max_size=8)


def verdict(response: str, reference: Any, **options: Any) -> float | None:
    return TokenF1Verifier(**options).verify(Sample(prompt="", response=response, reference=reference)).value


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        # P = {cat, sat}, G = {cat, sat, on, mat}: common 2, p = 2/2, r = 2/4, F1 = 2 * 1 * 0.5 / 1.5 = 2/3.
        ("The cat sat", "the cat sat on a mat", 2 / 3),
        # Counts matter: P = {a: removed; 4 x cat}, G = {2 x cat, dog}: common 2, p = 2/4, r = 2/3, F1 = 4/7.
        ("cat cat cat cat", "cat cat dog", 4 / 7),
        # Punctuation is removed, not replaced: "well-known" is the token "wellknown" and shares nothing with "well".
        ("well-known", "well known", 0.0),
        # "U.S." becomes "us".
        ("US", "U.S.", 1.0),
        # p = 1/3, r = 1/1: F1 = 2 * (1/3) / (4/3) = 1/2.
        ("in Paris, France", "Paris", 0.5),
    ],
)
def test_published_definition(answer: str, reference: str, expected: float) -> None:
    assert verdict(answer, reference, where="response") == pytest.approx(expected, abs=1e-15)


@given(WORDS, WORDS)
def test_the_closed_form_equals_the_harmonic_mean(answer: list[str], reference: list[str]) -> None:
    one, other = Counter(answer), Counter(reference)
    common = (one & other).total()
    expected = 0.0
    if common:
        precision, recall = common / len(answer), common / len(reference)
        expected = 2 * precision * recall / (precision + recall)
    assert token_f1(one, other) == pytest.approx(expected, abs=1e-12)
    assert token_f1(one, other) == token_f1(other, one)


@given(WORDS, st.lists(WORDS, min_size=1, max_size=4))
def test_the_best_reference_counts(answer: list[str], references: list[list[str]]) -> None:
    golds = [" ".join(words) for words in references]
    text = " ".join(answer)
    assert verdict(text, golds) == max(verdict(text, gold) or 0.0 for gold in golds)
    assert verdict(text, golds, metric="exact_match") == float(any(text == gold for gold in golds))


@given(st.text(max_size=100), st.sampled_from(["en", "any"]), st.sampled_from(["f1", "exact_match"]))
def test_any_response_scores_between_zero_and_one(response: str, language: str, metric: str) -> None:
    value = verdict(response, "cat sat", language=language, metric=metric)
    assert value is not None
    assert 0.0 <= value <= 1.0


def test_any_language_splits_unspaced_scripts_and_keeps_articles() -> None:
    tokens = TokenF1Verifier(language="any").tokens
    assert tokens("北京 is the capital。") == ["北", "京", "is", "the", "capital"]
    assert tokens("ไทย") == ["ไ", "ท", "ย"]
    assert TokenF1Verifier().tokens("The U.S. — 'a' b") == ["us", "—", "b"]  # SQuAD removes ASCII punctuation only


@pytest.mark.parametrize("options", [{"metric": "rouge"}, {"language": "zh"}])
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="token_f1"):
        TokenF1Verifier(**options)


def test_validate_tells_mistakes_from_bad_values() -> None:
    verifier = TokenF1Verifier()
    with pytest.raises(ValueError, match="compares texts"):
        verifier.validate(Sample(prompt="", response="", reference=5))
    verifier.validate(Sample(prompt="", response="", reference="the"))


def test_an_answer_beyond_the_size_limit_is_zero() -> None:
    score = TokenF1Verifier().verify(Sample(prompt="", response="cat " * 500_001, reference="cat"))
    assert (score.value, score.reason) == (0.0, "too_complex")
