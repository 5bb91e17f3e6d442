"""`adjudge eval agreement`: how far raters of the same items agree, with each other and with gold.

A missing verdict is never right.  The majority of the verdicts that there are is a rater of its own; where two labels
lead together there is none, and it is not right either.

Not covered: who is right where there is no gold; raters who share an error agree.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import replace

from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Comparison, Measure, ReadCase, Result, adjusted
from adjudge.evals.trust.panel import Panel, class_agreement, number_agreement, read_panel
from adjudge.evals.trust.verdicts import AgreementConfig, Scale, counts_of, read_case, texts_of
from adjudge.io.jobs.report import JobProgress, tell
from adjudge.pages.figures import Figure, Grid, confusion_grid
from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.bootstrap import (
    cluster_bootstrap,
    difference_interval,
    resampled_mean,
    share_interval,
    weighted_bootstrap,
)
from adjudge.statistics.intervals import NO_DRAWS, UNKNOWN, Draws, Interval
from adjudge.statistics.ranks import kendall_of, spearman, spearman_of
from adjudge.statistics.significance import NOTE, mcnemar, permutation_test

KENDALL_ROWS = 20_000
"""Beyond so many items Kendall's tau has no bounds: each resample sorts once more."""


def pair_agreement(
    first: Floats, second: Floats, clusters: Sequence[str], draws: Draws, *, scale: Scale, labels: int
) -> dict[str, Interval]:
    """Return how far two raters agree on the items that both judged.

    Both give a code (a number, on an interval scale) for each item, NaN without a verdict, of so many `labels` (0 on an
    interval scale).  Items of one cluster are drawn together.
    """
    both = np.isfinite(first) & np.isfinite(second)
    one, other = first[both], second[both]
    kept = [name for name, keep in zip(clusters, both.tolist(), strict=True) if keep]
    measures: dict[str, Interval] = {}
    if scale != "interval":
        measures["agreement"] = share_interval(one == other, kept, draws) if kept else UNKNOWN
        measures |= _kappas(one.astype(np.int64), other.astype(np.int64), kept, draws, scale=scale, labels=labels)
    else:
        measures["difference"] = resampled_mean(np.abs(one - other), kept, draws)
    if scale != "nominal":
        measures |= _ranks(one, other, kept, draws)
    return measures


def _kappas(
    one: Ints,
    other: Ints,
    clusters: Sequence[str],
    draws: Draws,
    *,
    scale: Scale,
    labels: int,
) -> dict[str, Interval]:
    """Return Cohen's kappa (1960; with weights, 1968) and Gwet's AC1, from the marginals and the distances alone."""
    names = ["kappa", "AC1"] + (["linear kappa", "quadratic kappa"] if scale == "ordinal" else [])
    if not len(one):
        return dict.fromkeys(names, UNKNOWN)
    distance = np.abs(one - other)
    columns = np.column_stack([distance == 0, distance, distance**2, np.eye(labels)[one], np.eye(labels)[other]])
    places = np.arange(labels)

    def combine(sums: Floats) -> Floats:
        rows, lines = sums[:, 3 : 3 + labels], sums[:, 3 + labels :]
        total = rows.sum(axis=1)
        first, second = rows / total[:, None], lines / total[:, None]
        same, far, square = (sums[:, at] / total for at in range(3))
        chance = (first * second).sum(axis=1)
        both = (first + second) / 2
        error = (both * (1 - both)).sum(axis=1) / (labels - 1) if labels > 1 else np.full(len(sums), np.nan)
        coefficients = [_beyond(1 - same, 1 - chance), (same - error) / (1 - error)]
        if scale == "ordinal":
            below, under = np.cumsum(first, axis=1), np.cumsum(second, axis=1)
            linear = (below * (1 - under) + under * (1 - below)).sum(axis=1)
            means = first @ places - second @ places
            spread = first @ places**2 - (first @ places) ** 2 + second @ places**2 - (second @ places) ** 2
            coefficients += [_beyond(far, linear), _beyond(square, spread + means**2)]
        return np.stack(coefficients, axis=1)

    return dict(zip(names, cluster_bootstrap(clusters, columns.astype(float), combine, draws), strict=True))


def _beyond(seen: Floats, expected: Floats) -> Floats:
    """Return one minus the disagreement over that of chance; NaN where chance would never disagree."""
    return np.where(expected > 1e-12, 1 - seen / np.where(expected > 1e-12, expected, 1.0), np.nan)


def _ranks(one: Floats, other: Floats, clusters: Sequence[str], draws: Draws) -> dict[str, Interval]:
    names = ("Spearman", "Kendall")
    if not len(one):
        return dict.fromkeys(names, UNKNOWN)
    rho, tau = spearman_of(one, other), kendall_of(one, other)
    (spearman,) = weighted_bootstrap(clusters, lambda weights: np.array([rho(weights)]), draws)
    drawn = draws if len(one) <= KENDALL_ROWS else NO_DRAWS
    (kendall,) = weighted_bootstrap(clusters, lambda weights: np.array([tau(weights)]), drawn)
    return dict(zip(names, (spearman, kendall), strict=True))


MAJORITY, MEAN = "majority", "mean"


def gold_measures(panel: Panel, gold: Floats, draws: Draws) -> tuple[list[Measure], list[Comparison]]:
    """Return how right each rater is, and whether the majority is better than each.

    Items whose gold is NaN are in none of the numbers.
    """
    known = np.isfinite(gold)
    clusters = [name for name, keep in zip(panel.groups, known.tolist(), strict=True) if keep]
    if not clusters:
        return [], []
    values, truth = panel.values[known], gold[known]
    if panel.scale == "interval":
        return _distances(panel, values, truth, clusters, draws), []
    columns = {name: values[:, at] for at, name in enumerate(panel.raters)} | {MAJORITY: majority(values)}
    right = {name: (column == truth).astype(float) for name, column in columns.items()}
    commoner = float(np.unique(truth, return_counts=True)[1].max()) / len(truth)
    measures = [
        Measure(
            name="accuracy",
            part=name,
            interval=share_interval(hits, clusters, draws),
            baselines={"commoner label": commoner},
        )
        for name, hits in right.items()
    ]
    return measures, _compared(right, clusters, draws)


def majority(values: Floats) -> Floats:
    """Return the commonest code of each item, (items,); NaN where none is alone in front."""
    codes = range(int(np.nanmax(values, initial=0.0)) + 1)
    votes = np.stack([(values == code).sum(axis=1) for code in codes], axis=1)
    most = votes.max(axis=1)
    alone = ((votes == most[:, None]).sum(axis=1) == 1) & (most > 0)
    return np.where(alone, votes.argmax(axis=1).astype(float), np.nan)


def _distances(panel: Panel, values: Floats, truth: Floats, clusters: Sequence[str], draws: Draws) -> list[Measure]:
    given = np.isfinite(values)
    mean = np.divide(np.where(given, values, 0.0).sum(axis=1), given.sum(axis=1), where=given.any(axis=1),
                     out=np.full(len(values), np.nan))  # fmt: skip
    measures = []
    for name, column in (*((rater, values[:, at]) for at, rater in enumerate(panel.raters)), (MEAN, mean)):
        both = np.isfinite(column)
        kept = [one for one, keep in zip(clusters, both.tolist(), strict=True) if keep]
        distance = resampled_mean(np.abs(column - truth)[both], kept, draws)
        measures.append(Measure(name="distance from gold", part=name, interval=distance, better="low"))
        rank = spearman(column[both], truth[both]) if kept else None
        interval = replace(distance, value=rank, low=None, high=None)
        measures.append(Measure(name="rank correlation with gold", part=name, interval=interval))
    return measures


def _compared(right: dict[str, Floats], clusters: Sequence[str], draws: Draws) -> list[Comparison]:
    alone = len(set(clusters)) == len(clusters)
    comparisons = []
    for name, hits in right.items():
        if name == MAJORITY:
            continue
        difference = right[MAJORITY] - hits
        p = mcnemar(right[MAJORITY], hits) if alone else permutation_test(difference, clusters, draws)
        comparisons.append(
            Comparison(
                name="accuracy",
                test="McNemar, exact" if alone else "signs of clusters",
                first=float(right[MAJORITY].mean()),
                second=float(hits.mean()),
                difference=difference_interval(right[MAJORITY], hits, clusters, draws),
                p=p,
                part=MAJORITY,
                other=name,
            )
        )
    return adjusted(comparisons)


_PARADOX = (
    "where one label is common, kappa and alpha are low for raters who agree nearly always; AC1 takes another view of "
    "chance and is high there, so read both beside the raw agreement"
)


@timed
def run_agreement(config: AgreementConfig, *, progress: JobProgress | None = None) -> Result:
    """Measure how far raters agree.

    Raises:
        ValueError: a file or column is missing, or there are no two raters of one item.
    """
    panel = read_panel(config)
    for guess in panel.table.guesses:
        tell(progress, guess)
    pairs = {
        (one, other): pair_agreement(
            panel.values[:, panel.raters.index(one)],
            panel.values[:, panel.raters.index(other)],
            panel.groups,
            config.draws,
            scale=panel.scale,
            labels=len(panel.labels),
        )
        for one, other in itertools.combinations(panel.raters, 2)
    }
    right, compared = ([], []) if panel.gold is None else gold_measures(panel, panel.gold, config.draws)
    given = [
        Measure(
            name="verdicts given",
            part=name,
            interval=share_interval([one.value is not None for one in said], panel.groups, config.draws),
        )
        for name, said in panel.said.items()
    ]
    by_pair = [
        Measure(name=name, part=f"{one} / {other}", interval=interval, better="low" if name == "difference" else "high")
        for (one, other), intervals in pairs.items()
        for name, interval in intervals.items()
    ]
    said = [one for verdicts in panel.said.values() for one in verdicts]
    counts = counts_of(said, len(panel.table.unreadable))
    notes = [f"the scale is {panel.scale}", *panel.notes]
    notes += [_PARADOX] if panel.labels else []
    notes += [NOTE] if len(compared) > 1 else []
    if not panel.labels and len(panel.ids) > KENDALL_ROWS:
        notes.append(f"Kendall's tau has no bounds for more than {KENDALL_ROWS} items")
    return Result(
        kind="agreement",
        asked=False,
        title=f"Agreement of {len(panel.raters)} raters on {len(panel.ids)} items",
        scorer={"name": ", ".join(panel.raters), "fingerprint": "", "raters": panel.who},
        source=panel.table.facts | ({"files": list(config.file)} if config.file else {}),
        measures=(*_whole(panel, config), *right, *by_pair, *given),
        counts=replace(counts, cases=len(panel.ids), failed=sum(one.status == "failed" for one in said)),
        comparisons=tuple(compared),
        figures=_figures(panel, pairs),
        worst=_worst(panel, config),
        notes=tuple(notes),
        options=dataclasses.asdict(config),
    )


def _whole(panel: Panel, config: AgreementConfig) -> list[Measure]:
    if not panel.labels:
        intervals = number_agreement(panel.values, panel.groups, config.draws)
        difference = Measure(name="mean difference", interval=intervals.pop("difference"), better="low")
        return [*(Measure(name=name, interval=one) for name, one in intervals.items()), difference]
    intervals = class_agreement(panel.codes, len(panel.labels), panel.groups, config.draws, scale=panel.scale)
    chance = intervals.pop("by chance").value
    raw = Measure(name="agreement", interval=intervals.pop("raw"), baselines={"by chance": chance})
    order = sorted(intervals, key=lambda name: "ordinal" not in name)
    return [*(Measure(name=name, interval=intervals[name]) for name in order), raw]


def _figures(panel: Panel, pairs: dict[tuple[str, str], dict[str, Interval]]) -> tuple[Figure, ...]:
    names = {"nominal": ("kappa", "agreement"), "ordinal": ("quadratic kappa", "Spearman"), "interval": ("Spearman",)}
    grids: list[Figure] = []
    for name in names[panel.scale]:
        known = {pair: intervals[name].value for pair, intervals in pairs.items()}
        rows = tuple(
            tuple(1.0 if one == other else known.get((one, other), known.get((other, one))) for other in panel.raters)
            for one in panel.raters
        )
        title = f"{name[0].upper()}{name[1:]} of each two"
        grids.append(Grid(title=title, rows=panel.raters, columns=panel.raters, values=rows, better="high"))
    if panel.gold is not None and panel.labels:
        known_gold = np.isfinite(panel.gold)
        gold = [panel.labels[int(code)] for code in panel.gold[known_gold]]
        voted = [None if np.isnan(code) else panel.labels[int(code)] for code in majority(panel.values[known_gold])]
        grids.append(confusion_grid(gold, voted, panel.labels, title=f"Gold and {MAJORITY}"))
    return tuple(grids)


def _worst(panel: Panel, config: AgreementConfig) -> tuple[ReadCase, ...]:
    """The items on which raters are furthest apart."""
    weights = _apart(panel)
    chosen = [at for at in range(len(weights)) if weights[at] > 0]
    chosen = sorted(chosen, key=lambda at: (-weights[at], at))[: config.worst]
    places = dict(zip(panel.table.ids, panel.table.places, strict=True))
    texts = texts_of(config, [places[panel.ids[at]] for at in chosen if panel.ids[at] in places])
    cases = []
    for at in chosen:
        gold = None if panel.gold is None else float(panel.gold[at])
        right = "" if gold is None or gold != gold else panel.labels[int(gold)] if panel.labels else f"{gold:g}"
        said = "; ".join(f"{name}: {panel.said[name][at].shown}" for name in panel.raters)
        kept, weight = texts.get(places.get(panel.ids[at], -1)), float(weights[at])
        cases.append(read_case(kept, said=said, id=panel.ids[at], verdict="disagree", weight=weight, gold=right))
    return tuple(cases)


def _apart(panel: Panel) -> Floats:
    """Return how far the raters of each item are apart: the span of numbers, or the share of pairs that differ."""
    known = np.isfinite(panel.values)
    if panel.scale != "nominal":
        high = np.where(known, panel.values, -np.inf).max(axis=1)
        low = np.where(known, panel.values, np.inf).min(axis=1)
        return np.where(known.sum(axis=1) > 1, high - low, 0.0)
    counts = np.stack([(panel.codes == at).sum(axis=1) for at in range(len(panel.labels))], axis=1)
    given = counts.sum(axis=1)
    pairs = given * (given - 1)
    equal = np.divide((counts * (counts - 1)).sum(axis=1), pairs, out=np.ones(len(counts)), where=pairs > 0)
    apart: Floats = 1.0 - equal
    return apart
