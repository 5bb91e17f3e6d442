from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.items.making import keyed, run
from tests.engines.scripted import ScriptedEngine, field_of, text_of

import adjudge
from adjudge.data_pipelines.items.config import KeywordsConfig
from adjudge.data_pipelines.items.item_maker import Model
from adjudge.data_pipelines.items.keywords import KeywordMaker, make_keywords
from adjudge.io.jobs.maker import Unit
from adjudge.protocol import Sample, Score

REFERENCES = ["His brother is Ron.", "It is Ronald, his brother.", "Ron! Who else."]
GOOD = ["That would be Ron.", "My brother Ronald.", "ron, of course"]
BAD = ["Percy.", "I have no brother called Ron.", "Ron or Percy."]
ROW = {"prompt": "Who is your brother?", "references": REFERENCES}
CHECKER = """
import re

def check(prompt, response):
    text = response.lower()
    return bool(re.search(r"\\bron(ald)?\\b", text)) and not re.search(r"percy|\\bno\\b", text)
"""


def writer(keys: Any = (("Ron", "Ronald"),), excluded: Any = ("Percy",), program: Any = CHECKER) -> Any:
    def answer(prompt: Any, index: int) -> str:
        if "`check(prompt, response)`" in text_of(prompt):
            return keyed(prompt, program=program)
        return keyed(prompt, keys=keys, excluded=excluded)

    return answer


def made(folder: Path, answers: Any, row: dict[str, Any] = ROW, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    report, rows, _ = run(folder, make_keywords, KeywordsConfig, [row], answers, **options)
    return report, rows


def judged(**more: Any) -> dict[str, Any]:
    return {"row": {**ROW, "good": GOOD, "bad": BAD, **more}, "good_column": "good", "bad_column": "bad"}


def test_a_keyword_that_most_references_affirm_becomes_a_reference_that_scores(tmp_path: Path) -> None:
    report, (row,) = made(tmp_path, writer())
    assert (row["scorer"], row["reference"]) == ("persona", {"keys": [["Ron", "Ronald"]], "excluded": ["Percy"]})
    assert row["tried"] == [{"key": ["Ron", "Ronald"], "affirmed": 3, "references": 3}]
    assert report.dropped == {}
    values = [adjudge.score(row["prompt"], text, row["reference"], scorer="persona").value for text in (*GOOD, *BAD)]
    assert values == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("answers", "dropped"),
    [
        (writer(keys=(("Ron",), ("brother",))), {"key_not_agreed": 0}),
        (writer(keys=(("Ron", "Ronald"), ("Who",))), {"key_not_agreed": 1}),
        (writer(excluded=("Percy", "Ron")), {"excluded_is_in_a_key": 1}),
        (writer(excluded=("Percy", "brother")), {"excluded_is_in_a_reference": 1}),
        (writer(keys=(("George",),)), {"key_not_agreed": 1, "no_key": 1}),
        (writer(keys=()), {"no_key": 1}),
        (writer(keys=(("Ron", "Ronald"), ("\u200b",))), {"unreadable_item": 1}),
        (lambda prompt, index: "Ron.", {"unparsable": 1, "no_answer": 1}),
    ],
)
def test_what_the_references_do_not_agree_on_is_left_out(tmp_path: Path, answers: Any, dropped: dict[str, int]) -> None:
    report, rows = made(tmp_path, answers)
    assert report.dropped == {reason: count for reason, count in dropped.items() if count}
    assert len(rows) == (0 if "no_key" in dropped or "no_answer" in dropped else 1)


def test_two_of_four_references_are_no_majority(tmp_path: Path) -> None:
    report, rows = made(tmp_path, writer(), {**ROW, "references": ["Ron.", "Ronald.", "Percy.", "Fred."]})
    assert (rows, report.dropped) == ([], {"key_not_agreed": 1, "no_key": 1})


@pytest.mark.parametrize(
    ("references", "reason"),
    [(REFERENCES[:1], "too_few_references"), (None, "too_few_references"), ([1, 2], "bad_reference")],
)
def test_a_row_of_no_use_is_counted(tmp_path: Path, references: Any, reason: str) -> None:
    assert made(tmp_path, writer(), {**ROW, "references": references})[0].dropped == {reason: 1}


def test_a_list_that_rows_of_a_group_repeat_is_not_the_work_of_several_writers(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": "Who is your brother?", "of": "a", "references": ["Ron."]} for _ in range(3)
    ]
    report, found, _ = run(tmp_path, make_keywords, KeywordsConfig, rows, writer(), group_column="of")
    assert (found, report.dropped) == ([], {"too_few_references": 1})
    written = [{**row, "references": "Ron."} for row in rows]
    _, (row,), _ = run(tmp_path, make_keywords, KeywordsConfig, written, writer(), group_column="of")
    assert row["tried"][0]["references"] == 3


class Silent:
    """A scorer that never has a verdict."""

    name = "silent"
    fingerprint = "silent:1"

    async def score(self, samples: Sequence[Sample]) -> list[Score]:
        return [Score.failed("engine_error") for _ in samples]


def test_a_missing_verdict_is_not_taken_for_a_denial() -> None:
    config = KeywordsConfig(input="in.jsonl", output="out.jsonl")
    model = Model.of(config, ScriptedEngine(writer()))
    maker = KeywordMaker(config=config, model=model, persona=Silent())
    made = asyncio.run(maker.make(Unit(rows=(ROW,), first=0)))
    assert (made.rows, made.dropped) == ((), {"unjudged": 1})


def test_a_checker_that_agrees_with_the_judgements_is_admitted_and_scores(tmp_path: Path) -> None:
    report, (_, row) = made(tmp_path, writer(), **judged())
    assert (row["scorer"], row["reference"]) == ("program", CHECKER)
    agreement = row["tried"]["agreement"]
    assert (agreement["value"], agreement["n"]) == (1.0, 6)
    assert 0.5 < agreement["low"] < 1.0
    values = [adjudge.score(row["prompt"], text, row["reference"], scorer="program").value for text in (*GOOD, *BAD)]
    assert values == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert (report.counts["persona"], report.counts["program"]) == (1, 1)


ALWAYS = "def check(prompt, response):\n    return True"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (ALWAYS, "checker_agrees_too_little"),
        ("def check(prompt, response):\n    return 1 / 0", "checker_unjudged"),
        ("def check(prompt, response):\n    return eval(response)", "checker_unreadable_item"),
        ("import os\ndef check(prompt, response):\n    return True", "checker_unreadable_item"),
        ("check = 1", "checker_unreadable_item"),
        ("def check(prompt, response)", "checker_unreadable_item"),
        (["no", "text"], "unparsable"),
    ],
)
def test_other_checkers_are_not(tmp_path: Path, program: Any, reason: str) -> None:
    report, rows = made(tmp_path, writer(program=program), **judged())
    assert [row["scorer"] for row in rows] == ["persona"]
    assert report.dropped == {reason: 1}


def test_the_published_rule_admits_what_always_says_yes_where_most_are_good(tmp_path: Path) -> None:
    row = judged(good=[f"Ron {n}." for n in range(8)], bad=BAD[:2])
    assert len(made(tmp_path, writer(program=ALWAYS), **row)[1]) == 1
    _, (_, found) = made(tmp_path, writer(program=ALWAYS), **row, unbalanced=True)
    assert found["tried"]["agreement"]["value"] == 0.8


def test_without_judgements_of_both_kinds_no_checker_is_written(tmp_path: Path) -> None:
    report, rows, engine = run(
        tmp_path,
        make_keywords,
        KeywordsConfig,
        [{**ROW, "good": GOOD, "bad": []}],
        writer(),
        good_column="good",
        bad_column="bad",
    )
    assert (len(rows), report.dropped, len(engine.asked)) == (1, {"judged_on_one_side_only": 1}, 1)
    assert len(made(tmp_path, writer(), **judged(), checker="never")[1]) == 1


def test_references_stand_in_the_prompt_each_with_its_number(tmp_path: Path) -> None:
    _, _, engine = run(tmp_path, make_keywords, KeywordsConfig, [ROW], writer())
    shown = field_of(engine.asked[0], "references")
    assert [shown.count(f"[reference_{number} ") for number in (1, 2, 3, 4)] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_agreement": 1.0}, "--min-agreement is 1.0"),
        ({"checker": "always"}, "--checker is 'always'"),
        ({"isolation": "docker"}, "--isolation is 'docker'"),
        ({"references_column": ""}, "--references-column is empty"),
    ],
)
def test_a_mistake_in_the_call_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(tmp_path, writer(), **options)
