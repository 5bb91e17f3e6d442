"""Length beside the others of a group: Kimi k1.5's and ConciseR's terms, and what a policy may try with them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.protocol import Sample, Score
from adjudge.scoring import registry
from adjudge.verifiers.text.exact import ExactVerifier
from adjudge.verifiers.text.group_length import GroupLength


def scored(rows: list[tuple[str, Any]], **options: Any) -> list[Score]:
    scorer = registry.load({"group_length": {"scorer": "exact", **options}})
    samples = [
        Sample(prompt="q", response=said, reference="4", group="g", extra={"completion_tokens": tokens})
        for said, tokens in rows
    ]
    return asyncio.run(scorer.score(samples))


def values(rows: list[tuple[str, Any]], **options: Any) -> list[float | None]:
    return [score.value for score in scored(rows, **options)]


def test_kimi_k15_by_hand() -> None:
    assert values([("4", 10), ("4", 20), ("4", 30), ("3", 10), ("3", 30)]) == [1.5, 1.0, 0.5, 0.0, -0.5]
    assert values([("4", 10), ("3", 30)], weight=0.5) == [1.25, -0.25]


def test_conciser_pays_only_where_all_are_right() -> None:
    assert values([("4", 10), ("4", 50), ("4", 200)], rule="conciser", max_length=100) == [1.9, 1.5, 1.0]
    assert values([("4", 10), ("3", 50)], rule="conciser", max_length=100) == [1.0, 0.0]


def test_optima_pays_for_every_token_beside_the_longest() -> None:
    assert values([("4", 10), ("4", 40), ("3", 20)], rule="optima", weight=0.4) == pytest.approx([0.9, 0.6, -0.2])
    assert values([("4", 0), ("3", 0)], rule="optima") == [1.0, 0.0]
    padded, honest, empty = values([("4", 10_000), ("4", 100), ("", 0)], rule="optima", weight=0.4)
    assert honest == pytest.approx(0.996)
    assert padded == pytest.approx(0.6)
    assert empty == 0.0, "less than the longest right one"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), min_size=1, max_size=8))
def test_kimi_k15_equals_its_formula(rows: list[tuple[bool, int]]) -> None:
    lengths = [length for _, length in rows]
    terms = GroupLength(scorer=ExactVerifier()).terms(lengths, [good for good, _ in rows])
    for (good, length), term in zip(rows, terms, strict=True):
        span = max(lengths) - min(lengths)
        wanted = 0.0 if span == 0 else 0.5 - (length - min(lengths)) / span
        assert term == pytest.approx(wanted if good else min(0.0, wanted))
        assert -0.5 <= term <= (0.5 if good else 0.0)


@pytest.mark.parametrize(
    ("attack", "rows", "wanted"),
    [
        ("padding", [("4", 10), ("4", 10_000)], [1.5, 0.5]),
        ("an empty answer", [("", 0), ("4", 100)], [0.0, 0.5]),
        ("a guess of one token", [("3", 1), ("4", 100)], [0.0, 0.5]),
        ("one that never ends", [("<think>4 4 4", 4096), ("4", 100)], [-0.5, 1.5]),
        ("all the same wrong answer", [("3", 1), ("3", 1), ("3", 1)], [0.0, 0.0, 0.0]),
        ("honest: one answer alone", [("4", 7)], [1.0]),
        ("honest: all as long", [("4", 7), ("3", 7)], [1.0, 0.0]),
    ],
)
def test_attacks(attack: str, rows: list[tuple[str, int]], wanted: list[float]) -> None:
    assert values(rows) == wanted, attack


def test_what_is_unknown_neither_counts_nor_gets_a_number() -> None:
    no_count, right, wrong = scored([("4", None), ("4", 10), ("3", 30)])
    assert (no_count.status, no_count.reason) == ("failed", "bad_sample")
    assert "choose unit='words'" in no_count.evidence["error"]
    assert (right.value, wrong.value) == (1.5, -0.5)
    scorer = registry.load({"group_length": {"scorer": "exact", "unit": "words"}})
    with pytest.raises(ValueError, match="group"):
        scorer.validate(Sample(prompt="q", response="4", reference="4"))  # type: ignore[attr-defined]
    (alone,) = asyncio.run(scorer.score([Sample(prompt="q", response="4", reference="4")]))
    assert alone.reason == "bad_sample"
    golds: tuple[Any, ...] = ("4", [])
    samples = [Sample(prompt="q", response="4", reference=gold, group="g") for gold in golds]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, None]


def test_a_part_keeps_its_own_score() -> None:
    first, _ = scored([("4", 10), ("3", 30)])
    assert first.parts["exact"].value == 1.0
    assert first.evidence == {"length": 10, "unit": "tokens", "term": 0.5}
