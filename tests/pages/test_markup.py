"""No text becomes markup, and no text is lost, whatever it holds."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.pages.markup import Markup, element, escaped, joined, json_text, visible

# Hypothesis leaves out halves of surrogate pairs unless asked, and seldom draws what matters here.
MATTERS = "<>&\"'/!-\x00\r\ud800\udc00\u202e\u2028\ufeff\U000e0041"
TEXTS = st.one_of(st.text(), st.text(MATTERS))


class Parsed(HTMLParser):
    """What a reader of HTML makes of it: each element with its attributes, and all texts."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data!r}")


@given(TEXTS, TEXTS)
def test_an_element_holds_its_text_and_nothing_else(text: str, value: str) -> None:
    markup = element("p", {"title": value}, text, element("b", None, text))
    parsed = Parsed(markup)
    assert parsed.elements == [("p", {"title": visible(value)}), ("b", {})]
    assert parsed.text == visible(text) * 2
    markup.encode()  # no half of a pair is left


@given(TEXTS)
def test_visible_text_shows_what_nobody_sees(text: str) -> None:
    shown = visible(text)
    assert not {*shown} & {*"\x00\r\ud800\udc00\u202e\u2028\ufeff\U000e0041"}
    assert visible(shown) == shown
    if text.isprintable() and text.isascii():
        assert shown == text


def test_joiners_of_emoji_and_line_ends_stay() -> None:
    assert visible("a\tb\nc \N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE} \N{NO-BREAK SPACE}é漢") == (
        "a\tb\nc \N{WOMAN}\N{ZERO WIDTH JOINER}\N{MICROSCOPE} \N{NO-BREAK SPACE}é漢"
    )
    assert visible("\u202eabc\x00") == "⟨U+202E⟩abc⟨U+0000⟩"


DATA: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner)),
    max_leaves=12,
)


@given(DATA, st.sampled_from((None, 2)))
def test_json_in_a_script_reads_back_and_cannot_end_it(data: Any, indent: int | None) -> None:
    text = json_text(data, indent=indent)
    assert not {*text} & {*"<>&\u2028\u2029\ufeff"}
    text.encode()
    assert json.loads(text) == json.loads(json.dumps(data))  # a pair of halves becomes one character in both


def test_every_character_that_could_end_a_script_is_escaped() -> None:
    text = "</script><!-- &lt; \u2028\u2029\ufeff\ud800 \x00"
    written = json_text({text: text})
    assert written.isascii()
    assert not {*written} & {*"<>&"}
    assert json.loads(written) == {text: text}


def test_numbers_that_json_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_text([float("nan")])


def test_attributes_are_left_out_or_bare() -> None:
    made = element("input", {"a": None, "b": False, "hidden": True, "c": 0, "d": ""})
    assert made == '<input hidden c="0" d="">'


def test_markup_is_not_escaped_twice() -> None:
    assert escaped(escaped("<&>")) == "&lt;&amp;&gt;"
    assert joined("a<", Markup(""), "", Markup("<b>")) == "a&lt;\n<b>"
