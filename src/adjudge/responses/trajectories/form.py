"""How an agent writes its turns: the names of its tags and tools, and who says what a tool wrote.

Not covered: the order of the tags; scorers and the `format` scorer judge that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryForm:
    """The names of tags and tools, and how tool text is told from the assistant's.

    Attributes:
        search: the tag of a query.
        result: the tag around what a tool returned.
        answer: the tag of the final answer.
        think: the tag of thoughts, in which no other tag counts; "" if thoughts are to be read like the rest.
        judge: the tag of a judgement on the last result.
        tool_call: the tag of a tool call written as JSON; "" if such calls are ordinary text.
        more: further tags to read.
        search_tools: names of the tools whose calls are searches.
        tool_text: who says what tools wrote in a flat text.  "spans": `Sample.extra["tool_spans"]` does, a list of
            [start, end].  "tags": the result tags do, as in released code; then a policy can write results itself,
            and nothing tells them from real ones.
    """

    search: str = "search"
    result: str = "information"
    answer: str = "answer"
    think: str = "think"
    judge: str = "judge"
    tool_call: str = "tool_call"
    more: tuple[str, ...] = ()
    search_tools: tuple[str, ...] = ("search",)
    tool_text: Literal["spans", "tags"] = "spans"

    def __post_init__(self) -> None:
        """Reject names that are no tag names, and a name that stands for two tags."""
        for name in ("more", "search_tools"):
            given = getattr(self, name)
            if not isinstance(given, list | tuple) or not all(isinstance(one, str) and one for one in given):
                raise ValueError(f"form: {name} is {given!r}; give a list of names")
            object.__setattr__(self, name, tuple(given))
        for field in ("search", "result", "answer", "judge"):
            if not getattr(self, field):
                raise ValueError(f"form: {field} is {getattr(self, field)!r}; name the tag")
        names = self.tags
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise ValueError(f"form: {name!r} is not a tag name; use letters, digits, '_' and '-'")
        if len(set(names)) < len(names):
            raise ValueError(f"form: one name stands for two tags among {', '.join(names)}; give each its own")
        if self.tool_text not in ("spans", "tags"):
            raise ValueError(f"form: tool_text is {self.tool_text!r}; it must be one of spans, tags")

    @property
    def tags(self) -> tuple[str, ...]:
        """The names of all tags that are read."""
        named = (self.search, self.result, self.answer, self.judge, self.think, self.tool_call)
        return (*(name for name in named if name), *self.more)

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the form that an option gives: a form, or a mapping of its fields.

        Raises:
            ValueError: it is neither, or has a field that no form has.
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise ValueError(f"form is {given!r}; give a mapping, such as {{search: search, result: information}}")
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ValueError(f"form has no field {name!r}; its fields are {', '.join(known)}")
        return cls(**given)


def plain_form(given: Any, name: str) -> dict[str, Any]:
    """Return the form that an option gives as plain data with every field.

    Raises:
        ValueError: it is none; the message begins with the scorer's name.
    """
    try:
        return asdict(TrajectoryForm.of(given))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
