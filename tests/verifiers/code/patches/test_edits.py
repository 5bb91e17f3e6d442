"""Reading SEARCH/REPLACE edits and applying them, and what the released code does with them that is not done here."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.verifiers.code.patches.responses import written

from adjudge.verifiers.code.patches.edits import BadEditError, Edit, Matching, apply_edits, checked_path, read_edits

# the published pattern, as data: what it reads of well-formed edits is what we read
RELEASED = re.compile(r"```.*?\n### (.*)\n<<<<<<< SEARCH\n([\s\S]*?)\n=======\n([\s\S]*?)\n>>>>>>> REPLACE\n```")
MARKERS = ["```", "```python", "### a.py", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "x = 1", "", "\r", "\0"]
BLOCK = "```\n### a.py\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n```"


def solution(*edits: tuple[str, str, str]) -> str:
    return written(list(edits), "x").partition("<solution>")[2].partition("</solution>")[0]


def applied(text: str, search: str, replace: str | None, matching: Matching = "unique") -> str:
    return apply_edits({"a.py": text}, [Edit("a.py", search, replace)], matching)["a.py"]


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n`"), max_size=8).filter(
    lambda line: line not in MARKERS
)
PART = st.lists(LINE, min_size=1, max_size=4).map("\n".join)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["a.py", "b/c.py"]), PART, PART), min_size=1, max_size=4))
def test_well_formed_edits_are_read_as_the_published_pattern_reads_them(edits: list[tuple[str, str, str]]) -> None:
    text = solution(*edits)
    assert [(e.path, e.search, e.replace or "") for e in read_edits(text)] == RELEASED.findall(text) == edits


@settings(max_examples=50)
@given(st.lists(st.sampled_from(MARKERS), max_size=30).map("\n".join))
def test_any_text_gives_edits_or_a_reason(text: str) -> None:
    reason = ""
    try:
        edits = read_edits(text)
    except BadEditError as error:
        edits, reason = [], error.reason
    assert bool(edits) == (not reason)
    assert reason in ("", "bad_format", "no_answer")


def test_lines_that_are_not_wholly_a_marker_are_text() -> None:
    text = BLOCK.format("a ======= b\n=======x\n <<<<<<< SEARCH", "Title\n=======\n\n>>>>>>> REPLACE it")
    assert read_edits(text) == [
        Edit("a.py", "a ======= b\n=======x\n <<<<<<< SEARCH", "Title\n=======\n\n>>>>>>> REPLACE it")
    ]


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.format("a", "b").replace("### a.py\n", ""),
        BLOCK.format("a", "b").replace("### ", ""),
        BLOCK.format("a", "b").removeprefix("```\n"),
        BLOCK.format("a", "b").removesuffix("```"),
        BLOCK.format("a", "b").replace("=======\n", ""),
        BLOCK.format("a", "b").replace("<<<<<<< SEARCH\n", ""),
        BLOCK.format("a", "b") + "python\n### b.py\n<<<<<<< SEARCH\nc\n=======\nd\n>>>>>>> REPLACE\n```",
    ],
)
def test_an_edit_out_of_form_is_bad(text: str) -> None:
    with pytest.raises(BadEditError):
        read_edits(text)


def test_released_fault_an_unreadable_edit_is_skipped_beside_a_good_one() -> None:
    text = BLOCK.format("a", "b") + "\n" + BLOCK.format("c", "d").replace("=======\n", "")
    assert len(RELEASED.findall(text)) == 1
    with pytest.raises(BadEditError, match="no line ======="):
        read_edits(text)


def test_released_fault_an_edit_without_an_end_swallows_the_next() -> None:
    text = BLOCK.format("a", "b").removesuffix(">>>>>>> REPLACE\n```") + BLOCK.format("c", "d")
    assert "<<<<<<< SEARCH" in RELEASED.findall(text)[0][2]
    with pytest.raises(BadEditError, match="no line >>>>>>> REPLACE"):
        read_edits(text)


def test_released_fault_lines_cannot_be_deleted_without_leaving_a_blank_one() -> None:
    text = "```\n### a.py\n<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE\n```"
    assert not RELEASED.findall(text)
    assert read_edits(text) == [Edit("a.py", "b", None)]
    assert applied("a\nb\nc\n", "b", None) == "a\nc\n"
    assert applied("a\nb\nc\n", "b", "") == "a\n\nc\n"
    assert applied("b", "b", None) == ""


def test_released_fault_a_part_of_a_line_is_replaced() -> None:
    assert applied("x = 10\n", "x = 1", "x = 2", "released") == "x = 20\n"
    with pytest.raises(BadEditError, match="not found"):
        applied("x = 10\n", "x = 1", "x = 2")


def test_released_fault_every_occurrence_is_replaced() -> None:
    assert applied("a\nb\na\n", "a", "c", "released") == "c\nb\nc\n"
    for text, search in (("a\nb\na\n", "a"), ("a\na\na", "a\na")):
        with pytest.raises(BadEditError, match="more than once"):
            applied(text, search, "c")


@pytest.mark.parametrize("matching", ["unique", "released"])
def test_released_fault_searching_for_nothing_edits_every_line(matching: Matching) -> None:
    assert "\na\nb\n".replace("\n", "\nx\n") == "\nx\na\nx\nb\nx\n"  # what the release does with a, b
    with pytest.raises(BadEditError, match="searches for nothing"):
        applied("a\nb\n", "", "x", matching)
    assert apply_edits({}, [Edit("new.py", "", "x = 1")], matching) == {"new.py": "x = 1"}


def test_edits_of_one_file_build_on_each_other() -> None:
    edits = [Edit("a.py", "one", "two"), Edit("a.py", "two", "three"), Edit("b.py", "", "new")]
    assert apply_edits({"a.py": "zero\none"}, edits, "unique") == {"a.py": "zero\nthree", "b.py": "new"}


@pytest.mark.parametrize(("search", "replace"), [("a", "a"), ("", None), ("", "")])
def test_an_edit_that_puts_in_what_it_searches_for_is_bad(search: str, replace: str | None) -> None:
    with pytest.raises(BadEditError, match="puts in what it searches for"):
        applied("a\n", search, replace)


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\\b", "a\0b", "a\nb", "\ud800", "a" * 300]
)
def test_a_path_that_is_not_plain_is_bad(path: str) -> None:
    with pytest.raises(BadEditError, match="path"):
        checked_path(path)


def test_hostile_megabytes_are_read_in_linear_time() -> None:
    released_is_cubic = "```\n### a\n<<<<<<< SEARCH\n=======\n" * 30_000
    for text in (released_is_cubic, "<<<<<<< SEARCH\n" * 70_000, "```\n### a\n" * 100_000, "`" * 1_000_000):
        with pytest.raises(BadEditError):
            read_edits(text)


def test_edits_that_blow_a_file_up_are_too_complex() -> None:
    with pytest.raises(BadEditError) as caught:
        applied("a\n" * 10_000, "a", "b" * 10_000, "released")
    assert caught.value.reason == "too_complex"
    with pytest.raises(BadEditError) as caught:
        apply_edits({"a.py": "a" * 10**6}, [Edit("a.py", "", "b")] * 501, "unique")
    assert caught.value.reason == "bad_format"  # the first of them, before there is much work
