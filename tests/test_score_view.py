"""A score is shown whole to people, and what a response wrote is never markup."""

from __future__ import annotations

import io
from html.parser import HTMLParser

import pytest
from rich.console import Console

from adjudge.protocol import Cost, Score, StepScore
from adjudge.score_view import fields

EVIL = "<script>alert(1)</script>[bold red]\x1b[31m\u202e"
SCORES = {
    "scored": Score(value=0.5, reason="wrong", parts={EVIL: Score.scored(1.0, tier="text")}, evidence={"answer": EVIL}),
    "failed": Score.failed("gold_unparsable", error="a" * 10_000),
    "abstained": Score.abstained("out_of_scope", deep=[[[[[[[[EVIL]]]]]]]]),
    "steps": Score(value=1.0, steps=(StepScore(value=0.25, end=3), StepScore(value=None, start=3, end=5))),
    "data": Score.scored(1.0, pairs={(1, 2): "a"}, big=10**5000),
}


class Reader(HTMLParser):
    """Collects the tags and the texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_a_notebook_shows_it(score: Score) -> None:
    page = Reader(score._repr_html_())
    assert page.tags <= {"table", "tr", "th", "td", "b", "span", "details", "summary"}
    assert score.status in page.texts
    assert len("".join(page.texts)) < 2_000
    assert not set("".join(page.texts)) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_rich_shows_it(score: Score) -> None:
    screen = io.StringIO()
    Console(file=screen, width=200).print(score)
    assert score.status in screen.getvalue()
    assert not set(screen.getvalue()) & {"\x1b", "\u202e"}


def test_parts_steps_and_reasons_are_told() -> None:
    page = " ".join(Reader(SCORES["scored"]._repr_html_()).texts)
    assert "wrong: the answer was understood and is not the reference" in page
    assert "tier text" in page
    assert "[bold red]" in page
    assert "[0.25, null]" in Reader(SCORES["steps"]._repr_html_()).texts


def test_evidence_hides_nothing_of_the_score() -> None:
    score = Score(
        value=1.0,
        parts={"math": Score.scored(0.5)},
        steps=(StepScore(value=0.25, label="good", end=3),),
        evidence={"status": "forged", "seconds": [0.5], "part math": "forged"},
        cost=Cost(seconds=2.0, prompt_tokens=3),
    )
    shown = fields(score)
    assert (shown["status"], shown["seconds"], shown["part math"]) == ("scored", 2.0, "0.5")
    assert (shown["evidence status"], shown["evidence seconds"], shown["evidence part math"]) == (
        "forged",
        [0.5],
        "forged",
    )
    assert (shown["steps"], shown["prompt tokens"], shown["completion tokens"]) == (["0.25 good"], 3, "")
    assert "forged" in Reader(score._repr_html_()).texts


def test_a_long_word_is_folded_and_dollars_are_not_mathematics() -> None:
    screen = io.StringIO()
    Console(file=screen, width=60).print(SCORES["failed"])
    assert screen.getvalue().count("a") > 390
    assert SCORES["failed"]._repr_html_().startswith('<table class="tex2jax_ignore mathjax_ignore">')
