"""Runs calls in threads of its own, while the policy writes on.

Not covered: limits on what a call may use; each tool keeps its own.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeAlias

from adjudge.rl_integration.trainer.rollouts.tools.arguments import objection
from adjudge.rl_integration.trainer.rollouts.tools.calls import Call
from adjudge.rl_integration.trainer.rollouts.tools.tool import Tool, ToolAnswer, ToolDown

_Queue: TypeAlias = "SimpleQueue[tuple[Future[list[ToolAnswer]], Sequence[Call]] | None]"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class Toolbox:
    """Tools by their names.

    Args:
        tools: what may be called.
        threads: calls that run at one time.

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
            self._start()
        found: Future[list[ToolAnswer]] = Future()
        self._calls.put((found, calls))
        return found

    def _start(self) -> None:
        self._started = True
        for number in range(self._threads):
            # Daemons: a tool that hangs must not keep the program from ending.
            threading.Thread(
                target=_serve, args=(self._calls, self._tools), name=f"adjudge-tools-{number}", daemon=True
            ).start()
        weakref.finalize(self, _end, self._calls, self._threads)


def _serve(queue: _Queue, tools: Mapping[str, Tool]) -> None:
    """What a thread does; it does not know the toolbox, so that one nobody uses any more ends its threads."""
    while (asked := queue.get()) is not None:
        found, calls = asked
        try:
            found.set_result([_answer(tools, call) for call in calls])
        except BaseException as error:  # noqa: BLE001 whatever it is, it belongs to who waits for the answers
            found.set_exception(error)


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
