"""Rows of every shape become the same answers, and what cannot be used is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from adjudge.data_pipelines.pairs.config import PairsConfig
from adjudge.data_pipelines.pairs.layout import Layout, layout_of
from adjudge.data_pipelines.pairs.maker import GroupReader
from adjudge.data_pipelines.pairs.rule import ScoredGroup, rule_of
from adjudge.io.jobs.maker import Unit

Rows = Sequence[Mapping[str, Any]]


def layout(rows: Rows, **options: Any) -> Layout:
    config = PairsConfig(input="in.jsonl", output="out.jsonl", **options)
    return layout_of(config, rule_of(config.rule), list(dict.fromkeys(name for row in rows for name in row)), rows)


def read(rows: Rows, max_answers: int = 200, **options: Any) -> tuple[ScoredGroup | None, dict[str, int]]:
    dropped: Counter[str] = Counter()
    reader = GroupReader(
        layout=layout(rows, **options), rule=rule_of(options.get("rule", "best_worst")), max_answers=max_answers, seed=0
    )
    group = reader.group(Unit(rows=tuple(rows), first=0, group="g"), dropped)
    return group, {reason: count for reason, count in dropped.items() if count}


def known(group: ScoredGroup | None) -> list[tuple[str, str, float | None]]:
    assert group is not None
    return [(answer.id, answer.text, answer.score) for answer in group.answers]


def label(number: int, value: float | None, row: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    status = more.pop("status", "failed" if value is None else "scored")
    record = {"row": number, "id": str(number), "group": "", "value": value, "status": status, "reason": ""}
    return {**record, "evidence": {}, "parts": {}, "provenance": {"scorer": "math"}, "steps": [], "input": row, **more}


def test_plain_rows_of_one_answer_each() -> None:
    rows = [{"prompt": "2+2?", "response": "4", "score": 1, "id": "x"}, {"prompt": "2+2?", "response": "5", "score": 0}]
    assert known(read(rows)[0]) == [("x", "4", 1.0), ("1", "5", 0.0)]


def test_a_row_with_lists_of_answers_and_scores() -> None:
    row = {"question": "2+2?", "responses": ["4", "5", "5 "], "scores": [True, False, 0], "uid": "q7"}
    group, dropped = read([row])
    assert known(group) == [("q7/0", "4", 1.0), ("q7/1", "5", 0.0)]
    assert dropped == {"equal_answers": 1}
    assert layout([row]).group == ""


def test_label_output_with_one_response_a_row() -> None:
    rows = [label(0, 1.0, {"question": "2+2?", "response": "4"}), label(1, 0.0, {"question": "2+2?", "response": "5"})]
    found = layout(rows)
    assert (found.prompt.name, found.response.name, found.group) == (
        "input.question",
        "input.response",
        "input.question",
    )
    assert known(read(rows)[0]) == [("0", "4", 1.0), ("1", "5", 0.0)]


@pytest.mark.parametrize("named", ["", "instruction+input"])
@pytest.mark.parametrize("labelled", [False, True])
def test_a_prompt_of_several_columns(labelled: bool, named: str) -> None:
    row = {"instruction": "Add.", "input": "2 2"}
    kept = [({**row, "output": "4"}, 1.0), ({**row, "output": "5"}, 0.0)]
    rows = [label(at, score, data) if labelled else {**data, "score": score} for at, (data, score) in enumerate(kept)]
    group, dropped = read(rows, prompt_column=named)
    assert known(group) == [("0", "4", 1.0), ("1", "5", 0.0)]
    assert (group and group.prompt, dropped) == ("Add.\n\n2 2", {})
    assert layout(rows, prompt_column=named).group == (
        "input.instruction+input.input" if labelled else "instruction+input"
    )


@pytest.mark.parametrize(("named", "turns"), [("", 1), ("messages", 2)])
def test_an_answer_that_ends_a_prompt_is_no_part_of_it_unless_the_column_is_named(named: str, turns: int) -> None:
    chat = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]
    rows = [{"messages": chat, "response": text} for text in ("4", "5")]
    for given in ([{**row, "score": 1} for row in rows], [label(at, 1.0, row) for at, row in enumerate(rows)]):
        group, _ = read(given, prompt_column=named)
        assert group is not None
        assert group.prompt == chat[:turns]


def test_label_output_of_lists_and_of_several_columns() -> None:
    row = {"prompt": "2+2?", "gpt": {"text": "four"}}
    lists = [
        label(0, 1.0, {**row, "responses": "4"}, id="0/0", group="0"),
        label(0, 0.0, {**row, "responses": "5"}, id="0/1", group="0"),
    ]
    assert layout(lists).group == "group"
    assert known(read(lists)[0]) == [("0/0", "4", 1.0), ("0/1", "5", 0.0)]
    joined = [label(0, 1.0, {**row, "a": "fo", "b": "ur"}, id="0/0", group="0", column="a+b")]
    assert known(read(joined)[0]) == [("0/0", "four", 1.0)]
    several = [label(0, 1.0, {**row, "responses": None}, id="0/0", group="0", column="gpt.text")]
    assert known(read(several)[0]) == [("0/0", "four", 1.0)]


def test_label_output_of_completions() -> None:
    choice = {"index": 1, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
    kept = [label(0, 1.0, {"prompt": "2+2?", "choices": choice}, id="0/1", group="0")]
    assert known(read(kept)[0]) == [("0/1", "4", 1.0)]
    kept = [label(0, 1.0, {"prompt": "2+2?", "choices": [choice]}, id="0/1", group="0")]
    found, _ = read(kept, response_column="choices.*.message.content")
    assert known(found) == [("0/1", "4", 1.0)]


def test_of_several_scorers_the_first_that_settled_a_row_counts() -> None:
    def row(number: int, math: Any, judge: Any, settled_by: str | None) -> dict[str, Any]:
        record = {"row": 0, "id": f"0/{number}", "group": "0", "not_asked": [] if judge else ["judge"]}
        answered = {"prompt": "2+2?", "response": f"about {number}"}
        return {**record, "scores": {"math": math, "judge": judge}, "settled_by": settled_by, "input": answered}

    failed: dict[str, Any] = {"value": None, "status": "failed"}
    doubtful, sure = {"value": 0.0, "status": "scored", "reason": "undecided"}, {"value": 1.0, "status": "scored"}
    rows = [
        row(0, sure, None, "math"),
        row(1, failed, {"value": 0.25, "status": "scored"}, "judge"),
        row(2, doubtful, {"value": 0.75, "status": "scored"}, "judge"),
        row(3, failed, failed, None),
        row(4, failed, doubtful, None),
    ]
    group, dropped = read(rows)
    assert known(group) == [("0/0", "about 0", 1.0), ("0/1", "about 1", 0.25), ("0/2", "about 2", 0.75)]
    assert dropped == {"failed": 1, "no_score": 1}
    (note,) = (note for note in layout(rows).notes if note.startswith("score"))
    assert "the first scorer which settled it (math, then judge)" in note
    assert known(read(rows, score_column="math")[0]) == [("0/0", "about 0", 1.0), ("0/2", "about 2", 0.0)]


def test_scores_by_name_are_chosen_by_name() -> None:
    def row(score: float, judged: Mapping[str, Any] | None) -> dict[str, Any]:
        rule = {"value": score, "status": "scored", "reason": "", "evidence": {"tier": "x"}}
        record = {"row": 0, "id": "0", "group": "g", "not_asked": [] if judged else ["judge"]}
        answered = {"prompt": "2+2?", "response": f"about {score}"}
        return {**record, "scores": {"math": rule, "judge": judged}, "input": answered}

    rows = [
        row(1.0, None),
        row(0.0, {"value": 0.3, "status": "scored"}),
        row(0.5, {"value": None, "status": "abstained"}),
    ]
    group, dropped = read(rows, score_column="math")
    assert group is not None
    assert [answer.score for answer in group.answers] == [1.0, 0.0, 0.5]
    assert group.answers[0].said("evidence.tier") == "x"
    group, dropped = read(rows, score_column="scores.judge")
    assert group is not None
    assert [answer.score for answer in group.answers] == [0.3]
    assert dropped == {"not_asked": 1, "abstained": 1}


def test_failed_and_abstained_scores_never_vote() -> None:
    row = {"prompt": "2+2?", "response": "?"}
    rows = [
        label(0, None, row),
        label(1, None, row, status="abstained"),
        label(2, 0.5, {"prompt": "2+2?", "response": "4"}),
    ]
    group, dropped = read(rows)
    assert known(group) == [("2", "4", 0.5)]  # the id is that of the labelled row
    assert dropped == {"failed": 1, "abstained": 1}


def test_a_part_of_a_score_can_be_the_score() -> None:
    parts = [{"math": {"value": 0.25, "status": "scored"}}, {"math": {"value": None, "status": "failed"}}]
    rows = [label(n, 1.0, {"prompt": "p", "response": str(n)}, parts=part) for n, part in enumerate(parts)]
    group, dropped = read(rows, score_column="parts.math")
    assert known(group) == [("0", "0", 0.25)]
    assert dropped == {"failed": 1}


def test_words_are_worth_what_the_call_says() -> None:
    words = ("pass", " fail ", "timeout", "0.5")
    rows = [{"prompt": "p", "response": str(n), "label": word} for n, word in enumerate(words)]
    group, dropped = read(rows, score_word=("pass=1", "fail=0"))
    assert known(group) == [("0", "0", 1.0), ("1", "1", 0.0), ("3", "3", 0.5)]
    assert dropped == {"no_score": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"prompt": None, "response": "a", "score": 1}, "no_prompt"),
        ({"prompt": float("nan"), "response": "a", "score": 1}, "no_prompt"),
        ({"prompt": {"x": 1}, "response": "a", "score": 1}, "no_prompt"),
        ({"prompt": [], "response": "a", "score": 1}, "no_prompt"),
        ({"prompt": [{"role": "user", "content": 7}], "response": "a", "score": 1}, "no_prompt"),
        ({"prompt": "p", "response": None, "score": 1}, "no_response"),
        ({"prompt": "p", "response": float("nan"), "score": 1}, "no_response"),
        ({"prompt": "p", "response": {"role": "user", "content": "a"}, "score": 1}, "no_response"),
        ({"prompt": "p", "response": [{"role": "assistant", "content": 7}], "score": 1}, "no_response"),
        ({"prompt": "p", "response": [{"role": "assistant", "content": [7]}], "score": 1}, "no_response"),
        (
            {"prompt": "p", "response": [{"role": "assistant", "content": "a"}, {"role": "tool"}], "score": 1},
            "several_turns",
        ),
        ({"prompt": "p", "response": "a", "score": None}, "no_score"),
        ({"prompt": "p", "response": "a", "score": "good"}, "no_score"),
        ({"prompt": "p", "response": "a", "score": float("nan")}, "no_score"),
        ({"prompt": "p", "response": "a", "score": 10**400}, "no_score"),
        ({"prompt": "p", "response": ["a", "b"], "score": [1]}, "uneven_lists"),
        ({"prompt": "p", "response": ["a"], "score": 1}, "uneven_lists"),
    ],
)
def test_what_cannot_be_used_is_counted(row: Mapping[str, Any], reason: str) -> None:
    good = {"prompt": "p", "response": "fine", "score": 1}
    group, dropped = read([good, row])
    assert known(group) == [("0", "fine", 1.0)]
    assert set(dropped) == {reason}


def test_a_group_of_different_prompts_is_not_used() -> None:
    rows = [{"prompt": "p", "response": "a", "score": 1}, {"prompt": "q", "response": "b", "score": 0}]
    assert read(rows) == (None, {"mixed_prompts": 2})


def test_one_text_with_two_scores_is_not_used() -> None:
    rows = [{"prompt": "p", "response": text, "score": score} for text, score in (("a b", 1), ("a  b", 0), ("c", 0.5))]
    group, dropped = read(rows)
    assert known(group) == [("2", "c", 0.5)]
    assert dropped == {"two_scores": 2}


def test_which_of_two_equal_texts_is_kept_does_not_depend_on_their_order() -> None:
    rows = [{"prompt": "p", "response": text, "score": 1} for text in ("a  b", "a b", " a b")]
    kept = {known(read(order)[0])[0][1] for order in (rows, rows[::-1], rows[1:] + rows[:1])}
    assert kept == {" a b"}


def test_of_too_many_answers_some_are_drawn_whatever_their_order() -> None:
    rows = [{"prompt": "p", "response": str(n), "score": n} for n in range(50)]
    one, dropped = read(rows, max_answers=7)
    other, _ = read(rows[::-1], max_answers=7)
    assert dropped == {"over_max_answers": 43}
    assert one is not None
    assert other is not None
    assert {answer.text for answer in one.answers} == {answer.text for answer in other.answers}
    assert len(one.answers) == 7


def test_turns_are_answers_and_steps_are_one_answer() -> None:
    chat = [{"role": "assistant", "content": [{"type": "text", "text": "4"}]}]
    prompt = [{"role": "user", "content": "2+2?"}]
    group, _ = read([{"prompt": prompt, "response": chat, "score": 1}])
    assert known(group) == [("0", "4", 1.0)]
    assert group is not None
    assert group.prompt == prompt
    steps = {"prompt": "p", "steps": ["one", "two"], "labels": [1, 0], "outcome": 0}
    group, _ = read([steps], rule="first_bad_step", score_column="outcome")
    assert known(group) == [("0", "one\n\ntwo", 0.0)]


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"prompt": "p", "answer_text": "a", "score": 1}, {}, "no column looks like a response"),
        ({"text": "p", "response": "a", "score": 1}, {}, "no column looks like a prompt"),
        ({"prompt": "p", "response": "a"}, {}, "no column looks like a score"),
        ({"prompt": "p", "response": "a", "skore": 1}, {"score_column": "score"}, "Did you mean 'skore'"),
        ({"prompt": "p", "response": "a", "score": 1}, {"group_column": "gruppe"}, "--group-column 'gruppe'"),
    ],
)
def test_a_missing_column_is_named(row: Mapping[str, Any], options: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        layout([row], **options)


def test_scores_without_their_rows_cannot_be_paired() -> None:
    bare = label(0, 1.0, {})
    del bare["input"]
    with pytest.raises(ValueError, match="with --rows, or label again with --keep-columns"):
        layout([bare])
