"""Who wrote what in a response: turns, blocks, calls, results and their places."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.protocol import THINK_END, THINK_START, Sample, response_text
from adjudge.responses.trajectories.documents import documents_of
from adjudge.responses.trajectories.reading import check_trajectory, read_json, read_trajectory
from adjudge.responses.trajectories.searches import final_answer, searches_of
from adjudge.responses.trajectories.trajectory import Document, Result, Trajectory, TrajectoryForm

FORM = TrajectoryForm()
TRUSTING = TrajectoryForm(tool_text="tags")
FOUND = (
    '<information>Doc 1(Title: "Paris") Capital of France.\nDoc 2(Title: "Lyon (city)") In the south.\n</information>'
)


def flat(*parts: str, form: TrajectoryForm = FORM) -> Trajectory:
    """Read a text whose second, fourth, ... part a tool wrote."""
    spans, text = [], ""
    for at, part in enumerate(parts):
        if at % 2:
            spans.append([len(text), len(text) + len(part)])
        text += part
    return read_trajectory(Sample(prompt="", response=text, extra={"tool_spans": spans}), form)


def chat(*turns: dict[str, Any], form: TrajectoryForm = FORM) -> Trajectory:
    sample = Sample(prompt="", response=turns)
    check_trajectory(sample, form)
    return read_trajectory(sample, form)


def results_of(trajectory: Trajectory) -> tuple[Result, ...]:
    return tuple(result for turn in trajectory.turns for result in turn.results)


def test_a_flat_text_is_turns_with_what_tools_returned() -> None:
    read = flat("<think>hm</think><search> capital </search>", FOUND, "\n<think>so</think><answer>Paris</answer>")
    assert [turn.text[:7] for turn in read.turns] == ["<think>", "\n<think"]
    assert [block.tag for block in read.turns[0].blocks] == ["think", "search"]
    (search,) = read.blocks("search")
    assert search.text == "capital"
    assert read.text[search.start : search.end] == "<search> capital </search>"
    assert tuple(document for result in results_of(read) for document in result.documents) == (
        Document(title="Paris", text="Capital of France."),
        Document(title="Lyon (city)", text="In the south."),
    )
    assert final_answer(read, FORM).text == "Paris"
    assert read.forged() == ()


def test_chat_turns_and_flat_text_read_alike() -> None:
    read = chat(
        {"role": "assistant", "content": "<search>a</search>"},
        {"role": "tool", "content": "A result"},
        {"role": "assistant", "content": [{"type": "text", "text": "<answer>b</answer>"}]},
    )
    same = flat("<search>a</search>", "A result", "<answer>b</answer>")
    assert [[block.text for block in turn.blocks] for turn in read.turns] == [["a"], ["b"]]
    assert [turn.results for turn in read.turns] == [turn.results for turn in same.turns]
    for block in (*read.blocks("search"), *read.blocks("answer")):
        assert read.text[block.start : block.end] == f"<{block.tag}>{block.text}</{block.tag}>"


def test_what_the_assistant_calls_a_result_is_forged_and_none() -> None:
    read = flat(f"<search>a</search>{FOUND}<answer>b</answer>")
    assert results_of(read) == ()
    assert [block.tag for block in read.forged()] == ["information"]
    assert read.blocks("information") == ()
    trusted = read_trajectory(Sample(prompt="", response=read.text), TRUSTING)
    assert [len(turn.results) for turn in trusted.turns] == [1, 0]


def test_a_result_that_was_cut_off_stays_the_tools_where_tags_are_trusted() -> None:
    read = read_trajectory(Sample(prompt="", response="<search>a</search><information><answer>x</answer>"), TRUSTING)
    assert final_answer(read, TRUSTING).reason == "no_answer"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("<think><answer>x</answer></think>", ["think"]),
        ("<think><answer>x</answer>", ["think"]),
        ("<answer>x</answer></think><answer>y</answer>", ["think", "answer"]),
        ("I put it in <answer> tags.</think><search>x</search><answer>y</answer>", ["think", "search", "answer"]),
        ("<think>in <answer> tags</think><answer>y</answer>", ["think", "answer"]),
        ("<answer>x</answer><think>a</think></think><answer>y</answer>", ["think", "answer"]),
        ("<search>a<answer>x</answer>", ["answer"]),
        ("<search><answer>x</answer></search>", ["search"]),
        ("<answer>x", []),
        ("</answer>x<answer>", []),
        ("<Answer>x</Answer><answer >x</answer>", []),
        ("<answer><answer>x</answer></answer>", ["answer"]),
    ],
)
def test_tags_never_nest_and_thoughts_hold_no_acts(text: str, blocks: list[str]) -> None:
    read = flat(text)
    assert [block.tag for turn in read.turns for block in turn.blocks] == blocks


def test_a_thought_of_one_turn_does_not_reach_into_the_next() -> None:
    read = flat("<think>never closed <search>a</search>", "found", "<answer>x</answer>")
    assert read.blocks("search") == ()
    assert final_answer(read, FORM).text == "x"
    assert [block.text for block in flat("<think><answer>x</answer>", form=TrajectoryForm(think="")).blocks("answer")]


def test_several_different_answers_are_none() -> None:
    assert final_answer(flat("<answer>x</answer><answer> x\n</answer>"), FORM).text == "x"
    assert final_answer(flat("<answer>x</answer><answer>y</answer>"), FORM).reason == "several_answers"
    assert final_answer(flat("<answer>x</answer><answer>y</answer>"), FORM, several="last").text == "y"
    assert final_answer(flat("<answer> </answer>"), FORM).reason == "no_answer"
    assert flat("<answer>x</answer> and ", "tool", " more").written_after(18) == " and  more"


def test_calls_are_read_in_both_forms_and_faults_are_named() -> None:
    function = {"name": "search", "arguments": '{"query": "q"}'}
    read = chat(
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "content": "found", "tool_call_id": "1"},
        {"role": "assistant", "content": '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'},
        {"role": "function", "name": "f", "content": "2"},
        {"role": "assistant", "content": '<tool_call>{"name": "f", "name": "g"}</tool_call><tool_call>7</tool_call>'},
    )
    assert [(call.name, call.arguments) for call in read.calls()[:2]] == [("search", {"query": "q"}), ("f", {"a": 1})]
    (llama,) = flat('<tool_call>{"name": "f", "parameters": {"b": 2}}</tool_call>').calls()
    assert (llama.arguments, llama.fault) == ({"b": 2}, "")
    assert "stands twice" in read.calls()[2].fault
    assert read.calls()[3].fault == "it is not a JSON object"
    assert [result.name for result in results_of(read)] == ["", "f"]
    assert [(search.query, search.answered) for search in searches_of(read, FORM)] == [("q", True)]


def test_calls_and_results_may_be_parts_of_the_content_or_stand_in_the_older_field() -> None:
    asked = {"type": "tool_use", "id": "t", "name": "search", "input": {"query": "q"}}
    found = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "F"}]}
    in_parts = chat(
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, asked]},
        {"role": "user", "content": [found, {"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": [asked], "tool_calls": None, "function_call": None, "tool_call": {}},
        {"role": "user", "content": [{**found, "is_error": True, "content": "no"}]},
    )
    assert [(turn.text, turn.replies) for turn in in_parts.turns] == [("I look.", ("Go on.",)), ("", ())]
    assert [(result.text, result.call_id, result.ok) for result in results_of(in_parts)] == [
        ("F", "t", True),
        ("no", "t", False),
    ]
    older = chat(
        {"role": "assistant", "content": None, "function_call": {"name": "search", "arguments": '{"query": "q"}'}},
        {"role": "function", "name": "search", "content": "F"},
    )
    for read in (in_parts, older):
        first = searches_of(read, FORM)[0]
        assert (first.query, [result.text for result in first.results]) == ("q", ["F"])


def test_a_call_that_an_engine_read_and_kept_in_the_text_is_one_call() -> None:
    function = {"name": "search", "arguments": {"query": "q"}}
    written = f"<tool_call>{json.dumps(function)}</tool_call>"
    deep = '{"query": ' + "[" * 900 + "]" * 900 + "}"
    for text, arguments, count in (
        (written, '{"query": "q"}', 1),
        (written * 2, '{"query": "q"}', 2),
        (written, '{"query": "other"}', 2),
        (written, deep, 2),
        ("<tool_call>{</tool_call>", "{", 2),
    ):
        call = {"id": "1", "function": {"name": "search", "arguments": arguments}}
        read = chat({"role": "assistant", "content": text, "tool_calls": [call]})
        assert (len(read.calls()), len(read.turns[0].recorded)) == (count, 1)


@pytest.mark.parametrize("text", ["NaN", "[1e999]", "[" * 100_000, "9" * 5_000, "", '{"a":1,"a":2}', "{'a':1}"])
def test_json_that_is_refused_has_a_reason(text: str) -> None:
    value, fault = read_json(text)
    assert value is None
    assert fault


def test_results_go_to_the_search_that_they_name_and_else_in_order() -> None:
    read = flat("<search>a</search><search>b</search><search></search>", "A", "", "B")
    assert [(one.query, [result.text for result in one.results]) for one in searches_of(read, FORM)] == [
        ("a", ["A"]),
        ("b", ["B"]),
        ("", []),
    ]
    calls = [{"id": name, "function": {"name": "search", "arguments": {"query": name}}} for name in "ab"]
    read = chat(
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": ""},
    )
    assert [(one.query, one.answered) for one in searches_of(read, FORM)] == [("a", False), ("b", True)]


def test_what_another_tool_printed_is_no_result_of_a_search() -> None:
    python, asked = (
        '{"name": "python", "arguments": {"code": "print(1)"}}',
        '{"name": "search", "arguments": {"query": "q"}}',
    )
    written = f"<tool_call>{python}</tool_call><tool_call>{asked}</tool_call>"
    for names in (("", ""), ("python", "search"), ("other", "other")):
        tools = [{"role": "tool", "name": name, "content": text} for name, text in zip(names, "1F", strict=True)]
        read = chat({"role": "assistant", "content": written}, *tools)
        assert [(one.query, [result.text for result in one.results]) for one in searches_of(read, FORM)] == [
            ("q", ["F"])
        ]
    swapped = [{"role": "tool", "name": name, "content": text} for name, text in (("search", "F"), ("python", "1"))]
    (search,) = searches_of(chat({"role": "assistant", "content": written}, *swapped), FORM)
    assert [result.text for result in search.results] == ["F"]
    printed = chat(
        {"role": "assistant", "content": f"<tool_call>{python}</tool_call>"}, {"role": "tool", "content": "1"}
    )
    assert searches_of(printed, FORM) == ()


def test_a_result_that_may_be_another_tools_is_no_result_of_a_search() -> None:
    python = '<tool_call>{"name": "python", "arguments": {"code": "print(1)"}}</tool_call>'
    for written in (f"<search>q</search>{python}", f"<search></search>{python}", f"{python}<search>q</search>"):
        (search,) = searches_of(flat(written, "printed"), FORM)
        assert search.results == ()
    empty, asked = searches_of(flat("<search> </search><search>q</search>", "F"), FORM)
    assert (empty.answered, asked.answered) == (False, True)


@pytest.mark.parametrize("order", [1, -1])
def test_an_id_that_two_calls_have_is_that_of_the_other_tool(order: int) -> None:
    calls = [{"id": "1", "function": {"name": name, "arguments": '{"query": "q"}'}} for name in ("python", "search")]
    read = chat(
        {"role": "assistant", "tool_calls": calls[::order]}, {"role": "tool", "tool_call_id": "1", "content": "printed"}
    )
    assert [search.results for search in searches_of(read, FORM)] == [()]


def test_an_empty_list_is_no_answer() -> None:
    for output, answered in (("[]", False), ('{"results": []}', False), ('["", "x"]', True), ("[1]", True)):
        (search,) = searches_of(flat("<search>q</search>", output), FORM)
        assert search.answered is answered


def test_a_result_of_a_call_of_another_turn_is_no_result_of_a_search() -> None:
    python = {"id": "p", "function": {"name": "python", "arguments": "{}"}}
    search = {"id": "s", "function": {"name": "search", "arguments": '{"query": "q"}'}}
    read = chat(
        {"role": "assistant", "tool_calls": [python]},
        {"role": "tool", "tool_call_id": "x", "content": "running"},
        {"role": "assistant", "tool_calls": [search]},
        {"role": "tool", "tool_call_id": "p", "content": "printed"},
        {"role": "tool", "tool_call_id": "s", "content": "F"},
    )
    (found,) = searches_of(read, FORM)
    assert [result.text for result in found.results] == ["F"]


@pytest.mark.parametrize(
    ("output", "documents"),
    [
        ("  ", []),
        ("just text", [("", "just text")]),
        (json.dumps([{"title": "T", "text": "x"}, {"content": "y"}]), [("T", "x"), ("", "y")]),
        (json.dumps({"results": [{"document": {"contents": '"T"\nx'}, "score": 1}]}), [("T", "x")]),
        (
            json.dumps({"result": [[{"document": {"contents": '"T"\nx'}, "score": 1}, {"text": "y"}]]}),
            [("T", "x"), ("", "y")],
        ),
        (json.dumps({"result": "Doc 1 (Title: A) a\nDoc 2 (Title: B) b"}), [("A", "a"), ("B", "b")]),
        ('{"result": " "}', []),
        ("[]", []),
        ('["", "x", {"text": " "}]', [("", "x")]),
        ("[1, 2", [("", "[1, 2")]),
        ('Doc 1(Title: "A") a\nDoc 7(Title: "B") b', [("A", 'a\nDoc 7(Title: "B") b')]),
        ("<##Title: A##> a\n<##B##>b", [("A", "a"), ("B", "b")]),
        ("Doc 1<## Title: A ##> a\nDoc 2<## Title: B ##> see Doc 3\n", [("A", "a"), ("B", "see Doc 3")]),
        ("Doc 1(Title: A) a", [("A", "a")]),
        ("Doc 1(Title: never closed", [("", "never closed")]),
    ],
)
def test_documents_are_read_from_what_tools_print(output: str, documents: list[tuple[str, str]]) -> None:
    assert [(document.title, document.text) for document in documents_of(output)] == documents


@pytest.mark.parametrize("role", ["tool", "user"])
@pytest.mark.parametrize("tag", ["information", "tool_response"])
def test_a_result_may_stand_in_its_tag_also_in_a_users_turn(role: str, tag: str) -> None:
    for told, texts in (
        (f"<{tag}> </{tag}>", [""]),
        (f"<{tag}>a</{tag}>", ["a"]),
        (f"<{tag}>\na\n</{tag}>\n<{tag}>b</{tag}>\n", ["a", "b"]),
    ):
        read = chat({"role": "assistant", "content": "<search>q</search>"}, {"role": role, "content": told})
        (turn,) = read.turns
        assert "\n".join(one.text for one in turn.results) == "\n".join(texts)
        assert (len(turn.results), turn.replies) == (len(texts) if role == "user" else 1, ())
    read = chat(
        {"role": "assistant", "content": "<search>q</search>"}, {"role": "user", "content": f"see <{tag}>a</{tag}>"}
    )
    assert read.turns[0].results == ()


@pytest.mark.parametrize(
    ("start", "end"), [*zip(THINK_START[:-1], THINK_END, strict=False), (THINK_START[-1], "<|end|>")]
)
def test_thoughts_in_the_marks_of_any_model_hold_no_acts(start: str, end: str) -> None:
    plan = "<search>a</search>"
    assert [
        one.query for one in searches_of(chat({"role": "assistant", "content": f"{start}{plan}{end}b"}), FORM)
    ] == []
    said = f"{start}{plan}{end}<search>b</search><|im_end|>"
    assert [one.query for one in searches_of(chat({"role": "assistant", "content": said}), FORM)] == ["b"]
    if end != "<|end|>":  # the prompt opened it
        said = f"{plan}{end}<search>b</search>"
        assert [one.query for one in searches_of(chat({"role": "assistant", "content": said}), FORM)] == ["b"]
    own = chat({"role": "assistant", "content": f"<think>{start}</think>{plan}"})
    assert [one.query for one in searches_of(own, FORM)] == ["a"]


@pytest.mark.parametrize(
    ("extra", "word"),
    [
        ({}, "tool_spans"),
        ({"tool_spans": "x"}, "list of"),
        ({"tool_spans": [[0]]}, r"\[0\] is \[0\]"),
        ({"tool_spans": [[0, True]]}, r"\[start, end\]"),
        ({"tool_spans": [[0, 1.0]]}, "two whole numbers"),
        ({"tool_spans": [[0, 9]]}, "characters 0 to 4"),
        ({"tool_spans": [[0, 3], [2, 4]]}, "ends at 3"),
    ],
)
def test_a_flat_text_needs_spans_whatever_it_says(extra: dict[str, Any], word: str) -> None:
    for text in ("text", "    "):
        with pytest.raises(ValueError, match=word):
            check_trajectory(Sample(prompt="", response=text, extra=extra), FORM)
    check_trajectory(Sample(prompt="", response="text", extra=extra), TRUSTING)


def test_an_empty_text_stands_for_one_with_any_spans() -> None:
    sample = Sample(prompt="", response="", extra={"tool_spans": [[3, 9]]})
    check_trajectory(sample, FORM)
    assert read_trajectory(sample, FORM).turns == ()


@pytest.mark.parametrize(
    "turn",
    [
        {"role": "robot", "content": ""},
        {"role": "assistant", "content": 7},
        {"role": "assistant", "content": [7]},
        {"role": "assistant", "tool_calls": "x"},
        {"role": "assistant", "tool_calls": [{"name": "f"}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]},
        {"role": "assistant", "tool_calls": [{"id": 3, "function": {"name": "f"}}]},
        {"role": "tool", "content": "", "tool_call_id": 3},
        {"role": "assistant", "function_call": "f"},
        {"role": "assistant", "tool_call": {"name": "f"}},
        {"role": "assistant", "function_calls": [{"name": "f"}]},
        {"role": "assistant", "content": [{"type": "tool_use"}]},
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "f"}]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "name": "f", "input": {}}]},
        {"role": "assistant", "content": [{"toolUse": {"name": "f", "input": {}}}]},
        {"role": "assistant", "content": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "assistant", "content": [{"type": "tool_result", "content": "x"}]},
        {"role": "user", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": 3}]},
        {"role": "user", "content": [{"type": "tool_result", "content": 3}]},
        {"role": "user", "content": [{"toolResult": {"content": []}}]},
        "text",
    ],
)
def test_a_malformed_chat_turn_is_named(turn: Any) -> None:
    with pytest.raises(ValueError, match=r"response\[1\]"):
        check_trajectory(Sample(prompt="", response=({"role": "assistant", "content": ""}, turn)), FORM)


@pytest.mark.parametrize(
    "options",
    [
        {"search": ""},
        {"search": "a b"},
        {"answer": "search"},
        {"more": "x"},
        {"more": ("judge",)},
        {"tool_text": "none"},
        {"seek": "x"},
    ],
)
def test_a_form_refuses_names_that_cannot_be_tags(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="form"):
        TrajectoryForm.of(options)


def test_what_a_user_says_ends_a_turn_and_tools_may_speak_first() -> None:
    read = chat(
        {"role": "tool", "content": "early"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "c"},
    )
    assert [(turn.text, turn.replies) for turn in read.turns] == [("", ()), ("a\nb", ("go on",)), ("c", ())]
    assert [result.text for result in read.turns[0].results] == ["early"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from([f"<{slash}{tag}>" for tag in FORM.tags for slash in ("", "/")])
        | st.sampled_from(['{"name": "f", "arguments": {}}', "x", " ", "<", "\n", "é𝄞"]),
        max_size=40,
    ),
    st.booleans(),
)
def test_any_text_is_read_and_every_span_holds_its_block(parts: list[str], trusting: bool) -> None:
    text = "".join(parts)
    sample = Sample(prompt="", response=text, extra={"tool_spans": []})
    read = read_trajectory(sample, TRUSTING if trusting else FORM)
    assert read.text == response_text(sample)
    end = 0
    for turn in read.turns:
        assert turn.text == text[turn.start : turn.end]
        for block in turn.blocks:
            assert turn.start <= block.start <= block.end <= turn.end
            assert block.start >= end
            end = block.end
            assert block.text in text[block.start : block.end]


@pytest.mark.parametrize("part", ["<search>", "</think>", "<tool_call>[[</tool_call>", "<information>"])
def test_a_megabyte_of_tags_takes_linear_time(part: str) -> None:
    text = part * (1_000_000 // len(part))
    for form in (FORM, TRUSTING):
        begun = time.process_time()
        searches_of(read_trajectory(Sample(prompt="", response=text, extra={"tool_spans": []}), form), form)
        assert time.process_time() - begun < 20
