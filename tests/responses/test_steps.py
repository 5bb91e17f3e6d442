"""Steps: where solutions are cut, what stays whole, and that nothing is lost."""

from __future__ import annotations

import gc
import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.responses.steps import SPLITTINGS, Splitting, given_steps, split_steps
from adjudge.responses.whole_regions import display_regions, inline_regions

DATA = os.environ.get("ADJUDGE_DATA")

CASES: list[tuple[str, Splitting, str, list[str]]] = [
    ("two paragraphs", "blank_line", "a\n\nb", ["a", "b"]),
    ("CRLF", "blank_line", "a\r\n\r\nb\r\nc", ["a", "b\r\nc"]),
    ("old line ends", "blank_line", "a\r\rb", ["a", "b"]),
    ("Unicode line ends", "blank_line", "a\u2028\u2028b\u2029\u2029c\x85\x85d", ["a", "b", "c", "d"]),
    ("blanks on the empty line", "blank_line", "a\n \t\nb", ["a", "b"]),
    ("zero width on the empty line", "blank_line", "a\n\u200b\ufeff\nb", ["a", "b"]),
    ("a paragraph nobody sees", "blank_line", "a\n\n\u200b\u200b\n\nb", ["a", "b"]),
    ("many empty lines", "blank_line", "\n\n\na\n\n\n\n\nb\n\n", ["a", "b"]),
    ("blank lines in a fence", "blank_line", "a\n\n```py\nx\n\ny\n```\n\nb", ["a", "```py\nx\n\ny\n```", "b"]),
    ("fence of tildes around backticks", "blank_line", "~~~\n```\n\n```\n\n~~~\n\nb", ["~~~\n```\n\n```\n\n~~~", "b"]),
    ("longer fence around a shorter", "blank_line", "````\n```\n\nx\n````\n\nb", ["````\n```\n\nx\n````", "b"]),
    ("CRLF in a fence", "blank_line", "```\r\nx\r\n\r\ny\r\n```\r\n\r\nb", ["```\r\nx\r\n\r\ny\r\n```", "b"]),
    ("fence never closed", "blank_line", "```py\nx\n\ny\n\nz", ["```py\nx", "y", "z"]),
    ("fence closed by text behind it", "blank_line", "```\nx\n\ny\n``` z", ["```\nx", "y\n``` z"]),
    ("display", "blank_line", "a \\[x\n\ny\\] b\n\nc", ["a \\[x\n\ny\\] b", "c"]),
    ("dollars", "blank_line", "$$x\n\ny$$\n\nc", ["$$x\n\ny$$", "c"]),
    ("environment", "blank_line", "\\begin{align}x\n\ny\\end{align}\n\nc", ["\\begin{align}x\n\ny\\end{align}", "c"]),
    (
        "nested environments",
        "blank_line",
        "\\begin{a}\\begin{a}x\\end{a}\n\ny\\end{a}\n\nc",
        ["\\begin{a}\\begin{a}x\\end{a}\n\ny\\end{a}", "c"],
    ),
    ("display never closed", "blank_line", "a \\[x\n\ny", ["a \\[x", "y"]),
    ("environment never closed", "blank_line", "\\begin{align}x\n\ny", ["\\begin{align}x", "y"]),
    ("environment closed as another", "blank_line", "\\begin{a}x\n\ny\\end{b}", ["\\begin{a}x", "y\\end{b}"]),
    ("a line end in LaTeX opens no display", "blank_line", "x\\\\[2pt]\n\ny\\]", ["x\\\\[2pt]", "y\\]"]),
    ("an escaped dollar opens nothing", "blank_line", "\\$$ 5\n\nand $$", ["\\$$ 5", "and $$"]),
    (
        "a display inside a fence opens nothing",
        "blank_line",
        "```\n\\[\n```\n\na\n\nb\\]",
        ["```\n\\[\n```", "a", "b\\]"],
    ),
    ("lines", "line", "a\nb\r\nc\u2028d\n\n e", ["a", "b", "c", "d", "e"]),
    ("lines of a fence", "line", "a\n```\nx\ny\n```\nb", ["a", "```\nx\ny\n```", "b"]),
    ("numbered", "numbered", "Intro\nStep 1: x\n\ny\nStep 2: z", ["Intro", "Step 1: x\n\ny", "Step 2: z"]),
    ("numbered in bold", "numbered", "**Step 1.** x\n### Step 2\ny", ["**Step 1.** x", "### Step 2\ny"]),
    ("numbered in the middle of a line", "numbered", "as Step 1 says", ["as Step 1 says"]),
    ("no number", "numbered", "a\n\nb", ["a\n\nb"]),
    ("sentences", "sentence", "It is 3.14. Then x? Yes! So", ["It is 3.14.", "Then x?", "Yes!", "So"]),
    ("abbreviations", "sentence", "See e.g. Fig. 3. It holds.", ["See e.g. Fig. 3.", "It holds."]),
    ("sentences in mathematics", "sentence", "Let $x = 3. Y$ be. Done.", ["Let $x = 3. Y$ be.", "Done."]),
    ("quotation", "sentence", 'He said "yes." Then no.', ['He said "yes."', "Then no."]),
    ("Chinese sentences", "sentence", "首先相加。然后相减。", ["首先相加。", "然后相减。"]),
    ("item numbers", "sentence", "1. Add. 2 remain.\n2. Done.", ["1. Add.", "2 remain.", "2. Done."]),
    ("list", "list", "So:\n1. a\n   - b\n2. c\n\nDone", ["So:", "1. a\n   - b", "2. c", "Done"]),
    ("loose list", "list", "- a\n\n  more\n\n- b", ["- a\n\n  more", "- b"]),
    ("no list", "list", "a\n\nb", ["a\n\nb"]),
    ("whole", "whole", " a\n\nb ", ["a\n\nb"]),
]


@pytest.mark.parametrize(("name", "how", "text", "steps"), CASES, ids=[f"{case[1]}: {case[0]}" for case in CASES])
def test_where_steps_begin(name: str, how: Splitting, text: str, steps: list[str]) -> None:
    assert [step.text for step in split_steps(text, how)] == steps


@pytest.mark.parametrize("how", SPLITTINGS)
@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\u200b\n\n\ufeff", "\x0b\x0c\x85\u2029"], ids=ascii)
def test_no_text_is_no_step(how: Splitting, text: str) -> None:
    assert split_steps(text, how) == ()


PARTS = st.sampled_from(
    [
        *["a", "B. ", "c? ", "\n", "\n\n", "\r\n", "\u2028", " ", "\u200b", "```\n", "~~~", "\\[", "\\]", "$$", "$"],
        *[
            "\\(",
            "\\)",
            "\\begin{x}",
            "\\end{x}",
            "\\end{y}",
            "Step 1: ",
            "- ",
            "1. ",
            "  2) ",
            "。",
            "\\\\",
            "\\$",
            "é",
        ],
        *["\U0001f600", "\x00"],
    ]
)


@pytest.mark.parametrize("how", SPLITTINGS)
@given(text=st.one_of(st.lists(PARTS, max_size=30).map("".join), st.text(max_size=60)), most=st.integers(1, 6))
def test_steps_and_gaps_give_back_the_text(how: Splitting, text: str, most: int) -> None:
    steps = split_steps(text, how, most=most)
    assert len(steps) <= most
    at = 0
    for step in steps:
        assert not re.search("[^\\s\u00ad\u200b-\u200f\u2060\ufeff]", text[at : step.start])
        assert text[step.start : step.end] == step.text
        assert step.text
        at = step.end
    assert not re.search("[^\\s\u00ad\u200b-\u200f\u2060\ufeff]", text[at:])
    assert given_steps(text, [step.text for step in steps]) == steps
    for regions in (display_regions(text), inline_regions(text)):
        flat = [edge for region in regions for edge in region]
        assert flat == sorted(flat)


def test_the_last_step_holds_the_rest() -> None:
    assert [step.text for step in split_steps("a\n\nb\n\nc", most=2)] == ["a", "b\n\nc"]
    for most in (0, -1):
        with pytest.raises(ValueError, match="at least one step"):
            split_steps("a", most=most)
    unknown: Any = "clause"
    with pytest.raises(ValueError, match="clause"):
        split_steps("a", unknown)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a", "b c"], [(0, 1), (3, 6)]),
        ([" a ", "", "b", "c"], [(0, 1), (3, 4), (5, 6)]),
        (["a", "c"], None),
        (["a", "b"], None),
        (["b c", "a"], None),
        (["a", "b c", "d"], None),
        ([], None),
    ],
    ids=str,
)
def test_given_steps_are_the_whole_text_or_none(texts: list[str], found: list[tuple[int, int]] | None) -> None:
    steps = given_steps("a\n\nb c", texts)
    assert (None if steps is None else [(step.start, step.end) for step in steps]) == found


HOSTILE = {
    "open fences": "```a\n" * 40_000,
    "fences of rising length": "\n".join("`" * length + "x" for length in range(3, 600)),
    "environments": "\\begin{a}" * 30_000 + "\\end{b}" * 30_000,
    "nested environments": "\\begin{a}" * 20_000 + "\\end{a}" * 20_000,
    "brackets": "\\[" * 100_000,
    "blank lines": " \n" * 100_000,
    "spaces": "a\n" + " " * 200_000 + "b",
    "items": "- " * 100_000,
    "full stops": "." * 200_000,
    "abbreviations": "e.g. " * 40_000,
    "steps": "Step 1 " * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_text_alone(name: str) -> None:
    """Ten times the time for ten times the text would be 1; a square would be 10.  Noise stays far below 6."""
    text = HOSTILE[name]

    def seconds(some: str) -> float:
        start = time.process_time()
        for how in SPLITTINGS:
            split_steps(some, how)
        return time.process_time() - start

    gc.disable()  # it looks through all that other tests have left, the oftener the longer the text
    try:
        short = min(seconds(text[: len(text) // 10]) for _ in range(3))
        assert any(seconds(text) < 60 * short + 0.1 for _ in range(2))
    finally:
        gc.enable()


@pytest.mark.skipif(not DATA, reason="ADJUDGE_DATA is not set")
@pytest.mark.parametrize("part", ["gsm8k", "math"])
def test_processbench_comes_apart_as_it_was_put_together(part: str) -> None:
    rows = json.loads((Path(DATA or "") / "processbench" / f"{part}.json").read_text(encoding="utf-8"))
    differ = 0
    for row in rows:
        text = "\n\n".join(row["steps"])
        known = given_steps(text, row["steps"])
        assert known is not None
        differ += split_steps(text) != known
    assert differ <= 1, "one solution has an empty line inside a displayed equation"
