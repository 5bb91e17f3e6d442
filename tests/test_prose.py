"""The words of README, docs and docstrings of public names: none that `prose_words.txt` replaces."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import adjudge

WORDS = Path(__file__).with_name("prose_words.txt")
_CODE = re.compile(r"^ *```.*?^ *```|(`+)(?!`).+?(?<!`)\1(?!`)|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def replaced() -> dict[str, str]:
    """Each phrase that is not used, with what to say instead."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split(" -> ", 1) for line in lines)


def found(text: str) -> list[str]:
    """The phrases of `prose_words.txt` in a text, outside of code and addresses, with what to say instead."""
    prose = " ".join(_CODE.sub(" x ", text).split())
    return [
        f"{phrase!r}: say {better!r}"
        for phrase, better in replaced().items()
        if re.search(rf"(?<![\w-]){re.escape(phrase)}(?![\w-])", prose, re.IGNORECASE)
    ]


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of public names, and of the public methods of public classes."""
    for name in adjudge.__all__:
        one = getattr(adjudge, name)
        if inspect.isclass(one) or inspect.isroutine(one):
            yield name, inspect.getdoc(one) or ""
            for inner, method in vars(one).items() if inspect.isclass(one) else ():
                if not inner.startswith("_") and inspect.isfunction(method):
                    yield f"{name}.{inner}", inspect.getdoc(method) or ""


def test_pages_use_the_words_of_the_list(root: Path) -> None:
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    assert len(pages) > 40
    told = {page.relative_to(root).as_posix(): found(page.read_text(encoding="utf-8")) for page in pages}
    assert {page: words for page, words in told.items() if words} == {}


def test_docstrings_of_public_names_use_the_words_of_the_list() -> None:
    told = {name: found(text) for name, text in docstrings()}
    assert len(told) > 100
    assert {name: words for name, words in told.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It begins Anew.", ["'anew': say 'again'"]),
        ("what\nbecomes of it", ["'what becomes of': say 'what happens to'"]),
        ("`anew` [anew](anew.md)", ["'anew': say 'again'"]),
        ("```text\nanew\n```\nanewed", []),
    ],
)
def test_a_phrase_is_seen_outside_of_code(text: str, words: list[str]) -> None:
    assert found(text) == words
