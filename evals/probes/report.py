"""Tallies as measures, checks, a grid and cases to read.

Bounds of a probe are Wilson's over its variants.  Variants of one row depend on each other, so true bounds are wider
where a probe makes several of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from adjudge.evals.benchmarks.worst import cut
from adjudge.evals.probes.probe import Broken, Tally
from adjudge.evals.probes.trying import Base, Yardstick
from adjudge.evals.reports.figures import Grid
from adjudge.evals.reports.result import Check, Measure, ReadCase, ReadResponse
from adjudge.protocol import Score
from adjudge.statistics.intervals import Interval, wilson

OUTCOMES: Final = ("kept", "broken", "no score")
_SPELLED: Final = ("master_keys",)  # probes whose every variant is a measure of its own


def measures_of(
    tallies: Sequence[Tally],
    bases: Sequence[Base],
    below: Sequence[int],
    *,
    pairs: int,
    tolerated: float,
    level: float,
) -> Iterator[Measure]:
    """Yield the share of probes that pass, what the scorer thinks of the rows, and each probe's broken share.

    Args:
        tallies: of each probe.
        bases: rows whose good response has a score.
        below: worthless variants below every good response, and all of them.
        pairs: rows with a good and a bad response, with scores or without; without one, good is not above bad.
        tolerated: share of a probe's variants that may break its rule.
        level: coverage of the bounds.
    """
    tried = [tally for tally in tallies if tally.tried]
    passed = sum(bool(tally.passed(tolerated)) for tally in tried)
    yield Measure(name="probes passed", interval=Interval(value=passed / len(tried) if tried else None, n=len(tried)))
    for kind in ("worthless", "sensitivity", "invariance"):
        some = [tally for tally in tried if tally.probe.kind == kind]
        if some:
            share = sum(bool(tally.passed(tolerated)) for tally in some) / len(some)
            yield Measure(name="probes passed", part=kind, interval=Interval(value=share, n=len(some)))
    if pairs:
        above = sum(bad is not None and good > bad for good, bad in (base.values for base in bases))
        yield Measure(name="good above bad", interval=wilson(above, pairs, level=level))
    if below[1]:
        yield Measure(name="worthless below every good response", interval=wilson(below[0], below[1], level=level))
    for tally in tried:
        name = tally.probe.name
        yield Measure(name="broken", part=name, interval=tally.rate(level), better="low")
        if name in _SPELLED:
            for how, (count, wrong) in tally.by_how.items():
                yield Measure(
                    name="broken", part=f"{name} {how}", interval=wilson(wrong, count, level=level), better="low"
                )


def check_of(tally: Tally, *, tolerated: float, level: float) -> Check:
    """Return whether a probe passed, and the numbers."""
    probe = tally.probe
    passed = tally.passed(tolerated)
    if passed is None:
        return Check(name=probe.name, passed=None, detail=tally.why_not())
    rate = tally.rate(level)
    said = f"{probe.says}: {tally.broken} of {tally.tried} break the rule"
    if tally.unjudged:
        said += f", {tally.unjudged} have no score"
    said += f"; share {rate}"
    if not passed:
        worst = max(tally.by_how.items(), key=lambda one: (one[1][1] / one[1][0], one[1][1]))
        said += f". Most often: {worst[0]} ({worst[1][1]} of {worst[1][0]}). {probe.means[0].upper()}{probe.means[1:]}"
    return Check(name=probe.name, passed=passed, detail=said)


def grid_of(tallies: Sequence[Tally]) -> Grid | None:
    """Return the shares of outcomes of each probe that was tried; None if none was."""
    tried = [tally for tally in tallies if tally.tried]
    if not tried:
        return None
    values = tuple(
        tuple(count / tally.tried for count in (tally.held, tally.broken, tally.unjudged)) for tally in tried
    )
    return Grid(
        title="Probes: share of variants",
        rows=tuple(tally.probe.name for tally in tried),
        columns=OUTCOMES,
        values=values,
        row_axis="probe",
        column_axis="outcome",
    )


def worst_of(tallies: Sequence[Tally], scale: Yardstick, most: int) -> tuple[ReadCase, ...]:
    """Return cases to read, taken from the probes in turn, so that none hides another; the worst stand first."""
    kept = [list(tally.worst) for tally in tallies]
    dealt: list[tuple[Tally, Broken]] = []
    for place in range(max(map(len, kept), default=0)):
        dealt += [(tally, cases[place]) for tally, cases in zip(tallies, kept, strict=True) if place < len(cases)]
    shown = [_read(tally, case, scale) for tally, case in dealt[:most]]
    return tuple(sorted(shown, key=lambda case: -case.weight))


def _read(tally: Tally, case: Broken, scale: Yardstick) -> ReadCase:
    row, variant = case.row, case.variant
    asked = row if variant.prompt is None else replace(row, prompt=variant.prompt)
    original = row.good if variant.of == "good" else row.bad or ""
    note = f"changed: {variant.how}" + (f" (finish reason {variant.finish_reason})" if variant.finish_reason else "")
    return ReadCase(
        id=row.id,
        part=tally.probe.name,
        verdict="broken" if case.score.value is not None else case.score.status,
        weight=case.excess,
        prompt=cut(asked.asked),
        responses=(
            ReadResponse(text=cut(variant.response), said=_said(case.score), value=case.score.value, note=note),
            ReadResponse(
                text=cut(original), said=_said(case.base), value=case.base.value, note=f"{variant.of}, as it is"
            ),
        ),
        gold=f"rule {tally.probe.rule}, epsilon {scale.epsilon:.4g}",
    )


def _said(score: Score) -> str:
    if score.value is None:
        return f"{score.status} ({score.reason})"
    return f"{score.value:.4g}" + (f" ({score.reason})" if score.reason else "")
