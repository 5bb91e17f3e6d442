"""Strengths of players from pairwise games: Bradley-Terry and Elo.

`P(a beats b) = 1 / (1 + exp(-(s_a - s_b)))`; a tie counts half a win for each, and a share in [0, 1] as that much of
one.  Strengths are natural logarithms of odds with the mean 0; `Strengths.ratings` turns them into the numbers of
chess and arenas (base 10, scale 400, 1000 for the anchor).  Elo ratings move a little after every game, so they depend
on the order of the games and fit players that change; for players that do not, prefer `fit_strengths`.

Sources: Bradley and Terry 1952; the condition for finite strengths is Ford's (1957); Elo 1978.  Needs numpy
(`pip install "adjudge[data]"`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.statistics.arrays import np
from adjudge.statistics.intervals import Interval, check_level, quantile
from adjudge.statistics.logistic import fit_logistic, sigmoid


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One game.

    Attributes:
        share: what the first won of it: 1 a win, 0 a loss, 0.5 a tie; a probability in [0, 1] is fine too.
        weight: how many games it counts for, > 0 (Arena-Hard counts a clear win three times).
    """

    first: str
    second: str
    share: float
    weight: float = 1.0

    def __post_init__(self) -> None:
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


@dataclass(frozen=True, kw_only=True)
class Strengths:
    """Fitted strengths.

    Attributes:
        values: player to strength, in natural log-odds, with the mean 0.
        ridge: the penalty they were fitted with.
    """

    values: Mapping[str, float]
    ridge: float = 0.0

    def probability(self, first: str, second: str) -> float:
        """Return how likely the first beats the second, a tie counted as half.

        Raises:
            ValueError: a player is unknown.
        """
        for name in (first, second):
            if name not in self.values:
                raise ValueError(f"no strength is known for {name!r}; the players are {', '.join(self.values)}")
        return sigmoid(self.values[first] - self.values[second])

    def win_rates(self) -> dict[str, float]:
        """Return each player's expected share against all the others, in (0, 1)."""
        names = list(self.values)
        return {
            name: math.fsum(self.probability(name, other) for other in names if other != name) / (len(names) - 1)
            for name in names
        }

    def ratings(self, *, anchor: str, at: float = 1000.0, base: float = 10.0, scale: float = 400.0) -> dict[str, float]:
        """Return ratings: `at` for the anchor, and `scale` more for each factor `base` in the odds against it."""
        if anchor not in self.values:
            raise ValueError(f"the anchor {anchor!r} is not a player; the players are {', '.join(self.values)}")
        unit = scale / math.log(base)
        return {name: at + unit * (value - self.values[anchor]) for name, value in self.values.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"values": dict(self.values), "ridge": self.ridge}


def fit_strengths(matches: Sequence[Match], *, ridge: float = 0.0) -> Strengths:
    """Return the likeliest strengths.

    Args:
        matches: the games, in any order.
        ridge: `ridge/2 * strength^2` is added to the loss for each player, >= 0.  It is needed where somebody won, or
            lost, everything.

    Raises:
        ValueError: there are no games, the games do not connect all players, or without a ridge a strength would
            be infinite.  The message names players.
        ImportError: numpy is not installed.
    """
    if not (math.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"the ridge is {ridge!r}; it must be a finite number >= 0")
    _check_connected(matches, ridge)
    players = players_of(matches)
    place = {name: index for index, name in enumerate(players)}
    sums: dict[tuple[int, int], list[float]] = {}
    for match in matches:  # games of one pair are summed, so a million games cost no more than their pairs
        a, b = place[match.first], place[match.second]
        share = match.share if a < b else 1 - match.share
        cell = sums.setdefault((min(a, b), max(a, b)), [0.0, 0.0])
        cell[0] += match.weight * share
        cell[1] += match.weight
    pairs = sorted(sums)
    one_hot = np.eye(len(players))
    design = one_hot[[a for a, _ in pairs]] - one_hot[[b for _, b in pairs]]
    weights = np.array([sums[pair][1] for pair in pairs])
    shares = np.array([sums[pair][0] for pair in pairs]) / weights
    values, _ = fit_logistic(design, shares, weights, ridge=ridge, centred=len(players))
    centre = float(values.mean())
    return Strengths(values={name: float(values[place[name]]) - centre for name in players}, ridge=ridge)


def bootstrap_ratings(
    matches: Sequence[Match],
    *,
    anchor: str,
    rounds: int = 100,
    level: float = 0.95,
    ridge: float = 0.0,
    seed: int = 0,
    at: float = 1000.0,
) -> dict[str, Interval]:
    """Return each player's rating (base 10, scale 400) with percentiles over resampled games.

    Args:
        matches: the games; whole games are drawn with replacement.
        anchor: the player whose rating is `at`.
        rounds: resamples, at least 2; Arena-Hard draws 100.
        level: the share of resamples between the bounds, in (0, 1).
        ridge: as for `fit_strengths`; without one, a resample in which somebody wins everything has no ranking.
        seed: seed of the draws.
        at: the anchor's rating.

    Raises:
        ValueError: as `fit_strengths`, for the games or for one of the resamples.
    """
    if rounds < 2:
        raise ValueError(f"rounds={rounds!r}; a bootstrap needs at least 2 resamples")
    check_level(level)
    fitted = fit_strengths(matches, ridge=ridge).ratings(anchor=anchor, at=at)
    draw = random.Random(seed)
    drawn: dict[str, list[float]] = {name: [] for name in fitted}
    for count in range(rounds):
        sample = draw.choices(matches, k=len(matches))
        absent = fitted.keys() - set(players_of(sample))
        if absent:
            raise ValueError(
                f"resample {count} of the games has none with {min(absent)!r}; the games are too few for a bootstrap"
            )
        try:
            ratings = fit_strengths(sample, ridge=ridge).ratings(anchor=anchor, at=at)
        except ValueError as error:
            raise ValueError(f"resample {count} of the games has no ranking: {error}") from error
        for name, value in ratings.items():
            drawn[name].append(value)
    tail = (1 - level) / 2
    return {
        name: Interval(value=fitted[name], low=quantile(values, tail), high=quantile(values, 1 - tail), n=len(matches))
        for name, values in drawn.items()
    }


def _check_connected(matches: Sequence[Match], ridge: float) -> None:
    if not matches:
        raise ValueError("there are no games, so there is no ranking")
    parts = parts_of(matches)
    if len(parts) > 1:
        raise ValueError(
            f"no game connects {parts[0][0]!r} with {parts[1][0]!r}: the players fall into {len(parts)} sets that "
            "never met, and no ranking holds across them; add games between the sets, or rank each on its own"
        )
    if ridge == 0 and (apart := undefeated(matches)):
        shown = ", ".join(repr(name) for name in apart[:3])
        raise ValueError(
            f"{shown}{' and others' if len(apart) > 3 else ''} won, or lost, every game against the rest, so the "
            "likeliest strength is infinite; give a ridge above 0, such as 0.1"
        )


def elo_ratings(
    matches: Iterable[Match], *, k: float = 4.0, base: float = 10.0, scale: float = 400.0, start: float = 1000.0
) -> dict[str, float]:
    """Return the ratings after the last game, in rating points.

    Args:
        matches: the games in the order in which they were played.
        k: points that change hands in a full upset, times `Match.weight`; arenas of language models use 4.
        base: base of the odds, > 1.
        scale: points for a factor `base` in the odds, > 0.
        start: rating of a player before its first game.

    Raises:
        ValueError: an option is out of range.
    """
    if not (math.isfinite(k) and k > 0):
        raise ValueError(f"k={k!r}; the points at stake must be a finite number above 0")
    if not (base > 1 and scale > 0):
        raise ValueError(f"base={base!r} and scale={scale!r}; need base > 1 and scale > 0")
    ratings: dict[str, float] = {}
    for match in matches:
        first, second = (ratings.get(name, start) for name in (match.first, match.second))
        expected = 1 / (1 + base ** min(max((second - first) / scale, -300), 300))
        change = k * match.weight * (match.share - expected)
        ratings[match.first] = first + change
        ratings[match.second] = second - change
    return ratings
