"""Marks of an answer that readers do not know are written as those that they know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adjudge
from adjudge.responses.answer_marks import in_known_marks

READERS = ("math", "numeric", "exact")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("work\n\n**Answer**\n\nParis", "work\n\nAnswer:\n\nParis"),
        ("## Final Answer\n$x+1$\n\n## Why\n\nBecause.", "Final Answer:\n$x+1$\n\n## Why\n\nBecause."),
        ("答案\n\n5", "答案:\n\n5"),
        ("<|begin_of_box|>5<|end_of_box|>", r"\boxed{5}"),
        ('```json\n{"steps": "3 + 4", "answer": 7}\n```', '```json\n{"steps": "3 + 4",\nAnswer: 7\n\n```'),
        (r'{"answer": "\\frac{1}{2}"}', "\nAnswer: \\frac{1}{2}\n"),
        (r'{"answer": "\frac{1}{2}"}', "\nAnswer: \\frac{1}{2}\n"),
        ("It is not 48, but rather $72$.", "It is $72$."),
        ("It isn't (B) but (C).", "It is (C)."),
        ("不是48，而是72", "是72"),
        ("72 apples, not 48.", "72 apples."),
        ("The answer is $72$. I hope it is correct.", "The answer is $72$. "),
    ],
)
def test_a_mark_is_written_as_one_that_readers_know(text: str, known: str) -> None:
    assert in_known_marks(text) == known


@pytest.mark.parametrize(
    "text",
    [
        "## Answer\n\nWe have 2x = 4.\n\nSo x = 2.",
        "**Answer**\n\n$2x + 3 = 7$\n\n$2x = 4$\n\n$x = 2$",
        "## Answer\n\n1. Add 2.\n\n2. Halve it.",
        "The answer\nis 5.",
        "It is not 48.",
        "12 is not 48.",
        "It is not only 5 but 6 is right too.",
        "To be not feared but loved.",
        'Write {"answer": [1, 2]}',
        "I hope it is Paris, the capital of France, which lies in the north of the country on the Seine.",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert in_known_marks(text) == text


@pytest.mark.parametrize(
    "form",
    [
        "3 + 4\n\n**Answer**\n\n{}",
        "<|begin_of_box|>{}<|end_of_box|>",
        '```json\n{{"answer": "{}"}}\n```',
        "The answer is not 48 but {}.",
        "The answer is {}. I hope it is correct.",
    ],
)
def test_every_reader_reads_them(form: str) -> None:
    for scorer in READERS:
        assert adjudge.score("", form.format("72"), "72", scorer=scorer).value == 1.0
        assert adjudge.score("", form.format("72"), "48", scorer=scorer).value == 0.0


@given(st.text(alphabet="not 48but,()$\n*#Answer<|>", max_size=80))
def test_any_text_is_survived(text: str) -> None:
    in_known_marks(text)


@pytest.mark.parametrize(
    "unit", ["not 1", "not 1 but ", "1, not ", "1", " ", "Answer\n", '{"answer": ', "I hope it ", "\n"]
)
def test_a_quarter_million_characters_are_read_once(unit: str) -> None:
    in_known_marks(f"not {unit * (250_000 // len(unit))} I hope it")
