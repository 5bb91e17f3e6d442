"""`adjudge eval calibration`: stored scores against outcomes.

The calibration error of a sample is too large: even a perfect scorer's bins miss their rates by chance.  So what a
perfect scorer with the same probabilities would get stands beside it (`error_by_chance`).  A resample adds chance once
more, so its errors are larger still, by about as much.  That excess is taken from the upper percentile once, so that
bounds hold the number, and from the lower one twice, so that they reach down to what is left without the sample's own.
Of 150 samples of 600 rows, 95 % bounds held a true error of 0.138 in 96 %, one of 0.054 in 98 %, and one of 0 in 55 %:
near 0 the comparison with chance says more.  Reliability and resolution have the same bias.

Sources: Guo et al. 2017 (ECE, MCE), Murphy 1973 (the parts), Stephenson et al. 2008 (what is left inside of bins).

What confidence buys is the area under the risk-coverage curve, for rows that count several times.

A row without a score is never right: it lowers accuracy and coverage.  Calibration itself is of the rows that have a
number, and how many have none stands beside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Measure, ReadCase, Result
from adjudge.evals.trust.reliability import Binning, bin_of, calibration_error, risk_coverage
from adjudge.evals.trust.scored_rows import ScoredRows, read_rows
from adjudge.evals.trust.verdicts import CalibrationConfig, counts_of, read_case, texts_of, unreadable_notes
from adjudge.io.jobs.report import JobProgress, tell
from adjudge.pages.figures import Bar, Bars, Curves, Figure, Grid, Series, confusion_grid
from adjudge.statistics.arrays import Bools, Floats, Ints, np
from adjudge.statistics.bootstrap import cluster_bootstrap, mean_interval, share_interval, weighted_bootstrap
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.ranks import Levels, auroc_of, average_precision_of, spearman_of


def areas_of(confidences: Floats, losses: Floats) -> Callable[[Floats], Floats]:
    """Return area (AURC) and excess area (E-AURC) as a function of how often each row counts.

    With whole weights they are those of `risk_coverage` for the data in which each row stands so many times.  In a
    block of equal confidence the risk of a random order is `mean + (lost - mean kept) / k` at the k-th row, so the sum
    over the block is one difference of harmonic numbers.
    """
    sides = []
    for key in (-confidences, losses):  # the surest first; and, for the best order there is, those that lose least
        levels = Levels(key)
        sides.append((levels, losses[levels.order]))
    harmonic = _harmonic(2 * len(losses))

    def statistic(weights: Floats) -> Floats:
        nonlocal harmonic
        rows = int(weights.sum())
        if not rows:
            return np.array([np.nan, np.nan])
        if rows >= len(harmonic):
            harmonic = _harmonic(2 * rows)
        area, best = (_area(levels, weights, lost, harmonic) / rows for levels, lost in sides)
        return np.array([area, max(0.0, area - best)])

    return statistic


def _harmonic(most: int) -> Floats:
    """Return the harmonic numbers 0 to `most`."""
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])


def _area(levels: Levels, weights: Floats, losses: Floats, harmonic: Floats) -> float:
    rows = weights[levels.order]
    sizes, lost = levels.sums(rows), levels.sums(rows * losses)
    kept = np.concatenate([[0.0], np.cumsum(sizes)])
    means = lost / np.maximum(sizes, 1.0)  # weights are whole; what is not there has lost nothing
    gained = np.diff(harmonic[kept.astype(np.int64)])
    before = np.cumsum(lost) - lost
    return float((lost + (before - means * kept[:-1]) * gained).sum())


NAMES: tuple[str, ...] = ("expected", "largest", "reliability", "resolution", "uncertainty", "inside")
_ABOVE_ZERO = ("expected", "largest", "reliability", "resolution")
_CHANCE_DRAWS = 200


def binned_intervals(
    probabilities: Floats, labels: Floats, clusters: Sequence[str], bins: Ints, draws: Draws
) -> dict[str, Interval]:
    """Return the numbers of `NAMES`; each probability has a label, 1 or 0, and a bin (`bin_of`), which resamples keep.

    "expected" is the calibration error (ECE), "largest" the largest one of a bin (MCE).  The Brier score is
    reliability - resolution + uncertainty + inside.
    """
    width = int(bins.max()) + 1
    inside = (probabilities - labels) ** 2
    member = np.zeros((len(bins), width))
    member[np.arange(len(bins)), bins] = 1
    columns = np.hstack([member, member * probabilities[:, None], member * labels[:, None], inside[:, None]])
    seen: list[tuple[int, Floats]] = []

    def combine(sums: Floats) -> Floats:
        numbers = _numbers(sums, width)
        seen.append((len(sums), numbers.sum(axis=0)))
        return numbers

    intervals: dict[str, Interval] = dict(zip(NAMES, cluster_bootstrap(clusters, columns, combine, draws), strict=True))
    resamples = sum(size for size, _ in seen[1:])
    if resamples:
        totals = np.sum([total for _, total in seen[1:]], axis=0)
        for name, mean in zip(NAMES, (totals / resamples).tolist(), strict=True):
            one = intervals[name]
            if name in _ABOVE_ZERO and one.value is not None and one.low is not None and one.high is not None:
                excess = max(0.0, mean - one.value)
                low, high = max(0.0, one.low - 2 * excess), max(0.0, one.high - excess)
                intervals[name] = dataclasses.replace(one, low=low, high=high)
    return intervals


def error_by_chance(probabilities: Floats, bins: Ints, *, seed: int = 0) -> float:
    """Return the mean calibration error of independent outcomes that come with exactly these probabilities."""
    draw = np.random.default_rng(seed)
    sizes, promised = np.bincount(bins), np.bincount(bins, probabilities)
    errors = []
    for _ in range(_CHANCE_DRAWS):
        came = np.bincount(bins, draw.random(len(bins)) < probabilities, minlength=len(sizes))
        errors.append(np.abs(came - promised).sum() / len(bins))
    return float(np.mean(errors))


def _numbers(sums: Floats, width: int) -> Floats:
    counts, promised, came = sums[:, :width], sums[:, width : 2 * width], sums[:, 2 * width : 3 * width]
    total = counts.sum(axis=1)
    filled = counts > 0
    confidence = np.divide(promised, counts, out=np.zeros_like(counts), where=filled)
    rate = np.divide(came, counts, out=np.zeros_like(counts), where=filled)
    gap, base = np.abs(rate - confidence), came.sum(axis=1) / total
    reliability = (counts * gap**2).sum(axis=1) / total
    resolution = (counts * (rate - base[:, None]) ** 2).sum(axis=1) / total
    uncertainty = base * (1 - base)
    inside = sums[:, -1] / total - (reliability - resolution + uncertainty)
    expected = (counts * gap).sum(axis=1) / total
    return np.stack([expected, gap.max(axis=1), reliability, resolution, uncertainty, inside], axis=1)


_BINNINGS: tuple[tuple[Binning, str], ...] = (("equal_width", "equal width"), ("equal_mass", "equal mass"))


def right_calls(rows: ScoredRows, config: CalibrationConfig) -> Bools:
    """Return, for each scored row, whether its probability lies on the right side of the threshold."""
    right: Bools = (rows.probabilities >= config.threshold) == (rows.scored_labels == 1)
    return right


def _probability_measures(rows: ScoredRows, config: CalibrationConfig) -> list[Measure]:
    draws, labels, clusters, said = config.draws, rows.scored_labels, rows.scored_clusters, rows.probabilities
    base = float(labels.mean())
    measures: list[Measure] = []
    parts: dict[str, Interval] = {}
    for binning, words in _BINNINGS:
        bins = bin_of(said, config.bins, binning)
        parts = binned_intervals(said, labels, clusters, bins, draws)
        chance = {"perfectly calibrated": error_by_chance(said, bins, seed=draws.seed)}
        part = f"{config.bins} bins of {words}"
        measures.append(Measure(name="ECE", part=part, interval=parts["expected"], baselines=chance, better="low"))
        measures.append(Measure(name="MCE", part=part, interval=parts["largest"], better="low"))
    square = mean_interval((said - labels) ** 2, clusters, draws)
    measures.append(Measure(name="Brier", interval=square, baselines={"constant": base * (1 - base)}, better="low"))
    for name, better in (("reliability", "low"), ("resolution", "high"), ("uncertainty", "none"), ("inside", "none")):
        measures.append(Measure(name="Brier", part=name, interval=parts[name], better=better))
    chances = np.where(labels == 1, said, 1 - said)
    certain = int((chances == 0).sum())
    loss = Interval(value=None, n=len(said)) if certain else mean_interval(-np.log(chances), clusters, draws)
    entropy = -sum(share * np.log(share) for share in (base, 1 - base) if share)
    measures.append(Measure(name="log loss", interval=loss, baselines={"constant": float(entropy)}, better="low"))
    return measures


def _order_measures(rows: ScoredRows, config: CalibrationConfig) -> list[Measure]:
    labels = rows.scored_labels
    area, precision = auroc_of(rows.values, labels), average_precision_of(rows.values, labels)
    areas = areas_of(np.abs(rows.probabilities - config.threshold), (~right_calls(rows, config)).astype(float))

    def statistic(weights: Floats) -> Floats:
        return np.array([area(weights), precision(weights), *areas(weights)])

    auroc, average, risk, excess = weighted_bootstrap(rows.scored_clusters, statistic, config.draws)
    wrong = 1 - float(right_calls(rows, config).mean())
    measures = [
        Measure(name="AUROC", interval=auroc, baselines={"random": 0.5}),
        Measure(name="average precision", interval=average, baselines={"random": float(labels.mean())}),
        Measure(name="AURC", interval=risk, baselines={"random": wrong}, better="low"),
        Measure(name="E-AURC", interval=excess, better="low"),
    ]
    if config.gold_threshold is not None:
        graded = spearman_of(rows.values, rows.grades[rows.scored])
        (rank,) = weighted_bootstrap(rows.scored_clusters, lambda weights: np.array([graded(weights)]), config.draws)
        measures.append(Measure(name="rank correlation with the grade", interval=rank, baselines={"random": 0.0}))
    return measures


def _selective_measures(rows: ScoredRows, config: CalibrationConfig) -> list[Measure]:
    draws, right = config.draws, right_calls(rows, config)
    accepted = np.zeros(len(rows.labels), dtype=bool)
    accepted[rows.scored] = True
    correct = np.zeros(len(rows.labels), dtype=bool)
    correct[rows.scored] = right
    commoner = max(float(rows.labels.mean()), 1 - float(rows.labels.mean()))
    part = f"threshold {config.threshold:g}"
    overall = share_interval(correct, rows.clusters, draws)
    return [
        Measure(name="accuracy", part=part, interval=overall, baselines={"commoner label": commoner}),
        Measure(name="coverage", interval=share_interval(accepted, rows.clusters, draws)),
        Measure(
            name="selective risk",
            part=part,
            interval=share_interval(~right, rows.scored_clusters, draws),
            baselines={"commoner label": 1 - commoner},
            better="low",
        ),
    ]


_POINTS = 200  # of a risk-coverage curve that are drawn


@timed
def run_calibration(config: CalibrationConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure how well stored scores match outcomes.

    Raises:
        ValueError: a column is missing or holds something else, no row has a score and a gold, or no map fits.
    """
    rows = read_rows(config)
    for guess in rows.table.guesses:
        tell(progress, guess)
    who = rows.table.who.get("score", {})
    return Result(
        kind="calibration",
        asked=False,
        title=f"Calibration of {config.score_column} in {rows.table.name}",
        scorer={"name": who.get("name") or config.score_column, "fingerprint": who.get("fingerprint", "")},
        source=rows.table.facts | ({"gold": config.gold} if config.gold else {}),
        measures=(
            *_probability_measures(rows, config),
            *_order_measures(rows, config),
            *_selective_measures(rows, config),
        ),
        counts=counts_of(rows.said, len(rows.table.unreadable)),
        figures=_figures(rows, config),
        worst=_worst(rows, config),
        notes=_notes(rows, config),
        options=dataclasses.asdict(config),
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
    return (*notes, *unreadable_notes(rows.table.unreadable))


def _figures(rows: ScoredRows, config: CalibrationConfig) -> tuple[Figure, ...]:
    labels = [int(label) for label in rows.scored_labels]
    said = rows.probabilities.tolist()
    binnings: tuple[Binning, ...] = ("equal_mass", "equal_width")
    lines = []
    for binning in binnings:
        bins = calibration_error(said, labels, bins=config.bins, binning=binning).bins
        bounds = [wilson(round(one.rate * one.count), one.count, level=config.level) for one in bins]
        line = Series.of(f"bins of {binning.replace('_', ' ')}", [one.confidence for one in bins], bounds)
        lines.append(dataclasses.replace(line, y=tuple(one.rate for one in bins)))
    reliability = Curves(
        title="Reliability", x_axis="probability", y_axis="share right", series=tuple(lines), diagonal=True
    )
    return reliability, _risk(rows, config), _histogram(said, labels, config), _confusion(rows, config)


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
        probability = float(rows.probabilities[at])
        said = f"{rows.values[at]:.6g}" + (f", as a probability {probability:.3f}" if rows.notes else "")
        gold = "right" if labels[at] else "wrong"
        kept, name = texts.get(rows.table.places[place]), rows.table.ids[place]
        cases.append(read_case(kept, said=said, value=probability, id=name, verdict="wrong", weight=gap, gold=gold))
    return tuple(cases)
