"""Several raters on the same items, and how far all of them agree; every coefficient is a function of sums over items.

A rater without a verdict on an item is missing there; it is not a class of its own.  A resample of 100,000 items costs
one product of its counts with a table of a few columns.

Sources: Krippendorff 2004 (alpha), Fleiss 1971 (kappa), Gwet 2008 (AC1).  Where one label is common, raters who agree
nearly always have a small kappa, for chance alone would agree as often (Feinstein and Cicchetti 1990).  AC1 takes
another view of chance, and stays high there; look at both.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adjudge.evals.trust.verdicts import NOTHING, AgreementConfig, Said, Scale, Verdict, VerdictTable, read_verdicts
from adjudge.statistics.arrays import Bools, Floats, Ints, np
from adjudge.statistics.bootstrap import cluster_bootstrap
from adjudge.statistics.intervals import Draws, Interval

_GOLD = "(gold)"
_MAX_LABELS = {"nominal": 50, "ordinal": 15}  # columns of a bootstrap grow with them, of the ordinal one squared
_ORDINAL = 10  # so many numbers, at most, are taken for ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """What raters said about items.

    Attributes:
        said: by rater, one verdict for each item.
        scale: "nominal", "ordinal" or "interval".
        labels: what codes stand for, in order; empty on an interval scale.
        codes: (items, raters), -1 where there is none; empty on an interval scale.
        values: (items, raters), NaN where there is none; on a nominal scale the codes.
        gold: by item: a code, or a number on an interval scale; NaN where unknown; None without a gold column.
        who: by rater, facts of its scorer.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    raters: tuple[str, ...]
    said: Mapping[str, Sequence[Verdict]]
    scale: Scale
    labels: tuple[str, ...]
    codes: Ints
    values: Floats
    gold: Floats | None
    table: VerdictTable
    who: Mapping[str, Mapping[str, str]]
    notes: tuple[str, ...]


def read_panel(config: AgreementConfig) -> Panel:
    """Read what raters said."""
    wanted = (*config.column, f"{_GOLD}={config.gold_column}") if config.gold_column else config.column
    if config.gold_column and not config.column:
        plain = read_verdicts(config, ())  # names the raters that `adjudge label` wrote
        wanted = tuple(f"{name}=scores.{name}" if name != "value" else name for name in plain.verdicts) + wanted
    table = read_verdicts(config, wanted)
    gold = table.by_id(_GOLD) if config.gold_column else None
    tables = [("" if not config.file else Path(config.input).name.split(".")[0], table)]
    for given in config.file:
        name, _, path = given.rpartition("=")
        tables.append((name or Path(path).name.split(".")[0], read_verdicts(config, config.column, path=path)))
    by_id, who = _raters(tables)
    raters = tuple(by_id)
    groups: dict[str, str] = {}
    for _, one in tables:
        for item, group in zip(one.ids, one.groups, strict=True):
            groups.setdefault(item, group if not group.startswith("row ") else f"item {item}")
    if len(raters) < 2:
        raise ValueError(f"there is one rater, {', '.join(raters)}; name another one with --column or --file")
    ids = tuple(table.ids if config.limit else groups)
    said = {name: [by_id[name].get(item, NOTHING) for item in ids] for name in raters}
    truth = None if gold is None else [gold.get(one, NOTHING).value for one in ids]
    verdicts = [value for name in raters for one in said[name] if (value := one.value) is not None]
    golds = [value for value in truth or () if value is not None]
    scale, place = _scale(config, verdicts + golds)
    said_labels, gold_labels = ({_label(value) for value in values} for values in (verdicts, golds))
    told_apart = config.threshold is None and place and min(len(said_labels), len(gold_labels)) > 1
    if told_apart and not said_labels & gold_labels:
        raise ValueError(
            f"no verdict is a label of the gold: raters say {', '.join(sorted(said_labels)[:5])}, the gold is "
            f"{', '.join(sorted(gold_labels)[:5])}; write them alike, or give a --threshold for numbers"
        )
    numbers = [[_number(one.value, config, place) for one in said[name]] for name in raters]
    values = np.array(numbers, dtype=float).T
    if not (np.isfinite(values).sum(axis=1) > 1).any():
        raise ValueError("no item has verdicts of two raters; is --id-column the same thing in all files?")
    labels = tuple(dict.fromkeys(place))
    missing = {name: int(np.isnan(column).sum()) for name, column in zip(raters, values.T, strict=True)}
    return Panel(
        ids=ids,
        groups=tuple(groups[item] for item in ids),
        raters=raters,
        said=said,
        scale=scale,
        labels=labels,
        codes=np.where(np.isnan(values), -1, values).astype(np.int64) if labels else np.empty((0, 0), dtype=np.int64),
        values=values,
        gold=None if truth is None else _gold(truth, config, place),
        table=table,
        who=who,
        notes=tuple(
            f"{name} has no verdict on {count} of {len(ids)} items" for name, count in missing.items() if count
        ),
    )


def _raters(
    tables: Sequence[tuple[str, VerdictTable]],
) -> tuple[dict[str, dict[str, Verdict]], dict[str, Mapping[str, str]]]:
    """Return verdicts by id, and facts, of all raters; they bear their file's name where there are several files."""
    by_id: dict[str, dict[str, Verdict]] = {}
    who: dict[str, Mapping[str, str]] = {}
    for stem, table in tables:
        names = [name for name in table.verdicts if name != _GOLD]
        for name in names:
            rater = name if not stem else stem if len(names) == 1 else f"{stem}/{name}"
            if rater in by_id:
                raise ValueError(f"two raters are called {rater!r}; name the file, as NAME=FILE")
            by_id[rater] = table.by_id(name)
            who[rater] = table.who.get(name, {})
    return by_id, who


def _scale(config: AgreementConfig, values: Sequence[Said]) -> tuple[Scale, dict[str, int]]:
    """Return the scale, and the code of each label; none on an interval scale."""
    texts = any(isinstance(value, str) for value in values)
    if texts and (config.scale not in ("auto", "nominal") or config.threshold is not None):
        text = next(value for value in values if isinstance(value, str))
        raise ValueError(f"a verdict is the text {reprlib.repr(text)}; text has no order, so it needs --scale nominal")
    if config.threshold is not None:
        return "nominal", {"0": 0, "1": 1}
    distinct: list[Any] = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    scale = config.scale
    if scale == "auto":
        scale = "nominal" if texts or len(distinct) < 3 else "ordinal" if len(distinct) <= _ORDINAL else "interval"
    most = _MAX_LABELS.get(scale)
    if most is None:
        return scale, {}
    if len(distinct) > most:
        some = " and ".join(map(reprlib.repr, distinct[:2]))
        raise ValueError(
            f"there are {len(distinct)} different verdicts, such as {some}, and the "
            f"{scale} scale takes {most}; give --scale interval, or a --threshold"
        )
    return scale, {_label(value): at for at, value in enumerate(distinct)}


def _number(value: Said | None, config: AgreementConfig, place: Mapping[str, int]) -> float:
    if value is None:
        return float("nan")
    if config.threshold is not None and isinstance(value, float):
        return float(value >= config.threshold)
    return float(place[_label(value)]) if place else float(value)


def _gold(truth: Sequence[Said | None], config: AgreementConfig, place: Mapping[str, int]) -> Floats:
    if config.threshold is not None and all(value in (None, 0, 1) for value in truth):  # it has been cut already
        truth, config = [None if value is None else float(value) for value in truth], replace(config, threshold=0.5)
    return np.array([_number(value, config, place) for value in truth], dtype=float)


def _label(value: Said) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def class_agreement(
    codes: Ints, labels: int, clusters: Sequence[str], draws: Draws, *, scale: Scale = "nominal"
) -> dict[str, Interval]:
    """Return how far raters agree on classes; items of one cluster are drawn together.

    Args:
        codes: (items, raters), from 0; -1 where a rater gave none.
        labels: how many classes there are.
        clusters: one for each item.
        draws: of the bounds.
        scale: "ordinal" adds alpha for ranks; codes are then in order.

    Returns:
        "raw": share of pairs of verdicts on one item that are equal; "by chance": the same for verdicts drawn from all
        of them; "Krippendorff's alpha", "Gwet's AC1", "Fleiss' kappa" (over items with a verdict of every rater),
        and "Krippendorff's alpha, ordinal".  `n` counts the items that enter.
    """
    counts = np.stack([(codes == at).sum(axis=1) for at in range(labels)], axis=1).astype(float)
    given = counts.sum(axis=1)
    paired, whole, some = given > 1, (given == codes.shape[1]) & (given > 1), given > 0
    equal = _over((counts * (counts - 1)).sum(axis=1), given * (given - 1), paired)
    apart = _over(given**2 - (counts**2).sum(axis=1), given - 1, paired)
    blocks = [
        np.column_stack([equal, paired, apart, equal * whole, whole, some]),
        counts * paired[:, None],
        counts * whole[:, None],
        _over(counts, given[:, None], some[:, None]),
    ]
    names = ["raw", "by chance", "Krippendorff's alpha", "Gwet's AC1", "Fleiss' kappa"]
    sizes = [int(paired.sum())] * 3 + [int(some.sum()), int(whole.sum())]
    if scale == "ordinal":
        meets = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(labels)
        blocks.append(_over(meets.reshape(len(codes), -1), given[:, None] - 1, paired[:, None]))
        names.append("Krippendorff's alpha, ordinal")
        sizes.append(int(paired.sum()))

    def combine(sums: Floats) -> Floats:
        single, rest = sums[:, :6], sums[:, 6:]
        total, complete, shares = (rest[:, at * labels : (at + 1) * labels] for at in range(3))
        number = total.sum(axis=1)
        chance = (total**2).sum(axis=1)
        alpha = 1 - (number - 1) * single[:, 2] / (number**2 - chance)
        mean = shares / single[:, 5:6]
        error = (mean * (1 - mean)).sum(axis=1) / (labels - 1) if labels > 1 else np.full(len(sums), np.nan)
        raw = single[:, 0] / single[:, 1]
        fleiss_chance = ((complete / complete.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        # Where all verdicts are of one class, rounding must not make a number of 0 / 0.
        several = (complete > 0).sum(axis=1) > 1
        fleiss = np.where(several, (single[:, 3] / single[:, 4] - fleiss_chance) / (1 - fleiss_chance), np.nan)
        coefficients = [raw, chance / number**2, alpha, (raw - error) / (1 - error), fleiss]
        if scale == "ordinal":
            coefficients.append(_ordinal(rest[:, 3 * labels :].reshape(-1, labels, labels)))
        return np.stack(coefficients, axis=1)

    intervals = cluster_bootstrap(clusters, np.hstack(blocks), combine, draws, counts=sizes)
    return dict(zip(names, intervals, strict=True))


def number_agreement(values: Floats, clusters: Sequence[str], draws: Draws) -> dict[str, Interval]:
    """Return how far raters agree on numbers, (items, raters), NaN where a rater gave none.

    These are "Krippendorff's alpha, interval", and "difference": the mean distance of two verdicts on one item.
    """
    known = np.isfinite(values)
    given = known.sum(axis=1).astype(float)
    paired = given > 1
    filled = np.where(known, values - values[known].mean(), 0.0)  # about 0, so that squares lose no digits
    sums, squares = filled.sum(axis=1), (filled**2).sum(axis=1)
    apart = _over(2 * (given * squares - sums**2), given - 1, paired)
    distance = np.zeros(len(values))
    for at in range(values.shape[1]):
        both = known[:, at : at + 1] & known[:, at + 1 :]
        distance += (np.abs(filled[:, at : at + 1] - filled[:, at + 1 :]) * both).sum(axis=1)
    mean = _over(2 * distance, given * (given - 1), paired)
    columns = np.column_stack([apart, given * paired, sums * paired, squares * paired, mean, paired])

    def combine(rows: Floats) -> Floats:
        seen, number, total, square, far, items = rows.T
        expected = 2 * (number * square - total**2) / (number - 1)
        alpha = np.where(expected > 1e-12 * number * square, 1 - seen / expected, np.nan)
        return np.stack([alpha, far / items], axis=1)

    alpha, difference = cluster_bootstrap(clusters, columns, combine, draws, counts=[int(paired.sum())] * 2)
    return {"Krippendorff's alpha, interval": alpha, "difference": difference}


def _ordinal(meets: Floats) -> Floats:
    """Return ordinal alpha from tables of coincidences, (b, k, k)."""
    totals = meets.sum(axis=2)
    middle = np.cumsum(totals, axis=1) - totals / 2
    distance = (middle[:, :, None] - middle[:, None, :]) ** 2
    number = totals.sum(axis=1)
    seen = (meets * distance).sum(axis=(1, 2))
    expected = (totals[:, :, None] * totals[:, None, :] * distance).sum(axis=(1, 2)) / (number - 1)
    return np.where(expected > 0, 1 - seen / np.where(expected > 0, expected, 1.0), np.nan)


def _over(above: Floats, below: Floats, where: Bools) -> Floats:
    shape = np.broadcast_shapes(above.shape, below.shape)
    quotient: Floats = np.divide(above, below, out=np.zeros(shape), where=np.broadcast_to(where, shape))
    return quotient
