"""`adjudge eval live_drift`: the scores of a service or a run over time, against those at its beginning.

Not covered: why something changed.  The policy, the prompts and the scorer all do; fingerprints tell of the last one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Check, Counts, Measure, ReadCase, ReadResponse, Result
from adjudge.evals.trust.verdicts import LiveDriftConfig, unreadable_notes
from adjudge.evals.trust.windows import SHARES, LiveDrift, look
from adjudge.io.jobs.report import JobProgress, tell
from adjudge.pages.figures import Curves, Figure, Grid, Series
from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.bootstrap import mean_interval
from adjudge.statistics.intervals import Draws, Interval

_CURVES = {"value": "Score", "length": "Length", "latency": "Latency"}


def mean_of(numbers: Floats, groups: Ints, draws: Draws) -> Interval:
    """Return the mean of what is known, with bounds over whole groups."""
    known = np.isfinite(numbers)
    return mean_interval(numbers[known], [str(group) for group in groups[known].tolist()], draws)


def live_figures(drift: LiveDrift, draws: Draws) -> tuple[Figure, ...]:
    """Return the curves of all signals over the windows, and how far each window is from the reference."""
    windows = range(len(drift.edges) - 1)
    times = tuple(float(drift.stream.times[(drift.edges[at] + drift.edges[at + 1] - 1) // 2]) for at in windows)
    figures: list[Figure] = [
        _spread(drift, signal, title, times, draws) for signal, title in _CURVES.items() if signal in drift.reference
    ]
    shares = tuple(
        Series(
            name=signal,
            x=times,
            y=tuple(float(held.mean()) if len(held := drift.of_window(signal, at)) else None for at in windows),
        )
        for signal in SHARES
        if signal in drift.reference
    )
    if shares:
        figures.append(Curves(title="Shares", x_axis=drift.stream.axis, y_axis="share", series=shares))
    numbers = [signal for signal in drift.reference if signal not in SHARES]
    if numbers:
        effect = {(one.signal, one.window): one.effect if one.p is not None else None for one in drift.tests}
        figures.append(
            Grid(
                title="Population stability index",
                rows=tuple(numbers),
                columns=tuple(str(at) for at in windows),
                values=tuple(tuple(effect[signal, at] for at in windows) for signal in numbers),
                column_axis="window",
                better="low",
            )
        )
    return (*figures, _cumulative(drift, next(iter(drift.reference))))


def _spread(drift: LiveDrift, signal: str, title: str, times: tuple[float, ...], draws: Draws) -> Curves:
    windows = range(len(times))
    bounds = []
    for at in windows:
        edges = slice(drift.edges[at], drift.edges[at + 1])
        bounds.append(mean_of(drift.stream.signals[signal][edges], drift.stream.groups[edges], draws))
    base = float(drift.reference[signal].mean())
    series = [
        Series.of("mean", times, bounds),
        Series(name="reference mean", x=times, y=(base,) * len(times)),
    ]
    for share in (0.1, 0.5, 0.9):
        held = [drift.of_window(signal, at) for at in windows]
        marks = tuple(float(np.quantile(one, share)) if len(one) else None for one in held)
        series.append(Series(name=f"{share:.0%} quantile", x=times, y=marks))
    return Curves(title=title, x_axis=drift.stream.axis, y_axis=signal, series=tuple(series))


def _cumulative(drift: LiveDrift, signal: str) -> Curves:
    change = drift.changes[signal]
    ends = [min(drift.edges[0] + (at + 1) * drift.block, len(drift.stream)) - 1 for at in range(len(change.rises))]
    times = tuple(float(drift.stream.times[end]) for end in ends)
    series = (
        Series(name="above the reference", x=times, y=tuple(change.rises.tolist())),
        Series(name="below the reference", x=times, y=tuple(change.falls.tolist())),
        Series(name="limit", x=times, y=(change.limit,) * len(times)),
    )
    return Curves(title=f"Cumulative sums: {signal}", x_axis=drift.stream.axis, y_axis="sum", series=series)


_BINS = 10  # of the stability index


@timed
def run_live_drift(config: LiveDriftConfig, *, progress: JobProgress | None = None) -> Result:
    """Compare the windows of a log with its beginning.

    Raises:
        ValueError: a file or column is missing, or there are too few rows.
    """
    drift = look(config)
    for note in drift.stream.notes:
        tell(progress, note)
    prints = drift.stream.fingerprints
    return Result(
        kind="live_drift",
        asked=False,
        title=f"{len(drift.stream)} scores over time",
        scorer={"name": config.input, "fingerprint": prints[-1] if prints else "", "fingerprints": list(prints)},
        source={"name": drift.stream.name, "rows": len(drift.stream), "reference": drift.reference_stream.name},
        measures=tuple(_measures(drift, config)),
        counts=_counts(drift),
        checks=tuple(_checks(drift, config)),
        figures=live_figures(drift, config.draws),
        worst=_worst(drift, config),
        notes=_notes(drift, config),
        options=dataclasses.asdict(config),
    )


def _measures(drift: LiveDrift, config: LiveDriftConfig) -> list[Measure]:
    origin, last = drift.reference_stream, len(drift.edges) - 2
    made = []
    for signal in drift.reference:
        then = mean_of(origin.signals[signal][: drift.rows], origin.groups[: drift.rows], config.draws)
        edges = slice(drift.edges[last], drift.edges[last + 1])
        now = mean_of(drift.stream.signals[signal][edges], drift.stream.groups[edges], config.draws)
        made.append(Measure(name="mean", part=f"{signal}, reference", interval=then, better="none"))
        made.append(Measure(name="mean", part=f"{signal}, last window", interval=now, better="none"))
        tests = [one for one in drift.tests if one.signal == signal and one.p is not None]
        if tests and signal not in SHARES:
            bins = min(_BINS, len(set(drift.reference[signal].tolist())))
            chance = (bins - 1) * (1 / len(drift.reference[signal]) + 1 / config.window)
            largest = max(one.effect for one in tests)
            made.append(
                Measure(
                    name="largest PSI",
                    part=signal,
                    interval=Interval(value=largest, n=len(tests)),
                    baselines={"one window by chance": chance},
                    better="low",
                )
            )
        if tests:
            distance = Interval(value=max(one.distance for one in tests), n=len(tests))
            made.append(Measure(name="largest distance", part=signal, interval=distance, better="low"))
    return made


def _counts(drift: LiveDrift) -> Counts:
    reasons, by_status = drift.stream.reasons, Counter[str]()
    for name, count in reasons.items():
        by_status[name.split(" ")[0]] += count
    return Counts(
        cases=len(drift.edges) - 1,
        samples=len(drift.stream),
        scored=by_status["scored"],
        abstained=by_status["abstained"],
        failed=by_status["failed"] + by_status["missing"],
        unreadable=len(drift.stream.unreadable),
        reasons={name: count for name, count in reasons.items() if not name.startswith("scored")},
    )


def _checks(drift: LiveDrift, config: LiveDriftConfig) -> list[Check]:
    checks = []
    for signal in drift.reference:
        tests = [one for one in drift.tests if one.signal == signal]
        alarms = [one for one in tests if one.alarm]
        tried = [one for one in tests if one.p is not None]
        detail = f"{len(tried)} windows of {config.window} rows; none differs"
        if alarms:
            first = alarms[0]
            detail = (
                f"{len(alarms)} of {len(tried)} windows differ, first window {first.window} at "
                f"{_place(drift, first.window)}: mean {first.change:+.4g}, "
                f"{'change' if signal in SHARES else 'PSI'} {first.effect:.3g}, p {first.p_adjusted:.2g} after Holm"
            )
        checks.append(Check(name=f"{signal}: windows", passed=not alarms if tried else None, detail=detail))
        change = drift.changes[signal]
        said = f"highest sum {max(change.rises.max(), change.falls.max()):.3g}, limit {change.limit:.3g}"
        if change.alarm is not None and change.change is not None:
            row = drift.edges[0] + change.change * drift.block
            unit = "share" if signal in SHARES else "rank"
            said += (
                f"; it {'rose' if change.moved > 0 else 'fell'} by {abs(change.moved):.3g} ({unit}) from row {row} on"
            )
        checks.append(Check(name=f"{signal}: change point", passed=change.alarm is None, detail=said))
    prints = tuple(dict.fromkeys((*drift.reference_stream.fingerprints, *drift.stream.fingerprints)))
    detail = f"{len(prints)} fingerprints: {', '.join(prints[:5])}" if prints else "the log names none"
    return [*checks, Check(name="one fingerprint", passed=len(prints) == 1 if prints else None, detail=detail)]


def _notes(drift: LiveDrift, config: LiveDriftConfig) -> tuple[str, ...]:
    notes = list(drift.stream.notes)
    left = len(drift.stream) - drift.edges[-1]
    if left:
        notes.append(f"the last {left} rows are too few for a window, and in no window")
    lost = [name for name in drift.stream.signals if name not in drift.reference]
    if lost:
        notes.append(f"the reference has too few numbers for {', '.join(lost)}, which nothing is said about")
    notes.append(
        f"the chance of any false alarm is {config.alarm:g} for rows that are independent but for their groups; where "
        "rows come in waves (one kind of prompt after another) it is more"
    )
    return (*notes, *unreadable_notes(drift.stream.unreadable))


def _place(drift: LiveDrift, window: int) -> str:
    at = drift.stream.times[drift.edges[window]]
    return f"{drift.stream.axis} {at:.6g}"


def _worst(drift: LiveDrift, config: LiveDriftConfig) -> tuple[ReadCase, ...]:
    """The windows that differ most."""
    alarms = sorted((one for one in drift.tests if one.alarm), key=lambda one: (-one.distance, one.window))
    return tuple(
        ReadCase(
            id=f"window {one.window}, {one.signal}",
            part=one.signal,
            verdict="drift",
            weight=one.distance,
            prompt=f"rows {drift.edges[one.window]} to {drift.edges[one.window + 1] - 1}, {_place(drift, one.window)}",
            responses=(
                ReadResponse(text="", said=f"mean {one.change:+.4g}, effect {one.effect:.3g}", value=one.effect),
            ),
            gold="",
        )
        for one in alarms[: config.worst]
    )
