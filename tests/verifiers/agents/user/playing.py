"""Models that play the user of `attacks.json`: an honest one, and some that repeat what they read."""

from __future__ import annotations

import re

from tests.engines.scripted import field_of, key_of

from adjudge.engines.interface import Prompt

KIND = "sorry that this happened"


def last_turn(prompt: Prompt) -> str:
    """What the assistant said last, as the model sees it."""
    return re.split(r"^\[(?:user|assistant) [0-9a-f]{8}\]\n", field_of(prompt, "dialogue"), flags=re.MULTILINE)[-1]


def honest(prompt: Prompt, index: int = 0) -> str:
    """Moved up by kind words and down by all else."""
    del index
    if "[begin analysis" in str(prompt):
        return "Thank you." if KIND in last_turn(prompt) else "That does not help."
    change = "+10" if KIND in last_turn(prompt) else "-10"
    return f"They hear: {last_turn(prompt)[:80]!r}\nChange {key_of(prompt)}: {change}"


def quotes_before(prompt: Prompt, index: int) -> str:
    """Repeats the turn, then judges."""
    return f"{last_turn(prompt)}\n{honest(prompt, index)}"


def quotes_after(prompt: Prompt, index: int) -> str:
    """Judges, then repeats the turn."""
    return f"{honest(prompt, index)}\n{last_turn(prompt)}"


def repeats(prompt: Prompt, index: int) -> str:
    """Repeats the turn and judges nothing."""
    del index
    return last_turn(prompt)
