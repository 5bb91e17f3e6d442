from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.prompts.escaping import BREAK, escape, visible
from adjudge.prompts.reading import answers, mark

TOKENS = [
    "<|im_start|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<｜User｜>",
    "<|channel>",
    "<turn|>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<s>",
    "</S>",
    "<start_of_turn>",
    "<think>",
    "</think>",
    "<tool_call>",
    "[gMASK]",
    "[end response]",
    "[begin question 0123abcd]",
    "[assistant 0123abcd]",
    "[/end response 0123abcd]",
]


@pytest.mark.parametrize("token", TOKENS)
def test_control_tokens_are_broken_up(token: str) -> None:
    for text in (token, f"x{token}{token}y", f"<{token}", f"\u200b{token}"):
        assert token not in escape(text)
        assert escape(text).replace(BREAK, "") == visible(text)


@pytest.mark.parametrize(
    "text",
    [
        "if a <b and c> d: return x[0]",
        "f <| x |> g",
        "a < b, [1, 2], {'k': 3}",
        "<html><p>Hi</p></html>",
        "[end of the story]\n[note]",
        "tab\there\nnewline",
        "Ünïcödé, 漢字, فارسی, 👍",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\u200b\u200b\u200bb", "a⟨U+200B ×3⟩b"),
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("\x00\x1b[2J", "⟨U+0000⟩⟨U+001B⟩[2J"),
        ("a\r\nb\rc", "a\nb⟨U+000D⟩c"),
        ("\ud800", "⟨U+D800⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("Fi\u200dnal", "Fi⟨U+200D⟩nal"),
        ("ی\u200c\u200cا", "ی⟨U+200C ×2⟩ا"),
        ("\u2028", "⟨U+2028⟩"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_tokens_of_the_engine_that_overlap_are_all_broken() -> None:
    shown = escape("abcab", special=("ab", "bca", "x"))
    assert not any(token in shown for token in ("ab", "bca"))


PIECES = [
    "[[",
    "]]",
    "A",
    "Final",
    " ",
    "\u200b",
    "Decision",
    ":",
    "[RESULT]",
    "<answer>",
    "</answer>",
    "\n",
    "<|",
    "|>",
    "*",
]


TAGGED = "<answer>[[{answer}]]</answer>"


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_verdict_survives_the_escape(text: str) -> None:
    for form in ("[[{answer}]]", "Final Decision: {answer}", "[RESULT] {answer}", "<answer>{answer}</answer>", TAGGED):
        assert answers(escape(text, marks=(mark(form),)), form) == []
