"""Calls of tools: how they stand in what a policy writes, and who runs them while it writes on.

A tool is called by its name as a tag (`<search>who wrote Faust</search>`); what stands in it is the one text that the
tool takes.  A piece ends with the closing tag, so nothing that the policy makes up can stand in a result's place.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, TypeAlias

from adjudge.prompts.escaping import BREAK
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
