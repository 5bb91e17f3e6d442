"""Calls are read as they were written, and what a policy cannot call with is told before any work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rl_integration.trainer.rollouts.chat_policy import TEMPLATE, chat_policy
from tests.rl_integration.trainer.rollouts.small_tools import Adder, Lookup

from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.demo.tiny_policy import tiny_policy
from adjudge.rl_integration.trainer.rollouts.calls import Call, ChatCalls, TagCalls, broken_up
from adjudge.rl_integration.trainer.rollouts.policy import Policy


@pytest.fixture(scope="module")
def chat() -> Policy:
    return chat_policy()


def call(text: str) -> str:
    return f"<tool_call>{text}</tool_call>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no call", ()),
        (call('{"name": "look", "arguments": {"key": "a"}}'), (Call(tool="look", arguments={"key": "a"}),)),
        ("x" + call('\n{"name": "now"}\n') + "y", (Call(tool="now", arguments={}),)),
        (call('{"name": "look", "arguments": "key"}'), ("arguments are a str",)),
        (call('{"name": 3}'), ("has no name",)),
        (call("[1]"), ("has no name",)),
        (call(""), ("is not JSON",)),
        (call("[" * 100_000), ("is not JSON",)),
        (call('{"name": "look", "arguments": {"n": ' + "9" * 5_000 + "}}"), ("is not JSON",)),
        ("<tool_call>{", ("not closed",)),
        ("</tool_call>", ()),
    ],
)
def test_calls_in_a_chat_are_json_in_tags(chat: Policy, text: str, expected: tuple[Any, ...]) -> None:
    found = ChatCalls(chat, [Lookup()]).calls(text, ended=True)
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        if isinstance(wanted, str):
            assert wanted in one.problem
        else:
            assert one == wanted


def test_a_turn_that_was_cut_off_calls_nothing(chat: Policy) -> None:
    assert ChatCalls(chat, [Lookup()]).calls(call('{"name": "look"}'), ended=False) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<look>ab</look>", Call(tool="look", arguments={"key": "ab"})),
        ("<look>ab</look> and more", Call(tool="look", arguments={"key": "ab"})),
        ("<look>x<look>\nab</look>", Call(tool="look", arguments={"key": "\nab"})),
        ("<look></look>", Call(tool="look", arguments={"key": ""})),
        ("<see>ab</look>", None),
        ("</look><look>", None),
    ],
)
def test_calls_in_tags_hold_the_text_since_the_last_opening_tag(chat: Policy, text: str, expected: Call | None) -> None:
    (found,) = TagCalls(chat, [Lookup(), Lookup(name="see")], before="<r>", after="</r>").calls(text, ended=False)
    assert found == expected if expected is not None else found.problem


def test_text_without_a_closing_tag_calls_nothing(chat: Policy) -> None:
    style = TagCalls(chat, [Lookup()], before="<r>", after="</r>")
    assert style.calls("<look>ab", ended=True) == style.calls("ab </LOOK>", ended=True) == ()
    assert style.stops == ("</look>",)


MARKS = ["</look>", "<look>", "<|im_end|>", "<r>", "aba", "x"]


@given(st.text("<>/lokr|im_endab\x00", max_size=60), st.lists(st.sampled_from(MARKS), max_size=8))
def test_no_mark_survives_in_somebody_elses_text(text: str, marks: list[str]) -> None:
    found = broken_up("".join([text, *marks, text]), MARKS).lower()
    assert not any(mark in found for mark in MARKS if len(mark) > 1)
    assert found.replace("·", "") == "".join([text, *marks, text]).replace("\x00", "\ufffd").lower()


def test_templates_that_a_dialogue_cannot_be_written_with_are_told(chat: Policy) -> None:
    content = "message.content + '\n</tool_response>'"
    cases = {
        "has no chat template": "",
        "does not tell the model what tools there are": TEMPLATE.replace("{% if tools %}", "{% if false %}"),
        "refused the turns.*tools are not for me": TEMPLATE.replace(
            "{% if message.role == 'tool' %}",
            "{% if message.role == 'tool' %}{{ raise_exception('tools are not for me') }}",
        ),
        "ends the assistant's turn differently": TEMPLATE.replace(
            "{{ message.content }}<|im_end|>", "{{ message.content }}."
        ),
        "does not write what a tool says as it is": TEMPLATE.replace(content, f"(({content}) | tojson)"),
        "or not in the same way each time": TEMPLATE.replace(content, f"(loop.index | string) + {content}"),
    }
    xml = "<tool_call><function={{ call.function.name }}></function></tool_call>"
    cases["writes calls in another form"] = TEMPLATE.replace(
        "{{ message.content }}<|im_end|>",
        f"{{{{ message.content }}}}{{% for call in message.tool_calls %}}{xml}{{% endfor %}}<|im_end|>",
    )
    for words, template in cases.items():
        assert template != TEMPLATE
        with pytest.raises(ValueError, match=words):
            ChatCalls(chat_policy(template), [Lookup()])


def test_a_prompt_that_is_a_text_cannot_be_answered_in_a_chat(chat: Policy) -> None:
    with pytest.raises(ValueError, match=r"the prompt of task 't' is a text.*use the style tags"):
        ChatCalls(chat, [Lookup()]).prompt(Task(id="t", prompt="ab?"))
    with pytest.raises(ValueError, match="the prompt of task 't' cannot be written"):
        ChatCalls(chat, [Lookup()]).prompt(Task(id="t", prompt=[{"role": "user"}]))


def test_a_chat_tells_the_model_of_its_tools(chat: Policy) -> None:
    task = Task(id="t", prompt=[{"role": "user", "content": "ab?"}])
    text = chat.tokenizer.decode(ChatCalls(chat, [Lookup(), Adder()]).prompt(task))
    assert text.startswith('<|im_start|>system\n{"type": "function", "function": {"name": "look", ')
    assert '"required": ["a", "b"]' in text
    assert text.endswith("<|im_start|>user\nab?<|im_end|>\n<|im_start|>assistant\n")


def test_tags_that_the_tokenizer_cannot_write_and_tools_that_tags_cannot_call_are_told(chat: Policy) -> None:
    letters = tiny_policy("abcdefghijklmnopqrstuvwxyz", seed=0, width=16, layers=1)
    with pytest.raises(ValueError, match="reads '<look>' back as 'look'"):
        TagCalls(letters, [Lookup()], before="a", after="b")
    with pytest.raises(ValueError, match="'add' takes more than one text"):
        TagCalls(chat, [Adder()], before="a", after="b")
    special = chat_policy()
    special.tokenizer.add_tokens(["<tool_call>"], special_tokens=True)
    with pytest.raises(ValueError, match="reads '<tool_call>' back as ''"):
        ChatCalls(special, [Lookup()])


PUBLISHED = {
    "qwen2_5": "",
    "qwen3": "",
    "qwen3_instruct_2507": "",
    "qwen3_5_think": "writes calls in another form",
    "nemotron_3_nano": "writes calls in another form",
    "gemma3": "does not tell the model what tools there are",
    "llama3_1": "writes calls in another form",
}
"""Templates of published models, which TRL brings, and what is wrong with them; "" for those of this style."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_templates_are_taken_or_refused_with_the_reason(name: str) -> None:
    from importlib.resources import files

    template = files("trl").joinpath(f"chat_templates/{name}.jinja").read_text(encoding="utf-8")
    policy = chat_policy(template)
    if PUBLISHED[name]:
        with pytest.raises(ValueError, match=PUBLISHED[name]):
            ChatCalls(policy, [Lookup()])
        return
    asked = [{"role": "user", "content": "ab?"}]
    said = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "look", "arguments": {"key": "a"}}}],
    }
    told = [{"role": "tool", "content": text} for text in ("17", "28")]
    tools = [{"type": "function", "function": {"name": "look"}}]
    whole = policy.tokenizer.apply_chat_template(
        [*asked, said, *told], tools=tools, tokenize=False, add_generation_prompt=True
    )
    written = policy.tokenizer.decode(ChatCalls(policy, [Lookup()]).answered(["17", "28"]))
    assert whole.endswith(f"</tool_call><|im_end|>{written}")
