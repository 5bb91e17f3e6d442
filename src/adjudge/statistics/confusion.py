"""Measures of a table of gold against verdicts, for one table or for thousands of resampled ones at once.

A table is an array (..., k, m): a row for each of k classes of gold, a column for each class of verdict in the same
order, and then columns for what is not a verdict (abstained, failed).  So m >= k.  A case without a verdict is never
right: it counts in the row, as a miss, and in no class's precision.  All measures take tables with any leading axes
and give NaN where there is nothing to divide by.

Sources: Cohen 1960 (kappa), Gorodkin 2004 (Matthews' correlation for k classes); macro averages as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.bootstrap import cluster_bootstrap, share_interval
from adjudge.statistics.intervals import Draws, Interval

NO_VERDICT = "no verdict"


def cells(gold: Sequence[str], verdicts: Sequence[str | None], classes: Sequence[str]) -> Ints:
    """Return the number of the cell of each case in a table (k, k + 1), whose last column is cases without a verdict.

    Raises:
        ValueError: the lists do not fit, or hold something that is not a class.
    """
    place = {name: at for at, name in enumerate(classes)}
    if len(gold) != len(verdicts) or len(place) != len(classes):
        raise ValueError(
            f"{len(gold)} gold labels, {len(verdicts)} verdicts, classes {list(classes)!r}; give a verdict for each, "
            "and each class once"
        )
    unknown = [name for name in (*gold, *verdicts) if name is not None and name not in place]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of the classes {list(classes)!r}")
    width = len(classes) + 1
    rows, columns = ([len(classes) if name is None else place[name] for name in names] for names in (gold, verdicts))
    return np.array(rows, dtype=np.int64) * width + np.array(columns, dtype=np.int64)


def confusion_intervals(
    gold: Sequence[str],
    verdicts: Sequence[str | None],
    clusters: Sequence[str],
    classes: Sequence[str],
    draws: Draws,
    *,
    positive: str = "",
) -> dict[str, Interval]:
    """Return accuracy, balanced accuracy, macro-F1, Matthews' correlation and kappa with bounds.

    Accuracy, precision and recall are shares, and have the bounds of `share_interval`.

    Args:
        gold: a class for each case, at least one.
        verdicts: a class for each case, or None.
        clusters: cases of one name are drawn together.
        classes: all of them.
        draws: how bounds are drawn.
        positive: a class whose precision, recall and F1 are wanted too.
    """
    if positive and positive not in classes:
        raise ValueError(f"the positive class {positive!r} is none of {list(classes)!r}")
    size, at = len(classes), list(classes).index(positive) if positive else 0

    def combine(sums: Floats) -> Floats:
        table = sums.reshape(-1, size, size + 1)
        rates = [balanced_accuracy(table), macro_f1(table), matthews(table), kappa(table), f1_scores(table)[:, at]]
        return np.stack(rates, axis=1)

    columns = np.eye(size * (size + 1))[cells(gold, verdicts, classes)]
    balanced, macro, correlation, agreement, f1 = cluster_bootstrap(clusters, columns, combine, draws)
    right = [label == said for label, said in zip(gold, verdicts, strict=True)]
    measured = {
        "accuracy": share_interval(right, clusters, draws),
        "balanced accuracy": balanced,
        "macro-F1": macro,
        "MCC": correlation,
        "kappa": agreement,
    }
    if positive:
        for name, labels in (("precision", verdicts), ("recall", gold)):
            rows = [row for row, label in enumerate(labels) if label == positive]
            kept = [right[row] for row in rows]
            measured[name] = share_interval(kept, [clusters[row] for row in rows], draws)
        measured["F1"] = f1
    return measured


def recalls(table: Floats) -> Floats:
    """Return, of the cases of each class, the share with the right verdict, (..., k)."""
    return ratio(_right(table), table.sum(axis=-1))


def f1_scores(table: Floats) -> Floats:
    """Return the harmonic mean of precision and recall, (..., k); NaN only for classes that nobody names."""
    return ratio(2 * _right(table), table.sum(axis=-1) + table[..., : table.shape[-2]].sum(axis=-2))


def macro_f1(table: Floats) -> Floats:
    """Return the mean F1 of the classes that gold or a verdict names, (...)."""
    return _known_mean(f1_scores(table))


def balanced_accuracy(table: Floats) -> Floats:
    """Return the mean recall of the classes that have cases, (...)."""
    return _known_mean(recalls(table))


def matthews(table: Floats) -> Floats:
    """Return Matthews' correlation, (...); cases without a verdict are a class that is never right."""
    total, gold, said = table.sum(axis=(-2, -1)), table.sum(axis=-1), table.sum(axis=-2)
    above = _right(table).sum(axis=-1) * total - (gold * said[..., : table.shape[-2]]).sum(axis=-1)
    spread = (total**2 - np.square(said).sum(axis=-1)) * (total**2 - np.square(gold).sum(axis=-1))
    return ratio(above, np.sqrt(np.maximum(spread, 0.0)))


def kappa(table: Floats) -> Floats:
    """Return Cohen's kappa of gold and verdict, (...); cases without a verdict agree with nothing."""
    total, gold, said = table.sum(axis=(-2, -1)), table.sum(axis=-1), table.sum(axis=-2)
    chance = (gold * said[..., : table.shape[-2]]).sum(axis=-1)
    return ratio(_right(table).sum(axis=-1) * total - chance, total**2 - chance)


def _right(table: Floats) -> Floats:
    if table.ndim < 2 or table.shape[-1] < table.shape[-2]:
        raise ValueError(f"a table of shape {table.shape}; it needs a column for each row, and may have more")
    return np.asarray(np.diagonal(table, axis1=-2, axis2=-1), dtype=float)


def _known_mean(numbers: Floats) -> Floats:
    known = np.isfinite(numbers)
    return ratio(np.where(known, numbers, 0.0).sum(axis=-1), known.sum(axis=-1))


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(whole != 0, part / whole, np.nan), dtype=float)


def macro_rates(tables: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the means over the gold labels of precision, recall and F1; a rate without cases counts as 0.

    Args:
        tables: (b, k, c) with a row for each gold label; the first k columns are verdicts of these labels, others are
            verdicts that are none of them, and so never right.
    """
    count = tables.shape[1]
    hits = np.diagonal(tables[:, :, :count], axis1=1, axis2=2)
    precision = np.nan_to_num(ratio(hits, tables.sum(axis=1)[:, :count]))
    recall = np.nan_to_num(ratio(hits, tables.sum(axis=2)))
    f1 = np.nan_to_num(ratio(2 * precision * recall, precision + recall))
    return precision.mean(axis=1), recall.mean(axis=1), f1.mean(axis=1)
