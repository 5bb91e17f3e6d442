from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample
from adjudge.verifiers.text.repetition import RepetitionPenalty, distinct_ngrams


def verdict(response: str, **options: Any) -> float | None:
    return RepetitionPenalty(**options).verify(Sample(prompt="", response=response)).value


@pytest.mark.parametrize(
    ("response", "n", "expected"),
    [
        # a b a b a b: bigrams ab ba ab ba ab, 2 different of 5: -(1 - 2/5).
        ("a b a b a b", 2, -0.6),
        # The same words: trigrams aba bab aba bab, 2 of 4.
        ("a b a b a b", 3, -0.5),
        ("A b a B", 2, -1 / 3),  # lower case first: ab ba ab, 2 of 3
        ("a a a a", 1, -0.75),
        ("a b c", 3, 0.0),
        ("a b", 3, 0.0),  # no trigram at all
        ("", 3, 0.0),
    ],
)
@pytest.mark.parametrize("unit", ["mixed", "words"])
def test_published_formula(response: str, n: int, expected: float, unit: str) -> None:
    assert verdict(response, ngram=n, unit=unit) == pytest.approx(expected, abs=1e-15)
    assert verdict(response, ngram=n, unit=unit, max_penalty=-0.1) == pytest.approx(expected / 10, abs=1e-15)


@given(st.lists(st.sampled_from("abc"), max_size=60), st.integers(1, 50))
def test_counting_by_halves_equals_counting_tuples(tokens: list[str], n: int) -> None:
    if len(tokens) >= n:
        assert distinct_ngrams(tokens, n) == len(set(zip(*(tokens[at:] for at in range(n)), strict=False)))


@given(st.text(max_size=120), st.integers(1, 6), st.sampled_from(["mixed", "words", "characters"]))
def test_any_response_scores_within_the_range(response: str, n: int, unit: str) -> None:
    value = verdict(response, ngram=n, unit=unit, reasoning="keep")
    assert value is not None
    assert -1.0 <= value <= 0.0
    assert str(value) != "-0.0"


@given(st.lists(st.sampled_from(["ein", "zwei", "drei", "vier"]), min_size=3, max_size=30))
def test_saying_it_again_never_helps(words: list[str]) -> None:
    once, twice = verdict(" ".join(words)), verdict(" ".join(words * 2))
    assert once is not None
    assert twice is not None
    assert twice < 0
    assert twice <= once


def test_no_penalty_at_zero() -> None:
    assert verdict("a a a a a", max_penalty=0.0) == 0.0


def test_characters() -> None:
    # a a a a: trigrams aaa aaa, 1 different of 2.
    assert verdict("aaaa", unit="characters") == -0.5
    assert verdict("aaaa", unit="mixed") == 0.0  # one word
    assert verdict("a" * 41, unit="mixed") == pytest.approx(-(1 - 1 / 39))  # a word longer than 40 is taken apart


def test_what_is_too_long_to_count_gets_the_worst_value() -> None:
    for response, unit in (("a" * 2_000_001, "words"), ("ab " * 500_001, "mixed"), ("ab" * 250_001, "characters")):
        chosen: Any = unit
        score = RepetitionPenalty(unit=chosen, max_penalty=-0.5).verify(Sample(prompt="", response=response))
        assert (score.value, score.reason) == (-0.5, "too_complex")


def test_a_killed_count_is_no_bargain() -> None:
    assert RepetitionPenalty(max_penalty=-3).killed(Sample(prompt="", response=""), "candidate_memory").value == -3.0


@pytest.mark.parametrize(
    "options",
    [{"ngram": 0}, {"max_penalty": 0.1}, {"max_penalty": float("-inf")}, {"unit": "tokens"}, {"reasoning": "drop"}],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="repetition"):
        RepetitionPenalty(**options)


def test_a_large_n_on_a_long_text_is_counted() -> None:
    words = " ".join(str(at % 1_000) for at in range(50_000))
    # A period of 1,000 words: 1,000 different 40-grams of 49,961.
    assert verdict(words, ngram=40) == pytest.approx(-(1 - 1_000 / 49_961))
