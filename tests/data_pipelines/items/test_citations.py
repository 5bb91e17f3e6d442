from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_pipelines.items.making import keyed, run
from tests.engines.scripted import ScriptedEngine, field_of, key_of, text_of

from adjudge.data_pipelines.items.citations import make_citations, placeholders, problem_of, reachable
from adjudge.data_pipelines.items.config import CitationsConfig
from adjudge.judges.items.citation_rules import connected, read_statements
from adjudge.protocol import Sample
from adjudge.scoring import registry

NAMES = {"E0": "Grand Fair", "E1": "Ada Lind", "E2": "Bob"}
STATEMENTS = ["<E0> was held in Rome.", "<E1> beat <E2> at <E0>.", "<E2> was born in 1970."]
ROW = {"prompt": "At which fair did Ada Lind's rival lose?", "answer": "the Grand Fair"}


def writer(**fields: Any) -> Any:
    proposal = {"entities": NAMES, "statements": STATEMENTS, **fields}
    return lambda prompt, index: keyed(prompt, **proposal)


def made(folder: Path, answers: Any, row: dict[str, Any] | None = None, **options: Any) -> tuple[Any, Any]:
    given = {"prompt": ROW["prompt"], "answer": "Grand Fair", **(row or {})}
    report, rows, _ = run(folder, make_citations, CitationsConfig, [given], answers, **options)
    return report, rows[0] if rows else None


def test_statements_that_stand_become_a_reference(tmp_path: Path) -> None:
    report, row = made(tmp_path, writer())
    assert row["reference"] == {"rubric": STATEMENTS, "answer": "Grand Fair"}
    assert row["entities"] == NAMES
    assert row["statements"][1]["filled"] == "Ada Lind beat Bob at Grand Fair."
    assert report.dropped == {}


def test_what_is_made_scores_with_the_real_scorer(tmp_path: Path) -> None:
    _, row = made(tmp_path, writer())

    def judge(prompt: Any, index: int) -> str:
        key = key_of(prompt)
        if right := field_of(prompt, "correct_answer"):
            return f"Verdict {key}: {'yes' if right in field_of(prompt, 'response') else 'no'}"
        if field_of(prompt, "pages"):
            names = re.findall(r"^(p?\d+): ", text_of(prompt).split("what yes means for them:")[-1], re.M)
            return "\n".join(f"{key} {name}: yes" for name in names)
        return keyed(prompt, **NAMES)

    scorer = registry.load({"citations": {"engine": ScriptedEngine(judge)}})
    pages = {"https://a.org/x": "Ada Lind beat Bob, born in 1970, at the Grand Fair in Rome."}
    texts = ["Ada Lind beat Bob at the Grand Fair [1](https://a.org/x).", "It was the Small Fair."]
    samples = [
        Sample(prompt=row["prompt"], response=one, reference=row["reference"], extra={"pages": pages}) for one in texts
    ]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("It was in Rome.", "statement_without_placeholder"),
        ("<E1> met <E9> at <E0>.", "unknown_placeholder"),
        ("<E1> met E2 at <E0>.", "malformed_placeholder"),
        ("<E1> met < e2 > at <E0>.", "malformed_placeholder"),
        ("<E1> met {E2} at <E0>.", "malformed_placeholder"),
        ("<E0> was won by ADA LIND.", "names_its_entity"),
        ("<E1> lost at the  grand fair.", "names_its_entity"),
        ("<e0> was HELD in rome.", "statement_without_placeholder"),
        ("<E0> was held in  Rome.", "statement_twice"),
    ],
)
def test_a_statement_that_cannot_be_checked_is_left_out(tmp_path: Path, statement: str, reason: str) -> None:
    report, row = made(tmp_path, writer(statements=[*STATEMENTS, statement]))
    assert row["reference"]["rubric"] == STATEMENTS
    assert report.dropped == {reason: 1}


def test_statements_that_nothing_links_with_the_answer_are_left_out(tmp_path: Path) -> None:
    names = {**NAMES, "E3": "Cid", "E4": "Dot"}
    ring = ["<E3> knows <E4>.", "<E4> knows <E3>."]
    report, row = made(tmp_path, writer(entities=names, statements=[*STATEMENTS, *ring]))
    assert row["reference"]["rubric"] == STATEMENTS
    assert row["entities"] == NAMES
    assert report.dropped == {"not_linked_with_the_answer": 2}


@pytest.mark.parametrize(
    ("fields", "row", "reason"),
    [
        ({"entities": {**NAMES, "E0": "Small Fair"}}, {}, "answer_differs"),
        ({"statements": []}, {}, "no_statement"),
        ({"statements": STATEMENTS[:1]}, {}, "too_few_statements"),
        ({"statements": STATEMENTS[2:]}, {}, "too_few_statements"),
        ({}, {"answer": ""}, "no_answer_given"),
        ({}, {"answer": ["a", "b"]}, "answers_differ"),
        ({}, {"answer": 4}, "bad_answer"),
        ({"entities": {"E1": "x"}}, {}, "no_answer"),
    ],
)
def test_a_question_of_no_use_is_counted(tmp_path: Path, fields: Any, row: Any, reason: str) -> None:
    report, found = made(tmp_path, writer(**fields), row)
    assert found is None
    assert report.dropped[reason] == 1


def test_names_must_stand_in_what_is_known(tmp_path: Path) -> None:
    row = {"evidence": ["Ada Lind won.", "At the fair she met someone."]}
    report, found = made(tmp_path, writer(), row, evidence_column="evidence", min_statements=1)
    assert found["reference"]["rubric"] == STATEMENTS[:1]
    assert report.dropped == {"ungrounded_entity": 2}


def test_the_gate_keeps_what_good_responses_say_and_links_are_looked_at_again(tmp_path: Path) -> None:
    def both(prompt: Any, index: int) -> str:
        criteria, response = field_of(prompt, "criteria"), field_of(prompt, "response")
        if not criteria:
            return writer()(prompt, index)  # type: ignore[no-any-return]
        met = re.findall(r"Rome|beat|1970", criteria)[0] in response
        return f"{key_of(prompt)} 1: {'support' if met else 'not_support'}"

    good = ["It was in Rome, and he was born in 1970.", "Born 1970; Rome."]
    row = {"good": good, "bad": ["In Paris.", "I do not know."]}
    report, found = made(tmp_path, both, row, good_column="good", bad_column="bad", min_statements=1)
    assert found["reference"]["rubric"] == STATEMENTS[:1]
    assert report.dropped == {"separates_too_little": 1, "not_linked_with_the_answer": 1}
    assert found["statements"][0]["gate"]["good"]["value"] == 1.0


PARTS = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=8)


@given(PARTS)
def test_links_are_those_of_the_scorer(parts: list[list[int]]) -> None:
    statements = [" ".join(f"<E{n}>" for n in part) for part in parts]
    expected = connected([placeholders(one) for one in statements], [True] * len(statements))
    assert reachable(statements) == expected


@given(st.lists(st.text("<>E012 aé{}[]()/", max_size=12), max_size=6))
def test_what_may_stand_can_be_read_by_the_scorer_with_the_same_placeholders(texts: list[str]) -> None:
    good = [one for one in texts if not problem_of(one, {"E0": "xyz", "E1": "uvw"}, ())]
    for statement in good:
        (read,) = read_statements([f"{statement} <E0>"])
        assert set(read.entities) == {*placeholders(statement), "E0"}
