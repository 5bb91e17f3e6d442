"""Tool calls: of the `tool_calls` of a chat turn, and written as JSON in a tag.

A call is `{"name": .., "arguments": {..}}`; the arguments may be JSON text themselves, as the OpenAI form has them,
and may be called `parameters`.  What a model wrote wrongly is a call with a `fault`; what a rollout recorded wrongly
is a `ValueError`.

Not covered: whether a tool has such arguments, and calls written as Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.responses.trajectories.json_text import read_json
from adjudge.responses.trajectories.trajectory import Block, Call


def call_in(block: Block) -> Call:
    """Return the call that a block holds."""
    data, fault = read_json(block.text)
    if not fault and not isinstance(data, dict):
        fault = "it is no JSON object"
    if fault:
        return Call(name="", arguments=block.text, start=block.start, end=block.end, fault=fault)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        return Call(name="", arguments=block.text, start=block.start, end=block.end, fault="it has no name")
    key = "parameters" if "parameters" in data and "arguments" not in data else "arguments"
    arguments, fault = _arguments(data.get(key))
    return Call(name=name, arguments=arguments, start=block.start, end=block.end, fault=fault)


def calls_of(turn: Mapping[str, Any], where: str, start: int, end: int) -> list[Call]:
    """Return the calls that a chat turn carries in `tool_calls`.

    Args:
        turn: the message.
        where: its name in an error message.
        start: the first character of its text.
        end: one past the last.

    Raises:
        ValueError: the field is not what the OpenAI form says.
    """
    given = turn.get("tool_calls")
    if given is None:
        return []
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise ValueError(f"{where}: tool_calls is a {type(given).__name__}; give a list of calls")
    return [_recorded(one, f"{where}, tool_calls[{at}]", start, end) for at, one in enumerate(given)]


def _recorded(given: Any, where: str, start: int, end: int) -> Call:
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ValueError(f'{where}: it must be {{"id": .., "function": {{"name": .., "arguments": ..}}}}')
    identity = given.get("id")
    if identity is not None and not isinstance(identity, str):
        raise ValueError(f"{where}: its id is {identity!r}; it must be a text")
    written = function.get("arguments")
    if written is not None and not isinstance(written, str | Mapping):
        raise ValueError(f"{where}: arguments is a {type(written).__name__}; give JSON text or a mapping")
    arguments, fault = _arguments(written)
    return Call(name=function["name"], arguments=arguments, id=identity or "", start=start, end=end, fault=fault)


def _arguments(written: Any) -> tuple[Any, str]:
    if written is None:
        return {}, ""
    if isinstance(written, Mapping):
        return dict(written), ""
    if not isinstance(written, str):
        return written, "its arguments are no JSON object"
    if not written.strip():
        return {}, ""
    data, fault = read_json(written)
    if fault:
        return written, f"its arguments: {fault}"
    return (data, "") if isinstance(data, dict) else (written, "its arguments are no JSON object")
