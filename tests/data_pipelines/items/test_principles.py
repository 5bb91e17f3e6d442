from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.items.making import keyed, run
from tests.engines.scripted import ScriptedEngine, field_of, key_of

from adjudge.data_pipelines.items.config import PrinciplesConfig
from adjudge.data_pipelines.items.principles import make_principles
from adjudge.protocol import Sample
from adjudge.scoring import registry

FEEDBACK = ["The arithmetic is right. It rambles on and on.", "Right arithmetic, but very long; no sources."]
ROW = {"prompt": "What is 2 + 2?", "response": "Well, well. It is 4.", "feedback": FEEDBACK}
SAID = {
    FEEDBACK[0]: [
        ("correct arithmetic", "yes", "The arithmetic is right"),
        ("brevity", "no", "rambles on and on"),
    ],
    FEEDBACK[1]: [
        ("correct arithmetic", "yes", "Right arithmetic"),
        ("brevity", "no", "very long"),
        ("names sources", "no", "no sources"),
    ],
}


def reader(said: dict[str, list[tuple[str, str, str]]]) -> Any:
    names = ("principle", "verdict", "quote")

    def answer(prompt: Any, index: int) -> str:
        found = said[field_of(prompt, "feedback")]
        return keyed(prompt, principles=[dict(zip(names, one, strict=True)) for one in found])

    return answer


def made(folder: Path, said: Any, row: dict[str, Any] = ROW, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    answers = reader(said) if isinstance(said, dict) else said
    report, rows, _ = run(folder, make_principles, PrinciplesConfig, [row], answers, **options)
    return report, rows


def test_what_all_persons_say_becomes_a_row_with_its_label(tmp_path: Path) -> None:
    report, rows = made(tmp_path, SAID)
    assert [(row["principle"], row["label"]) for row in rows] == [("correct arithmetic", True), ("brevity", False)]
    assert rows[0]["reference"] == {"principles": ["correct arithmetic"]}
    assert rows[1]["quotes"] == ["rambles on and on", "very long"]
    assert report.dropped == {"no_consensus": 1}
    assert (report.counts["yes"], report.counts["no"], report.counts["principles"]) == (1, 1, 5)


def test_what_is_made_scores_with_the_real_scorers(tmp_path: Path) -> None:
    _, rows = made(tmp_path, SAID)

    def judge(prompt: Any, index: int) -> str:
        good = "arithmetic" in field_of(prompt, "principles")
        return f"Verdict {key_of(prompt)}: {'good' if good else 'bad'}"

    engine = ScriptedEngine(judge, labels=lambda prompt: {"Yes": 0.9, "No": 0.1})
    for row in rows:
        sample = Sample(prompt=row["prompt"], response=row["response"], reference=row["reference"])
        (score,) = asyncio.run(registry.load({"principles": {"engine": engine}}).score([sample]))
        assert (score.value == 1.0) is row["label"]
        (odds,) = asyncio.run(registry.load({"rlbff": {"engine": engine}}).score([sample]))
        assert odds.status == "scored"


@pytest.mark.parametrize(
    ("principle", "verdict", "quote", "reason"),
    [
        ("Helpfulness.", "yes", "The arithmetic is right", "generic"),
        ("clarity", "partially", "The arithmetic is right", "partially"),
        ("clarity", "yes", "crystal clear wording throughout", "quote_not_there"),
        ("clarity", "yes", "It", "quote_too_short"),
    ],
)
def test_what_cannot_be_used_is_counted(tmp_path: Path, principle: str, verdict: str, quote: str, reason: str) -> None:
    said = {**SAID, FEEDBACK[0]: [*SAID[FEEDBACK[0]], (principle, verdict, quote)]}
    report, rows = made(tmp_path, said)
    assert len(rows) == 2
    assert report.dropped == {reason: 1, "no_consensus": 1}


def test_persons_who_contradict_each_other_make_no_label(tmp_path: Path) -> None:
    said = {**SAID, FEEDBACK[1]: [("correct arithmetic", "no", "Right arithmetic"), *SAID[FEEDBACK[1]][1:]]}
    report, rows = made(tmp_path, said)
    assert [row["principle"] for row in rows] == ["brevity"]
    assert report.dropped == {"disputed": 2, "no_consensus": 1}


def test_like_principles_are_one_row_that_tells_its_variants(tmp_path: Path) -> None:
    said = {**SAID, FEEDBACK[1]: [("correct arithmetics", "yes", "Right arithmetic"), *SAID[FEEDBACK[1]][1:]]}
    report, rows = made(tmp_path, said)
    assert (rows[0]["principle"], rows[0]["variants"]) == ("correct arithmetic", ["correct arithmetics"])
    assert report.counts["merged"] == 2
    assert made(tmp_path, said, min_likeness=0.99)[1][0]["principle"] == "brevity"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"feedback": FEEDBACK[:1]}, "too_few_annotators"),
        ({"feedback": [1, 2]}, "bad_feedback"),
        ({"response": ""}, "no_response"),
        ({"response": ["a", "b"]}, "responses_differ"),
        ({"response": {"n": 4}}, "bad_response"),
    ],
)
def test_a_row_of_no_use_is_counted(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    report, rows = made(tmp_path, SAID, {**ROW, **row})
    assert (rows, report.dropped) == ([], {reason: 1})


def test_a_person_whose_words_could_not_be_read_leaves_no_consensus(tmp_path: Path) -> None:
    def mute(prompt: Any, index: int) -> str:
        return "?" if field_of(prompt, "feedback") == FEEDBACK[1] else reader(SAID)(prompt, index)

    report, rows = made(tmp_path, mute)
    assert (rows, report.dropped) == ([], {"unparsable": 1, "annotator_without_answer": 1})


def test_persons_may_be_rows_of_a_group_or_objects_in_a_list(tmp_path: Path) -> None:
    objects = made(tmp_path, SAID, {**ROW, "feedback": [{"said": one} for one in FEEDBACK]}, feedback_inside="said")[1]
    rows = [{**ROW, "feedback": one, "sample": "1"} for one in FEEDBACK]
    report, grouped, _ = run(tmp_path, make_principles, PrinciplesConfig, rows, reader(SAID), group_column="sample")
    assert grouped == objects == made(tmp_path, SAID)[1]
    assert report.rows == 2


def test_the_gate_keeps_what_separates(tmp_path: Path) -> None:
    def both(prompt: Any, index: int) -> str:
        if not field_of(prompt, "principles"):
            return reader(SAID)(prompt, index)  # type: ignore[no-any-return]
        good = "arithmetic" in field_of(prompt, "principles") and "4" in field_of(prompt, "response")
        return f"Verdict {key_of(prompt)}: {'good' if good else 'bad'}"

    row = {**ROW, "good": ["It is 4.", "Simply 4."], "bad": ["It is 5.", "Maybe 6."]}
    report, rows = made(tmp_path, both, row, good_column="good", bad_column="bad")
    assert [row["principle"] for row in rows] == ["correct arithmetic"]
    assert rows[0]["gate"]["difference"]["value"] == 1.0
    assert report.dropped == {"no_consensus": 1, "separates_too_little": 1}
