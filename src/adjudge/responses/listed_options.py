"""The options of a multiple-choice question as its prompt lists them: one a line, from the first label on ("A. Rome").

Not covered: options in one line, or of several lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adjudge.protocol import Message, turn_texts

_LABELS: Final = "ABCDEFGHIJ"
_LISTED: Final = re.compile(r"(?:[-*•>] )?\*{0,2}\(?(?P<label>\w)(?:[).:、．：]|\*\*)+\s*(?P<text>\S.*)")


def listed_options(prompt: str | Sequence[Message], labels: str = _LABELS) -> list[str]:
    """Return the texts of the options that a prompt lists last; none where it lists none."""
    options: list[str] = []
    found: list[str] = []
    for line in filter(str.strip, "\n".join(turn_texts(prompt, "user")).splitlines()):
        entry = _LISTED.fullmatch(line.strip())
        if entry and entry["label"] == labels[:1]:
            options = []
        elif entry is None or entry["label"] != labels[len(options) : len(options) + 1]:
            options = []
            continue
        options.append(entry["text"])
        found = options if len(options) > 1 else found
    return found


def is_listed_label(reference: Any, prompt: str | Sequence[Message]) -> bool:
    """Return whether a reference is the label, a capital letter, of one of the options that the prompt lists."""
    if isinstance(reference, Mapping) and reference.keys() == {"answer"}:
        reference = reference["answer"]
    label = reference.strip(" ().") if isinstance(reference, str) else ""
    return len(label) == 1 and label in _LABELS[: len(listed_options(prompt))]
