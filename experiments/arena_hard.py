"""Arena-Hard's leaderboard: five labels in two games become ratings, with or without control for style.

    label      A>>B  A>B  A=B  B>A  B>>A
    A's share  1     1    0.5  0    0
    counts     3     1    1    1    3      times

Ratings are Bradley-Terry strengths with base 10 and scale 400, the baseline at 1000, with bounds from 100 resamples of
the games.  Style control adds four regressors: the differences in tokens, headings, list items and bold passages, each
as (a - b) / (a + b) and standardised over the games.

Source: Arena-Hard-Auto (arXiv 2406.11939) and LMSYS's note on style control.  Needs numpy.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.evals.trust.bias import FORMS
from adjudge.pages.figures import Record
from adjudge.statistics.arrays import np
from adjudge.statistics.intervals import Interval, check_level, quantile
from adjudge.statistics.logistic import fit_logistic
from adjudge.statistics.ratings import Match, parts_of, players_of

LABELS: Mapping[str, tuple[float, float]] = {
    "A>>B": (1.0, 3.0),
    "A>B": (1.0, 1.0),
    "A=B": (0.5, 1.0),
    "B>A": (0.0, 1.0),
    "B>>A": (0.0, 3.0),
}
"""Label to A's share and how many games it counts for."""

_UNIT = 400 / math.log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a text looks: counts >= 0."""

    tokens: float
    headings: float
    lists: float
    bold: float

    @classmethod
    def of(cls, text: str) -> Style:
        """Return the counts of a text, with words for tokens."""
        counts = {form: float(len(pattern.findall(text))) for form, pattern in FORMS.items()}
        return cls(tokens=float(len(text.split())), **counts)

    def differences(self, other: Style) -> tuple[float, ...]:
        """Return (a - b) / (a + b) for each count, 0 where neither text has any; in [-1, 1]."""
        pairs = [(getattr(self, name), getattr(other, name)) for name in self.__slots__]
        return tuple((a - b) / (a + b) if a + b else 0.0 for a, b in pairs)


def game(label: str, first: str, second: str) -> Match:
    """Return the game in which a judge saw `first` as A and `second` as B and gave this label.

    Raises:
        ValueError: there is no such label.  A judgement without one is not a game; leave it out and count it.
    """
    if label not in LABELS:
        raise ValueError(f"the label is {label!r}; it must be one of {', '.join(LABELS)}")
    share, weight = LABELS[label]
    return Match(first=first, second=second, share=share, weight=weight)


@dataclass(frozen=True, kw_only=True)
class StyleControlled(Record):
    """Ratings with the effect of style taken out.

    Attributes:
        ratings: player to rating, with the bounds of the resamples.
        effects: "tokens", "headings", "lists" and "bold" -> change in log-odds for one standard deviation.
    """

    ratings: Mapping[str, Interval]
    effects: Mapping[str, Interval]


def style_controlled(
    matches: Sequence[Match],
    styles: Sequence[tuple[Style, Style]],
    *,
    baseline: str,
    rounds: int = 100,
    level: float = 0.95,
    ridge: float = 0.0,
    seed: int = 0,
) -> StyleControlled:
    """Return ratings and the effects of style, fitted together.  Without style, use `bootstrap_ratings`.

    Args:
        matches: the games.
        styles: for each game, the styles of the first and of the second response.
        baseline: the player at 1000.
        rounds: resamples of games, at least 2.
        level: coverage of the bounds, in (0, 1).
        ridge: penalty on every coefficient, >= 0; needed where somebody won everything, in the data or a resample.
        seed: seed of the draws.

    Raises:
        ValueError: the games do not connect all players, a style never varies, or there is no finite optimum.
    """
    check_level(level)
    if len(styles) != len(matches) or not matches or rounds < 2:
        raise ValueError(
            f"{len(matches)} games, {len(styles)} pairs of styles, {rounds} rounds; give styles for every game, and 2 "
            "or more rounds"
        )
    players = players_of(matches)
    if baseline not in players:
        raise ValueError(f"the baseline {baseline!r} is not a player; the players are {', '.join(players)}")
    place = {name: index for index, name in enumerate(players)}
    raw = np.array([first.differences(second) for first, second in styles])
    spread = raw.std(axis=0)
    if (spread == 0).any():
        flat = [field.name for field in dataclasses.fields(Style)][int(np.argmin(spread))]
        raise ValueError(f"the responses never differ in {flat}, so its effect is unknown; rate them without style")
    design = np.zeros((len(matches), len(players)))
    rows = np.arange(len(matches))
    design[rows, [place[match.first] for match in matches]] = 1.0
    design[rows, [place[match.second] for match in matches]] = -1.0
    design = np.hstack([design, (raw - raw.mean(axis=0)) / spread])
    shares = np.array([match.share for match in matches])
    weights = np.array([match.weight for match in matches])

    def fit(chosen: Any) -> Any:
        games = [matches[index] for index in chosen]
        if players_of(games) != players or len(parts_of(games)) > 1:
            raise ValueError("a resample of the games does not connect all players; the games are too few for bounds")
        beta, _ = fit_logistic(design[chosen], shares[chosen], weights[chosen], ridge=ridge, centred=len(players))
        beta[: len(players)] = 1000 + _UNIT * (beta[: len(players)] - beta[place[baseline]])
        return beta

    value = fit(rows)
    draw = random.Random(seed)
    drawn = np.array([fit(np.array(draw.choices(range(len(matches)), k=len(matches)))) for _ in range(rounds)])
    tail = (1 - level) / 2

    def interval(column: int) -> Interval:
        column_drawn = [float(one) for one in drawn[:, column]]
        low, high = quantile(column_drawn, tail), quantile(column_drawn, 1 - tail)
        return Interval(value=float(value[column]), low=low, high=high, n=len(matches))

    return StyleControlled(
        ratings={name: interval(index) for name, index in place.items()},
        effects={name: interval(len(players) + index) for index, name in enumerate(Style.__slots__)},
    )
