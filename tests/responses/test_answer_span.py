from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.responses.answer_span import MAX_BOX, WHERE, Span, find_spans, shorten


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("response", "  a\nb  ", Span("response", ("a\nb",))),
        ("last_line", "a\nb  \n\n", Span("last_line", ("b",))),
        ("last_line", "a\r\nb\r\n", Span("last_line", ("b",))),
        ("tag", "<answer>a</answer> and <answer>\nb\n</answer>", Span("tag", ("a", "b"))),
        ("tag", "<answer>a</answer>, no: <answer>b</answer> .", Span("tag", ("b",))),
        ("boxed", r"\boxed{\frac{1}{2}}", Span("boxed", (r"\frac{1}{2}",))),
        ("boxed", r"\boxed{\{1\}}", Span("boxed", (r"\{1\}",))),
        ("boxed", r"\boxed {a} then \fbox{b}", Span("boxed", ("b",))),
        ("boxed", r"\boxed{a}, \boxed{b} and \boxed{c}", Span("boxed", ("a", "b", "c"))),
        ("boxed", r"\boxed{\boxed{a}}", Span("boxed", ("a",))),
        ("boxed", r"\boxed{a} written with \boxed", Span("boxed", ("a",))),
        ("marker", "The answer is: x\nmore", Span("marker", ("x",))),
        ("marker", "**Answer:** x", Span("marker", ("x",))),
        ("marker", "answer is **x**", Span("marker", ("**x**",))),
        ("marker", "#### x", Span("marker", ("x",))),
        ("marker", "work\nA: x", Span("marker", ("x",))),
        ("marker", "The answer is\n\n$$\nx\n$$", Span("marker", ("x",))),
        ("marker", "因此答案是x。", Span("marker", ("x。",))),
        ("auto", r"<answer>the answer is \boxed{x}</answer>", Span("boxed", ("x",))),
        ("auto", r"\boxed{x}, so the answer is y", Span("boxed", ("x",))),
        ("auto", "<answer>a b</answer> c", Span("tag", ("a b",))),
        ("auto", "a b", Span("response", ("a b",))),
    ],
)
def test_the_first_span_is_the_answer(where: str, text: str, expected: Span) -> None:
    assert find_spans(text, where)[0] == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("response", " \n"),
        ("tag", "answer"),
        ("tag", "<answer> </answer>"),
        ("boxed", r"\boxed{}"),
        ("boxed", r"\boxed{a} and then \boxed{b"),
        ("boxed", r"\boxed{" + "a" * MAX_BOX + "}"),
        ("marker", "the answer isn't known"),
        ("marker", "the answer is:"),
        ("auto", r"the answer is a \boxed{}"),
        ("auto", ""),
    ],
)
def test_no_answer_is_made_up(where: str, text: str) -> None:
    assert find_spans(text, where) == []  # type: ignore[arg-type]


def test_auto_offers_what_is_left_when_the_first_place_says_nothing() -> None:
    spans = find_spans("The answer is C.\nThis answer is well known.", "auto")
    assert [span.texts[0] for span in spans[:2]] == ["well known.", "C."]
    assert spans[-1].where == "response"


@given(st.text(max_size=300))
def test_any_text_gives_non_empty_parts_of_itself(text: str) -> None:
    for where in WHERE:
        for span in find_spans(text, where):
            assert any(span.texts)
            assert all(part in text for part in span.texts)


@given(st.text(alphabet=r"\boxed{} <answer>/ or a", max_size=200))
def test_broken_markup_is_survived(text: str) -> None:
    for where in WHERE:
        find_spans(text, where)


@pytest.mark.parametrize(
    "unit", ["\\boxed{", "{", "<answer>", "answer is ", "Answer:\n", "\\boxed{x} ", "####\n", "</answer>"]
)
def test_a_quarter_million_characters_are_read_once(unit: str) -> None:
    text = unit * (250_000 // len(unit))
    for where in WHERE:  # a search that reads the text again for every match would take minutes
        find_spans(text, where)


@given(st.text(max_size=500), st.integers(min_value=10, max_value=300))
def test_shorten_keeps_the_limit_and_short_texts(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= max(limit, 0)
    assert short == text or (len(text) > limit and short[: limit // 2] == text[: limit // 2])
