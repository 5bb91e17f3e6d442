"""OpenAI's Responses objects as chat turns.

What the model reasoned stands beside its next message (`reasoning_content`), and is not part of the text that is
judged. Calls of tools become `tool_calls`, and their results turns of the tool.

Not covered: images and sounds, which are passed on as they are, and tools that the provider runs itself, whose items
become turns of the tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge.rl_integration.server.base.errors import bad_request

Turn = dict[str, Any]


VERDICT = frozenset(
    "reward reward_components mask_sample failure_kind failure_reason _ng_failure_class _ng_failure_judge_error".split()
)
"""Fields of a rollout that an earlier verdict left, which the next one does not keep."""


def masked(row: Mapping[str, Any], measured: bool) -> dict[str, Any]:
    """Return what keeps a rollout out of a loss, or in it: Gym's own `mask_sample`, and the one that NeMo RL reads.

    NeMo RL reads `instance_config.mask_sample`, in which an agent may have said so itself; that stays.  A row that was
    masked here before and is verified again is not an agent's word.
    """
    given = row.get("instance_config")
    config = dict(given) if isinstance(given, Mapping) else {}
    if row.get("mask_sample") is True:
        config.pop("mask_sample", None)
    if not measured:
        config["mask_sample"] = True
    return {"mask_sample": not measured, **({"instance_config": config} if config or given is not None else {})}


def prompt_of(params: Mapping[str, Any]) -> str | list[Turn]:
    """Return what `responses_create_params` asked: its input, after its instructions.

    Raises:
        HttpError: 422, there is no input.
    """
    given, instructions = params.get("input"), params.get("instructions")
    if isinstance(given, str) and not instructions:
        return given
    turns = [{"role": "user", "content": given}] if isinstance(given, str) else turns_of(given, "input")
    return [{"role": "system", "content": str(instructions)}, *turns] if instructions else turns


def response_of(response: Mapping[str, Any]) -> str | list[Turn]:
    """Return what a Responses object holds: a text, where it is one message and no more, else turns.

    Raises:
        HttpError: 422, it has no output.
    """
    turns = turns_of(response.get("output"), "response.output")
    if len(turns) == 1 and set(turns[0]) == {"role", "content"} and isinstance(turns[0]["content"], str):
        return str(turns[0]["content"])
    return turns


def finish_reason_of(response: Mapping[str, Any]) -> str | None:
    """Return why the model stopped: "length" when it was cut off, which Gym's own models say without a status."""
    if response.get("status") == "completed":
        return "stop"
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    if reason is None:
        return "length" if response.get("status") == "incomplete" else None
    return "length" if reason == "max_output_tokens" else str(reason)


def turns_of(items: Any, name: str) -> list[Turn]:
    """Return the turns that a list of items makes.

    Raises:
        HttpError: 422, they are not a list of objects.
    """
    if not isinstance(items, list):
        raise bad_request(f"{name} must be a list of items; it is {_kind(items)}")
    turns: list[Turn] = []
    reasoning = ""
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise bad_request(f"{name}.{index} must be an object; it is {_kind(item)}")
        if item.get("type") == "reasoning":
            reasoning += _text([*_parts(item.get("summary")), *_parts(item.get("content"))], "\n")
            continue
        turn = _turn(item)
        if reasoning and turn["role"] == "assistant":
            turn["reasoning_content"], reasoning = reasoning, ""
        turns.append(turn)
    if reasoning:  # it ended while it was still thinking
        turns.append({"role": "assistant", "content": "", "reasoning_content": reasoning})
    return turns


def _turn(item: Mapping[str, Any]) -> Turn:
    match item.get("type", "message"):
        case "message":
            return {"role": str(item.get("role", "assistant")), "content": _content(item.get("content"))}
        case "function_call":
            called = {"name": str(item.get("name", "")), "arguments": str(item.get("arguments", ""))}
            call = {"id": str(item.get("call_id", "")), "type": "function", "function": called}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
        case "function_call_output":
            told = item.get("output")
            content = told if isinstance(told, str) else json.dumps(told)
            return {"role": "tool", "tool_call_id": str(item.get("call_id", "")), "content": content}
        case _:
            return {"role": "tool", "content": json.dumps(dict(item))}


def _content(content: Any) -> str | list[Any]:
    if isinstance(content, str):
        return content
    parts = _parts(content)
    if all(isinstance(part.get("text", part.get("refusal")), str) for part in parts):
        return _text(parts, "")
    return parts


def _parts(content: Any) -> list[Mapping[str, Any]]:
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, Sequence) else []


def _text(parts: Sequence[Mapping[str, Any]], between: str) -> str:
    return between.join(str(part.get("text", part.get("refusal", ""))) for part in parts)


def _kind(value: Any) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"
