"""`adjudge eval calibration`: stored scores against outcomes.

A row without a score is never right: it lowers accuracy and coverage.  Calibration itself is of the rows that have a
number, and how many have none stands beside it.

Not covered: scoring; label the rows first.
"""

from __future__ import annotations

import dataclasses
import time

from adjudge.evals.calibration.config import CalibrationConfig
from adjudge.evals.calibration.measuring import calibration_measures, right_calls
from adjudge.evals.calibration.reliability import Binning, calibration_error, risk_coverage
from adjudge.evals.calibration.scored_rows import ScoredRows, read_rows
from adjudge.evals.results.figures import Bar, Bars, Curves, Figure, Grid, Series
from adjudge.evals.results.reading import ReadCase, ReadResponse
from adjudge.evals.results.result import Result
from adjudge.evals.statistics.confusion import confusion_grid
from adjudge.evals.verdicts.table import counts_of, texts_of
from adjudge.intervals import Interval, wilson
from adjudge.io.jobs.report import JobProgress

_POINTS = 200  # of a risk-coverage curve that are drawn


def run_calibration(config: CalibrationConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure how well stored scores match outcomes.

    Args:
        config: the options.
        progress: who is told what was guessed about the columns.

    Raises:
        ValueError: a column is missing or holds something else, no row has a score and a gold, or no map fits.
    """
    begun = time.monotonic()
    rows = read_rows(config)
    if progress is not None:
        for guess in rows.table.guesses:
            progress.note(guess)
    who = rows.table.who.get("score", {})
    return Result(
        kind="calibration",
        asked=False,
        title=f"Calibration of {config.score_column} in {rows.table.name}",
        scorer={"name": who.get("name") or config.score_column, "fingerprint": who.get("fingerprint", "")},
        source=rows.table.facts | ({"gold": config.gold} if config.gold else {}),
        measures=tuple(calibration_measures(rows, config)),
        counts=counts_of(rows.said, rows.table),
        figures=_figures(rows, config),
        worst=_worst(rows, config),
        notes=_notes(rows, config),
        options=dataclasses.asdict(config),
        seconds=time.monotonic() - begun,
    )


def _notes(rows: ScoredRows, config: CalibrationConfig) -> tuple[str, ...]:
    notes = [
        *rows.notes,
        "the calibration error of a sample is too large, for even a perfect scorer's bins miss by chance: compare it "
        "with the baseline, which is what perfect calibration would show with as many independent rows; its bounds "
        "are corrected for the excess of resamples",
    ]
    if not config.draws.rounds:
        notes.append("no bounds were drawn")
    if rows.without_gold:
        notes.append(f"{rows.without_gold} rows have no gold, and are in none of the numbers")
    if rows.gold_alone:
        notes.append(
            f"{rows.gold_alone} rows of {config.gold} are not in {rows.table.name}, and are in none of the numbers: "
            "if they should have been scored, accuracy and coverage are too high"
        )
    sure = [
        (rows.probabilities == 0) & (rows.scored_labels == 1),
        (rows.probabilities == 1) & (rows.scored_labels == 0),
    ]
    if certain := int(sum(one.sum() for one in sure)):
        notes.append(f"the log loss is infinite: {certain} rows were said to be impossible, and came")
    if len(set(rows.scored_labels.tolist())) < 2:
        notes.append("all rows have one outcome, so nothing can be said about their order")
    notes += [f"cannot be read: {problem}" for problem in rows.table.unreadable[:5]]
    return tuple(notes)


def _figures(rows: ScoredRows, config: CalibrationConfig) -> tuple[Figure, ...]:
    labels = [int(label) for label in rows.scored_labels]
    said = rows.probabilities.tolist()
    lines = [_line(said, labels, config, "equal_mass"), _line(said, labels, config, "equal_width")]
    reliability = Curves(
        title="Reliability", x_axis="probability", y_axis="share right", series=tuple(lines), diagonal=True
    )
    return reliability, _risk(rows, config), _histogram(said, labels, config), _confusion(rows, config)


def _line(said: list[float], labels: list[int], config: CalibrationConfig, binning: Binning) -> Series:
    bins = calibration_error(said, labels, bins=config.bins, binning=binning).bins
    bounds = [wilson(round(one.rate * one.count), one.count, level=config.level) for one in bins]
    return Series(
        name=f"bins of {binning.replace('_', ' ')}",
        x=tuple(one.confidence for one in bins),
        y=tuple(one.rate for one in bins),
        low=tuple(one.low for one in bounds),
        high=tuple(one.high for one in bounds),
    )


def _risk(rows: ScoredRows, config: CalibrationConfig) -> Curves:
    """Abstaining is the least confidence of all, so the curve ends at the share of rows with a number."""
    losses = (1.0 - right_calls(rows, config)).tolist()
    sure = [abs(one - config.threshold) for one in rows.probabilities.tolist()]
    share = len(losses) / len(rows.labels)
    points = risk_coverage(sure, losses).points
    best = risk_coverage([-loss for loss in losses], losses).points
    kept = sorted({round(at * (len(points) - 1) / (_POINTS - 1)) for at in range(_POINTS)})
    series = tuple(
        Series(name=name, x=tuple(curve[at][0] * share for at in kept), y=tuple(curve[at][1] for at in kept))
        for name, curve in (("by confidence", points), ("if it knew its errors", best))
    )
    return Curves(
        title="Risk and coverage", x_axis="share of rows answered", y_axis="share of them wrong", series=series
    )


def _histogram(said: list[float], labels: list[int], config: CalibrationConfig) -> Bars:
    bins = calibration_error(said, labels, bins=config.bins).bins
    bars = tuple(
        Bar(
            name=f"{one.low:.3g} to {one.high:.3g}",
            interval=Interval(value=float(one.count), n=one.count),
            baselines={"right": float(round(one.rate * one.count))},
        )
        for one in bins
    )
    return Bars(title="Rows by probability", unit="rows", bars=bars)


def _confusion(rows: ScoredRows, config: CalibrationConfig) -> Grid:
    names = ("wrong", "right")
    called: list[str | None] = [None] * len(rows.labels)
    for at, one in zip(rows.scored.tolist(), rows.probabilities.tolist(), strict=True):
        called[at] = names[one >= config.threshold]
    gold = [names[int(label)] for label in rows.labels]
    return confusion_grid(gold, called, names, title=f"Calls at {config.threshold:g}")


def _worst(rows: ScoredRows, config: CalibrationConfig) -> tuple[ReadCase, ...]:
    """The most confident errors."""
    labels = rows.scored_labels.tolist()
    gaps = [(abs(said - label), at) for at, (said, label) in enumerate(zip(rows.probabilities, labels, strict=True))]
    wrong = right_calls(rows, config)
    chosen = sorted(((float(gap), at) for gap, at in gaps if not wrong[at]), reverse=True)[: config.worst]
    places = {at: rows.at[int(rows.scored[at])] for _, at in chosen}
    texts = texts_of(config, [rows.table.places[place] for place in places.values()])
    cases = []
    for gap, at in chosen:
        place = places[at]
        prompt, response = texts.get(rows.table.places[place], ("", ""))
        probability = float(rows.probabilities[at])
        said = f"{rows.values[at]:.6g}" + (f", as a probability {probability:.3f}" if rows.notes else "")
        cases.append(
            ReadCase(
                id=rows.table.ids[place],
                part="",
                verdict="wrong",
                weight=gap,
                prompt=prompt,
                responses=(ReadResponse(text=response, said=said, value=probability),),
                gold="right" if labels[at] else "wrong",
            )
        )
    return tuple(cases)
