"""A trajectory as scorers read it: the assistant's turns, the blocks and calls in them, and what tools returned.

`TrajectoryForm` says how an agent writes its turns: the names of its tags and tools, and who says what a tool wrote.
Every `start` and `end` counts characters of `adjudge.protocol.response_text(sample)`, as a `StepScore` does: for chat
turns the assistant's texts joined by a newline, for flat text the whole string.

Not covered: the order of tags, and what a turn is worth, which scorers say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal, Protocol, Self

from adjudge.protocol import StepScore

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
            raise ValueError(f"form option tool_text={self.tool_text!r}; it must be one of spans, tags")

    @property
    def tags(self) -> tuple[str, ...]:
        """The names of all tags that are read."""
        named = (self.search, self.result, self.answer, self.judge, self.think, self.tool_call)
        return (*(name for name in named if name), *self.more)

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the form that an option gives: a form, or a mapping of its fields."""
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
    """Return the form that an option of the scorer `name` gives as plain data with every field."""
    try:
        return asdict(TrajectoryForm.of(given))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One tagged block that the assistant wrote, such as `<search>..</search>`, and its place with the tags.

    The tag is without brackets, and the text without blanks around it.
    """

    tag: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of an assistant turn, and the place of its block, or of the message that carries it.

    Attributes:
        name: the tool's name; "" if it cannot be read.
        arguments: the parsed JSON object; the text as it was written if there is a `fault`.
        id: the call's id, "" without one.
        fault: why the call cannot be read; "" if it can.
    """

    name: str
    arguments: Any
    id: str = ""
    start: int
    end: int
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document that a tool returned; `title` is "" if the tool gave none."""

    title: str = ""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one tool call returned, without the result tags of flat text, and the documents that it lists.

    The tool's name and the id of the call are "" if unknown.  There is one document without a title where no list can
    be read, and none if the text is blank.  `ok` is false where a chat turn says `"ok": false`, as the trainer's
    do of calls that tools refuse.
    """

    text: str
    name: str = ""
    call_id: str = ""
    ok: bool = True
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An assistant's text up to where a tool or a user speaks, its place, and what followed it.

    Attributes:
        text: what the assistant wrote; "" for tool output before any of it.
        blocks: the tagged blocks outside thoughts, and the thoughts themselves, in order.
        calls: its tool calls outside thoughts: the recorded ones, and those in its text that are not these again.
        recorded: the calls that its messages carry beside the text.
        results: what tools returned, in order.
        forged: blocks with the tag of tool results that the assistant itself wrote; they are not results.
        replies: what a user said, in order.
    """

    text: str
    start: int
    end: int
    blocks: tuple[Block, ...] = ()
    calls: tuple[Call, ...] = ()
    recorded: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    forged: tuple[Block, ...] = ()
    replies: tuple[str, ...] = ()

    def tagged(self, tag: str) -> tuple[Block, ...]:
        """Return the turn's blocks of one tag."""
        return tuple(block for block in self.blocks if block.tag == tag)

    def outside(self, tag: str) -> list[tuple[int, str]]:
        """Return what the turn says outside its blocks of one tag, in pieces with their starts."""
        covered = [(self.start, self.start), *((block.start, block.end) for block in self.tagged(tag)), (self.end, 0)]
        places = [(end, start) for (_, end), (start, _) in pairwise(covered)]
        return [(start, self.text[start - self.start : end - self.start]) for start, end in places]

    @property
    def acted(self) -> bool:
        """Whether the assistant did anything; what tools or users said before its first turn has none of it."""
        return bool(self.text.strip() or self.calls)

    @property
    def heard(self) -> tuple[str, ...]:
        """What users and tools said in reply."""
        return (*self.replies, *(result.text for result in self.results))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The turns of a response, and the text that all spans count in."""

    turns: tuple[Turn, ...]
    text: str

    @property
    def written(self) -> int:
        """How many characters the assistant wrote."""
        return sum(len(turn.text) for turn in self.turns)

    def blocks(self, tag: str) -> tuple[Block, ...]:
        """Return all blocks of one tag, in order."""
        return tuple(block for turn in self.turns for block in turn.blocks if block.tag == tag)

    def calls(self) -> tuple[Call, ...]:
        """Return all tool calls, in order."""
        return tuple(call for turn in self.turns for call in turn.calls)

    def forged(self) -> tuple[Block, ...]:
        """Return all result blocks that the assistant wrote itself, in order."""
        return tuple(block for turn in self.turns for block in turn.forged)

    def written_after(self, position: int) -> str:
        """Return what the assistant wrote from `position` on; text of tools is left out."""
        return "".join(turn.text[max(0, position - turn.start) :] for turn in self.turns if turn.end > position)


class Place(Protocol):
    """Something that stands in the assistant's text, such as a turn, a block or a call."""

    @property
    def start(self) -> int:
        """Its first character."""
        ...

    @property
    def end(self) -> int:
        """One past its last."""
        ...


def steps_at(places: Iterable[Place], values: Iterable[float | None], labels: Iterable[str]) -> tuple[StepScore, ...]:
    """Return a step for each place, with its value and its label."""
    return tuple(
        StepScore(value=value, label=label, start=place.start, end=place.end)
        for place, value, label in zip(places, values, labels, strict=True)
    )
