"""`tool_calls`: counts by hand, references that cannot be meant, and texts that nobody foresaw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Sample, check_scorer
from adjudge.verifiers.agents.tools.call_verifier import ToolCallVerifier

A = {"name": "a", "arguments": {"x": 1}}
B = {"name": "b", "arguments": {"y": "two"}}
CALL_A, CALL_B, CALL_C = "a(x=1)", 'b(y="two")', "c()"
INTEGER = {"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
NUMBER = {"name": "a", "parameters": {"properties": {"x": {"type": "number"}}}}


def sample(response: Any, reference: Any, **fields: Any) -> Sample:
    return Sample(prompt="p", response=response, reference=reference, **fields)


def value(response: Any, reference: Any, **options: Any) -> float | None:
    return ToolCallVerifier(**options).verify(sample(response, reference)).value


def tagged(*calls: Any) -> str:
    return "".join(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)


def message(*calls: Any) -> list[dict[str, Any]]:
    functions = [call | {"arguments": json.dumps(call["arguments"])} for call in calls]
    made = [{"id": "1", "type": "function", "function": function} for function in functions]
    return [{"role": "assistant", "content": None, "tool_calls": made}]


@pytest.mark.parametrize(
    ("calls", "share"),
    [
        ([A, B], 1.0),
        ([B, A], 1.0),
        ([A], 1 / 2),
        ([A, A], 1 / 2),
        ([A, B, B], 2 / 3),
        ([A, B, A, B], 2 / 4),
        ([A, {"name": "b", "arguments": {"y": "three"}}], 1 / 2),
        ([], 0.0),
    ],
)
@pytest.mark.parametrize("written", [tagged, message, lambda *calls: json.dumps(calls)])
def test_a_share_is_what_matches_of_what_is_wanted_or_made(calls: list[Any], share: float, written: Any) -> None:
    reference = {"calls": [A, B]}
    assert value(written(*calls), reference, credit="fraction") == pytest.approx(share)
    assert value(written(*calls), reference) == float(share == 1.0)


@pytest.mark.parametrize(
    ("order", "wanted", "made", "share"),
    [
        ("given", [A, B], [[B, A]], 1 / 2),
        ("given", [A, B], [[A], [B]], 1.0),
        ("turns", [[A], [B]], [[A], [B]], 1.0),
        ("turns", [[A], [B]], [[A, B]], 1 / 2),
        ("turns", [[A], [B]], [[B], [A]], 0.0),
        ("turns", [[A, B]], [[B, A]], 1.0),
        ("turns", [[A, B]], [[A], [B]], 1 / 2),
        ("any", [A, B], [[B], [A]], 1.0),
    ],
)
def test_the_order_says_what_may_come_when(order: str, wanted: Any, made: Any, share: float) -> None:
    turns = []
    for calls in made:
        turns += [*message(*calls), {"role": "tool", "tool_call_id": "1", "content": "ok"}]
    assert value(turns, {"calls": wanted, "order": order}, credit="fraction") == pytest.approx(share)


def test_steps_say_where_each_call_stands_and_what_is_wrong_with_it() -> None:
    text = f'<think>é</think>\n["é", {CALL_A},\n  b(y="é"), c(), a(x=1 + 1)]'
    score = ToolCallVerifier(credit="fraction").verify(sample(text, {"calls": [A, B]}))
    assert [text[step.start : step.end] for step in score.steps] == ['"é"', CALL_A, 'b(y="é")', "c()", "a(x=1 + 1)"]
    assert [step.label for step in score.steps] == [
        "unreadable",
        "right",
        "other_arguments",
        "other_tool",
        "unreadable",
    ]
    assert [step.value for step in score.steps] == [0, 1, 0, 0, 0]
    assert score.value == pytest.approx(1 / 5)


def test_steps_of_a_json_list_are_its_items() -> None:
    text = '```json\n[ {"name": "a", "arguments": {"x": 1, "z": "],{"}} ,{"name": "b", "arguments": {"y": "two"}}]\n```'
    score = ToolCallVerifier().verify(sample(text, {"calls": [A, B]}))
    assert [json.loads(text[step.start : step.end])["name"] for step in score.steps] == ["a", "b"]
    assert [step.label for step in score.steps] == ["other_arguments", "right"]


@pytest.mark.parametrize(
    ("tool", "text", "right"),
    [
        (INTEGER, "[a(x=1)]", True),
        (INTEGER, "[a(x=1.0)]", False),
        (INTEGER, "[a(x=True)]", False),
        (NUMBER, "[a(x=1.0)]", True),
        (NUMBER, "[a(x=1)]", True),
        (NUMBER, "[a(x=True)]", False),
        (NUMBER, '[a(x="1")]', False),
    ],
)
def test_a_schema_decides_which_numbers_are_of_the_right_type(tool: Any, text: str, right: bool) -> None:
    assert value(text, {"calls": [A], "tools": [tool]}) == float(right)
    assert value(text, {"tools": [tool]}) == float(right)


BETWEEN_TAGS = (
    "<tool_call>\n<function=a>\n<parameter=x>\n{}\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>a\n<arg_key>x</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    '<function_calls>\n<invoke name="a">\n<parameter name="x">{}</parameter>\n</invoke>\n</function_calls>',
)


@pytest.mark.parametrize(
    ("kind", "text", "wanted", "right"),
    [
        ("string", "75001", "75001", True),
        ("string", "true", "true", True),
        ("string", "null", "null", True),
        ("string", "[1, 2]", "[1, 2]", True),
        ("string", "75001", "75002", False),
        ("string", '"75001"', "75001", False),  # the quotes are part of the text
        (["string", "integer"], "75001", "75001", True),
        (["string", "integer"], "75001", 75001, True),
        (None, "75001", "75001", True),
        (None, "75001", 75001, True),
        (None, "True", True, True),
        (None, "1", True, False),
        (None, "True", 1, False),
        ("integer", "75001", 75001, True),
        ("integer", "2.0", 2, False),
        ("number", "2", 2.0, True),
        ("number", "1e999", 2.0, False),
        ("boolean", "True", True, True),
        ("boolean", "true", True, True),
        ("boolean", "1", True, False),
        ("boolean", "False", True, False),
        ("array", "['a', 'b']", ["a", "b"], True),
        ("array", "('a', 'b')", ["a", "b"], True),
        ("array", "list('ab')", ["a", "b"], False),
        ("object", "{'a': None}", {"a": None}, True),
        ("object", "{'a': 1, 'a': 2}", {"a": 2}, False),
        ("object", '{"a": 1, "a": 2}', {"a": 2}, False),
        ("null", "None", None, True),
    ],
)
@pytest.mark.parametrize("tags", BETWEEN_TAGS)
def test_what_stands_between_tags_means_what_the_schema_or_the_reference_says(
    tags: str, kind: Any, text: str, wanted: Any, right: bool
) -> None:
    calls = [{"name": "a", "arguments": {"x": wanted}}]
    tool = {"name": "a", "parameters": {"properties": {"x": {"type": kind} if kind else {}}, "required": ["x"]}}
    assert value(tags.format(text), {"calls": calls, "tools": [tool]}) == float(right)
    if kind in (None, "string"):
        assert value(tags.format(text), calls) == float(right)
        assert value(tags.format(text), calls, strings="normal") == float(right)


def test_a_schema_elsewhere_in_the_reference_of_a_tool_says_what_a_text_means() -> None:
    zipped = {"properties": {"x": {"$ref": "#/$defs/zip"}}, "$defs": {"zip": {"type": "string", "minLength": 5}}}
    others = {"patternProperties": {"^x": {"type": "string"}}}
    for schema in (zipped, others):
        reference = {"tools": [{"name": "a", "parameters": schema}]}
        assert [value(tags.format("75001"), reference) for tags in BETWEEN_TAGS] == [1.0] * 3
    marked = '<invoke name="a"><parameter name="x" string="{}">75001</parameter></invoke>'
    assert [value(marked.format(word), [{"name": "a", "arguments": {"x": 75001}}]) for word in ("true", "false")] == [
        0.0,
        1.0,
    ]


def test_with_tools_alone_valid_calls_are_right_and_none_is_not() -> None:
    reference = {"tools": [INTEGER]}
    assert value("[a(x=1), a(x=2)]", reference) == 1.0
    assert value("[a(x=1), a()]", reference, credit="fraction") == pytest.approx(1 / 2)
    assert value("[a(x=1, y=2)]", reference) == 0.0
    assert value("[b(x=1)]", reference) == 0.0
    assert value("No call.", reference) == 0.0


def test_an_argument_may_be_one_of_several_and_left_out() -> None:
    unit = {"any_of": ["C", "F"], "optional": True}
    reference = {"calls": [{"name": "a", "arguments": {"x": {"any_of": [1, 2]}, "unit": unit}}]}
    assert value("[a(x=2)]", reference) == 1.0
    assert value('[a(x=1, unit="F")]', reference) == 1.0
    assert value('[a(x=1, unit="K")]', reference) == 0.0
    assert value('[a(unit="C")]', reference) == 0.0


def test_parallel_calls_are_not_matched_greedily() -> None:
    wide = {"name": "a", "arguments": {"x": {"any_of": [1, 2]}}}
    assert value("[a(x=1), a(x=2)]", {"calls": [wide, A]}) == 1.0


@pytest.mark.parametrize(
    ("options", "text", "right"),
    [
        ({"bare": "json"}, "[a(x=1)]", False),
        ({"bare": "python"}, "[a(x=1)]", True),
        ({"bare": "none"}, "[a(x=1)]", False),
        ({"bare": "none"}, tagged(A), True),
        ({"form": {"tool_call": "call"}}, '<call>{"name": "a", "arguments": {"x": 1}}</call>', True),
        ({"form": {"think": "plan"}}, "<plan>[b()]</plan>[a(x=1)]", True),
        ({"form": {"think": "plan"}}, f"{tagged(A)}<plan>And now", False),
        ({"form": {"think": "plan"}}, f"{tagged(A)}<plan>Done.</plan>", True),
        ({"truncated": "grade"}, "[a(x=1)]", True),
        ({"truncated": "zero"}, "[a(x=1)]", False),
    ],
)
def test_options_say_how_calls_are_written(options: dict[str, Any], text: str, right: bool) -> None:
    reason = "length" if "truncated" in options else None
    score = ToolCallVerifier(**options).verify(sample(text, {"calls": [A]}, finish_reason=reason))
    assert score.value == float(right)


def test_names_with_dots_and_json_words_are_read() -> None:
    reference = {"calls": [{"name": "math.f", "arguments": {"x": [True, None, -1.5], "y": {"k": "v"}}}]}
    assert value('math.f(x=[true, null, -1.5], y={"k": "v"})', reference) == 1.0


@pytest.mark.parametrize(
    "reference",
    [
        None, 3, "a(x=1)", {}, {"calls": "a"}, {"calls": [1]}, {"calls": [{"name": ""}]}, {"calls": [A], "more": 1},
        {"calls": [{"name": "a", "arguments": [1]}]}, {"calls": [{"name": "a", "arguments": {"x": {"any_of": []}}}]},
        {"calls": [{"name": "a", "arguments": {"x": float("nan")}}]}, {"calls": [A], "order": "random"},
        {"calls": [A], "order": "turns"}, {"calls": [[]], "order": "turns"}, {"calls": [A], "tools": []},
        {"calls": [A], "tools": [{"name": "b"}]}, {"calls": 10**5000}, {"calls": [A], "order": 10**5000},
        {"tools": [{"name": "a"}, {"name": "a"}]}, {"tools": [{"name": 1}]},
        {"tools": [{"name": "a", "parameters": {"type": "nonsense"}}]}, {"calls": [A] * 257},
        {"tools": [{"name": "a", "parameters": {"properties": {"x": {"$ref": "https://example.com/schema"}}}}]},
        {"tools": [{"name": "a", "parameters": {"properties": {"x": {"pattern": "("}}}}]},
    ],
)  # fmt: skip
def test_a_reference_that_cannot_be_meant_is_refused_before_and_failed_after(reference: Any) -> None:
    verifier = ToolCallVerifier()
    for response in ("", "[a(x=1)]"):
        with pytest.raises(ValueError, match=r"tool_calls|reference"):
            verifier.validate(sample(response, reference))
        assert verifier.verify(sample(response, reference)).reason == "gold_unparsable"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"credit": "some"}, "credit"),
        ({"strings": "loose"}, "strings"),
        ({"tolerance": -1}, "tolerance"),
        ({"bare": "xml"}, "bare"),
        ({"form": {"tool_call": "<x>"}}, "tag name"),
        ({"form": 3}, "form"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ToolCallVerifier(**options)


def test_what_a_rollout_recorded_wrongly_is_no_score() -> None:
    turns = [{"role": "assistant", "content": "", "tool_calls": "a"}]
    with pytest.raises(ValueError, match="tool_calls"):
        ToolCallVerifier().validate(sample(turns, {"calls": [A]}))
    assert ToolCallVerifier().verify(sample(turns, {"calls": [A]})).reason == "bad_sample"


def test_a_reference_may_be_a_json_text_as_in_the_column_of_a_table() -> None:
    assert value("[a(x=1)]", json.dumps({"calls": [A], "tools": [INTEGER]})) == 1.0
    assert value("[a(x=1)]", json.dumps([A, B])) == 0.0


@pytest.mark.parametrize(
    ("wanted", "kind", "meant"),
    [
        ("one", "integer", False),
        (1, "integer", True),
        ({"any_of": ["one", [2], 1]}, "integer", True),
        ({"any_of": ["one", "two"]}, "integer", False),
        ({"any_of": ["one"], "optional": True}, "integer", True),
        ({"any_of": [["n", {"any_of": [True, 3]}]]}, "array", True),
        ({"k": {"any_of": ["one"]}}, "array", False),
    ],
)
def test_a_wanted_call_that_its_own_schema_refuses_is_the_reference_s_fault(
    wanted: Any, kind: str, meant: bool
) -> None:
    schema = {"type": kind, "items": {"type": ["string", "integer"]}}
    tool = {"name": "a", "parameters": {"type": "object", "properties": {"x": schema}}}
    score = ToolCallVerifier().verify(
        sample("No.", {"calls": [{"name": "a", "arguments": {"x": wanted}}], "tools": [tool]})
    )
    assert score.reason == ("no_answer" if meant else "gold_unparsable")


def test_more_choices_than_can_be_tried_are_not_judged() -> None:
    many = {name: {"any_of": list(range(10))} for name in "abcd"} | {"e": "text"}
    tool = {"name": "a", "parameters": {"properties": {name: {"type": "integer"} for name in "abcde"}}}
    assert value("No.", {"calls": [{"name": "a", "arguments": many}], "tools": [tool]}) == 0.0


def test_items_that_must_differ_are_compared_as_json_compares_them_in_linear_time() -> None:
    tool = {"name": "a", "parameters": {"properties": {"x": {"type": "array", "uniqueItems": True}}}}
    for items, right in (
        ([1, "1", True, None, [1], {"k": 1}], True),
        ([1, 1.0], False),
        ([{"k": [1], "l": 2}, {"l": 2.0, "k": [1]}], False),
        ([0, False], True),
        ([number if number % 2 else str(number) for number in range(40_000)], True),
    ):
        assert value(tagged({"name": "a", "arguments": {"x": items}}), {"tools": [tool]}) == float(right)


def test_calls_in_no_form_are_attempts_at_known_tools_beside_other_calls_too() -> None:
    named = {"name": "a", "parameters": INTEGER["parameters"]}
    for text in ("Sure:\n```\na(x=1)\n```", 'Sure: {"tool": "a", "args": {}}', "Action: a"):
        score = ToolCallVerifier().verify(sample(text, {"calls": [], "tools": [named]}))
        assert (score.value, score.reason) == (0.0, "unparsable_answer")
        assert all("a" in text[step.start : step.end] for step in score.steps)
        assert value(text.replace("a", "b"), {"calls": [], "tools": [named]}) == 1.0
        assert value(f"{text}\n{tagged(A)}", {"calls": [A]}) == float(text == "Action: a")  # that announces the call
        assert value(f"{tagged(A)}\n{text}", {"calls": [A]}) == 0.0


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("Sure:\na(x=1); a(x=2)", False),
        ("Sure:\na(x=1)a(x=2)", False),
        ("Sure:\n<run>a(x=1)</run>", False),
        ("Sure:\na(\n    x=1,\n)", False),
        ("a(x=1) is what I would call, had I a date.", True),
        ("a(x) needs a number (not 2).", True),
    ],
)
def test_a_line_is_an_attempt_if_it_is_nothing_but_calls_with_values(text: str, right: bool) -> None:
    assert value(text, {"calls": [], "tools": [INTEGER]}) == float(right)


def test_without_known_tools_a_turn_of_nothing_but_calls_is_none_that_refrains() -> None:
    for text in ("a(x=1)\nb(y=2)", "a(x=1); b(y=2)", "```\na(x=1)\n\nb(y=2)\n```"):
        assert value(text, {"calls": []}) == 0.0
    assert value("a(x=1)\ny = 2", {"calls": []}) == 1.0


def test_what_a_turn_says_behind_results_is_a_report_of_the_calls_it_names() -> None:
    ran = {"role": "tool", "tool_call_id": "1", "content": "ok"}
    for said, right in (
        ("I ran\n```\na(x=1)\n```\nand it worked.", True),
        ("Observation: it worked.", True),
        ('Then\nb(y="two")', False),
        ("Ignore the call above.", True),
    ):
        turns = [*message(A), ran, {"role": "assistant", "content": said}]
        assert value(turns, {"calls": [A], "tools": [INTEGER, {"name": "b"}]}) == float(right), said


def test_words_of_the_task_take_no_call_back() -> None:
    cancel, tell = {"name": "cancel_call", "arguments": {"x": 7}}, {"name": "tell", "arguments": {"x": "ignore it"}}
    for said, call, right in (
        ("I'll cancel the call for you.\n{}", cancel, True),
        ("I'll tell Bob to ignore it.\n{}", tell, True),
        ("That's just an example of why checking matters.\n{}", A, True),
        ("{}\nIgnore the call above.", cancel, False),
        ("{}\nThe call has been cancelled.", A, False),
        ("{}\nThat was just an example of a call.", A, False),
    ):
        assert value(said.format(tagged(call)), {"calls": [call]}) == float(right), said


def test_a_mark_of_a_result_with_nothing_behind_it_makes_none_up() -> None:
    for said, right in (
        ("Observation:", True),
        ("**Observation:** \n", True),
        ("Observation: 5", False),
        ("Observation:\nObservation: 5", False),
        ("<tool_output></tool_output>", False),
    ):
        assert value(f'Action: a\nAction Input: {{"x": 1}}\n{said}', {"calls": [A]}) == float(right), said


def test_calls_in_a_row_of_fences_or_beside_a_thought_are_read() -> None:
    fences = "\n\n".join(f"```json\n{json.dumps(call)}\n```" for call in (A, B))
    assert value(fences, [A, B]) == 1.0
    assert value(json.dumps({"thought": "One.", "tool_calls": [A]}), [A]) == 1.0
    assert value(json.dumps({"name": "b", "tool_calls": [A]}), [A]) == 0.0
    assert value("Action: a\nAction Input: None", [{"name": "a", "arguments": {}}]) == 1.0


def test_text_beside_recorded_calls_may_say_them_and_make_no_others() -> None:
    for said, right in (
        ("I call\na(x=1)", True),
        (tagged(A), True),  # what the engine read, and kept
        (f"<think>One.</think>\n{tagged(A)}", True),
        (BETWEEN_TAGS[0].format("1"), True),
        ("[TOOL_CALLS]" + json.dumps([A]), True),
        (tagged(A, A), False),
        (tagged(A, B), False),
        (BETWEEN_TAGS[0].format("2"), False),
        (f"<!--{tagged(A)}-->", False),
        (f"{tagged(A)}\nIgnore the call above.", False),
        (f"{tagged(A)}\nObservation: it worked.", False),
        ('b(y="two")', False),
        (tagged(B), False),
    ):
        turns = [message(A)[0] | {"content": said}]
        assert value(turns, {"calls": [A], "tools": [INTEGER, {"name": "b"}]}) == float(right), said


RECORDED: list[list[dict[str, Any]]] = [
    message(A),
    [{"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": '{"x": 1}'}}],
    [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "a", "input": {"x": 1}}]}],
]
RECORDED += [[{**RECORDED[1][0], **message(A)[0]}], [{**message(A)[0], **RECORDED[2][0]}]]


@pytest.mark.parametrize("turns", RECORDED)
def test_a_call_beside_a_text_is_read_in_each_form_and_once(turns: list[dict[str, Any]]) -> None:
    assert value(turns, [A]) == 1.0
    assert value(turns, {"calls": [], "tools": [INTEGER]}) == 0.0
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    assert value([*turns, told, *message(B)], {"calls": [[A], [B]], "order": "turns"}) == 1.0


def test_text_calls_that_are_recorded_in_other_types_are_these_again() -> None:
    for text, passed in (("75001", "75001"), ("75001", 75001), ("True", True), ("['b']", ["b"]), ("[1]", "[1]")):
        turns = [message({"name": "a", "arguments": {"x": passed}})[0] | {"content": BETWEEN_TAGS[1].format(text)}]
        assert value(turns, [{"name": "a", "arguments": {"x": passed}}]) == 1.0


PIECES = [
    "<tool_call>", "</tool_call>", "<think>", "</think>", "[", "]", "{", "}", "(", ")", '"', "'", ",", "=", "a", "x",
    "1", "NaN", "**", ":", '{"name": "a", "arguments": {"x": 1}}', "a(x=1)", "\\", "\n", "```", "é", "\ud800", "#",
    "Action: ", '"tool": "', ";",
]  # fmt: skip


@settings(max_examples=100)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_text_raises_and_spans_stay_inside(pieces: list[str]) -> None:
    text = "".join(pieces)
    references: list[dict[str, Any]] = [{"calls": [A]}, {"calls": []}, {"tools": [INTEGER]}]
    for reference in references:
        score = ToolCallVerifier(credit="fraction").verify(sample(text, reference))
        assert score.status == "scored"
        assert score.value is not None
        assert 0 <= score.value <= 1
        assert all(0 <= step.start <= step.end <= len(text) for step in score.steps)


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>" * 90_000,
        "<think>" * 150_000,
        "[" * 1_000_000,
        '{"name": ' * 100_000,
        '[{"name": "a", "arguments": {"x": "' + "\\" * 900_000,
        "[a(" * 330_000,
        "```json\n" + "\n" * 1_000_000,
        "a(x=" + "-" * 90_000 + "1)",
        "[" + ",".join(["a(x='é')"] * 9_000) + "]",
        "a(" * 500_000,
        "a(\n" * 300_000,
        "a(x=1)" + ")" * 900_000 + "é",
        "<a" * 500_000,
        '"name": ' * 120_000,
        "a(x=1)\n" * 5_000,
        "a(x=1)\n" * 140_000,
        "<|python_tag|>a(" + '\\"' * 450_000,
        "[TOOL_CALLS]['" * 70_000,
        "a\n{" * 250_000,
        ">>>a\n{" * 150_000,
        "<function=a>" + "".join(f"<parameter=x{at}>['{at}', 1]</parameter>" for at in range(5_000)) + "</function>",
    ],
)
def test_a_megabyte_is_read_in_linear_time(text: str) -> None:
    assert value(text, {"calls": [A]}) == 0.0


def test_it_keeps_the_rules_of_scorers() -> None:
    samples = [
        sample(tagged(A), {"calls": [A]}),
        sample("[b(x=1)]", {"calls": [A]}),
        sample("Nothing.", {"calls": []}),
        sample(message(A, B), {"calls": [A, B], "order": "given"}),
    ]
    check_scorer(ToolCallVerifier(), samples).raise_for_failures()
