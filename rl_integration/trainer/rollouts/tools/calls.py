"""Calls of tools as they stand in what a policy writes, and answers as it reads them.

Not covered: the two ways of writing them (`chat_calls`, `tag_calls`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adjudge.rl_integration.trainer.contract.task import Task
from adjudge.rl_integration.trainer.rollouts.policy import Policy

_BREAK = "·"
"""What is put behind the first character of a mark, as in prompts of judges."""

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


class CallStyle(Protocol):
    """A way of writing calls and answers."""

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts that end a piece."""
        ...

    def prompt(self, task: Task) -> tuple[int, ...]:
        """Return a task's prompt as tokens.

        Raises:
            ValueError: the prompt cannot be written.
        """
        ...

    def calls(self, text: str, *, ended: bool) -> tuple[Call, ...]:
        """Return the calls in a piece; none ends the answer.

        Args:
            text: of the piece.
            ended: whether the policy ended it with an end token.
        """
        ...

    def shown(self, text: str) -> str:
        """Return a tool's text as it may stand before the policy: nothing in it reads as a call or as the end of it."""
        ...

    def answered(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens that follow a piece with calls, up to where the policy goes on.

        Args:
            texts: what the tools say to its calls, at least one text, as `shown` gives them.
        """
        ...


def broken_up(text: str, marks: Sequence[str]) -> str:
    """Return a text with a dot within each mark, in capitals or not, and without characters that are no text.

    Args:
        text: anything.
        marks: texts that must not stand in it.
    """
    known = sorted({mark for mark in marks if len(mark) > 1}, key=lambda mark: (-len(mark), mark))
    readable = _UNREADABLE.sub("\ufffd", text.replace("\r\n", "\n"))
    if not known:
        return readable
    # A look ahead finds marks that overlap, too.
    pattern = re.compile(f"(?=(?:{'|'.join(map(re.escape, known))}))[\\s\\S]", re.IGNORECASE)
    return pattern.sub(lambda found: found[0] + _BREAK, readable)


def plain_tokens(policy: Policy, text: str) -> list[int]:
    """Return the tokens of somebody's text; what is spelled like a special token becomes ordinary ones."""
    return list(policy.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])


def check_writable(policy: Policy, marks: Sequence[str]) -> None:
    """Reject marks that do not survive the policy's tokenizer.

    Raises:
        ValueError: tokens of a mark are not read as that mark.
    """
    for mark in marks:
        found = policy.decode(policy.tokens.text(mark))
        if found.strip() != mark.strip():
            raise ValueError(
                f"the tokenizer of {policy.name!r} reads {mark!r} back as {found!r}, so such a call would never "
                "be seen; take other marks, or another style"
            )
