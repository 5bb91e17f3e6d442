r"""What a response shares with its prompt: the question alone, which is no answer, and the order it is asked for.

Not covered: questions told in other words; those that mark an answer (`\boxed`, "The answer is") are never echoes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from adjudge.protocol import Message, content_text

_END = re.compile(r"(?<=[.!?])\s+")
_ORDER = re.compile(
    r"\brespectively\b|\bin\s+(?:that|this|the\s+(?:given|same|following|above))\s+order\b|\bordered\s+(?:pair|triple|list|tuple)"
    r"|\b(?:in)?(?:increasing|decreasing|ascending|descending)\s+order\b"
    r"|\bfrom\s+(?:the\s+)?(?:least|smallest|lowest|shortest|largest|greatest|biggest|highest|longest)\s+to\b",
    re.IGNORECASE,
)
_ASKED = 400  # characters at the end of a prompt that ask; the story before may say "respectively" of something else
_LEAST = 4  # words of a closing question that stands in the prompt; "5?" may be an answer


Prompt: TypeAlias = str | Sequence[Message]


def wants_order(prompt: Prompt) -> bool:
    """Whether the end of a prompt asks for several values in an order ("respectively", "from least to greatest")."""
    return bool(_ORDER.search(question(prompt)[-_ASKED:]))


def only_asks(text: str, prompt: Prompt) -> bool:
    """Whether a text is the prompt and nothing else, once or several times, or ends with a question out of it."""
    said, asked = " ".join(text.split()), " ".join(question(prompt).split())
    if not asked:
        return False
    if not said.replace(asked, "").strip():
        return True
    last = _END.split(said)[-1] if said.endswith("?") else ""
    return len(last.split()) >= _LEAST and last in asked


def question(prompt: Prompt) -> str:
    """Return what a prompt says: the text, or what its user's turns say."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(content_text(turn.get("content")) for turn in prompt if turn.get("role") == "user")
