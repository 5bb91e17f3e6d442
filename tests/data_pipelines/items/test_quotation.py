from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.data_pipelines.items.likeness import best_place

PASSAGE = "The fair opened in  Rome\nin 1990. Ada “the Fox” Lind beat Bob there — in three sets."


def fewest_edits(pattern: str, text: str) -> int:
    """The textbook table: edits between the pattern and the best part of the text."""
    row = [0] * (len(text) + 1)
    for at, wanted in enumerate(pattern, start=1):
        above, row = row, [at] + [0] * len(text)
        for place, char in enumerate(text, start=1):
            row[place] = min(above[place] + 1, row[place - 1] + 1, above[place - 1] + (wanted != char))
    return min(row)


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        ("Ada “the Fox” Lind beat Bob", "Ada “the Fox” Lind beat Bob"),
        ('ada "the fox" lind', "Ada “the Fox” Lind"),
        ("opened in Rome in 1990", "opened in  Rome\nin 1990"),
        ("Bob there - in three", "Bob there — in three"),
    ],
)
def test_an_exact_quotation_is_found_whatever_its_case_marks_and_blanks(quote: str, words: str) -> None:
    found = best_place(quote, PASSAGE)
    assert found is not None
    assert (found.share, PASSAGE[found.start : found.end]) == (1.0, words)


def test_a_loose_quotation_has_the_share_of_its_characters_that_stand_there() -> None:
    found = best_place("Ada Lind beat Rob there", "Yes. Ada Lind beat Bob there. No.")
    assert found is not None
    assert found.share == pytest.approx(1 - 1 / 23)
    assert "Yes. Ada Lind beat Bob there. No."[found.start : found.end] == "Ada Lind beat Bob there"


def test_a_place_may_be_longer_than_its_quotation() -> None:
    found = best_place("abcdefgh", "--abcdxyefgh--")
    assert found == (0.75, 2, 12)


def test_words_that_are_not_there_have_a_small_share() -> None:
    found = best_place("Carol won the gold medal in Tokyo", PASSAGE)
    assert found is not None
    assert found.share < 0.5


@pytest.mark.parametrize("quote", ["", "   ", "a", "a b c", "…\n"])
def test_a_quotation_that_would_stand_anywhere_proves_nothing(quote: str) -> None:
    assert best_place(quote, "a b c " * 10) is None


def test_nothing_stands_in_an_empty_text() -> None:
    found = best_place("some words", "")
    assert found is not None
    assert found.share == 0.0


@given(st.text("abc", min_size=4, max_size=12), st.text("abc", max_size=30))
def test_the_share_is_that_of_the_textbook_table(quote: str, text: str) -> None:
    found = best_place(quote, text)
    assert found is not None
    assert found.share == pytest.approx(max(0.0, 1 - fewest_edits(quote, text) / len(quote)))
    if found.share > 0:
        edits = round((1 - found.share) * len(quote))
        assert fewest_edits(quote, text[found.start : found.end]) == edits


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_have_a_place_or_none_within_the_text(quote: str, text: str) -> None:
    found = best_place(quote, text)
    if found is not None:
        assert 0 <= found.share <= 1
        assert 0 <= found.start <= found.end <= len(text)
