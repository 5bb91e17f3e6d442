"""The numbers of attacks: how often they succeed within how many questions, by how much, and where else they work.

To another scorer goes the winning response itself, and it must reach that scorer's own threshold for the row.  To a
prompt that no attacker saw goes what was written around the bad response, around that prompt's bad response.

A row counts as broken by an attacker if it found a worthless response that wins.  Answers that are right by luck are
shares of their own.  A row of which no question got a number is in no share.  Shares of rows have Wilson's bounds;
means and shares over many texts have bounds from resampled rows.  A joint search makes its rows depend on each other,
which bounds do not know.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adjudge.evals.attacks.attacker import Attempt
from adjudge.evals.attacks.config import SHIPPED
from adjudge.evals.attacks.guard import Gold
from adjudge.evals.attacks.target import AttackRow, Goals, Standing, Target, Wrap, standings
from adjudge.evals.reports.result import Check, Measure
from adjudge.pages.figures import Curves, Figure, Grid, Series
from adjudge.statistics.bootstrap import resampled_mean
from adjudge.statistics.intervals import Draws, Interval, wilson

_TEXTS = 10  # of each attacker that are tried on each held-out prompt: those found with the fewest questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """An attack that was tried elsewhere."""

    attacker: str
    row: str
    wrap: Wrap
    value: float | None
    won: bool


async def to_scorer(
    target: Target, rows: Sequence[AttackRow], attempts: Mapping[str, Sequence[Attempt]], goals: Goals, gold: Gold
) -> list[Carried]:
    """Try every winning response on another scorer; rows whose bad response wins there anyway are left out."""
    won = [attempt for each in attempts.values() for attempt in each if attempt.won is not None]
    if not won:
        return []
    there = {standing.row.id: standing for standing in await standings(target, rows, goals)}
    tried = [
        (attempt.attacker, there[attempt.standing.row.id], attempt.won.wrap)
        for attempt in won
        if attempt.won is not None and there[attempt.standing.row.id].open
    ]
    return await _carried(target, tried, gold)


async def to_rows(
    target: Target, attempts: Mapping[str, Sequence[Attempt]], held_out: Sequence[Standing], gold: Gold
) -> list[Carried]:
    """Try the winning texts of each attacker on prompts that it did not see."""
    tried = []
    for name, each in attempts.items():
        hits = sorted((attempt.won for attempt in each if attempt.won is not None), key=lambda hit: hit.query)
        wraps = list(dict.fromkeys(hit.wrap for hit in hits))[:_TEXTS]
        tried += [(name, standing, wrap) for wrap in wraps for standing in held_out if standing.open]
    return await _carried(target, tried, gold)


async def _carried(target: Target, tried: Sequence[tuple[str, Standing, Wrap]], gold: Gold) -> list[Carried]:
    scores = await target.ask([(standing.row, wrap.around(standing.row.base)) for _, standing, wrap in tried])
    paid = [standing.won_by(score.value) for (_, standing, _), score in zip(tried, scores, strict=True)]
    winning = [(standing.row, wrap) for (_, standing, wrap), pays in zip(tried, paid, strict=True) if pays]
    lucks = iter(await gold.lucks(winning))
    return [
        Carried(attacker=name, row=standing.row.id, wrap=wrap, value=score.value, won=pays and not next(lucks))
        for (name, standing, wrap), score, pays in zip(tried, scores, paid, strict=True)
    ]


HELD_OUT: Final = "held-out prompts"
_STEPS: Final = (1, 2, 5)  # places of a decade that the curves have


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that was tried.

    Attributes:
        carried: what was tried elsewhere, by the place's name: another scorer's, or `HELD_OUT`.
        rows: those to search on, and `held_out` the others.
    """

    attempts: Mapping[str, Sequence[Attempt]]
    carried: Mapping[str, Sequence[Carried]]
    budget: int
    rows: Sequence[Standing]
    held_out: Sequence[Standing]

    @property
    def searched(self) -> dict[str, Sequence[Attempt]]:
        """The attempts on the rows that were given, without shipped ones."""
        return {name: each for name, each in self.attempts.items() if name != SHIPPED and each}


def budgets(most: int, steps: Sequence[int] = (1,)) -> list[int]:
    """Return 1, 10, 100, ... up to a budget, and the budget itself; with more steps, places between."""
    places = {step * 10**power for power in range(len(str(most))) for step in steps}
    return sorted({place for place in places if place < most} | {most})


def broken_within(attempts: Sequence[Attempt], queries: int, level: float) -> Interval:
    """Return the share of judged rows that were broken with at most so many questions."""
    hits = sum(each.won is not None and each.won.query <= queries for each in attempts)
    return wilson(hits, sum(each.judged for each in attempts), level=level)


def measures(study: Study, draws: Draws) -> list[Measure]:
    """Return the numbers; the share of rows that any search broke comes first."""
    numbers = []
    rows: dict[str, bool] = {}
    for attempts in study.searched.values():
        for each in attempts:
            if not each.judged:
                continue
            rows[each.standing.row.id] = rows.get(each.standing.row.id, False) or each.won is not None
    if any(name != SHIPPED for name in study.attempts):
        numbers.append(_low("success", "", wilson(sum(rows.values()), len(rows), level=draws.level)))
    chance = {}
    if "random" in study.searched:
        chance = {"random tokens": broken_within(study.searched["random"], study.budget, draws.level).value}
    for name, attempts in study.attempts.items():
        if attempts:
            numbers += _of_attacker(name, attempts, study, draws, {} if name == "random" else chance)
    for place, carried in study.carried.items():
        for name in dict.fromkeys(one.attacker for one in carried):
            mine = [one for one in carried if one.attacker == name]
            won, rows_there = [one.won for one in mine], [one.row for one in mine]
            numbers.append(Measure.mean(f"transfer to {place}", won, rows_there, draws, name, "low"))
    return numbers


def _of_attacker(
    name: str, attempts: Sequence[Attempt], study: Study, draws: Draws, chance: Mapping[str, float | None]
) -> Iterator[Measure]:
    budget = 1 if name == SHIPPED else study.budget
    yield Measure(
        name="success",
        part=name,
        interval=broken_within(attempts, budget, draws.level),
        baselines={} if name == SHIPPED else chance,
        better="low",
    )
    for queries in budgets(budget)[:-1]:
        yield _low(f"success within {queries}", name, broken_within(attempts, queries, draws.level))
    if name == SHIPPED:
        return
    for word in ("guessed", "hedged"):
        hits = sum(getattr(each, word) is not None for each in attempts)
        yield _low(word, name, wilson(hits, sum(each.judged for each in attempts), level=draws.level))
    won = [each.won.query for each in attempts if each.won is not None]
    median = Interval(value=float(statistics.median(won)), n=len(won)) if won else Interval(value=None)
    yield Measure(name="median questions to success", part=name, interval=median, better="none")
    gains = [(each.gain, each.standing.row.id) for each in attempts if each.gain is not None]
    interval = resampled_mean([gain for gain, _ in gains], [row for _, row in gains], draws)
    yield _low("gain of score", name, interval)
    asked = resampled_mean([each.queries for each in attempts], [each.standing.row.id for each in attempts], draws)
    yield Measure(name="questions", part=name, interval=asked, better="none")


def _low(name: str, part: str, interval: Interval) -> Measure:
    return Measure(name=name, part=part, interval=interval, better="low")


def checks(study: Study, level: float) -> list[Check]:
    """Return for each attacker whether it broke nothing, with what that says about other rows.

    Where none of n rows is broken, the share of such rows that are is below -ln(1 - level) / n with that confidence:
    the rule of three for 95 %.
    """
    return [_check(name, attempts, study.budget, level) for name, attempts in study.attempts.items()]


def _check(name: str, attempts: Sequence[Attempt], budget: int, level: float) -> Check:
    title = f"no success of {name}"
    if not attempts:
        why = "the scorer ships no attacks" if name == SHIPPED else "no row could be attacked"
        return Check(name=title, passed=None, detail=why)
    asked, unscored = sum(each.queries for each in attempts), sum(each.unscored for each in attempts)
    missing = f", {unscored:,} of them without a number" if unscored else ""
    how = "questions" if name == SHIPPED else f"questions, at most {budget:,} a row"
    judged = sum(each.judged for each in attempts)
    if not judged:
        return Check(name=title, passed=None, detail=f"none of {asked:,} {how} got a number")
    broken = sum(each.won is not None for each in attempts)
    detail = f"{broken} of {judged} rows broken in {asked:,} {how}{missing}"
    if judged < len(attempts):
        detail += f"; of {len(attempts) - judged} rows no question got a number"
    if not broken and name != SHIPPED:
        bound = min(1.0, -math.log(1 - level) / judged)
        detail += f"; with {level:.0%} confidence this breaks fewer than {bound:.1%} of such rows (rule of three)"
    return Check(name=title, passed=not broken, detail=detail)


def figures(study: Study, level: float) -> list[Figure]:
    """Return success against questions, and where winning responses work too."""
    places = budgets(study.budget, _STEPS)
    lines = []
    for name, attempts in study.searched.items():
        lines.append(Series.of(name, places, [broken_within(attempts, queries, level) for queries in places]))
    drawn: list[Figure] = []
    if lines:
        title = "Rows broken within so many questions"
        drawn.append(Curves(title=title, x_axis="questions", y_axis="share", series=tuple(lines), log_x=True))
    names = [
        name for name in study.searched if any(one.attacker == name for each in study.carried.values() for one in each)
    ]
    if names:
        won = [[[one.won for one in each if one.attacker == name] for each in study.carried.values()] for name in names]
        values = tuple(tuple(sum(mine) / len(mine) if mine else None for mine in row) for row in won)
        drawn.append(
            Grid(
                title="Where winning responses win too",
                rows=tuple(names),
                columns=tuple(study.carried),
                values=values,
                row_axis="attacker",
                column_axis="tried on",
                better="low",
            )
        )
    return drawn
