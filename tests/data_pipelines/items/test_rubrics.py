from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.data_pipelines.items.making import keyed, run
from tests.engines.scripted import ScriptedEngine, fault, field_of, key_of, text_of

from adjudge.data_pipelines.items.config import RubricsConfig
from adjudge.data_pipelines.items.gate import Labelled, Trial
from adjudge.data_pipelines.items.rubrics import distinct, make_rubrics
from adjudge.io.errors import JobError
from adjudge.protocol import Sample
from adjudge.scoring import registry
from adjudge.statistics.intervals import UNKNOWN

GOOD = [f"Step {n}: 2 + 2. The unit is metres. Result 4. Note {n}." for n in range(8)]
BAD = [f"It is {n}. Note {n}." for n in range(8)]
ROW = {"prompt": "How long are both?", "good": GOOD, "bad": BAD}
PROPOSED = ["mentions Step", "mentions Result", "mentions Note", "mentions nothing", "mentions It"]


def judge(prompt: Any) -> str:
    """A criterion `mentions WORD` is met by a response with the word; "unclear" leaves it unsure."""
    response = field_of(prompt, "response")
    lines = []
    for number, word in re.findall(r"^(\d+)\. \w+ (\w+)$", field_of(prompt, "criteria"), re.M):
        verdict = "unsure" if word == "unclear" else "yes" if word in response else "no"
        lines.append(f"{key_of(prompt)} {number}: {verdict}")
    return "\n".join(lines)


def writer(proposed: Any = PROPOSED) -> Any:
    def answer(prompt: Any, index: int) -> str:
        return judge(prompt) if field_of(prompt, "criteria") else keyed(prompt, items=proposed)

    return answer


def made(
    folder: Path, answers: Any = None, row: dict[str, Any] = ROW, **options: Any
) -> tuple[Any, Any, ScriptedEngine]:
    report, rows, engine = run(folder, make_rubrics, RubricsConfig, [row], answers or writer(), **options)
    return report, rows[0] if rows else None, engine


def test_the_planted_useless_items_are_left_out_and_the_others_weigh_what_they_separate(tmp_path: Path) -> None:
    report, row, _ = made(tmp_path)
    assert row["reference"] == {"rubric": [{"text": "mentions Step", "weight": 1.0}]}
    assert row["items"][0]["same_verdicts"] == ["mentions Result"]
    assert row["items"][0]["gate"]["difference"]["low"] == pytest.approx(1 - 2**0.5 * (1 - 4 / (4 + 1.96**2)), abs=1e-4)
    assert (row["shown"], row["held_back"]) == (8, 8)
    assert report.dropped == {"separates_too_little": 2, "separates_backwards": 1, "redundant": 1}
    assert (report.counts["proposed"], report.counts["items"], report.counts["verdicts"]) == (5, 1, 40)


def test_what_is_made_scores_with_the_real_scorer(tmp_path: Path) -> None:
    _, row, _ = made(tmp_path, redundant_from=100)
    assert len(row["reference"]["rubric"]) == 2
    scorer = registry.load({"rubric": {"engine": ScriptedEngine(writer())}})
    samples = [
        Sample(prompt="?", response=text, reference=row["reference"]) for text in ("Step one, Result two", "It is 4.")
    ]
    assert [score.value for score in asyncio.run(scorer.score(samples))] == [1.0, 0.0]


def test_no_item_is_tried_on_a_response_that_its_writer_saw(tmp_path: Path) -> None:
    _, _, engine = made(tmp_path, held_back=0.25, max_shown=3)
    (written,) = [prompt for prompt in engine.asked if field_of(prompt, "good")]
    shown = {text for text in (*GOOD, *BAD) if text in text_of(written)}
    tried = {field_of(prompt, "response") for prompt in engine.asked if field_of(prompt, "criteria")}
    assert len(shown) == 6
    assert shown | tried == {*GOOD, *BAD}
    assert not shown & tried


def test_a_judge_that_is_unsure_gives_no_verdict(tmp_path: Path) -> None:
    report, row, _ = made(tmp_path, writer(["mentions unclear"]))
    assert row is None
    assert report.dropped == {"unjudged": 1, "no_item_kept": 1}
    assert report.counts["verdicts_missing"] == 8


def test_another_engine_may_judge(tmp_path: Path) -> None:
    scorer = registry.load({"rubric": {"engine": ScriptedEngine(lambda prompt, index: judge(prompt))}})
    _, row, engine = made(tmp_path, gate_scorer=scorer)
    assert row is not None
    assert not any(field_of(prompt, "criteria") for prompt in engine.asked)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"good": GOOD[:1]}, "too_few_good"),
        ({"bad": BAD[0]}, "too_few_bad"),
        ({"bad": None}, "too_few_bad"),
        ({"bad": [" ", "x"]}, "too_few_bad"),
        ({"good": [True, {"n": 2}]}, "bad_response"),
        ({"good": [[{"role": "assistant", "content": 5}], *GOOD]}, "bad_response"),
        ({"good": [[{"role": "assistant", "content": [5]}], *GOOD]}, "bad_response"),
        ({"prompt": [{"role": "user", "content": 5}]}, "no_prompt"),
        ({"prompt": [{"role": "user", "content": [5]}]}, "no_prompt"),
        ({"prompt": [{"role": 1, "content": "How long?"}]}, "no_prompt"),
        ({"prompt": [{"role": "user", "content": "How long?", "at": float("nan")}]}, "no_prompt"),
        ({"good": [GOOD[0], f" {GOOD[0].replace(' ', '  ')}"]}, "too_few_good"),
        ({"prompt": None}, "no_prompt"),
    ],
)
def test_a_row_of_no_use_is_counted(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    report, found, _ = made(tmp_path, row={**ROW, **row})
    assert (found, report.dropped) == (None, {reason: 1})


def test_a_response_that_is_called_good_and_bad_or_is_too_long_is_left_out(tmp_path: Path) -> None:
    report, row, _ = made(tmp_path, row={**ROW, "bad": [*BAD, GOOD[0], "x" * 30_000]})
    assert row["shown"] + row["held_back"] == 15
    assert report.dropped.items() >= {"called_good_and_bad": 1, "response_too_long": 1}.items()


def test_chats_are_responses_and_pairs_of_a_group_are_taken_together(tmp_path: Path) -> None:
    chats = [[{"role": "assistant", "content": text}] for text in GOOD]
    _, expected, _ = made(tmp_path)
    assert made(tmp_path, row={**ROW, "good": chats})[1] == expected
    pairs = [{"prompt": ROW["prompt"], "good": good, "bad": bad, "g": "1"} for good, bad in zip(GOOD, BAD, strict=True)]
    assert run(tmp_path, make_rubrics, RubricsConfig, pairs[::-1], writer(), group_column="g")[1] == [expected]
    pairs[1]["prompt"] = "Another?"
    report, rows, _ = run(tmp_path, make_rubrics, RubricsConfig, pairs, writer(), group_column="g")
    assert (rows, report.dropped) == ([], {"prompts_differ": 1})


@pytest.mark.parametrize(
    ("answer", "dropped"),
    [
        ("Nothing comes to mind.", {"unparsable": 1, "no_answer": 1}),
        (json.dumps({"items": ["mentions Step"]}), {"unparsable": 1, "no_answer": 1}),
        ([], {"no_item": 1}),
        (["mentions  Step"] * 3, {"item_twice": 2}),
        ([f"mentions {n}" for n in range(13)], {"unparsable": 1, "no_answer": 1}),
    ],
)
def test_answers_that_are_no_list_are_counted(tmp_path: Path, answer: Any, dropped: dict[str, int]) -> None:
    def say(prompt: Any, index: int) -> str:
        return answer if isinstance(answer, str) else writer(answer)(prompt, index)

    assert made(tmp_path, say)[0].dropped == dropped


def test_an_answer_that_cannot_be_read_is_asked_for_again_with_a_temperature(tmp_path: Path) -> None:
    def second(prompt: Any, index: int) -> str:
        return "Hm." if index == 0 and field_of(prompt, "good") else writer()(prompt, index)

    report, row, engine = made(tmp_path, second)
    assert row is not None
    assert "unparsable" not in report.dropped
    assert [one.temperature for one in engine.samplings][:2] == [0.0, 0.7]


def test_a_judge_that_is_gone_stops_the_job(tmp_path: Path) -> None:
    def gone(prompt: Any, index: int) -> Any:
        return fault("engine_timeout") if field_of(prompt, "criteria") else writer()(prompt, index)

    with pytest.raises(JobError, match=r"lost its engine.*engine_timeout"):
        made(tmp_path, gone)


def test_criteria_are_redundant_only_where_enough_responses_agree() -> None:
    def trial(*verdicts: float | None) -> Trial:
        return Trial(good=UNKNOWN, bad=UNKNOWN, verdicts=verdicts)

    passed = [
        ("longer", trial(1, 1, 0)),
        ("short", trial(1, 1, 0)),
        ("other", trial(1, 0, 0)),
        ("hole", trial(1, 1, None)),
        ("pit", trial(1, 1, None)),
    ]
    assert [(text, others) for text, _, others in distinct(passed, 3)] == [
        ("short", ("longer",)),
        ("other", ()),
        ("hole", ()),
        ("pit", ()),
    ]
    assert len(distinct(passed, 4)) == 5
    again = [(text, found) for text, found, _ in distinct(passed, 3)]
    assert [text for text, _, _ in distinct(again, 3)] == ["short", "other", "hole", "pit"]
    assert {text for text, _, _ in distinct(passed[::-1], 3)} == {"short", "other", "hole", "pit"}


def test_one_of_each_side_cannot_be_split() -> None:
    assert Labelled(good=("a", "b", "c"), bad=("d", "e")).split(0.99, 0)[0].bad != ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_back": 1.0}, "--held-back is 1.0"),
        ({"good_column": "", "bad_column": ""}, "--good-column is empty"),
        ({"redundant_from": 1}, "--redundant-from is 1"),
        ({"min_bound": 1.0}, "--min-bound is 1.0"),
        ({"min_separation": 0.0}, "--min-separation is 0.0"),
        ({"bad_column": "worse"}, "--bad-column 'worse'"),
    ],
)
def test_a_mistake_in_the_call_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(tmp_path, **options)
