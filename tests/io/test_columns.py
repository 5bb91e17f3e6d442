"""Columns: dotted paths, guesses that are told, and mistakes that are named before any work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adjudge.io.columns import MISSING, Column, Wanted, map_columns
from adjudge.io.values import is_chat, nested_names

GSM8K = {
    "question": "q",
    "ground_truth": "A: 18",
    "6b_finetuning": {"is_correct": False, "solution": "A: 26"},
    "175b_verification": {"is_correct": True, "solution": "A: 18"},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", 1),
        ("b.c", 2),
        ("b.d.e", None),
        ("x.y", "own name first"),
        ("list.1", 20),
        ("list.0.deep", "z"),
        ("list.9", MISSING),
        ("list.-1", MISSING),
        ("list.one", MISSING),
        ("a.b", MISSING),
        ("none", MISSING),
        ("b.none", MISSING),
        ("list.*", [{"deep": "z"}, 20]),
        ("list.*.deep", ["z", None]),
        ("list.*.none", MISSING),
        ("none.*", MISSING),
        ("b.*", MISSING),
        ("empty.*.deep", []),
    ],
)
def test_paths(name: str, value: Any) -> None:
    row = {"a": 1, "b": {"c": 2, "d": {"e": None}}, "x.y": "own name first", "x": {"y": 3}, "list": [{"deep": "z"}, 20]}
    assert Column(name).of({**row, "empty": []}) == value


@pytest.mark.parametrize(
    ("name", "index", "kept"),
    [
        ("a", 1, {"a": "y", "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": [5, 6]}),
        ("a", None, {"a": None, "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": [5, 6]}),
        ("n.b", 0, {"a": ["x", "y"], "n": {"b": 1, "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": [5, 6]}),
        ("l.*.m", 0, {"a": ["x", "y"], "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}], "x.y": [5, 6]}),
        ("l.*.m", None, {"a": ["x", "y"], "n": {"b": [1, 2], "c": 3}, "l": [], "x.y": [5, 6]}),
        ("x.y", 1, {"a": ["x", "y"], "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": 6}),
        ("none|a", 0, {"a": "x", "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": [5, 6]}),
    ],
)
def test_one_item_in_the_place_of_a_list(name: str, index: int | None, kept: dict[str, Any]) -> None:
    row = {"a": ["x", "y"], "n": {"b": [1, 2], "c": 3}, "l": [{"m": "p", "k": 0}, {"m": "q"}], "x.y": [5, 6]}
    before = repr(row)
    assert Column(name).with_item(row, index) == kept
    assert repr(row) == before


def test_a_path_that_leads_to_null_is_not_missing() -> None:
    assert Column("b.d").of({"b": {"d": None}}) is None
    assert Column("b.d.e").of({"b": {"d": None}}) is MISSING


def test_nested_columns_are_found_and_named() -> None:
    wanted = Wanted(responses=("175b_verification.solution", "6b_finetuning.solution"))
    columns, notes = map_columns(wanted, list(GSM8K), [GSM8K], closed=False)
    assert columns.to_dict() == {
        "prompt": "question",
        "responses": ["175b_verification.solution", "6b_finetuning.solution"],
        "reference": "ground_truth",
        "id": "",
        "group": "",
        "finish_reason": "",
        "extra": [],
    }
    assert notes == [
        "prompt: column 'question' (guessed; --prompt-column chooses another)",
        "reference: column 'ground_truth' (guessed; --reference-column chooses another)",
    ]
    assert nested_names([GSM8K, {"z": {"y": {"x": {"w": 1}}}}])[-2:] == ["z.y", "z.y.x"]


def test_a_column_is_never_guessed_twice() -> None:
    row = {"prompt": "p", "solution": "s", "answer": "a"}
    columns, _ = map_columns(Wanted(responses=("answer",)), list(row), [row], closed=False)
    assert columns.reference is None
    assert columns.to_dict()["responses"] == ["answer"]
    columns, _ = map_columns(Wanted(), list(row), [row], closed=False)
    assert columns.to_dict()["responses"] == ["solution"]
    assert columns.to_dict()["reference"] == "answer"


ONE, TWO = ({"role": "assistant", "content": content} for content in "12")


@pytest.mark.parametrize(
    ("name", "cell", "count"),
    [
        ("responses", [ONE, TWO], 2),
        ("samples", [ONE, TWO], 2),
        ("out.completions", [ONE, TWO], 2),
        ("responses", json.dumps([ONE, TWO]), 2),
        ("choices.*.message", [{"message": ONE}, {"message": TWO}], 2),
        ("responses", [ONE], 1),
        ("responses", [[ONE], [TWO]], 2),
        ("responses", [ONE, {"role": "user", "content": "Sure?"}, TWO], 0),
        ("responses", [ONE, {"role": "tool", "content": "4"}, TWO], 0),
        ("response", [ONE, TWO], 0),
    ],
)
def test_an_assistants_messages_in_a_column_of_several_are_several(name: str, cell: Any, count: int) -> None:
    top, _, inner = name.partition(".")
    row = {top: {inner: cell} if inner == "completions" else cell}
    columns, notes = map_columns(Wanted(responses=(name,)), [top], [row], closed=True)
    read = columns.responses[0].of(row)
    assert (read if count else is_chat(read)) == ([[ONE], [TWO]][:count] if count else True)
    flat = count == 2 and not isinstance(cell[0], list)
    assert any("each is read as a response of its own" in note for note in notes) == flat


def test_what_is_left_out_is_told() -> None:
    columns, notes = map_columns(Wanted(), ["response"], [{"response": "x"}], closed=False)
    assert columns.prompt is None
    assert [note.partition(":")[0] for note in notes] == ["response", "prompt", "reference"]
    assert "scorers see an empty prompt" in notes[1]
    assert "samples have none" in notes[2]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted(responses=("175b_verification.solutoin",)), r"Did you mean '175b_verification\.solution'\?"),
        (Wanted(responses=("QUESTION",)), r"--response-column 'QUESTION'.*Did you mean 'question'\?"),
        (
            Wanted(responses=("question",), prompt="zzz"),
            r"--prompt-column 'zzz': the input has no such column\. The col",
        ),
        (Wanted(responses=("question",), id="zzz"), r"--id-column 'zzz'"),
        (Wanted(responses=("question",), finish_reason="zzz"), r"--finish-reason-column 'zzz'"),
        (Wanted(responses=("question",), extra=("zzz",)), r"--extra-column 'zzz'"),
        (Wanted(responses=("question", "question")), "names 'question' twice"),
        (
            Wanted(),
            r"no column looks like a response \(tried .*name it with --response-column\. The columns are: question",
        ),
    ],
)
def test_mistakes_are_named(wanted: Wanted, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        map_columns(wanted, list(GSM8K), [GSM8K], closed=False)


PYTHON = "the column 'responses' holds lists as texts that are not JSON"


@pytest.mark.parametrize(
    ("name", "cells", "read"),
    [
        ("responses", ['["4", "5"]', "", "[]", ' [null, "6"] '], ["4", "5"]),
        ("choices", ['[{"text": "4", "index": 0}]', '[{"message": {"role": "assistant", "content": "5"}}]'], 1),
        ("completions", ['[{"role": "assistant", "content": "4"}]'], 1),
        ("responses", [["4", "5"]], ["4", "5"]),
        ("responses", ['["4", "5"]', "4"], None),
        ("responses", ["[4]", "[5]"], None),
        ("responses", ['[{"name": "f", "arguments": {}}]'], None),
        ("responses", ["[INST] 4 [/INST]"], None),
        ("response", ['["4", "5"]'], None),
        ("response", ["['4', '5']"], None),
        ("responses", ["['4', '5']"], PYTHON),
        ("responses", ['["it\'s 4"]', "['5']"], PYTHON),
        ("responses", ["['4' '5'\n '6']"], PYTHON),
        ("responses", ["[{'role': 'assistant', 'content': '4'}]"], PYTHON),
    ],
)
def test_lists_that_are_text_are_read_where_all_cells_of_a_column_of_several_are_lists(
    name: str, cells: list[Any], read: Any
) -> None:
    rows = [{name: cell} for cell in cells]
    if read == PYTHON:
        with pytest.raises(ValueError, match=PYTHON):
            map_columns(Wanted(), [name], rows, closed=True)
        return
    (column,) = map_columns(Wanted(), [name], rows, closed=True)[0].responses
    found = column.of(rows[0])
    assert (len(found) if read == 1 else found) == (cells[0] if read is None else read)
    if isinstance(found, list):
        first = found[0][0] if isinstance(found[0], list) else found[0]
        assert column.with_item(rows[0], 0) == {name: first}


CHOICE = {"question": "q", "response": "A"}
ARC = {"text": ["dry", "wet"], "label": ["A", "B"]}
TASK = {"test": "def test_f(): pass", "entry_point": "f", "canonical_solution": "    return 1"}


@pytest.mark.parametrize(
    ("row", "response", "reference"),
    [
        (CHOICE | {"choices": ARC, "answerKey": "B"}, "response", "choices+answerKey"),
        (CHOICE | {"choices": ARC, "answerKey": "C"}, "response", ""),
        (CHOICE | {"options": ["A)1 hour", "B)2"], "correct": "A"}, "response", "options+correct"),
        (CHOICE | {"options": ["A)1 hour", "B)2"], "correct": True}, "response", ""),
        (
            CHOICE | {"options": {"A": "x", "B": "y"}, "answer_idx": "B", "answer": "y"},
            "response",
            "options+answer_idx",
        ),
        (CHOICE | {"options": {"A": "x", "B": "y"}, "label": "B"}, "response", "options+label"),
        (CHOICE | {"options": {"A": "x", "B": "y"}, "label": "B", "answer": "y"}, "response", "answer"),
        (CHOICE | {"choices": ["dry", "wet"], "answer": 1}, "response", "choices+answer"),
        (CHOICE | {"choices": ["1", "0"], "answer": 1}, "response", "answer"),  # the position, or the text
        (CHOICE | {"options": ["dry", "wet"], "answer": "wet"}, "response", "answer"),
        (CHOICE | {"options": ["dry", "wet"], "answer": "A", "gold": "B"}, "response", "gold"),
        ({"query": "q", "test": "def check(f): ...", "entry_point": "f", "input_output": []}, "", "test+entry_point"),
        (CHOICE | {"instruction_id_list": ["x:y"], "kwargs": [None]}, "response", "instruction_id_list+kwargs"),
        (
            TASK | {"code_prompt": "def f():", "complete_prompt": "def f():", "response": "x"},
            "response",
            "test+entry_point+canonical_solution+code_prompt+complete_prompt",
        ),
        (TASK | {"prompt": "def f():", "response": "x"}, "response", "test+entry_point+canonical_solution+prompt"),
        ({"question": "q", "solution": "128", "attempt": "It is 128"}, "attempt", "solution"),
        ({"question": "q", "solution": "It is 128", "answer": "128"}, "solution", "answer"),
        ({"prompt": "q", "llm_response": "4"}, "llm_response", ""),
        ({"Question": "q", "Correct Answer": "4", "Response": "4"}, "Response", "Correct Answer"),
        ({"question": "q", "answer": "4", "Answer": "5", "response": "4"}, "response", "answer"),
        ({"target": "4", "filtered_resps": ["4"]}, "filtered_resps", "target"),
        ({"question": "q", "solutions": "", "input_output": "{}"}, "", "input_output"),
        ({"question": "q", "solutions": '["x"]', "input_output": "{}"}, "solutions", "input_output"),
    ],
)
def test_columns_of_published_data_sets_are_guessed(row: dict[str, Any], response: str, reference: str) -> None:
    columns = map_columns(Wanted(), list(row), [row], closed=True, needs_response=False)[0].to_dict()
    assert (columns["responses"], columns["reference"]) == ([response] if response else [], reference)


def test_options_that_only_python_reads_are_refused() -> None:
    row = {"response": "B", "choices": "['Rome' 'Paris']", "answer": "1"}
    with pytest.raises(ValueError, match="the column 'choices' holds lists as texts that are not JSON"):
        map_columns(Wanted(reference="choices+answer"), list(row), [row], closed=True)


def test_without_a_readable_row_given_names_are_believed_unless_there_is_a_schema() -> None:
    wanted = Wanted(responses=("some.where",))
    columns, _ = map_columns(wanted, [], [], closed=False)
    assert columns.to_dict()["responses"] == ["some.where"]
    with pytest.raises(ValueError, match=r"'some\.where'.*The columns are: other"):
        map_columns(wanted, ["other"], [], closed=True)


def test_a_long_list_of_columns_is_cut() -> None:
    names = [f"c{index}" for index in range(100)]
    with pytest.raises(ValueError, match=r"c39, and 60 more\."):
        map_columns(Wanted(responses=("response",)), names, [], closed=True)


def test_top_level_columns() -> None:
    assert Column("a.b").tops(["a"]) == ["a"]
    assert Column("a.b").tops(["a", "a.b"]) == ["a.b"]


LABELLED: dict[str, Any] = {
    "id": "0/1",
    "value": 1.0,
    "provenance": {},
    "input": {"id": 7, "question": "1+1?", "of": {"answers": ["2", "3"]}},
}


def test_a_labelled_row_has_the_columns_of_the_row_that_was_labelled() -> None:
    assert Column("question").of(LABELLED) == "1+1?"
    assert Column("of.answers.1").of(LABELLED) == "3"
    assert Column("missing|question").of(LABELLED) == "1+1?"
    assert Column("id").of(LABELLED) == "0/1", "its own come first"
    assert Column("input.id").of(LABELLED) == 7
    assert Column("question").of({"input": {"question": "1+1?"}}) is MISSING, "any other row's `input` is a column"
    kept = Column("of.answers").with_item(LABELLED, 0)
    assert kept == {**LABELLED, "input": {"id": 7, "question": "1+1?", "of": {"answers": "2"}}}
    assert Column("question").tops(list(LABELLED)) == ["input", "provenance"]
    assert Column("question").tops(["input"]) == ["question"]
    batch = {**LABELLED, "input": {**LABELLED["input"], "custom_id": "q7"}}
    for row, name in ((batch, "id"), ({"id": "batch_req_1", "custom_id": "q7"}, "custom_id")):
        assert map_columns(Wanted(), list(row), [row], closed=True, needs_response=False)[0].id == Column(name)
    mapped, _ = map_columns(Wanted(), list(LABELLED), [LABELLED], closed=True, needs_response=False)
    assert mapped.prompt == Column("question")
