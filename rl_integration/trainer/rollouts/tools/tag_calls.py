"""Calls within the text: `<search>who wrote Faust</search>`, answered by `<result>...</result>`, and on it goes.

A tool is called by its name as a tag; what stands in it is the one text that the tool takes.  A piece ends with the
closing tag, so nothing that the policy makes up can stand in a result's place.  Prompts must say what there is.

Not covered: several calls at once, and tools of several arguments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy
from adjudge.rl_integration.trainer.rollouts.tools.arguments import only_text
from adjudge.rl_integration.trainer.rollouts.tools.calls import Call, broken_up, check_writable, plain_tokens
from adjudge.rl_integration.trainer.rollouts.tools.tool import Tool


class TagCalls:
    """Reads and answers calls in tags.

    Args:
        policy: whose tokens they are.
        tools: what may be called.
        before: text before a result.
        after: text after it.

    Raises:
        ValueError: a tool takes more than one text, or the tokenizer cannot write a tag.
    """

    def __init__(self, policy: Policy, tools: Sequence[Tool], *, before: str, after: str) -> None:
        self._policy = policy
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
        """Return the call that the piece closes, if it closes one."""
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
        """Return the tokens of the result."""
        (text,) = texts
        return [*self._before, *plain_tokens(self._policy, text), *self._after]
