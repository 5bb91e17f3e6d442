from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.cli.console import print_fields, print_json, print_table
from adjudge.score_view import plain, visible


@given(st.text())
def test_visible_text_is_one_printable_line(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


@given(st.text(), st.integers(20, 60))
def test_a_width_is_kept_and_the_end_stays(text: str, width: int) -> None:
    text = "".join(filter(str.isprintable, text))
    shown = visible(text, width)
    assert len(shown) <= max(width, 0)
    assert text.endswith(shown[-5:]) if text else shown == ""


def test_escapes_are_shown_and_not_sent() -> None:
    assert visible("\x1b[31mred\x07") == "\\x1b[31mred\\x07"
    assert visible("a\nb\tc") == "a\\nb\\tc"
    assert visible("\u202eabc\ud800") == "\\u202eabc\\ud800"


def test_plain_values() -> None:
    assert plain(None) == "-"
    assert plain(0.1 + 0.2) == "0.3"
    assert plain(1.0) == "1"
    assert plain({"a": [1, "é"]}) == '{"a": [1, "é"]}'


def test_nothing_in_a_table_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("[red]x[/red]", ":smile:"), ("[/]", "\x1b[0m")])
    out = capsys.readouterr().out
    for text in ("[red]x[/red]", ":smile:", "[/]", "\\x1b[0m"):
        assert text in out


def test_an_empty_table_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [])
    assert "a" in capsys.readouterr().out


def test_json_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "é\n\ud800"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert out.count("\n") == 1
    assert json.loads(out) == {"text": "é\n\ud800"}


def test_empty_fields_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"value": 0.0, "reason": "", "none": None, "steps": [], "\x1b": 1})
    assert capsys.readouterr().out == "value  0\nnone   -\n\\x1b   1\n"
