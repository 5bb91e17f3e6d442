"""What a policy can call while it answers.

Not covered: how a call stands in a text (`calls`), and who runs it (`toolbox`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


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
    """The tool could not answer, and the call is not to blame: the answer that called it cannot be judged."""


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

        Args:
            arguments: as `parameters` wants them.

        Raises:
            ToolDown: it cannot answer, whatever the arguments.
        """
        ...


def one_text(name: str, description: str) -> dict[str, Any]:
    """Return the JSON schema of a single argument that is text.

    Args:
        name: of the argument.
        description: for the policy to read.
    """
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": [name],
    }


def shortened(text: str, max_chars: int) -> str:
    """Return a text of about `max_chars` characters: of a longer one its ends, and how much was left out."""
    left_out = len(text) - max_chars
    if left_out <= 0:
        return text
    head = max_chars - max_chars // 2
    return f"{text[:head]}\n... {left_out} characters left out ...\n{text[len(text) - max_chars // 2 :]}"
