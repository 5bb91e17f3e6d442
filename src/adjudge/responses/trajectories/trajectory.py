"""A trajectory as scorers read it: the assistant's turns, the blocks and calls in them, and what tools returned.

Every `start` and `end` counts characters of `adjudge.protocol.response_text(sample)`, as a `StepScore` does: for chat
turns the assistant's texts joined by a newline, for flat text the whole string.

Not covered: reading (`adjudge.responses.trajectories.reading`), and what a turn is worth, which the scorers say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One tagged block that the assistant wrote, such as `<search>..</search>`.

    Attributes:
        tag: its name, without brackets.
        text: what stands inside, without blanks around it.
        start: first character of the opening tag.
        end: one past the closing tag.
    """

    tag: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of an assistant turn.

    Attributes:
        name: the tool's name; "" if it cannot be read.
        arguments: the parsed JSON object; the text as it was written if there is a `fault`.
        id: the call's id, "" without one.
        start: first character of the block, or of the message that carries the call outside its text.
        end: one past the last.
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
    """What one tool call returned.

    Attributes:
        text: all of it, without the result tags of flat text.
        name: the tool's name, "" if unknown.
        call_id: the id of the call that it answers, "" if unknown.
        documents: what it lists; one without a title where no list can be read; none if the text is blank.
    """

    text: str
    name: str = ""
    call_id: str = ""
    documents: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An assistant's text up to where a tool or a user speaks, and what followed it.

    Attributes:
        text: what the assistant wrote; "" for tool output before any of it.
        start: its first character.
        end: one past its last.
        blocks: the tagged blocks outside thoughts, and the thoughts themselves, in order.
        calls: its tool calls outside thoughts, in order.
        results: what tools returned, in order.
        forged: blocks with the tag of tool results that the assistant itself wrote; they are no results.
        replies: what a user said, in order.
    """

    text: str
    start: int
    end: int
    blocks: tuple[Block, ...] = ()
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    forged: tuple[Block, ...] = ()
    replies: tuple[str, ...] = ()

    def tagged(self, tag: str) -> tuple[Block, ...]:
        """Return the turn's blocks of one tag."""
        return tuple(block for block in self.blocks if block.tag == tag)

    def documents(self) -> tuple[Document, ...]:
        """Return all documents that this turn's tools returned, in order."""
        return tuple(document for result in self.results for document in result.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The turns of a response, and the text that all spans count in."""

    turns: tuple[Turn, ...]
    text: str

    def blocks(self, tag: str) -> tuple[Block, ...]:
        """Return all blocks of one tag, in order."""
        return tuple(block for turn in self.turns for block in turn.blocks if block.tag == tag)

    def calls(self) -> tuple[Call, ...]:
        """Return all tool calls, in order."""
        return tuple(call for turn in self.turns for call in turn.calls)

    def results(self) -> tuple[Result, ...]:
        """Return all that tools returned, in order."""
        return tuple(result for turn in self.turns for result in turn.results)

    def documents(self) -> tuple[Document, ...]:
        """Return all documents that tools returned, in order, repeated ones again."""
        return tuple(document for result in self.results() for document in result.documents)

    def forged(self) -> tuple[Block, ...]:
        """Return all result blocks that the assistant wrote itself, in order."""
        return tuple(block for turn in self.turns for block in turn.forged)

    def written_after(self, position: int) -> str:
        """Return what the assistant wrote from `position` on; text of tools is left out."""
        return "".join(self._parts_after(position))

    def _parts_after(self, position: int) -> Iterator[str]:
        for turn in self.turns:
            if turn.end > position:
                yield turn.text[max(0, position - turn.start) :]
