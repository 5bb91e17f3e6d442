"""Rows to samples: one response, many, chats, and rows that cannot be used."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from adjudge.data_pipelines.label import LabelConfig, run_label
from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.io.columns import Column, ColumnMap
from adjudge.io.row import Place, Row
from adjudge.protocol import Sample

CHAT = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


def accept(sample: Sample) -> None:
    """Any sample will do."""


def items(data: dict[str, Any] | None, *responses: str, error: str = "", **columns: str) -> list[Item]:
    named = {role: Column(name) for role, name in columns.items()}
    mapped = ColumnMap(responses=tuple(map(Column, responses)) or (Column("response"),), **named)  # type: ignore[arg-type]
    sampler = Sampler(columns=mapped, validate=accept)
    row = Row(data, error, Place(), 10, line=8, index=7)
    return sampler.items(row, sampler.group_of(row))


def test_every_column_reaches_the_sample() -> None:
    data = {"q": CHAT[:1], "response": "4", "gold": [4, "4"], "n": 12, "g": "x", "why": "stop"}
    (item,) = items(data, prompt="q", reference="gold", id="n", group="g", finish_reason="why")
    assert item.sample == Sample(
        prompt=CHAT[:1], response="4", reference=[4, "4"], id="12", group="x", finish_reason="stop"
    )
    assert (item.row, item.id, item.group, item.column, item.line) == (7, "12", "x", "response", 8)


def test_samples_saved_as_messages_are_responses_of_one_group() -> None:
    said = [{"role": "assistant", "content": content} for content in "79"]
    found = items({"responses": said, "n": 3}, "responses", id="n")
    assert [(item.id, item.group, item.sample and item.sample.response) for item in found] == [
        ("3/0", "3", said[:1]),
        ("3/1", "3", said[1:]),
    ]


def test_a_group_may_be_any_data_and_an_unknown_one_is_none() -> None:
    for value, group in (
        (CHAT[:1], '[{"content":"2+2?","role":"user"}]'),
        (3, "3"),
        (float("nan"), ""),
        ("NaN", ""),
        ([], ""),
    ):
        (item,) = items({"response": "4", "g": value}, group="g")
        assert (item.group, item.sample and item.sample.group) == (group, group)


def test_extra_columns() -> None:
    mapped = ColumnMap(responses=(Column("r"),), extra=(Column("a.b"), Column("none")))
    (item,) = Sampler(columns=mapped, validate=accept).items(Row({"r": "x", "a": {"b": 1}}, "", Place(), 1), "")
    assert item.sample is not None
    assert item.sample.extra == {"a.b": 1}


@pytest.mark.parametrize("empty", [None, "", float("nan")])
def test_an_empty_id_reference_and_finish_reason_are_none(empty: str | float | None) -> None:
    data = {"response": "x", "id": empty, "gold": empty, "why": empty, "g": empty}
    (item,) = items(data, id="id", reference="gold", finish_reason="why", group="g")
    assert item.sample == Sample(prompt="", response="x", id="row 7"), "a bare number may be another row's id"


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (12, "12"),
        (12.0, "12"),
        (2.5, "2.5"),
        (Decimal(12), "12"),
        ("012", "012"),
        ("NaN", "row 7"),
        (True, "row 7"),
        ([1], "row 7"),
    ],
)
def test_an_id_is_what_the_data_set_had_before_pandas_and_databases(cell: Any, name: str) -> None:
    (item,) = items({"response": "x", "n": cell}, id="n")
    assert item.id == name


@pytest.mark.parametrize(
    ("value", "response"),
    [("", ""), ("nan", "nan"), (42, "42"), (2.5, "2.5"), (CHAT, CHAT[1:]), (CHAT[1], CHAT[1:]), ([CHAT[1]], CHAT[1:])],
)
def test_single_responses(value: Any, response: Any) -> None:
    (item,) = items({"response": value})
    assert item.sample is not None
    assert (item.sample.response, item.id, item.group) == (response, "7", "")


def test_a_list_gives_one_sample_each_in_a_group_of_their_own() -> None:
    found = items({"response": ["a", CHAT, None, 5, ["b"]], "id": "q"}, id="id")
    assert [item.id for item in found] == ["q/0", "q/1", "q/2", "q/3", "q/4"]
    assert {item.group for item in found} == {"q"}
    assert [item.sample and item.sample.response for item in found] == ["a", CHAT[1:], None, "5", None]
    assert [item.sample and item.sample.prompt for item in found] == ["", CHAT[:1], None, "", None]
    assert "null" in found[2].error
    assert "a list" in found[4].error
    assert [item.id for item in items({"response": ["a"]})] == ["7/0"]
    assert [item.group for item in items({"response": ["a", "b"], "g": "own"}, group="g")] == ["own", "own"]


def test_a_list_that_is_json_text() -> None:
    mapped = ColumnMap(responses=(Column("a", listed=True),), finish_reason=Column("why", listed=True))
    sampler = Sampler(columns=mapped, keep=True)
    row = Row({"a": '["x", "y"]', "why": '["stop", "length"]'}, "", Place(), 10, index=7)
    found = sampler.items(row, sampler.group_of(row))
    assert [(item.id, item.group, item.input) for item in found] == [
        ("7/0", "7", {"a": "x", "why": "stop"}),
        ("7/1", "7", {"a": "y", "why": "length"}),
    ]
    assert [item.sample and item.sample.finish_reason for item in found] == ["stop", "length"]
    for cell, told in (("['x']", "this one is no JSON"), ("x", "this one is no JSON"), ("", "is empty")):
        (item,) = sampler.items(Row({"a": cell, "why": ""}, "", Place(), 10), "")
        assert item.sample is None
        assert told in item.error


def test_the_choices_of_a_server_are_responses_with_their_finish_reasons() -> None:
    chat = [
        {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop", "logprobs": None},
        {"index": 1, "message": {"role": "assistant", "content": "It is"}, "finish_reason": "length"},
    ]
    text = [{"text": "4", "index": 0, "finish_reason": "stop"}, {"text": "It is", "finish_reason": "length"}]
    for row, name, said in (
        (chat, "choices", [[one["message"]] for one in chat]),
        (text, "choices", ["4", "It is"]),
        (chat, "choices.*.message.content", ["4", "It is"]),
    ):
        columns = {"finish_reason": "choices.*.finish_reason"} if "*" in name else {}
        found = items({"choices": row}, name, **columns)
        assert [(item.id, item.sample and item.sample.response) for item in found] == list(
            zip(["7/0", "7/1"], said, strict=True)
        )
        assert [item.sample and item.sample.finish_reason for item in found] == ["stop", "length"]


def test_kept_rows_hold_the_response_that_was_scored_and_no_other() -> None:
    row = {"q": "?", "a": ["x", "y"], "why": ["stop", "length"], "b": {"c": ["z"]}, "tags": [1, 2]}
    mapped = ColumnMap(responses=(Column("a"),), finish_reason=Column("why"))
    kept = [item.input for item in Sampler(columns=mapped, keep=True).items(Row(row, "", Place(), 10), "")]
    assert kept == [{**row, "a": "x", "why": "stop"}, {**row, "a": "y", "why": "length"}]
    both = ColumnMap(responses=(Column("a"), Column("b.c")))
    kept = [item.input for item in Sampler(columns=both, keep=True).items(Row(row, "", Place(), 10), "")]
    assert kept[0] == {**row, "a": "x", "b": {"c": None}}
    assert kept[2] == {**row, "a": None, "b": {"c": "z"}}
    path = ColumnMap(responses=(Column("l.*.m"),), finish_reason=Column("l.*.f"))
    listed = {"l": [{"m": "x", "f": "stop"}, {"m": "y", "f": "length"}]}
    kept = [item.input for item in Sampler(columns=path, keep=True).items(Row(listed, "", Place(), 10), "")]
    assert kept == [{"l": [one]} for one in listed["l"]]


def test_several_response_columns() -> None:
    found = items({"a": {"x": "1"}, "b": ["2", "3"]}, "a.x", "b", "c")
    assert [(item.id, item.column) for item in found] == [("7/0", "a.x"), ("7/1", "b"), ("7/2", "b"), ("7/3", "c")]
    assert [item.sample and item.sample.response for item in found] == ["1", "2", "3", None]
    assert found[3].error == "the row has no response: no field 'c'"


def test_a_response_in_two_columns_is_one_text() -> None:
    row = {"prompt": "def f():\n", "completion": "    return 1", "tests": ["x"]}
    (item,) = items(row, "prompt+completion")
    assert item.sample is not None
    assert item.sample.response == "def f():\n    return 1"
    for bad in ({**row, "completion": None}, {**row, "completion": ["x"]}):
        (item,) = items(bad, "prompt+completion")
        assert "the response in 'prompt+completion' is an object with the fields prompt" in item.error


def test_finish_reasons_of_a_list() -> None:
    found = items({"response": ["a", "b"], "why": ["stop", "length"]}, finish_reason="why")
    assert [item.sample and item.sample.finish_reason for item in found] == ["stop", "length"]
    found = items({"response": ["a", "b"], "why": "stop"}, finish_reason="why")
    assert [item.sample and item.sample.finish_reason for item in found] == ["stop", "stop"]
    found = items({"response": ["a", "b"], "why": ["stop"]}, finish_reason="why")
    assert [item.error for item in found] == ["'why' lists 1 finish reasons for 2 responses"] * 2
    assert (
        "lists 1 finish reasons for 1 responses" in items({"response": "a", "why": ["x"]}, finish_reason="why")[0].error
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, "the row has no response: no field 'response'"),
        ({"response": None}, "the response in 'response' is null"),
        ({"response": float("nan")}, "the response in 'response' is NaN, as an empty cell is written"),
        ({"response": "x", "q": float("nan")}, "the prompt in 'q' is NaN"),
        ({"response": True}, "is true or false"),
        ({"response": {"said": "x", "ok": 1}}, "is an object with the fields said, ok; it must be text or chat turns"),
        ({"response": {}}, "is an empty object"),
        ({"response": []}, "the list of responses in 'response' is empty"),
        ({"response": "x", "why": 3}, "the finish reason is a int"),
        ({"response": [{"role": "assistant", "content": 3}]}, "has the content a int"),
        ({"response": "x", "q": None}, "the prompt in 'q' is null"),
        ({"response": "x", "q": ["a", "b"]}, "the prompt in 'q' is a list"),
    ],
)
def test_bad_rows_keep_their_place(data: dict[str, Any], told: str) -> None:
    columns = {"finish_reason": "why", **({"prompt": "q"} if "q" in data else {})}
    (item,) = items(data, **columns)
    assert item.sample is None
    assert told in item.error
    assert item.id == "7"


def test_an_unreadable_row() -> None:
    (item,) = items(None, error="malformed JSON")
    assert (item.sample, item.error, item.id, item.row) == (None, "malformed JSON", "7", 7)


def test_what_the_scorer_refuses_is_a_bad_sample() -> None:
    def refuse(sample: Sample) -> None:
        if sample.reference is None:
            raise ValueError("there is no reference")

    mapped = ColumnMap(responses=(Column("r"),), reference=Column("gold"))
    sampler = Sampler(columns=mapped, validate=refuse)
    (bad,) = sampler.items(Row({"r": "x"}, "", Place(), 1), "")
    (good,) = sampler.items(Row({"r": "x", "gold": 0}, "", Place(), 1), "")
    assert (bad.sample, bad.error) == (None, "there is no reference")
    assert good.error == ""


@pytest.mark.parametrize(
    ("stray", "said", "scored"),
    [
        ({"question": "q", "response": "4", "target": "4"}, "reference: 1 of the first 20", 19),
        ({"problem": "q", "response": "4", "answer": "4"}, "prompt: 1 of the first 20", 19),
        ({"question": "q", "completion": "4", "answer": "4"}, "response: 1 of the first 20", 19),
        ({"question": "q", "response": "4", "answer": "4", "target": "5"}, "", 1),  # the answer is something else
    ],
)
def test_a_stray_row_with_another_column_for_a_role_is_told_and_fails_alone(
    tmp_path: Path, stray: dict[str, Any], said: str, scored: int
) -> None:
    rows = [stray, *[{"question": "q", "response": "4", "answer": "4"}] * 19]
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = LabelConfig(input=str(tmp_path / "in.jsonl"), output=str(tmp_path / "out.jsonl"), scorer="math")
    report = run_label(config)
    assert report.scored == scored
    assert any(said in note for note in report.notes)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"reference": "4"}, {"answer": "4"}, "--reference-column 'reference|answer'"),
        ({"reference": "4"}, {"reference": None, "answer": "4"}, "--reference-column 'reference|answer'"),
        ({"prompt": "q"}, {"question": "q"}, "--prompt-column 'prompt|question'"),
        ({"response": "4"}, {"response": "", "output": "4"}, "--response-column 'response|output'"),
        ({"reference": "4", "answer": "model's"}, {"answer": "model's"}, ""),  # the answer is something else
        ({"reference": "4"}, {}, ""),
        ({"answer": "4"}, {"tests": "[]"}, ""),  # one kind of row has answers, and another has tests
        ({"prompt": "q", "input": "x"}, {"input": "x"}, ""),
    ],
)
def test_rows_with_different_columns_for_a_role_are_refused(
    tmp_path: Path, one: dict[str, Any], other: dict[str, Any], said: str
) -> None:
    rows = [{"response": "4"} | one] * 2 + [({} if "output" in other else {"response": "4"}) | other] * 3
    (tmp_path / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = LabelConfig(input=str(tmp_path / "in.jsonl"), output=str(tmp_path / "out.jsonl"), scorer="repetition")
    if not said:
        assert run_label(config).samples == 5
        return
    with pytest.raises(ValueError, match=rf"3 of the first 5 of .*{re.escape(said)}"):
        run_label(config)
    flag, names = re.findall(r"--(\w+)-column '(.*)'", said)[0]
    named: dict[str, Any] = {f"{flag}_column": (names,) if flag == "response" else names}
    assert run_label(replace(config, **named)).scored == 5
