"""Which tools a policy may call, as a run's configuration says it."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast

from adjudge.rl_integration.trainer.rollouts.tools.tool import Tool
from adjudge.training.config_file import config_of

_KNOWN = {
    "python": "adjudge.rl_integration.trainer.rollouts.tools.python_tool:PythonTool",
    "search": "adjudge.rl_integration.trainer.rollouts.tools.search_tool:SearchTool",
    "sql": "adjudge.rl_integration.trainer.rollouts.tools.sql_tool:SqlTool",
}


@dataclass(frozen=True, kw_only=True)
class ToolChoice:
    """One tool.

    Attributes:
        kind: python, search or sql, or your own as "module:object": a tool, or a dataclass of one.
        options: the fields of its class; "name" is what it is called by.
    """

    shorthand: ClassVar[str] = "kind"

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in _KNOWN and ":" not in self.kind:
            raise ValueError(
                f"the tool {self.kind!r} is unknown; give one of {', '.join(_KNOWN)}, or your own as module:object"
            )

    def opened(self) -> Tool:
        """Return the tool.

        Raises:
            ValueError: it cannot be found, or its options do not fit.
        """
        module, _, name = _KNOWN.get(self.kind, self.kind).partition(":")
        try:
            found: Any = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"the tool {self.kind!r} cannot be imported: {error}") from error
        if isinstance(found, type):
            if not dataclasses.is_dataclass(found):
                raise ValueError(f"the tool {self.kind!r} is a class and no dataclass; name a dataclass, or an object")
            return cast("Tool", config_of(found, dict(self.options), f"the tool {self.kind}"))
        if self.options:
            raise ValueError(f"the tool {self.kind!r} is an object, which takes no options; name its class instead")
        return cast("Tool", found)


@dataclass(frozen=True, kw_only=True)
class ToolUse:
    """How a policy calls tools.

    Attributes:
        offered: what there is to call.
        style: how calls are written: "chat" in turns of a chat, as the chat template has it; "tags" within the text.
        max_turns: pieces that the policy may write; a call in the last one is not answered, and the answer counts as
            cut off.
        before: for tags: text before a tool's result.
        after: for tags: text after it.
        threads: calls that run at one time.
        timeout: seconds that a call may take; after those the tool counts as down.
    """

    shorthand: ClassVar[str] = "offered"

    offered: tuple[ToolChoice, ...]
    style: Literal["chat", "tags"] = "chat"
    max_turns: int = 4
    before: str = "<result>"
    after: str = "</result>"
    threads: int = 8
    timeout: float = 300.0

    def __post_init__(self) -> None:
        if not self.offered:
            raise ValueError("rollouts.tools.offered is empty; name a tool, or leave rollouts.tools out")
        if self.style not in ("chat", "tags"):
            raise ValueError(f"rollouts.tools.style is {self.style!r}; give chat or tags")
        for option in ("max_turns", "threads"):
            if getattr(self, option) < 1:
                raise ValueError(f"rollouts.tools.{option} is {getattr(self, option)!r}; it must be at least 1")
        if not 0 < self.timeout < float("inf"):
            raise ValueError(f"rollouts.tools.timeout is {self.timeout!r}; it must be above 0 seconds")
