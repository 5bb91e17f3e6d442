"""What others say between the turns of a policy: calls of tools in tags or in a chat, who runs them, and users' turns.

In tags a tool is called by its name (`<search>who wrote Faust</search>`); what stands in it is the one text that the
tool takes.  A piece ends with the closing tag, so nothing that the policy makes up can stand in a result's place.

In a chat calls are `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` in the assistant's turn, as Hermes and
Qwen models write them, and answers turns of the role "tool".  What stands around the turns of tools and users is what
the model's chat template puts there, found out once with a chat that is made up for it.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias

from adjudge.engines.interface import Fault
from adjudge.engines.prompt_tokens import PromptTokens
from adjudge.prompts.escaping import BREAK
from adjudge.protocol import Message
from adjudge.rl_integration.trainer.data.task import Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.tool import Tool, ToolAnswer, ToolDown, objection, only_text

_UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool.

    Attributes:
        tool: its name; "" where it cannot be read.
        arguments: for the tool.
        problem: why it cannot be read, for the policy to read; "" if it can.
    """

    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def broken_up(text: str, marks: Sequence[str]) -> str:
    """Return a text with a dot within each mark, in capitals or not, and without characters that are not text."""
    known = sorted({mark for mark in marks if len(mark) > 1}, key=lambda mark: (-len(mark), mark))
    readable = _UNREADABLE.sub("\ufffd", text.replace("\r\n", "\n"))
    if not known:
        return readable
    # A look ahead finds marks that overlap, too.
    pattern = re.compile(f"(?=(?:{'|'.join(map(re.escape, known))}))[\\s\\S]", re.IGNORECASE)
    return pattern.sub(lambda match: match[0] + BREAK, readable)


def plain_tokens(policy: Policy, text: str) -> list[int]:
    """Return the tokens of somebody's text; what is spelled like a special token becomes ordinary ones."""
    return list(policy.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])


def check_writable(policy: Policy, marks: Sequence[str]) -> None:
    """Reject marks that do not survive the policy's tokenizer.

    Raises:
        ValueError: tokens of a mark are not read as that mark.
    """
    for mark in marks:
        decoded = policy.decode(policy.tokens.text(mark))
        if decoded.strip() != mark.strip():
            raise ValueError(
                f"the tokenizer of {policy.name!r} reads {mark!r} back as {decoded!r}, so it would never be "
                "seen in an answer; take another text, or another style of calls"
            )


class TagCalls:
    """Reads and answers calls in tags.

    Attributes:
        stops: texts that end a piece.

    Raises:
        ValueError: a tool takes more than one text, or the tokenizer cannot write a tag.
    """

    def __init__(self, policy: Policy, tools: Sequence[Tool], *, before: str, after: str) -> None:
        self._policy = policy
        self.tokens = policy.tokens
        self._arguments: dict[str, str] = {}
        for tool in tools:
            argument = only_text(tool.parameters)
            if argument is None:
                raise ValueError(
                    f"the tool {tool.name!r} takes more than one text, and a tag holds one text; use the style chat"
                )
            self._arguments[tool.name] = argument
        self.stops = tuple(f"</{name}>" for name in self._arguments)
        opening = tuple(f"<{name}>" for name in self._arguments)
        check_writable(policy, [*opening, *self.stops, before, after])
        self._before, self._after = policy.tokens.text(before), policy.tokens.text(after)
        self._marks = (*opening, *self.stops, before.strip(), after.strip(), *policy.tokens.special_tokens)
        self._closing = re.compile("|".join(f"</({re.escape(name)})>" for name in self._arguments))

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return a task's prompt as tokens."""
        return self._policy.encode(task)

    def calls(self, text: str, *, ended: bool) -> tuple[Call, ...]:
        """Return the call that the piece closes; none ends the answer."""
        closed = self._closing.search(text)
        if closed is None:
            return ()
        name = closed[0][2:-1]
        begin = text.rfind(f"<{name}>", 0, closed.start())
        if begin < 0:
            return (Call(problem=f"the tag that closes {name} was never opened, so there is nothing to call it with"),)
        return (Call(tool=name, arguments={self._arguments[name]: text[begin + len(name) + 2 : closed.start()]}),)

    def shown(self, text: str) -> str:
        """Return a tool's text with everything broken up that reads as a tag or as a special token."""
        return broken_up(text, self._marks)

    def answered(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens that follow a piece with a call, up to where the policy goes on."""
        (text,) = texts
        return [*self._before, *plain_tokens(self._policy, text), *self._after]


_Queue: TypeAlias = "SimpleQueue[tuple[Future[list[ToolAnswer]], Sequence[Call]] | None]"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Toolbox:
    """Tools by their names.

    Raises:
        ValueError: there are none, two have one name, or a name is none.
    """

    def __init__(self, tools: Sequence[Tool], *, threads: int) -> None:
        if not tools:
            raise ValueError("there are no tools to call; name at least one (rollouts.tools)")
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if not _NAME.fullmatch(tool.name):
                raise ValueError(f"the tool's name {tool.name!r} must be letters, digits and underscores, at most 64")
            if tool.name in self._tools:
                raise ValueError(f"two tools have the name {tool.name!r}; give one of them another name")
            self._tools[tool.name] = tool
        self._calls: _Queue = SimpleQueue()
        self._threads = threads
        self._started = False

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What there is."""
        return tuple(self._tools.values())

    def ask(self, calls: Sequence[Call]) -> Future[list[ToolAnswer]]:
        """Have calls answered one after the other, and return at once.

        The answers, in order, or `ToolDown`, are in what is returned.
        """
        if not self._started:
            self._started = True
            for number in range(self._threads):
                # Daemons: a tool that hangs must not keep the program from ending.
                threading.Thread(
                    target=_serve, args=(self._calls, self._tools), name=f"adjudge-tools-{number}", daemon=True
                ).start()
            weakref.finalize(self, _end, self._calls, self._threads)
        future: Future[list[ToolAnswer]] = Future()
        self._calls.put((future, calls))
        return future


def _serve(queue: _Queue, tools: Mapping[str, Tool]) -> None:
    """What a thread does; it does not know the toolbox, so that one nobody uses any more ends its threads."""
    while (asked := queue.get()) is not None:
        future, calls = asked
        try:
            future.set_result([_answer(tools, call) for call in calls])
        except BaseException as error:  # noqa: BLE001 whatever it is, it belongs to who waits for the answers
            future.set_exception(error)


def _end(queue: _Queue, threads: int) -> None:
    for _ in range(threads):
        queue.put(None)


def _answer(tools: Mapping[str, Tool], call: Call) -> ToolAnswer:
    """What the policy gets to read; a call that cannot be read is answered too."""
    if call.problem:
        return ToolAnswer(text=f"error: {call.problem}", ok=False)
    tool = tools.get(call.tool)
    if tool is None:
        return ToolAnswer(text=f"error: there is no tool {call.tool[:60]!r}; there is {', '.join(tools)}", ok=False)
    if problem := objection(tool.parameters, call.arguments):
        return ToolAnswer(text=f"error: {problem}", ok=False)
    try:
        answer = tool.call(call.arguments)
    except ToolDown:
        raise
    except Exception as error:
        raise ToolDown(f"the tool {tool.name!r} raised {type(error).__name__}: {error}") from error
    if not (isinstance(answer, ToolAnswer) and isinstance(answer.text, str)):
        raise TypeError(f"the tool {tool.name!r} returned {answer!r}; it must return a ToolAnswer of a text")
    return answer


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
