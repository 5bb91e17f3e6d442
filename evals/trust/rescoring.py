"""`adjudge eval drift`: two scorings of the same rows, and what changed between them."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from adjudge.evals.reports.figures import Bar, Bars, Curves, Figure, Grid, Series
from adjudge.evals.reports.result import Check, Comparison, Measure, ReadCase, ReadResponse, Result
from adjudge.evals.trust.comparison import differ
from adjudge.evals.trust.config import DriftConfig
from adjudge.evals.trust.scorings import Scorings, by_group, read_scorings, texts_of_rows
from adjudge.evals.trust.verdicts import MISSING, Verdict, counts_of
from adjudge.io.jobs.report import JobProgress
from adjudge.protocol import STATUSES
from adjudge.statistics.arrays import Floats, NDArray, np
from adjudge.statistics.bootstrap import cluster_bootstrap, mean_interval, share_interval, weighted_bootstrap
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.ranks import spearman_of
from adjudge.statistics.significance import permutation_test


def changed_rows(scorings: Scorings, tolerance: float) -> list[bool]:
    """Return, for each row, whether its two verdicts are different ones."""
    return [
        differ(one.number, other.number, tolerance, one.status != other.status)
        for one, other in zip(scorings.first, scorings.second, strict=True)
    ]


def both_numbers(scorings: Scorings) -> tuple[list[int], Floats, Floats]:
    """Return the places of rows with two numbers, and the numbers."""
    places, first, second = [], [], []
    for at, (one, other) in enumerate(zip(scorings.first, scorings.second, strict=True)):
        if one.number is not None and other.number is not None:
            places.append(at)
            first.append(one.number)
            second.append(other.number)
    return places, np.array(first), np.array(second)


def change_measures(scorings: Scorings, draws: Draws, *, tolerance: float, threshold: float | None) -> list[Measure]:
    """Return the numbers, the share of changed rows first."""
    changed = changed_rows(scorings, tolerance)
    status = [one.status != other.status for one, other in zip(scorings.first, scorings.second, strict=True)]
    found = [
        Measure(name="changed", interval=share_interval(changed, scorings.groups, draws), better="low"),
        Measure(name="status changed", interval=share_interval(status, scorings.groups, draws), better="low"),
    ]
    places, first, second = both_numbers(scorings)
    if not places:
        return found
    groups = [scorings.groups[at] for at in places]
    moved = second - first
    largest = Interval(value=float(np.abs(moved).max()), n=len(moved))
    found += [
        Measure(name="mean |difference|", interval=mean_interval(np.abs(moved), groups, draws), better="low"),
        Measure(name="mean difference", interval=mean_interval(moved, groups, draws), better="none"),
        Measure(name="largest |difference|", interval=largest, better="low"),
    ]
    if threshold is not None:
        flips = share_interval((first >= threshold) != (second >= threshold), groups, draws)
        found.append(Measure(name="verdict flips", part=f"threshold {threshold:g}", interval=flips, better="low"))
    rank = spearman_of(first, second)
    (correlation,) = weighted_bootstrap(groups, lambda weights: np.array([rank(weights)]), draws)
    found.append(Measure(name="rank correlation", interval=correlation))
    return found + order_measures(first, second, groups, draws, tolerance=tolerance)


def order_measures(
    first: Floats, second: Floats, groups: Sequence[str], draws: Draws, *, tolerance: float
) -> list[Measure]:
    """Return how often the order within groups changed; none where no group has two rows.

    A flip turns a strict order round; a change also makes or breaks a tie.  The best of a group changed where other
    rows than before are the best ones, a row that joins or leaves a tie for the first place included.
    """
    members = by_group(groups)
    if not members:
        return []
    rows = []
    for places in members.values():
        one, other = first[places], second[places]
        flips = changes = 0
        for at in range(len(places) - 1):  # row by row, so that a group of thousands needs no square in memory
            before, after = (_signs(side[at + 1 :] - side[at], tolerance) for side in (one, other))
            flips += int((before * after < 0).sum())
            changes += int((before != after).sum())
        best = [side >= side.max() - tolerance for side in (one, other)]
        pairs = len(places) * (len(places) - 1) // 2
        rows.append((flips, changes, pairs, not np.array_equal(*best), 1))
    columns = np.array(rows, dtype=float)
    names = ("pair order flips", "pair order changes", "best of group changed")
    total = int(columns[:, 2].sum())
    intervals = cluster_bootstrap(
        list(members),
        columns,
        lambda sums: np.stack([sums[:, 0] / sums[:, 2], sums[:, 1] / sums[:, 2], sums[:, 3] / sums[:, 4]], axis=1),
        draws,
        counts=[total, total, len(members)],
    )
    intervals[2] = share_interval(columns[:, 3], list(members), draws)
    for at in (0, 1):
        if draws.rounds and intervals[at].value in (0, 1):  # no resample differs: as if each group were one pair
            edge = wilson(intervals[at].known * len(members), len(members), level=draws.level)
            intervals[at] = replace(intervals[at], low=edge.low, high=edge.high)
    return [Measure(name=name, interval=one, better="low") for name, one in zip(names, intervals, strict=True)]


def _signs(differences: Floats, tolerance: float) -> NDArray[np.int8]:
    return (differences > tolerance).astype(np.int8) - (differences < -tolerance).astype(np.int8)


_POINTS = 1_000  # that are drawn, of rows with two numbers
_REASONS = 12  # that are told apart in the table of reasons
_BARS = 20


def run_drift(config: DriftConfig, *, progress: JobProgress | None = None) -> Result:
    """Compare two scorings of the same rows.

    Raises:
        ValueError: a file, column or scorer is missing, or the scorings share no row.
    """
    begun = time.monotonic()
    scorings = read_scorings(config)
    if progress is not None:
        for guess in scorings.table.guesses:
            progress.note(guess)
    first, second = scorings.who
    return Result(
        kind="drift",
        asked=bool(config.scorer),
        title=f"Two scorings of {len(scorings.ids)} rows",
        scorer={
            "name": second.get("name") or config.scorer or config.against,
            "fingerprint": second.get("fingerprint", ""),
            "before": dict(first),
        },
        source=scorings.table.facts | {"against": config.against or config.scorer},
        measures=tuple(change_measures(scorings, config.draws, tolerance=config.tolerance, threshold=config.threshold)),
        counts=counts_of(scorings.second, scorings.table),  # of the later scoring, which is the one that is judged
        checks=_checks(scorings, config),
        comparisons=_comparisons(scorings, config),
        figures=_figures(scorings, config),
        worst=_worst(scorings, config),
        notes=_notes(scorings),
        options=dataclasses.asdict(config),
        seconds=time.monotonic() - begun,
    )


def _checks(scorings: Scorings, config: DriftConfig) -> tuple[Check, ...]:
    count, changed = len(scorings.ids), sum(changed_rows(scorings, config.tolerance))
    share = changed / count
    detail = (
        f"{changed} of {count} rows changed ({share:.2%}) by more than {config.tolerance:g}; {config.allowed:.2%} may"
    )
    lost = len(scorings.only_first) + len(scorings.only_second)
    one, other = (who.get("fingerprint", "") for who in scorings.who)
    if not one or not other:
        same, said = None, "a fingerprint is not known"
    elif one != other:
        same, said = None, f"the fingerprints differ ({one}, {other}), so the scores may"
    else:
        same, said = not changed, f"both scorings have the fingerprint {one}; {changed} rows changed"
    return (
        Check(name="no change", passed=share <= config.allowed, detail=detail),
        Check(name="one fingerprint, one score", passed=same, detail=said),
        Check(name="same rows", passed=not lost, detail=f"{lost} ids are in one scoring alone"),
    )


def _comparisons(scorings: Scorings, config: DriftConfig) -> tuple[Comparison, ...]:
    places, first, second = both_numbers(scorings)
    if not places:
        return ()
    groups = [scorings.groups[at] for at in places]
    p = permutation_test(first - second, groups, config.draws)
    return (
        Comparison(
            name="mean score",
            test="signs of clusters",
            first=float(first.mean()),
            second=float(second.mean()),
            difference=mean_interval(first - second, groups, config.draws),
            p=p,
            p_adjusted=p,
            part="before",
            other="after",
        ),
    )


def _notes(scorings: Scorings) -> tuple[str, ...]:
    notes = []
    for ids, which in ((scorings.only_first, "earlier"), (scorings.only_second, "later")):
        if ids:
            notes.append(f"{len(ids)} rows are in the {which} scoring alone, the first one is {ids[0]!r}")
    return tuple(notes + [f"cannot be read: {problem}" for problem in scorings.table.unreadable[:5]])


def _figures(scorings: Scorings, config: DriftConfig) -> tuple[Figure, ...]:
    figures: list[Figure] = [
        _grid("Status before and after", [*STATUSES, MISSING], scorings, lambda one: one.status),
    ]
    named = Counter(_reason(one) for one in (*scorings.first, *scorings.second))
    kept = [name for name, _ in named.most_common(_REASONS)]
    names = [*kept, "other"] if len(named) > len(kept) else kept
    figures.append(
        _grid(
            "Reason before and after", names, scorings, lambda one: name if (name := _reason(one)) in kept else "other"
        )
    )
    places, first, second = both_numbers(scorings)
    if places:
        chosen = random.Random(config.seed).sample(range(len(places)), min(_POINTS, len(places)))
        points = sorted((float(first[at]), float(second[at])) for at in chosen)
        line = Series(name="rows", x=tuple(x for x, _ in points), y=tuple(y for _, y in points), points=True)
        figures.append(Curves(title="Scores", x_axis="before", y_axis="after", series=(line,), diagonal=True))
        figures.append(_histogram((second - first).tolist()))
    return tuple(figures)


def _reason(one: Verdict) -> str:
    return f"{one.status} {one.reason}".rstrip()


def _grid(title: str, names: Sequence[str], scorings: Scorings, of: Callable[[Verdict], str]) -> Grid:
    seen = Counter((of(one), of(other)) for one, other in zip(scorings.first, scorings.second, strict=True))
    return Grid(
        title=title,
        rows=tuple(names),
        columns=tuple(names),
        values=tuple(tuple(float(seen[row, column]) for column in names) for row in names),
        row_axis="before",
        column_axis="after",
    )


def _histogram(moved: Sequence[float]) -> Bars:
    low, high = min(moved), max(moved)
    width = (high - low) / _BARS or 1.0
    counts = Counter(min(int((one - low) / width), _BARS - 1) for one in moved)
    bars = tuple(
        Bar(
            name=f"{low + at * width:.3g} to {low + (at + 1) * width:.3g}" if high > low else f"{low:.3g}",
            interval=Interval(value=float(counts[at]), n=counts[at]),
            baselines={},
        )
        for at in range(_BARS if high > low else 1)
    )
    return Bars(title="After minus before", unit="rows", bars=bars)


def _worst(scorings: Scorings, config: DriftConfig) -> tuple[ReadCase, ...]:
    """The largest changes; a number that came or went counts as the largest of all."""
    moved: list[tuple[float, int]] = []
    places, first, second = both_numbers(scorings)
    distance = dict(zip(places, abs(second - first).tolist(), strict=True))
    most = 1.0 + max(distance.values(), default=0.0)
    for at, changed in enumerate(changed_rows(scorings, config.tolerance)):
        if changed:
            moved.append((distance.get(at, most), at))
    moved.sort(key=lambda entry: (-entry[0], entry[1]))
    chosen = moved[: config.worst]
    texts = texts_of_rows(config, scorings, [at for _, at in chosen])
    cases = []
    for weight, at in chosen:
        prompt, response = texts.get(at, ("", ""))
        one, other = scorings.first[at], scorings.second[at]
        said = f"before: {one.shown}; after: {other.shown}"
        cases.append(
            ReadCase(
                id=scorings.ids[at],
                part="",
                verdict="changed",
                weight=weight,
                prompt=prompt,
                responses=(ReadResponse(text=response, said=said, value=other.number),),
                gold="",
            )
        )
    return tuple(cases)
