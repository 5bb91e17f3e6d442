"""Calls reach the tool that they name, with the arguments that it takes, or are answered with what is wrong."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.rl_integration.trainer.rollouts.small_tools import Adder, Lookup

from adjudge.rl_integration.trainer.rollouts.calls import Call, Toolbox
from adjudge.rl_integration.trainer.rollouts.rollouts_config import RolloutsConfig
from adjudge.rl_integration.trainer.rollouts.sql_tool import SqlTool
from adjudge.rl_integration.trainer.rollouts.tool import ToolAnswer, ToolChoice, ToolUse, objection, shortened
from adjudge.training.config_file import config_of, plain_config


def answers(*calls: Call) -> list[ToolAnswer]:
    return Toolbox([Lookup(), Adder()], threads=2).ask(calls).result(20.0)


def test_calls_are_answered_in_order() -> None:
    found = answers(
        Call(tool="add", arguments={"a": 2, "b": 3}),
        Call(tool="look", arguments={"key": "ab"}),
        Call(problem="the call is not JSON"),
        Call(tool="rm"),
        Call(tool="add", arguments={"a": 2}),
    )
    assert found == [
        ToolAnswer(text="5"),
        ToolAnswer(text="17"),
        ToolAnswer(text="error: the call is not JSON", ok=False),
        ToolAnswer(text="error: there is no tool 'rm'; there is look, add", ok=False),
        ToolAnswer(text="error: the argument 'b' is missing; it takes a, b", ok=False),
    ]


def test_a_toolbox_that_nobody_uses_any_more_ends_its_threads() -> None:
    toolbox = Toolbox([Lookup(name="unused")], threads=3)
    toolbox.ask([Call(tool="unused", arguments={"key": "ab"})]).result(20.0)
    mine = [thread for thread in threading.enumerate() if thread.name.startswith("adjudge-tools")][-3:]
    del toolbox
    gc.collect()
    for thread in mine:
        thread.join(20.0)
    assert not any(thread.is_alive() for thread in mine)


SCHEMA: Mapping[str, Any] = {
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "fast": {"type": "boolean"},
        "list": {"type": "array"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "any": {},
    },
    "required": ["text"],
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": "x"}, ""),
        ({"text": "x", "count": 3, "share": 0.5, "fast": True, "list": [1], "kind": "a", "any": None}, ""),
        ({"text": "x", "share": 1}, ""),
        ({}, "'text' is missing"),
        ({"text": 3}, "'text' is of the type int; it must be a JSON string"),
        ({"text": "x", "count": True}, "'count' is of the type bool"),
        ({"text": "x", "count": 1.5}, "'count' is of the type float"),
        ({"text": "x", "list": {}}, "'list' is of the type dict"),
        ({"text": "x", "kind": "c"}, "'kind' must be one of a, b"),
        ({"text": "x", "y" * 99: 1}, "there is no argument '" + "y" * 60 + "'"),
    ],
)
def test_arguments_are_held_against_the_schema(arguments: dict[str, Any], words: str) -> None:
    found = objection(SCHEMA, arguments)
    assert words in found if words else not found


@pytest.mark.parametrize(
    ("tools", "words"),
    [([], "there are no tools"), ([Lookup(), Lookup()], "two tools"), ([Lookup(name="a b")], "'a b' must be")],
)
def test_names_of_tools_are_words_and_differ(tools: list[Lookup], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Toolbox(tools, threads=1)


def test_a_long_text_keeps_its_ends() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefghij", 5) == "abc\n... 5 characters left out ...\nij"
    assert shortened("abc", 1) == "a\n... 2 characters left out ...\n"


HERE = "tests.rl_integration.trainer.rollouts.test_toolbox"
READY = Adder(name="ready")


@dataclass(frozen=True, kw_only=True)
class Greeting(Lookup):
    """A tool of a user's own."""

    word: str = "hello"


class Bare:
    """No dataclass."""


def test_a_configuration_names_tools(tmp_path: Path) -> None:
    database = tmp_path / "a.sqlite"
    database.touch()
    use = config_of(
        ToolUse,
        ["python", {"kind": "sql", "options": {"database": str(database), "max_rows": 7}}, f"{HERE}:READY"],
    )
    assert use == config_of(ToolUse, plain_config(use))
    python, sql, ready = [choice.opened() for choice in use.offered]
    assert python.name == "python"
    assert sql == SqlTool(database=str(database), max_rows=7)
    assert ready is READY
    greeting = ToolChoice(kind=f"{HERE}:Greeting", options={"word": "hi", "name": "greet"}).opened()
    assert greeting == Greeting(word="hi", name="greet")
    record: dict[str, Any] = {"tools": {"offered": ["python"], "style": "tags", "max_turns": 2}}
    assert config_of(RolloutsConfig, record).tools == ToolUse(
        offered=(ToolChoice(kind="python"),), style="tags", max_turns=2
    )


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([], "offered is empty"),
        (["pyton"], "'pyton' is unknown; give one of python, search, sql"),
        ({"offered": ["python"], "style": "xml"}, "style is 'xml'"),
        ({"offered": ["python"], "max_turns": 0}, "max_turns=0"),
        ({"offered": ["python"], "threads": 0}, "threads=0"),
        ({"offered": ["python"], "timeout": 0}, "timeout=0"),
    ],
)
def test_a_configuration_that_cannot_be_meant_is_told(record: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config_of(ToolUse, record)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("sql", {}, "the tool sql.database' is missing"),
        ("python", {"second": 3}, r"unknown option 'the tool python.second' \(did you mean 'the tool python.seconds'"),
        ("nowhere_at_all:Tool", {}, "cannot be imported: No module"),
        (f"{HERE}:Nothing", {}, "cannot be imported"),
        (f"{HERE}:READY", {"a": 1}, "is an object, which takes no options"),
        (f"{HERE}:Bare", {}, "is a class and no dataclass"),
    ],
)
def test_a_tool_that_cannot_be_opened_is_told(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ToolChoice(kind=kind, options=options).opened()
