"""One comparison between two players, and what a set of them connects.

Not covered: who plays whom (`adjudge.judges.tournament`), and what the outcomes say about strength
(`bradley_terry`, `elo`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One game.

    Attributes:
        first: a player.
        second: another player.
        share: what the first won of it: 1 a win, 0 a loss, 0.5 a tie; a probability in [0, 1] is fine too.
        weight: how many games it counts for, > 0 (Arena-Hard counts a clear win three times).
    """

    first: str
    second: str
    share: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Reject games against oneself, and numbers out of range."""
        if self.first == self.second:
            raise ValueError(f"a match has {self.first!r} on both sides; a player cannot meet itself")
        if not 0 <= self.share <= 1:
            raise ValueError(f"Match.share is {self.share!r}; it must be from 0 (lost) to 1 (won), and 0.5 for a tie")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise ValueError(f"Match.weight is {self.weight!r}; it must be a finite number above 0")


def players_of(matches: Iterable[Match]) -> tuple[str, ...]:
    """Return the players, sorted, so that a result does not depend on the order of the games."""
    return tuple(sorted({name for match in matches for name in (match.first, match.second)}))


def points_of(matches: Iterable[Match]) -> dict[str, float]:
    """Return each player's mean share of its games, in [0, 1]."""
    won: dict[str, float] = {}
    played: dict[str, float] = {}
    for match in matches:
        for name, share in ((match.first, match.share), (match.second, 1 - match.share)):
            won[name] = won.get(name, 0.0) + match.weight * share
            played[name] = played.get(name, 0.0) + match.weight
    return {name: won[name] / played[name] for name in sorted(won)}


def parts_of(matches: Sequence[Match]) -> list[list[str]]:
    """Return the sets of players that games connect, largest first; more than one means that there is no ranking."""
    neighbours: dict[str, set[str]] = {}
    for match in matches:
        neighbours.setdefault(match.first, set()).add(match.second)
        neighbours.setdefault(match.second, set()).add(match.first)
    left = set(neighbours)
    parts = []
    while left:
        part = _reached(min(left), neighbours)
        parts.append(sorted(part))
        left -= part
    return sorted(parts, key=lambda part: (-len(part), part))


def undefeated(matches: Sequence[Match]) -> list[str]:
    """Return a set of players that took nothing from the others, or that the others took nothing from; else [].

    Without such a set the likeliest strengths are finite (Ford 1957); with one they run off to infinity.
    """
    beat: dict[str, set[str]] = {name: set() for name in players_of(matches)}
    lost: dict[str, set[str]] = {name: set() for name in beat}
    for match in matches:
        for winner, loser, share in (
            (match.first, match.second, match.share),
            (match.second, match.first, 1 - match.share),
        ):
            if share > 0:
                beat[winner].add(loser)
                lost[loser].add(winner)
    if not beat:
        return []
    start = min(beat)
    for edges in (beat, lost):
        reached = _reached(start, edges)
        if len(reached) < len(beat):
            return sorted(set(beat) - reached)
    return []


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for name in edges[todo.pop()] - seen:
            seen.add(name)
            todo.append(name)
    return seen
