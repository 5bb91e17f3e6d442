"""A consultation: the agent's questions, what was said in reply, and which facts each reply made known first.

Only what a user or a tool said makes facts known; what the agent writes, whoever it quotes, does not.  A fact becomes
known once, also where nobody asked: before the agent's first words, and after a turn without any.

Not covered: what a fact is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adjudge.protocol import Message, content_text
from adjudge.responses.trajectories.trajectory import Trajectory
from adjudge.verifiers.agents.search.facts_reference import Fact
from adjudge.verifiers.rubric.phrases import affirmed_in

MOST_REPLY = 20_000
"""Characters of one reply that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One turn of the agent with the reply to it, "" without one; `start` and `end` as in `Turn`.

    `asked` says whether the agent wrote a word or called a tool.
    """

    text: str
    reply: str
    start: int
    end: int
    asked: bool


def exchanges_of(trajectory: Trajectory) -> list[Exchange]:
    """Return the agent's turns, each with what users and tools said to it."""
    return [
        Exchange(
            text=turn.text,
            reply="\n".join((*turn.replies, *(result.text for result in turn.results)))[:MOST_REPLY].strip(),
            start=turn.start,
            end=turn.end,
            asked=bool(turn.text.strip() or turn.calls),
        )
        for turn in trajectory.turns
    ]


def prompt_text(prompt: str | Sequence[Message]) -> str:
    """Return all that a prompt tells the agent.

    Raises:
        ValueError: it is neither a text nor a list of chat turns.
    """
    if isinstance(prompt, str):
        return prompt[:MOST_REPLY]
    for turn in prompt:
        if not isinstance(turn, Mapping):
            raise ValueError(f"the prompt holds {turn!r}; give a text, or chat turns with role and content")
    return "\n".join(content_text(turn.get("content")) for turn in prompt)[:MOST_REPLY]


def told(fact: Fact, text: str) -> bool:
    """Return whether a text says a fact by one of its phrases, without a denial right before it."""
    return any(affirmed_in(key, text) for key in fact.keys)


def newly_known(told_at: Sequence[Sequence[bool]], known: Sequence[bool]) -> list[list[int]]:
    """Return for each reply the facts that it makes known first.

    Args:
        told_at: for each reply, whether it tells each fact.
        known: whether each fact was known before.
    """
    before = {at for at, one in enumerate(known) if one}
    fresh: list[list[int]] = []
    for row in told_at:
        fresh.append([at for at, one in enumerate(row) if one and at not in before])
        before.update(fresh[-1])
    return fresh


def paid(fresh: Sequence[int], weights: Sequence[float], most: int) -> list[int]:
    """Return the facts that pay of those that one reply made known: the heaviest `most`; 0 for all.

    The others are known, and will not pay again.
    """
    ranked = sorted(fresh, key=lambda at: (-weights[at], at))
    return sorted(ranked[:most] if most else ranked)
