"""Turns of a chat that others write between the policy's: how a template writes them, and calls of tools.

Calls are `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` in the assistant's turn, as Hermes and Qwen models
write them, and answers turns of the role "tool".  What stands around the turns of tools and users is what the model's
chat template puts there, found out once with a chat that is made up for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.protocol import Message
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.calls import Call, broken_up, check_writable, plain_tokens
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.tool import Tool

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BLOCK = re.compile(rf"{_OPEN}(.*?)(?:{_CLOSE}|\Z)", re.DOTALL)
_ROLE_MARKS = (_OPEN, _CLOSE, "<tool_response>", "</tool_response>")


class Turns:
    """Turns of a role that somebody else writes, in a chat that goes on behind them; here nothing is called.

    Attributes:
        stops: texts that end a piece.
        tokens: makes tokens of chats.

    Raises:
        ValueError: the policy has no chat template, or one that such a dialogue cannot be written with.
    """

    stops: tuple[str, ...] = ()
    tokens: PromptTokens

    def __init__(self, policy: Policy, role: Literal["tool", "user"]) -> None:
        self._policy = policy
        self.tokens = policy.tokens
        around = _around(policy, role)
        self._head, self._between, self._tail = map(policy.tokens.text, around)
        # Of templates that name roles in plain words, such as "user: ", these lines are what must not be forged.
        headers = {line.strip() for text in around for line in text.splitlines() if len(line.strip()) > 3}
        self._marks = (*_ROLE_MARKS, *policy.tokens.special_tokens, *sorted(headers))

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return a task's prompt as tokens."""
        return self._policy.encode(task)

    def calls(self, text: str, *, ended: bool) -> tuple[Call, ...]:
        """Return the calls of a turn, once it has ended."""
        return ()

    def shown(self, text: str) -> str:
        """Return a text with everything broken up that reads as a call, a special token or a turn's head."""
        return broken_up(text, self._marks)

    def answered(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of the others' turns, up to where the assistant's next one begins."""
        tokens = list(self._head)
        for place, text in enumerate(texts):
            tokens += [*(self._between if place else ()), *plain_tokens(self._policy, text)]
        return [*tokens, *self._tail]


class ChatCalls(Turns):
    """Reads and answers calls in turns.

    Raises:
        ValueError: the policy has no chat template, or one that such a dialogue cannot be written with.
    """

    def __init__(self, policy: Policy, tools: Sequence[Tool]) -> None:
        schemas: list[dict[str, Any]] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
            }
            for tool in tools
        ]
        told = PromptTokens(
            policy.tokenizer,
            model=policy.name,
            window=policy.tokens.window,
            options={**policy.chat_template_kwargs, "tools": schemas},
        )
        check_writable(policy, (_OPEN, _CLOSE))
        asked: Message = {"role": "user", "content": "-"}
        if _text(policy.tokens, [asked]) == _text(told, [asked]):
            raise ValueError(
                f"the chat template of {policy.name!r} does not tell the model what tools there are; use one that "
                "writes its variable `tools`, or the style tags, where prompts say it"
            )
        _check_form(policy)
        super().__init__(policy, "tool")
        self.tokens = told

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return a task's chat as tokens, with what the template says of the tools.

        Raises:
            ValueError: the prompt is a text, or the template refuses it.
        """
        if isinstance(task.prompt, str):
            raise ValueError(
                f"the prompt of task {task.id!r} is a text, and tools are called in the style chat; give it as a chat, "
                "or use the style tags"
            )
        (read,) = self.tokens.read([task.prompt])
        if isinstance(read, Fault):
            raise ValueError(f"the prompt of task {task.id!r} cannot be written: {read.detail}")
        return read

    def calls(self, text: str, *, ended: bool) -> tuple[Call, ...]:
        """Return the calls of a turn, once it has ended."""
        return tuple(_call(match) for match in _BLOCK.finditer(text)) if ended else ()


def _around(policy: Policy, role: Literal["tool", "user"]) -> tuple[str, str, str]:
    """What a chat template writes around the texts of tools or a user, found out with made-up dialogues.

    Behind the assistant's end token up to a text, between two tools' texts, and behind the last one up to where the
    assistant goes on.
    """
    said, told = "adjudgesaid", [f'adjudge "told"\n{number}' for number in range(3 if role == "tool" else 1)]
    chat: list[Message] = [{"role": "user", "content": "-"}, {"role": "assistant", "content": said}]
    answers: list[Message] = [{"role": role, "content": text} for text in told]
    behind = [
        _text(policy.tokens, [*chat, *answers[:count]], role, finished=count == 0).rpartition(said)[2]
        for count in range(len(told) + 1)
    ]
    instead = "use another chat template" + (", or the style tags" if role == "tool" else "")
    ends = [policy.tokenizer.decode([token]) for token in policy.ends]
    end = next((text for text in ends if text and all(one.startswith(text) for one in behind)), None)
    if end is None:
        raise ValueError(
            f"the chat template of {policy.name!r} ends the assistant's turn differently when a {role} answers, or "
            f"with none of the tokens that end an answer ({', '.join(sorted(ends))}): it writes {behind[0]!r} and "
            f"{behind[1]!r}; {instead}"
        )
    alone, *more = (_split(text.removeprefix(end), told[:at]) for at, text in enumerate(behind) if at)
    if role == "user":
        earlier: list[Message] = [chat[0], {"role": "assistant", "content": "-"}]
        later = _text(policy.tokens, [*earlier, *chat, *answers], role).rpartition(said)[2].removeprefix(end)
        two, between, alike = alone, "", alone == _split(later, told)
    else:
        two, three = more
        between = two[1] if two else ""
        alike = three is not None and three[1:3] == [between] * 2 and three[::3] == alone and two is not None
    if alone is None or two is None or two[:1] + two[-1:] != alone or not alike:
        raise ValueError(
            f"the chat template of {policy.name!r} does not write what a {role} says as it is, or not in the same "
            f"way each time: it writes {behind[-1]!r}; {instead}"
        )
    return alone[0], between, alone[1]


def _split(text: str, marks: Sequence[str]) -> list[str] | None:
    """The text around marks that stand in it once each, in order."""
    parts = []
    for mark in marks:
        head, separator, text = text.partition(mark)
        if not separator:
            return None
        parts.append(head)
    return None if any(mark in text for mark in marks) else [*parts, text]


def _check_form(policy: Policy) -> None:
    """Reject a template that writes calls in another form; one that writes none is none."""
    call = Call(tool="adjudgetool", arguments={"adjudgekey": "-"})
    function = {"name": call.tool, "arguments": dict(call.arguments)}
    turn: Message = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]}
    text = policy.tokens.rendered([{"role": "user", "content": "-"}, turn], finished=True)
    if isinstance(text, str) and call.tool in text and call not in map(_call, _BLOCK.finditer(text)):
        raise ValueError(
            f"the chat template of {policy.name!r} writes calls in another form than {_OPEN} with JSON, and so will "
            f"its model: {text!r}; use another model, or the style tags"
        )


def _text(tokens: PromptTokens, chat: Sequence[Message], role: str = "tool", *, finished: bool = False) -> str:
    rendered = tokens.rendered(chat, finished=finished)
    if isinstance(rendered, Fault):
        raise ValueError(
            f"{rendered.detail}; a template is needed that takes turns of the role {role} behind the assistant's"
        )
    return rendered


def _call(block: re.Match[str]) -> Call:
    if not block[0].endswith(_CLOSE):
        return Call(problem="the call is not closed by its tag")
    try:
        record = json.loads(block[1])
    except (ValueError, RecursionError) as error:
        return Call(problem=f"the call is not JSON: {error}")
    if not isinstance(record, dict) or not isinstance(record.get("name"), str):
        return Call(problem='the call has no name; write {"name": "...", "arguments": {...}}')
    arguments = record.get("arguments", {})
    if not isinstance(arguments, dict):
        return Call(problem=f"the call's arguments are a {type(arguments).__name__}; they must be a JSON object")
    return Call(tool=record["name"], arguments=arguments)
