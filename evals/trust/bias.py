"""Preferences that have nothing to do with quality, each measured with an interval over pairs.

A judge's preference alone says little: longer answers may well be better.  Beside each one stands the same number for
the gold labels, where they are given, and for length the effect that remains when they are held fixed.

Not covered: whether a preference is wrong, and causes; for those, change one thing in a text and ask again.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from adjudge.pages.figures import Record
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import resampled_mean, weighted_bootstrap
from adjudge.statistics.intervals import UNKNOWN, Draws, Interval, wilson
from adjudge.statistics.logistic import fit_logistic

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge said about two responses, in the order in which it saw them.

    Attributes:
        pair: names the pair; both orders, and repeats, of one pair share it.
        share: how far the judge prefers the first: 1 entirely, 0 not at all, 0.5 a tie, or a probability; None if it
            gave no verdict.
        gold: the same as people see it; None if unknown.
        judge: the model that judged, as `first_model` and `second_model` wrote; "" if unknown.
    """

    pair: str
    first: str
    second: str
    share: float | None
    gold: float | None = None
    judge: str = ""
    first_model: str = ""
    second_model: str = ""

    def __post_init__(self) -> None:
        for name in ("share", "gold"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"Judgement.{name} is {value!r}; it must be from 0 (second) to 1 (first), or None")

    def swapped(self) -> Self:
        """Return the same judgement told from the other side; it is not what a judge says to the other order."""
        return dataclasses.replace(
            self,
            first=self.second,
            second=self.first,
            share=None if self.share is None else 1 - self.share,
            gold=None if self.gold is None else 1 - self.gold,
            first_model=self.second_model,
            second_model=self.first_model,
        )


def by_pair(judgements: Iterable[Judgement]) -> list[list[Judgement]]:
    """Return the judgements that have a verdict, pair by pair, in order of appearance."""
    pairs: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one.share is not None:
            pairs.setdefault(one.pair, []).append(one)
    return list(pairs.values())


_RIDGE = 0.01  # keeps the slopes finite where a resample is separated; a fraction of one pair

FORMS: dict[str, re.Pattern[str]] = {
    "lists": re.compile(r"^[ \t]{0,8}(?:[-*+•]|[0-9]{1,3}[.)])[ \t]+\S", re.MULTILINE),
    "bold": re.compile(r"\*\*[^*\n]{1,200}\*\*|__[^_\n]{1,200}__"),
    "headings": re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE),
}
"""What counts as one list item, one bold passage and one heading."""


@dataclass(frozen=True, kw_only=True)
class Preference(Record):
    """How far one kind of response is preferred.

    Attributes:
        judge: mean share the judge gives to that kind, ties as half; 0.5 is not a preference.
        gold: the same of the gold labels, over the pairs that have them.
        excess: judge minus gold, over those pairs; 0 is what a fair judge has.
    """

    judge: Interval
    gold: Interval = UNKNOWN
    excess: Interval = UNKNOWN


DRAWS = Draws(rounds=500)
"""Unless the caller says otherwise; a regression for each resample takes its time."""

_FORM = "more "
PREFERENCES: tuple[str, ...] = ("first", "longer", *(f"{_FORM}{form}" for form in FORMS), "own")
"""Kinds of responses: shown first, longer in characters, with more of a form, written by the judge itself."""


def _which(kind: str, one: Judgement) -> int:
    """Return 1 if the first response is of a kind and the second is not, -1 the other way, 0 for neither or both."""
    if kind == "first":
        return 1
    if kind == "longer":
        return _sign(len(one.first) - len(one.second))
    if kind == "own":
        return (one.judge != "") * ((one.first_model == one.judge) - (one.second_model == one.judge))
    pattern = FORMS[kind.removeprefix(_FORM)]
    return _sign(len(pattern.findall(one.first)) - len(pattern.findall(one.second)))


def preference(judgements: Sequence[Judgement], kind: str, draws: Draws = DRAWS) -> Preference:
    """Return how far a kind of response (of `PREFERENCES`) is preferred; judgements without a verdict are left out.

    Where every pair is shown both ways, a fair share of "first" is 0.5.  Of "own" only `excess` speaks of bias: a
    strong model's own answers may be the better ones.
    """
    if kind not in PREFERENCES:
        raise ValueError(f"the preference is {kind!r}; it must be one of {', '.join(PREFERENCES)}")
    signs = [(one, _which(kind, one)) for one in judgements if one.share is not None]
    turned = [one if sign > 0 else one.swapped() for one, sign in signs if sign]
    known = [one for one in turned if one.gold is not None]
    return Preference(
        judge=_mean(turned, lambda one: one.share, draws),
        gold=_mean(known, lambda one: one.gold, draws),
        excess=_mean(known, lambda one: None if one.share is None or one.gold is None else one.share - one.gold, draws),
    )


def inconsistency(judgements: Sequence[Judgement], *, level: float = 0.95) -> Interval:
    """Return the share of pairs whose winner changes with the order, a tie being a winner of its own (Wilson).

    Pairs that were not seen with a verdict both ways are left out; of repeats of one order the mean share counts.
    """
    changed = seen = 0
    for members in by_pair(judgements):
        first = members[0].first
        straight = [one.share for one in members if one.first == first and one.share is not None]
        turned = [1 - one.share for one in members if one.first != first and one.share is not None]
        if straight and turned:
            seen += 1
            sides = (_sign(sum(shares) / len(shares) - 0.5) for shares in (straight, turned))
            changed += len(set(sides)) > 1
    return wilson(changed, seen, level=level)


def length_effect(judgements: Sequence[Judgement], draws: Draws = DRAWS) -> Interval:
    """Return what length does to the log-odds of being preferred, all else equal; 0 is not an effect.

    A logistic regression of the share on `tanh(difference in characters / its standard deviation)`, as AlpacaEval takes
    length into account, next to a constant for the position and, where every judgement has one, the gold share.  The
    number is the change in log-odds from a response of equal length to one that is very much longer.
    """
    rows = [one for members in by_pair(judgements) for one in members]
    differences = np.array([len(one.first) - len(one.second) for one in rows])
    if len(set(differences.tolist())) < 2:
        return UNKNOWN
    columns = [np.ones(len(rows)), np.tanh(differences / np.std(differences, ddof=1))]
    gold = [one.gold for one in rows if one.gold is not None]
    if len(gold) == len(rows):
        columns.append(np.array(gold) - 0.5)
    design, shares = np.column_stack(columns), np.array([one.share for one in rows])

    def effect(times: Floats) -> Floats:
        fitted, _ = fit_logistic(design, shares, times, ridge=_RIDGE)
        return fitted[1:2]

    (interval,) = weighted_bootstrap([one.pair for one in rows], effect, draws)
    return dataclasses.replace(interval, n=len({one.pair for one in rows}))


def _mean(judgements: Sequence[Judgement], of: Callable[[Judgement], float | None], draws: Draws) -> Interval:
    """Return the mean of what is known, over whole pairs; `n` counts pairs."""
    rows = [(value, one.pair) for one in judgements if (value := of(one)) is not None]
    pairs = [pair for _, pair in rows]
    return dataclasses.replace(resampled_mean([value for value, _ in rows], pairs, draws), n=len(set(pairs)))


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


@dataclass(frozen=True, kw_only=True)
class BiasReport(Record):
    """What a judge prefers.

    Attributes:
        unjudged: how many of them have no verdict; they are in none of the numbers.
        preferences: how far each kind of `PREFERENCES` is preferred.
        inconsistent: share of pairs whose winner changes with the order.
        length_effect: change in log-odds for a much longer response, all else equal.
    """

    judgements: int
    unjudged: int
    preferences: Mapping[str, Preference]
    inconsistent: Interval
    length_effect: Interval
    level: float

    def table(self) -> Table:
        """Return the report as a table for a terminal; "-" stands where the data say nothing."""
        from rich.table import Table

        made = Table(title=f"{self.judgements} judgements, {self.unjudged} without a verdict", title_justify="left")
        for heading in ("prefers", f"judge ({self.level:.0%})", "gold", "judge - gold", "pairs"):
            made.add_column(heading, justify="right" if heading == "pairs" else "left")
        for name, one in self.preferences.items():
            made.add_row(name, str(one.judge), str(one.gold), str(one.excess), str(one.judge.n))
        made.add_section()
        made.add_row("winner changes with order", str(self.inconsistent), "", "", str(self.inconsistent.n))
        made.add_row("log-odds for length", str(self.length_effect), "", "", str(self.length_effect.n))
        return made


def bias_report(judgements: Sequence[Judgement], draws: Draws = DRAWS) -> BiasReport:
    """Measure all biases of a judge."""
    return BiasReport(
        judgements=len(judgements),
        unjudged=sum(one.share is None for one in judgements),
        preferences={kind: preference(judgements, kind, draws) for kind in PREFERENCES},
        inconsistent=inconsistency(judgements, level=draws.level),
        length_effect=length_effect(judgements, draws),
        level=draws.level,
    )
