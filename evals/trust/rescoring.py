"""`adjudge eval drift`: two scorings of the same rows, and what changed between them."""

from __future__ import annotations

import dataclasses
import itertools
import random
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adjudge import wire
from adjudge.data_pipelines.label.samples import Item, Sampler
from adjudge.evals.reports.config import timed
from adjudge.evals.reports.result import Check, Comparison, Measure, ReadCase, Result, cut
from adjudge.evals.trust.comparison import differ
from adjudge.evals.trust.verdicts import (
    MISSING,
    SHOWN,
    DriftConfig,
    Verdict,
    VerdictTable,
    counts_of,
    kept_input,
    read_case,
    read_verdicts,
    texts_of,
    unreadable_notes,
)
from adjudge.io.columns import Wanted, map_columns
from adjudge.io.jobs.report import JobProgress, tell
from adjudge.io.row import Cursor, Row
from adjudge.pages.figures import Bar, Bars, Curves, Figure, Grid, Series
from adjudge.protocol import STATUSES, Sample, Scorer, response_text
from adjudge.runtime.contract import is_groupwise, score_checked, validate_sample
from adjudge.runtime.loop import run_blocking
from adjudge.scoring import registry
from adjudge.statistics.arrays import Floats, np
from adjudge.statistics.bootstrap import (
    cluster_bootstrap,
    difference_interval,
    resampled_mean,
    share_interval,
    weighted_bootstrap,
)
from adjudge.statistics.intervals import Draws, Interval, wilson
from adjudge.statistics.ranks import spearman_of
from adjudge.statistics.significance import permutation_test

_CHUNK: Final = 512
_PEEKED: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorings:
    """Two verdicts, an earlier and a later one, on each row that both scorings have, in the order of the first file.

    Attributes:
        places: number of each row in the first file.
        only_second: ids that the earlier one does not have; none where only its first rows were read.
        who: "name" and "fingerprint" of both scorers, as far as they are known.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    places: tuple[int, ...]
    first: tuple[Verdict, ...]
    second: tuple[Verdict, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    table: VerdictTable
    who: tuple[Mapping[str, str], Mapping[str, str]]


def read_scorings(config: DriftConfig) -> Scorings:
    """Read both scorings, or read one and score again."""
    table, rater = _read(config, "")
    if config.scorer:
        scorer = registry.load(config.scorer)
        later = scored_again(scorer, config, table.ids)
        whose: Mapping[str, str] = {"name": scorer.name, "fingerprint": scorer.fingerprint}
        other = config.rows or config.input
    else:
        second, its_rater = _read(config, config.against)
        later, whose, other = second.by_id(its_rater), second.who.get(its_rater, {}), config.against
    earlier = table.by_id(rater)
    kept = [at for at, name in enumerate(table.ids) if name in later]
    if not kept:
        raise ValueError(
            f"{table.name} and {other} share no id: the first ones are {table.ids[0]!r} and "
            f"{next(iter(later), '(none)')!r}; name the column with --id-column"
        )
    ids = tuple(table.ids[at] for at in kept)
    return Scorings(
        ids=ids,
        groups=tuple(table.groups[at] for at in kept),
        places=tuple(table.places[at] for at in kept),
        first=tuple(earlier[name] for name in ids),
        second=tuple(later[name] for name in ids),
        only_first=tuple(name for name in table.ids if name not in later),
        only_second=() if config.limit else tuple(name for name in later if name not in earlier),
        table=table,
        who=(table.who.get(rater, {}), whose),
    )


def scored_again(scorer: Scorer, config: DriftConfig, ids: Sequence[str]) -> dict[str, Verdict]:
    """Return a scorer's verdicts on the rows that were labelled, by the ids that `adjudge label` gives them.

    A row that is not a sample, or that the scorer refuses, has failed (`bad_sample`).  With a limit only rows with
    these ids are scored, and the rest of their groups where the scorer compares.
    """

    def validate(sample: Sample) -> None:
        validate_sample(scorer, sample)

    verdicts: dict[str, Verdict] = {}
    items, known = _items(config, validate), set(ids)
    size = None if is_groupwise(scorer) else _CHUNK  # a group must not be cut
    if size and config.limit:
        items = (item for item in items if item.id in known)
    while chunk := list(itertools.islice(items, size)):
        samples = [item.sample for item in chunk if item.sample is not None]
        verdicts |= {item.id: Verdict(None, "failed", "bad_sample") for item in chunk if item.sample is None}
        scores = run_blocking(score_checked(scorer, samples)) if samples else []
        for sample, score in zip(samples, scores, strict=True):
            verdicts[sample.id] = Verdict(score.value, score.status, score.reason)
    return verdicts


def texts_of_rows(config: DriftConfig, scorings: Scorings, chosen: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return prompt and response of some rows, by their place in `scorings`."""
    if not config.scorer:
        texts = texts_of(config, [scorings.places[at] for at in chosen])
        return {at: texts[scorings.places[at]] for at in chosen if scorings.places[at] in texts}
    wanted = {scorings.ids[at]: at for at in chosen}
    texts_at = {}
    for item in _items(config, lambda sample: None) if wanted else ():
        if item.id in wanted and item.sample is not None:
            prompt = item.sample.prompt
            asked = prompt if isinstance(prompt, str) else wire.dumps(prompt)
            texts_at[wanted[item.id]] = (cut(asked, SHOWN), cut(response_text(item.sample), SHOWN))
    return texts_at


def _read(config: DriftConfig, path: str) -> tuple[VerdictTable, str]:
    table = read_verdicts(config, (config.column,) if config.column else (), path=path)
    if len(table.verdicts) != 1:
        raise ValueError(f"{table.name} holds the scores of {', '.join(table.verdicts)}; say which with --column, "
                         "as scores.NAME")  # fmt: skip
    (rater,) = table.verdicts
    for name, one in zip(table.ids, table.verdicts[rater], strict=True):
        if isinstance(one.value, str):
            text = reprlib.repr(one.value)
            raise ValueError(f"the score of {name!r} is the text {text}; drift is measured between numbers")
    return table, rater


def _items(config: DriftConfig, validate: Callable[[Sample], None]) -> Iterator[Item]:
    opening = itertools.islice(config.opened().rows(Cursor()), _PEEKED)
    labelled = dict.fromkeys(row.data.get("column") for row in opening if row.data is not None)  # where of several
    wanted = Wanted(
        prompt=config.prompt_column,
        responses=(config.response_column,) if config.response_column else tuple(map(str, filter(None, labelled))),
        id=config.id_column,
        group="" if config.group_column == "-" else config.group_column,
    )
    rows = _rows(config)
    peeked = list(itertools.islice(rows, _PEEKED))
    first = [row.data for _, row in peeked if row.data is not None]
    columns, _ = map_columns(wanted, list(dict.fromkeys(name for row in first for name in row)), first, closed=False)
    sampler = Sampler(columns=columns, validate=validate)
    for scored, row in itertools.chain(peeked, rows):
        for item in sampler.items(row, sampler.group_of(row)):
            if scored is None:
                yield item
            elif item.column == scored.get("column", item.column):  # a kept row holds the one response of its score
                name, group = (str(scored.get(key) or "") for key in ("id", "group"))
                sample = item.sample and dataclasses.replace(item.sample, id=name, group=group)
                yield dataclasses.replace(item, id=name, group=group, sample=sample)
                break


def _rows(config: DriftConfig) -> Iterable[tuple[Mapping[str, Any] | None, Row]]:
    """Yield the rows that were labelled, each with the score that kept it, or None for a row with all it holds."""
    if config.rows:
        for row in config.opened(config.rows).rows(Cursor()):
            yield None, row
        return
    for row in itertools.islice(config.opened().rows(Cursor()), config.limit or None):
        kept = None if row.data is None else kept_input(row.data)
        if kept is None or row.data is None:
            raise ValueError(
                f"row {row.index} of {config.input} does not hold what was labelled; name the labelled file with "
                "--rows, or label with --keep-columns"
            )
        number = row.data.get("row")
        if isinstance(number, int):
            row.index = number  # the id of rows without one
        scored, row.data = row.data, kept
        yield scored, row


def by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each group, for groups of two and more."""
    by_name: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        by_name.setdefault(group, []).append(at)
    return {group: places for group, places in by_name.items() if len(places) > 1}


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
    measures = [
        Measure.mean("changed", changed, scorings.groups, draws, better="low"),
        Measure.mean("status changed", status, scorings.groups, draws, better="low"),
    ]
    places, first, second = both_numbers(scorings)
    if not places:
        return measures
    groups = [scorings.groups[at] for at in places]
    moved = second - first
    largest = Interval(value=float(np.abs(moved).max()), n=len(moved))
    measures += [
        Measure(name="mean |difference|", interval=resampled_mean(np.abs(moved), groups, draws), better="low"),
        Measure(name="mean difference", interval=difference_interval(second, first, groups, draws), better="none"),
        Measure(name="largest |difference|", interval=largest, better="low"),
    ]
    if threshold is not None:
        flips = share_interval((first >= threshold) != (second >= threshold), groups, draws)
        measures.append(Measure(name="verdict flips", part=f"threshold {threshold:g}", interval=flips, better="low"))
    rank = spearman_of(first, second)
    (correlation,) = weighted_bootstrap(groups, lambda weights: np.array([rank(weights)]), draws)
    measures.append(Measure(name="rank correlation", interval=correlation))
    return measures + order_measures(first, second, groups, draws, tolerance=tolerance)


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
            gaps = [side[at + 1 :] - side[at] for side in (one, other)]
            before, after = (np.sign(np.where(np.abs(gap) > tolerance, gap, 0.0)) for gap in gaps)
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


_POINTS = 1_000  # that are drawn, of rows with two numbers
_REASONS = 12  # that are told apart in the table of reasons
_BARS = 20


@timed
def run_drift(config: DriftConfig, *, progress: JobProgress | None = None) -> Result:
    """Compare two scorings of the same rows.

    Raises:
        ValueError: a file, column or scorer is missing, or the scorings share no row.
    """
    scorings = read_scorings(config)
    for guess in scorings.table.guesses:
        tell(progress, guess)
    first, second = scorings.who
    alone = [
        f"{len(ids)} rows are in the {which} scoring alone, the first one is {ids[0]!r}"
        for ids, which in ((scorings.only_first, "earlier"), (scorings.only_second, "later"))
        if ids
    ]
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
        counts=counts_of(
            scorings.second, len(scorings.table.unreadable)
        ),  # of the later scoring, which is the one that is judged
        checks=_checks(scorings, config),
        comparisons=_comparisons(scorings, config),
        figures=_figures(scorings, config),
        worst=_worst(scorings, config),
        notes=(*alone, *unreadable_notes(scorings.table.unreadable)),
        options=dataclasses.asdict(config),
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
            first=float(second.mean()),
            second=float(first.mean()),
            difference=difference_interval(second, first, groups, config.draws),
            p=p,
            p_adjusted=p,
            part="after",
            other="before",
        ),
    )


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
    places, first, second = both_numbers(scorings)
    distance = dict(zip(places, abs(second - first).tolist(), strict=True))
    most = 1.0 + max(distance.values(), default=0.0)
    changes = changed_rows(scorings, config.tolerance)
    moved = [(distance.get(at, most), at) for at, changed in enumerate(changes) if changed]
    chosen = sorted(moved, key=lambda entry: (-entry[0], entry[1]))[: config.worst]
    texts = texts_of_rows(config, scorings, [at for _, at in chosen])
    return tuple(
        read_case(
            texts.get(at),
            said=f"before: {scorings.first[at].shown}; after: {scorings.second[at].shown}",
            value=scorings.second[at].number,
            id=scorings.ids[at],
            verdict="changed",
            weight=weight,
        )
        for weight, at in chosen
    )
