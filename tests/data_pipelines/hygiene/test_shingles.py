"""Texts as sets of n-grams: what counts as the same text, and what does not."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.hygiene.minhash import MinHash, grams, jaccard, normalised, tokens

TEXTS = st.text(max_size=60)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A  b\n\tc ", "a b c"),
        ("\uff21\uff22\uff23 \uff11\uff12", "abc 12"),  # full width
        ("e\u0301te\u0301", "\u00c9T\u00c9"),  # composed or not
        ("ﬁne", "FINE"),  # a ligature
        ("co\u00adop\u200berate", "cooperate"),  # soft hyphen, zero-width space
        ("stra\u00dfe", "STRASSE"),
    ],
)
def test_spelling_that_changes_nothing_is_normalised_away(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@given(TEXTS)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


def test_every_character_is_normalised_for_good() -> None:
    points = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xD7A4, 0x20000)]  # all but Han and Hangul
    assert [hex(point) for point in points if normalised(normalised(chr(point))) != normalised(chr(point))] == []


def test_a_run_of_combining_marks_takes_linear_time_and_keeps_its_start() -> None:
    began = time.process_time()
    found = normalised("e\u0301x" + "\u0300\u0316" * 200_000)
    assert time.process_time() - began < 10  # the standard library alone takes minutes
    assert found.startswith("\u00e9x")
    assert unicodedata.is_normalized("NFC", found[:20])


def test_words_symbols_and_single_characters_are_tokens() -> None:
    assert tokens("Is x_1 + 2 = 3?") == ["is", "x", "_", "1", "+", "2", "=", "3", "?"]
    assert tokens("Is x_1 + 2 = 3?", symbols=False) == ["is", "x", "1", "2", "3"]
    assert tokens("\u4eca\u5929 is \u4e94\u3002") == ["\u4eca", "\u5929", "is", "\u4e94", "\u3002"]
    assert tokens("\u0e01\u0e34\u0e19") == ["\u0e01", "\u0e34", "\u0e19"]  # Thai, its vowel sign too
    assert tokens("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e", symbols=False) == [
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "\u092d\u093e\u0937\u093e",
    ]  # Hindi words keep their vowel signs
    assert tokens(r"\frac{a}{2}", symbols=False) == ["frac", "a", "2"]


def test_a_text_of_symbols_alone_keeps_them() -> None:
    assert tokens("?!", symbols=False) == ["?", "!"]
    assert tokens(" \u200b ", symbols=False) == []


def test_a_long_run_without_spaces_is_cut_so_that_no_token_is_huge() -> None:
    assert [len(token) for token in tokens("x" * 150)] == [64, 64, 22]
    assert max(map(len, tokens("\u00e9" * 150))) == 64


def test_shingles_are_all_runs_and_a_short_text_is_one() -> None:
    assert MinHash(ngram=2).shingles("a b c") == {"a b", "b c"}
    assert MinHash(ngram=5).shingles("a b c") == {"a b c"}
    assert MinHash(ngram=3, kind="characters").shingles("abcd") == {"abc", "bcd"}
    assert MinHash(ngram=5).shingles(" ") == frozenset()


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(1, 5))
def test_runs_of_tokens_are_those_of_slices(found: list[str], size: int) -> None:
    wanted = [" ".join(found[at : at + size]) for at in range(len(found)) if at + size <= len(found)]
    assert grams(found, size) == (wanted or ([" ".join(found)] if found else []))


@given(st.frozensets(st.sampled_from("abcdef")), st.frozensets(st.sampled_from("abcdef")))
def test_jaccard_is_the_share_of_the_common_part(one: frozenset[str], other: frozenset[str]) -> None:
    assert jaccard(one, other) == (len(one & other) / len(one | other) if one | other else 1.0)
