"""What a policy can call while it answers, how a call's arguments are checked, and how a configuration names tools.

Not covered: schemas within schemas; a tool looks into its lists and objects itself.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol, cast

from adjudge.options import Count, Options, Range
from adjudge.training.config_file import config_of

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def objection(parameters: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with arguments, for the policy to read; "" if nothing is."""
    properties: Mapping[str, Mapping[str, Any]] = parameters.get("properties", {})
    taken = ", ".join(properties) or "none"
    for name in parameters.get("required", ()):
        if name not in arguments:
            return f"the argument {name!r} is missing; it takes {taken}"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no argument {str(name)[:60]!r}; it takes {taken}"
        wanted = properties[name].get("type")
        if wanted is not None and not _fits(wanted, value):
            return f"the argument {name!r} is of the type {type(value).__name__}; it must be a JSON {wanted}"
        choices = properties[name].get("enum")
        if choices is not None and value not in choices:
            return f"the argument {name!r} must be one of {', '.join(map(str, choices))}"
    return ""


def only_text(parameters: Mapping[str, Any]) -> str | None:
    """Return the name of the one argument that a call must have, if it is a text and there is but one."""
    required = list(parameters.get("required", ()))
    if len(required) != 1:
        return None
    name: str = required[0]
    return name if parameters.get("properties", {}).get(name, {}).get("type") == "string" else None


def _fits(wanted: str, value: Any) -> bool:
    if isinstance(value, bool) and wanted in ("integer", "number"):
        return False
    return isinstance(value, _TYPES.get(wanted, (object,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a tool says to a call.

    Attributes:
        text: for the policy to read; the tool keeps it short, and shows where it was cut.
        ok: whether it is what was asked for; an error that the call is to blame for is not.
    """

    text: str
    ok: bool = True


class ToolDown(Exception):
    """The tool, or the user, could not answer, and who asked is not to blame: that answer cannot be judged."""


class Tool(Protocol):
    """Answers calls.

    The same call has the same answer, and calls may come from several threads at once.
    """

    @property
    def name(self) -> str:
        """What it is called by: letters, digits and underscores."""
        ...

    @property
    def description(self) -> str:
        """What it does, for the policy to read."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of its arguments: an object with properties of simple types."""
        ...

    def call(self, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Answer a call, within limits of its own on time and on the text's length.

        Raises:
            ToolDown: it cannot answer, whatever the arguments.
        """
        ...


def one_text(name: str, description: str) -> dict[str, Any]:
    """Return the JSON schema of a single argument that is text."""
    return {"type": "object", "properties": {name: {"type": "string", "description": description}}, "required": [name]}


def shortened(text: str, max_chars: int) -> str:
    """Return a text of about `max_chars` characters: of a longer one its ends, and how much was left out."""
    left_out = len(text) - max_chars
    if left_out <= 0:
        return text
    head = max_chars - max_chars // 2
    return f"{text[:head]}\n... {left_out} characters left out ...\n{text[len(text) - max_chars // 2 :]}"


_KNOWN = {
    "python": "adjudge.rl_integration.trainer.rollouts.python_tool:PythonTool",
    "search": "adjudge.rl_integration.trainer.rollouts.search_tool:SearchTool",
    "sql": "adjudge.rl_integration.trainer.rollouts.sql_tool:SqlTool",
}


def check_kind(what: str, kind: str, known: Mapping[str, str]) -> None:
    """Raise `ValueError` if a kind is neither known nor of the form module:object."""
    if kind not in known and ":" not in kind:
        raise ValueError(
            f"the {what} {kind!r} is unknown; give one of {', '.join(known)}, or your own as module:object"
        )


def opened(what: str, kind: str, known: Mapping[str, str], options: Mapping[str, Any]) -> Any:
    """Return the object that a kind names, or that a dataclass makes of options; `ValueError` if there is none."""
    module, _, name = known.get(kind, kind).partition(":")
    try:
        made: Any = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"the {what} {kind!r} cannot be imported: {error}") from error
    if isinstance(made, type):
        if not dataclasses.is_dataclass(made):
            raise ValueError(f"the {what} {kind!r} is a class and no dataclass; name a dataclass, or an object")
        return config_of(made, dict(options), f"the {what} {kind}")
    if options:
        raise ValueError(f"the {what} {kind!r} is an object, which takes no options; name its class instead")
    return made


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
        check_kind("tool", self.kind, _KNOWN)

    def opened(self) -> Tool:
        """Return the tool, or raise `ValueError`."""
        return cast("Tool", opened("tool", self.kind, _KNOWN, self.options))


@dataclass(frozen=True, kw_only=True)
class ToolUse(Options, what="rollouts.tools option"):
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
    max_turns: Count = 4
    before: str = "<result>"
    after: str = "</result>"
    threads: Count = 8
    timeout: Annotated[float, Range(gt=0, unit="seconds")] = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.offered:
            raise ValueError("rollouts.tools.offered is empty; name a tool, or leave rollouts.tools out")
