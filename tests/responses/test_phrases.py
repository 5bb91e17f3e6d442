"""Finding words in text, and telling a claim from its denial."""

from __future__ import annotations

import pytest

from adjudge.responses.phrases import affirmed_in, found_in


@pytest.mark.parametrize(
    ("key", "text", "found", "affirmed"),
    [
        ("Ann", "It was ANN.", True, True),
        ("Ann", "How annoying", False, False),
        ("Zoë", "zoe came", True, True),
        ("John  Smith", "john\nsmith", True, True),
        ("Ann", "A\u200bnn", True, True),
        ("北京", "我在北京长大", True, True),
        ("Ann", "It is not Ann.", True, False),
        ("Ann", "It isn't really Ann", True, False),
        ("Ann", "It was never my sister Ann", True, False),
        ("Ann", "Not Bob. Ann!", True, True),
        ("Ann", "Not only Ann came", True, True),
        ("Ann", "It is not Ann; I mean, it is Ann.", True, True),
        ("北京", "我不是北京人", True, False),
        ("C++", "I like C++ a lot", True, True),
        ("42", "1942", False, False),
    ],
)
def test_a_phrase_is_found_and_affirmed(key: str, text: str, found: bool, affirmed: bool) -> None:
    assert found_in(key, text) is found
    assert affirmed_in(key, text) is affirmed
