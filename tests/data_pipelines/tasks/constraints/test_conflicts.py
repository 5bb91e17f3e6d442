"""Conflicts are proofs: what some response meets is never called one, and what a table calls impossible always is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.data_pipelines.tasks.constraints import published

from adjudge.data_pipelines.tasks.constraint_witness import witness
from adjudge.verifiers.instructions.composed import COMPOSED, core
from adjudge.verifiers.instructions.conflicts import conflicts
from adjudge.verifiers.instructions.constraint import Constraint, all_met
from adjudge.verifiers.instructions.text_units import (
    COUNTS,
    bullets,
    headings,
    occurrences,
    table_rows,
    words,
)

DATA = os.environ.get("ADJUDGE_DATA")

PIECES = (
    "a", "B", "cat", "Cat", "cat-dog", "it's", "x1", "中", "国", "é", " ", " ", " ", "\n", "\n\n", ".", ". ", "!", "?",
    ",", '"', "* a", "- b", "# h", "## h", "| a |\n|---|\n| b |", "<<t>>", "{", "}", '{"a": "b"}', "[1]", "-",
    "'", "。",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)


@st.composite
def met_by(draw: st.DrawFn, text: str) -> list[Constraint]:
    """Constraints that a text meets, of every kind that it can."""
    pool: list[Constraint] = []
    for unit, count in COUNTS.items():
        number = count(text)
        pool.append(Constraint(unit, {"min": draw(st.integers(0, number))}))
        pool.append(Constraint(unit, {"max": number + draw(st.integers(0, 2))}))
    found = words(text)
    phrases = [" ".join(found[at : at + size]) for size in (1, 2) for at in range(len(found))]
    for phrase in draw(st.lists(st.sampled_from(phrases), max_size=4)) if phrases else ():
        times, most = (occurrences(phrase, text, banned=banned) for banned in (False, True))
        pool.append(Constraint("keyword_count", {"phrase": phrase, "max": most}))
        if times:
            pool.append(Constraint("keywords", {"phrases": [phrase]}))
            pool.append(Constraint("keyword_count", {"phrase": phrase, "min": times}))
        if not most:
            pool.append(Constraint("forbidden", {"phrases": [phrase]}))
    absent = [one for one in ("cat", "dog", "a", "it", "s", "中", "b") if not occurrences(one, text, banned=True)]
    pool += [Constraint("forbidden", {"phrases": [phrase]}) for phrase in absent]
    inside = core(text)
    for kind, part in (
        ("starts_with", inside[: draw(st.integers(1, 6))]),
        ("ends_with", inside[-draw(st.integers(1, 6)) :]),
    ):
        if part == core(part) != "" and "\n" not in part and (edge := Constraint(kind, {"text": part})).met(text):
            pool.append(edge)
    if bullets(text):
        pool.append(Constraint("bullets", {"count": len(bullets(text))}))
    pool += [Constraint("headings", {"level": level, "min": len(headings(text, level))}) for level in (1, 2)]
    if table_rows(text):
        pool.append(Constraint("table", {"max": max(table_rows(text))}))
    plain = [
        Constraint(kind, {})
        for kind in ("no_commas", "json", "title", "quoted", "upper_case", "lower_case", "capitalized")
    ]
    plain += [Constraint("final_mark", {"mark": mark}) for mark in ".!?"]
    plain += [Constraint("language", {"language": language}) for language in ("en", "zh")]
    pool += [one for one in plain if one.met(text)]
    return draw(
        st.lists(st.sampled_from(pool), min_size=2, max_size=8, unique_by=lambda one: json.dumps(one.to_dict()))
    )


@given(TEXTS.flatmap(lambda text: st.tuples(st.just(text), met_by(text))))
@settings(max_examples=250)
def test_what_a_response_meets_is_no_conflict(case: tuple[str, list[Constraint]]) -> None:
    text, constraints = case
    assert all_met(tuple(constraints), text), [one.to_dict() for one in constraints if not one.met(text)]
    assert conflicts(constraints) == []


def c(kind: str, **args: Any) -> Constraint:
    return Constraint(kind, args)


IMPOSSIBLE = [
    [c("words", min=100), c("words", max=99)],
    [c("words", max=3), c("sentences", min=4)],
    [c("words", max=3), c("paragraphs", min=4)],
    [c("sentences", max=1), c("paragraphs", min=2)],
    [c("characters", max=9), c("words", min=10)],
    [c("words", max=3), c("keywords", phrases=["one two", "three", "four"])],
    [c("words", max=3), c("keyword_count", phrase="one", min=4)],
    [c("characters", max=3), c("keywords", phrases=["a"]), c("keywords", phrases=["b c d"])],
    [c("forbidden", phrases=["Sea"]), c("keywords", phrases=["by the sea"])],
    [c("forbidden", phrases=["the answer"]), c("starts_with", text="Here is the answer, friend")],
    [c("forbidden", phrases=["is"]), c("ends_with", text="That is all")],
    [c("forbidden", phrases=["sun"]), c("keyword_count", phrase="sun", min=1)],
    [c("keyword_count", phrase="sun", max=0), c("keywords", phrases=["sun"])],
    [c("keyword_count", phrase="sun", min=3), c("keyword_count", phrase="Sun", max=2)],
    [c("keyword_count", phrase="the sun", min=3), c("keyword_count", phrase="sun", max=2)],
    [c("no_commas"), c("keywords", phrases=["yes, sir"])],
    [c("no_commas"), c("starts_with", text="Yes, sir")],
    [c("starts_with", text="Yes"), c("starts_with", text="No")],
    [c("ends_with", text="Bye."), c("ends_with", text="Bye!")],
    [c("ends_with", text="Bye"), c("final_mark", mark=".")],
    [c("final_mark", mark="."), c("final_mark", mark="!")],
    [c("upper_case"), c("lower_case")],
    [c("lower_case"), c("capitalized")],
    [c("upper_case"), c("starts_with", text="Yes")],
    [c("lower_case"), c("ends_with", text="Yes")],
    [c("capitalized"), c("starts_with", text="In short")],
    [c("capitalized"), c("ends_with", text="That is all")],
    [c("language", language="en"), c("language", language="zh")],
    [c("bullets", count=3), c("bullets", count=4)],
    [c("table", max=2), c("table", min=3)],
    [c("json"), c("bullets", count=1)],
    [c("json"), c("headings", level=1, min=1)],
    [c("json"), c("table", max=3)],
    [c("json"), c("quoted")],
    [c("json"), c("final_mark", mark=".")],
    [c("json"), c("starts_with", text="Here")],
    [c("json"), c("ends_with", text="bye")],
]


@pytest.mark.parametrize("constraints", IMPOSSIBLE, ids=lambda case: "-".join(one.kind for one in case))
def test_contradictions_are_found_in_any_order(constraints: list[Constraint]) -> None:
    (found, *_) = conflicts(constraints)
    assert found.why
    assert set(found.kinds) <= {one.kind for one in constraints}
    assert conflicts(constraints[::-1])
    assert conflicts([c("title"), *constraints, c("paragraphs", min=1)])
    assert witness(constraints) is None


POSSIBLE: list[list[Constraint]] = [
    [c("words", min=100), c("words", max=100)],
    [c("forbidden", phrases=["cat"]), c("starts_with", text="cat")],  # "cats ..."
    [c("forbidden", phrases=["sea"]), c("keywords", phrases=["seaside"])],
    [c("upper_case"), c("capitalized")],
    [c("upper_case"), c("keywords", phrases=["small"])],
    [c("json"), c("no_commas"), c("words", min=50)],
    [c("json"), c("title"), c("paragraphs", min=3)],
    [c("quoted"), c("headings", level=2, min=2), c("bullets", count=3), c("table", max=2)],
    [c("starts_with", text="In short"), c("bullets", count=4), c("ends_with", text="That is all")],
    [c("language", language="zh"), c("words", min=80, max=90), c("sentences", min=5, max=7)],
    [c("characters", min=1000, max=1010), c("sentences", max=3)],
    [c("keyword_count", phrase="sun", min=2, max=2), c("keywords", phrases=["the sun"]), c("words", max=10)],
    [c("paragraphs", min=4, max=4), c("sentences", min=9, max=9), c("words", min=60, max=62),
     c("final_mark", mark="?")],
]  # fmt: skip


@pytest.mark.parametrize("constraints", POSSIBLE, ids=lambda case: "-".join(one.kind for one in case))
def test_what_can_be_met_is_no_conflict_and_mostly_has_a_witness(constraints: list[Constraint]) -> None:
    assert conflicts(constraints) == []
    found = witness(constraints)
    if constraints[0].kind == "forbidden" and constraints[1].kind == "starts_with":
        assert found is None  # nobody thinks of "cats"
    else:
        assert found is not None
        assert all_met(tuple(constraints), found)


CHECKS: list[tuple[Constraint, str, str]] = [
    (c("keywords", phrases=["sun"]), "The SUN.", "Sunny"),
    (c("forbidden", phrases=["cat"]), "concatenate cats", "a cat."),
    (c("keyword_count", phrase="a b", min=2), "a b, A B", "a b b"),
    (c("starts_with", text="Yes"), '  "Yes" ', "yes"),
    (c("ends_with", text="Bye."), 'Well. "Bye."\n', "Bye"),
    (c("final_mark", mark="?"), "Is it?\n", "Is it? No."),
    (c("no_commas"), "a; b", "a, b"),
    (c("json"), ' {"a": [1]}\n', '"text"'),
    (c("bullets", count=2), "* a\n - b", "* a\n**b**"),
    (c("headings", level=2, min=1), "## A\n# B", "### A"),
    (c("table", max=1), "| a |\n|---|\n| b |", "| a |\n|---|\n| b |\n| c |"),
    (c("title"), "<<A>>", "<< >>"),
    (c("quoted"), '"a"', '"a'),
    (c("language", language="zh"), "中国人 ok", "中 is it"),
    (c("upper_case"), "A 1!", "1!"),
    (c("lower_case"), "a 1", "aB"),
    (c("capitalized"), "The Sun 9x", "The sun"),
    (c("words", min=2, max=3), "it's so-so", "one"),
    (c("sentences", max=2), "A b. C d!", "A. B. C."),
    (c("paragraphs", min=2), "a\n\nb", "a\nb"),
    (c("characters", max=3), "abc", "abcd"),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CHECKS, ids=lambda case: getattr(case, "kind", ""))
def test_each_kind_tells_responses_apart(constraint: Constraint, good: str, bad: str) -> None:
    assert constraint.met(good)
    assert not constraint.met(bad)
    assert Constraint.read(json.loads(json.dumps(constraint.to_dict()))) == constraint


def test_each_kind_has_a_case() -> None:
    assert {constraint.kind for constraint, _, _ in CHECKS} == set(COMPOSED)


@pytest.mark.parametrize("kind", sorted(COMPOSED))
@given(text=st.text(max_size=60))
@example(text="")
@example(text='"')
@settings(max_examples=25)
def test_any_text_gets_a_verdict(kind: str, text: str) -> None:
    (case,) = [constraint for constraint, _, _ in CHECKS if constraint.kind == kind]
    assert case.met(text) in (True, False)


@pytest.mark.parametrize(
    "data",
    [
        None, "words", {}, {"kind": "words"}, {"kind": "words", "args": []}, {"kind": "words", "args": {"min": -1}},
        {"kind": "words", "args": {"min": 2, "max": 1}}, {"kind": "words", "args": {"min": True}}, {"kind": "poem"},
        {"kind": "words", "args": {"min": 1}, "more": 1}, {"kind": "keywords", "args": {"phrases": []}},
        {"kind": "keywords", "args": {"phrases": ["-"]}}, {"kind": "keywords", "args": {"phrases": "word"}},
        {"kind": "starts_with", "args": {"text": "  "}}, {"kind": "starts_with", "args": {"text": "a\nb"}},
        {"kind": "headings", "args": {"level": 7, "min": 1}}, {"kind": "json", "args": {"x": 1}},
        {"kind": "language", "args": {"language": "tlh"}}, {"kind": "final_mark", "args": {"mark": ";"}},
        {"kind": "keyword_count", "args": {"phrase": "a"}}, {"kind": "bullets", "args": {"count": 0}},
    ],
)  # fmt: skip
def test_what_is_no_constraint_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="constraint"):
        Constraint.read(data)


@pytest.mark.skipif(DATA is None, reason="ADJUDGE_DATA is not set")
@pytest.mark.parametrize(
    ("read", "rows", "several", "conflicting", "unknown"),
    [
        (lambda folder: ((one, 0) for one in published.ifeval(folder)), 541, 110, 1, 0),
        (published.muldimif, 1200, 802, 0, 1),
    ],
    ids=["ifeval", "muldimif"],
)
def test_real_combinations_are_not_called_conflicting(
    read: Callable[[Path], Any], rows: int, several: int, conflicting: int, unknown: int
) -> None:
    """The one of IFEval asks for capital letters and for an ending with small ones; its checker folds case."""
    found = [constraints for constraints, _ in read(Path(str(DATA)))]
    assert len(found) == rows
    assert sum(len(constraints) > 1 for constraints in found) == several
    wrong = [constraints for constraints in found if conflicts(constraints)]
    assert len(wrong) == conflicting
    assert all({one.kind for one in constraints} == {"upper_case", "ends_with"} for constraints in wrong)
    open_ones = [one for one in found if one and not conflicts(one) and witness(one) is None]
    assert len(open_ones) == unknown


@pytest.mark.parametrize(
    "constraints",
    [
        [c("words", min=100_000)],
        [c("bullets", count=100_000)],
        [c("keyword_count", phrase="sun", min=100_000)],
        [c("words", min=5_000), c("characters", max=9_000), c("sentences", min=500), c("paragraphs", max=2)],
        [c("words", min=4_000), c("keywords", phrases=["sun"]), c("forbidden", phrases=["sun rise"]), c("json")],
    ],
)
def test_huge_constraints_end(constraints: list[Constraint]) -> None:
    found = witness(constraints)
    assert found is None or all_met(tuple(constraints), found)
