"""Over-optimisation of an RL run: proxy and gold over the divergence from the first policy, the law, and the turn.

The journal of `adjudge train policy` has what is needed where a guard with a gold scorer and a reference policy were
set: "divergence" (nats for each token, if the objective measures it), "proxy" and "gold" with their standard errors.
Any file of rows with three such columns is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from adjudge.evals.best_of_n.config import BestOfNConfig
from adjudge.evals.best_of_n.curves import LAW, fit_law, law_curve, refusal
from adjudge.evals.reports.config import input_facts
from adjudge.evals.reports.result import Check, Counts, Measure, Result
from adjudge.io.columns import Choice, Column, no_column
from adjudge.io.row import Cursor
from adjudge.io.values import number_of
from adjudge.pages.figures import Curves, Figure, Series
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import weighted_bootstrap
from adjudge.statistics.intervals import Interval

JOURNAL = "steps.jsonl"
# "approx_kl" is none of them: what is logged by that name is the divergence from the policy of the step before.
_KL = ("kl", "divergence", "kl_divergence", "objective/kl", "train/kl", "actor/kl_loss")
_PROXY = ("proxy", "reward", "rewards/mean", "objective/scores", "critic/score/mean")
_GOLD = ("gold", "gold_reward", "gold/mean")
_START = "start_"
_NOUGHT = 1e-9  # nats that are none


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measurement of a run.

    Attributes:
        kl: divergence from the first policy, nats, at least 0.
        proxy: mean of what the run is paid for; None if unknown.
        gold_error: its standard error; None if unknown.
    """

    step: int
    kl: float
    proxy: float | None
    gold: float
    gold_error: float | None


def run_of_log(config: BestOfNConfig) -> Result:
    """Measure what an RL run gained, and where it turned; see `evaluating.run_best_of_n`."""
    journal = Path(config.input) / JOURNAL
    source = config.opened(str(journal) if journal.is_file() else "")
    rows = [row for row in source.rows(Cursor()) if not config.limit or row.index < config.limit]
    read = [cells for row in rows if (cells := row.cells()) is not None]
    names = _named(config, read)
    points = points_of(read, names)
    if not points:
        raise ValueError(
            f"no step of {config.input} has both {names['kl']!r} and {names['gold']!r}; "
            "a run of adjudge train policy measures them with a guard and a reference policy"
        )
    measures, refused = _fitted(points, config)
    figures, turned = _curves(points, measures, refused), _turn(points, config.level)
    return Result(
        kind="best_of_n",
        title="Over-optimisation of an RL run",
        scorer={"name": names["proxy"], "fingerprint": "stored"},
        source=input_facts(source, len(rows)),
        measures=(*_ends(points), *measures),
        counts=Counts(cases=len(points), samples=len(read), scored=len(points), unreadable=len(rows) - len(read)),
        checks=(turned, *([refused] if refused is not None else [])),
        figures=figures,
        notes=(
            f"columns: divergence {names['kl']!r}, proxy {names['proxy']!r}, gold {names['gold']!r}",
            f"{len(read) - len(points)} steps were not measured",
            "bounds are over measurements, as if these were independent; those of one run are not quite",
        ),
        options=config.told(),
    )


def points_of(rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[Point]:
    """Return the measurements of steps that have a divergence and a gold, and the one before the first step."""
    points: list[Point] = []
    for place, row in enumerate(rows):
        step = number_of(Column(names["step"]).of(row))
        at = place if step is None else int(step)
        start = number_of(row.get(_START + names["gold"]))
        if start is not None and not points:  # the policy that nothing was done to; not one that a guard went back to
            error = number_of(row.get(f"{_START}{names['gold']}_error"))
            proxy = number_of(row.get(_START + names["proxy"]))
            points.append(Point(step=at - 1, kl=0.0, proxy=proxy, gold=start, gold_error=error))
        kl, gold = (number_of(Column(names[name]).of(row)) for name in ("kl", "gold"))
        if kl is not None and gold is not None:
            points.append(
                Point(
                    step=at,
                    kl=max(kl, 0.0),  # estimates of a small divergence may be below 0
                    proxy=number_of(Column(names["proxy"]).of(row)),
                    gold=gold,
                    gold_error=number_of(row.get(f"{names['gold']}_error")),
                )
            )
    return sorted(points, key=lambda point: point.step)


def first_fall(points: Sequence[Point], level: float) -> tuple[int, int, float] | None:
    """Return where gold is surely below its peak: the places of the peak and of the fall, and the difference.

    A measurement is surely below the highest one before it if the difference is as many standard errors as, of all
    pairs of measurements, one exceeds by chance 1 - level of the time at most (Bonferroni): any earlier one could have
    been the highest.  Standard errors are those of the log; without them one is estimated from neighbours, whose
    differences have twice its square, and which the trend makes too large rather than too small.
    """
    errors = _errors(points)
    if errors is None or len(points) < 3:
        return None
    tests = len(points) * (len(points) - 1) / 2
    needed = NormalDist().inv_cdf(1 - (1 - level) / tests)
    peak = 0
    for at in range(1, len(points)):
        lost = points[peak].gold - points[at].gold
        if lost > needed * math.hypot(errors[peak], errors[at]):
            return peak, at, lost
        if points[at].gold > points[peak].gold:
            peak = at
    return None


def _errors(points: Sequence[Point]) -> list[float] | None:
    given = [point.gold_error for point in points if point.gold_error is not None]
    if len(given) == len(points):
        return given
    steps = [later.gold - earlier.gold for earlier, later in itertools.pairwise(points)]
    if len(steps) < 2:
        return None
    return [math.sqrt(math.fsum(step * step for step in steps) / len(steps) / 2)] * len(points)


def _named(config: BestOfNConfig, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The columns: those that were named, else the first usual name that some row has."""
    known = list(dict.fromkeys(name for row in rows for name in row))

    def chosen(role: str, flag: str, given: str, usual: Sequence[str]) -> str:
        choice = Choice(known, rows, flag=lambda _: flag)
        column = choice.pick(role, given.removeprefix("column:"), usual)
        if column is None:
            raise ValueError(no_column(role, choice.known, flag, usual))
        return column.name

    return {
        "kl": chosen("divergence", "--kl-column", config.kl_column, _KL),
        "proxy": chosen("proxy", "--proxy", config.proxy, _PROXY),
        "gold": chosen("gold", "--gold", config.gold, _GOLD),
        "step": next((one for one in ("step", "global_step", "iteration") if one in known), "step"),
    }


def _fitted(points: Sequence[Point], config: BestOfNConfig) -> tuple[list[Measure], Check | None]:
    untouched = [point.gold for point in points if point.kl <= _NOUGHT]  # of the policy that nothing was done to
    start = math.fsum(untouched) / len(untouched) if untouched else None
    used = [point for point in points if point.kl > _NOUGHT]
    d = np.sqrt([point.kl for point in used])
    gains = np.array([[point.gold - (start or 0.0) for point in used]])
    why = refusal(d, gains, "rl", from_start=start is not None)
    if why:
        return [], Check(name="the law of RL can be fitted", passed=None, detail=why)

    def statistic(times: Floats) -> Floats:
        fit = fit_law(d, gains, "rl", weights=times, from_start=start is not None)
        return np.array([each[0] for each in (fit.alpha, fit.beta, fit.peak(), fit.residual, fit.explained, fit.start)])

    numbers = weighted_bootstrap([str(at) for at in range(len(used))], statistic, config.draws)
    level = numbers[-1] if start is None else Interval(value=start, n=1)
    return [
        *(
            Measure(name=name, part="law of RL", interval=one, better="none", published=True)
            for name, one in zip(LAW, numbers, strict=False)
        ),
        Measure(name="gold at the start", part="law of RL", interval=level, better="none"),
    ], None


def _ends(points: Sequence[Point]) -> list[Measure]:
    best = max(points, key=lambda point: point.gold)
    last = points[-1]
    numbers = {
        "gold lost behind its peak": (best.gold - last.gold, "low"),
        "highest gold": (best.gold, "high"),
        "gold of the last step": (last.gold, "high"),
        "step of the highest gold": (float(best.step), "none"),
        "d of the highest gold": (math.sqrt(best.kl), "none"),
    }
    return [
        Measure(name=name, interval=Interval(value=value, n=len(points)), better=better)
        for name, (value, better) in numbers.items()
    ]


def _turn(points: Sequence[Point], level: float) -> Check:
    name = "gold never falls surely below its peak"
    if _errors(points) is None or len(points) < 3:
        return Check(name=name, passed=None, detail=f"{len(points)} measurements say nothing about it; 3 are needed")
    fallen = first_fall(points, level)
    if fallen is None:
        return Check(name=name, passed=True, detail=f"{len(points)} measurements, {level:.0%} sure")
    peak, fall, lost = fallen
    return Check(
        name=name,
        passed=False,
        detail=f"it is {lost:.4g} below its peak of step {points[peak].step} at step {points[fall].step}, "
        f"where d = {math.sqrt(points[fall].kl):.4g}; {level:.0%} sure, for all measurements together",
    )


def _curves(points: Sequence[Point], measures: Sequence[Measure], refused: Check | None) -> tuple[Figure, ...]:
    ordered = sorted(points, key=lambda point: point.kl)
    x = tuple(math.sqrt(point.kl) for point in ordered)
    lines = [Series(name="gold", x=x, y=tuple(point.gold for point in ordered), points=True)]
    if refused is None:
        named = {one.name: one.interval.known for one in measures if one.name in ("alpha", "beta", "gold at the start")}
        d = np.linspace(0, x[-1], 61)
        curve = law_curve("rl", d, named["alpha"], named["beta"], named["gold at the start"])
        lines.append(Series(name="d (alpha - beta log d)", x=tuple(d.tolist()), y=tuple(curve.tolist())))
    proxy = Series(name="proxy", x=x, y=tuple(point.proxy for point in ordered), points=True)
    axis = "d = sqrt(KL)"
    return (
        Curves(title="Gold over the divergence", x_axis=axis, y_axis="gold", series=tuple(lines)),
        Curves(title="Proxy over the divergence", x_axis=axis, y_axis="proxy", series=(proxy,)),
    )
