"""Rows with a score and an outcome, and calibration maps that are never measured on their own training rows.

Every map is an `adjudge.scoring.compose.Calibration`, so it serves in a `calibrated` scorer as it is.  Needs
scikit-learn (`pip install "adjudge[data]"`).
"""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from adjudge.evals.trust.verdicts import NOTHING, CalibrationConfig, Verdict, VerdictTable, read_verdicts
from adjudge.scoring.compose.calibration import Calibration, Kind
from adjudge.statistics.arrays import Floats, Ints, np
from adjudge.statistics.logistic import fit_logistic


def log_odds(probability: float, *, least: float = 1e-6) -> float:
    """Return `log(p / (1 - p))`, with p kept `least` away from 0 and 1 so that the result is finite."""
    if not 0 <= probability <= 1:
        raise ValueError(f"the probability is {probability!r}; it must be in [0, 1]")
    kept = min(max(probability, least), 1 - least)
    return math.log(kept / (1 - kept))


def fit_temperature(values: Sequence[float], labels: Sequence[int]) -> Calibration:
    """Return `sigmoid(value / T)` with the likeliest T > 0, as a Platt map without intercept (slope 1/T).

    Args:
        values: log-odds; `log_odds` makes them of probabilities.
        labels: as many outcomes, 1 or 0, both present.  They enter as Platt's smoothed targets, so that T stays
            above 0 where the values tell right from wrong without error.

    Raises:
        ValueError: the data do not allow a fit, or right samples do not have higher values than wrong ones.
    """
    if len(values) != len(labels) or set(labels) != {0, 1}:
        raise ValueError(
            f"{len(values)} values and {len(labels)} labels; give as many of each, with 1 and 0 among them"
        )
    if not all(map(math.isfinite, values)) or not any(values):
        raise ValueError("the values must be finite log-odds, and not all 0")
    right = sum(labels)
    high, low = (right + 1) / (right + 2), 1 / (len(labels) - right + 2)
    targets = np.array([high if label else low for label in labels])
    fitted, _ = fit_logistic(np.array(values, dtype=float)[:, None], targets, np.ones(len(labels)))
    if not fitted[0] > 0:
        raise ValueError("right samples do not have higher log-odds than wrong ones, so no temperature fits")
    return Calibration(kind="platt", slope=float(fitted[0]), intercept=0.0)


@dataclass(frozen=True, kw_only=True)
class CrossFit:
    """Probabilities that are safe to measure, and the map to use from now on.

    Attributes:
        probabilities: for each row, what a map fitted without the row's fold, and so its group, says.
        calibration: the map fitted on all rows.  Its error on these rows is too small: measure `probabilities`.
    """

    probabilities: tuple[float, ...]
    folds: tuple[int, ...]
    calibration: Calibration


def cross_fit(
    values: Sequence[float],
    labels: Sequence[int],
    groups: Sequence[str],
    *,
    kind: Kind | str = "isotonic",
    folds: int = 5,
) -> CrossFit:
    """Fit a map for each fold on the other folds' rows, whole groups at a time.

    Rows of one group (the answers to one prompt) are never on both sides: with single rows held out, a map learns the
    held-out prompt from its other answers.

    Args:
        values: scores; log-odds for "temperature".
        labels: as many outcomes, 1 or 0.
        groups: as many names.
        kind: "isotonic", "platt" or "temperature".
        folds: at least 2, and at most the number of groups.

    Raises:
        ValueError: the lists do not fit, or a fold's training rows do not allow a fit; the message names it.
    """
    if not len(values) == len(labels) == len(groups) or not values:
        raise ValueError(f"{len(values)} values, {len(labels)} labels and {len(groups)} groups; give as many of each")
    if kind not in ("isotonic", "platt", "temperature"):
        raise ValueError(f'the calibration kind is {kind!r}; it must be "isotonic", "platt" or "temperature"')
    held = group_folds(groups, folds)
    probabilities = [0.0] * len(values)
    for fold in range(folds):
        train = [index for index, at in enumerate(held) if at != fold]
        try:
            fitted = _fit([values[index] for index in train], [labels[index] for index in train], kind)
        except ValueError as error:
            raise ValueError(f"without fold {fold} of {folds} there is no fit: {error}") from error
        for index, at in enumerate(held):
            if at == fold:
                probabilities[index] = fitted(values[index])
    return CrossFit(probabilities=tuple(probabilities), folds=held, calibration=_fit(values, labels, kind))


def group_folds(groups: Sequence[str], folds: int) -> tuple[int, ...]:
    """Return a fold for each row: groups stay whole, sizes are about equal, and the order of rows does not matter."""
    sizes = Counter(groups)
    if not 2 <= folds <= len(sizes):
        raise ValueError(f"folds={folds!r} for {len(sizes)} groups; it must be between 2 and the number of groups")
    filled = [0] * folds
    home: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        home[name] = filled.index(min(filled))
        filled[home[name]] += sizes[name]
    return tuple(home[name] for name in groups)


def _fit(values: Sequence[float], labels: Sequence[int], kind: str) -> Calibration:
    if kind == "temperature":
        return fit_temperature(values, labels)
    return Calibration.fit(values, labels, kind="platt" if kind == "platt" else "isotonic")


_SCORE, _GOLD = "score", "gold"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRows:
    """The rows that have an outcome.

    Attributes:
        at: their places in the table.
        labels: 1 or 0 for each of them, made of their `grades`.
        scored: which of them have a number: places in the lists above.
        without_gold: rows without an outcome.
        gold_alone: outcomes in the other file of which there is no row, and which are in none of the numbers either;
            0 where only some of the rows were read.
    """

    table: VerdictTable
    at: tuple[int, ...]
    labels: Floats
    grades: Floats
    said: tuple[Verdict, ...]
    clusters: tuple[str, ...]
    scored: Ints
    values: Floats
    probabilities: Floats
    without_gold: int
    gold_alone: int
    notes: tuple[str, ...]

    @property
    def scored_labels(self) -> Floats:
        """The outcomes of rows with a number."""
        return self.labels[self.scored]

    @property
    def scored_clusters(self) -> list[str]:
        """The groups of rows with a number."""
        return [self.clusters[at] for at in self.scored.tolist()]


def read_rows(config: CalibrationConfig) -> ScoredRows:
    """Read scores and outcomes."""
    score, gold = f"{_SCORE}={config.score_column}", f"{_GOLD}={config.gold_column}"
    table = read_verdicts(config, (score,) if config.gold else (score, gold))
    golds, alone = _joined(config, table, gold) if config.gold else (table.verdicts[_GOLD], 0)
    grades = [_grade(one, name, config) for one, name in zip(golds, table.ids, strict=True)]
    at = [place for place, grade in enumerate(grades) if grade is not None]
    kept = np.array([grade for grade in grades if grade is not None])
    if not at:
        raise ValueError(f"no row of {table.name} has a gold, by {config.gold_column!r}; name its column with "
                         "--gold-column, or another file with --gold")  # fmt: skip
    labels = kept if config.gold_threshold is None else (kept >= config.gold_threshold).astype(float)
    said = tuple(table.verdicts[_SCORE][place] for place in at)
    for one, place in zip(said, at, strict=True):
        if isinstance(one.value, str):
            text = reprlib.repr(one.value)
            raise ValueError(f"the score of {table.ids[place]!r} is the text {text}; calibration needs numbers")
    scored = np.array([place for place, one in enumerate(said) if one.number is not None], dtype=np.int64)
    values = np.array([one.number for one in said if one.number is not None], dtype=float)
    clusters = tuple(table.groups[place] for place in at)
    if not len(values):
        raise ValueError(f"no row of {table.name} with a gold has a score, by {config.score_column!r}; the first one "
                         f"says {said[0].shown!r}")  # fmt: skip
    probabilities, notes = _probabilities(config, values, labels[scored], [clusters[one] for one in scored.tolist()])
    return ScoredRows(
        table=table,
        at=tuple(at),
        labels=labels,
        grades=kept,
        said=said,
        clusters=clusters,
        scored=scored,
        values=values,
        probabilities=probabilities,
        without_gold=len(grades) - len(at),
        gold_alone=alone,
        notes=notes,
    )


def _joined(config: CalibrationConfig, table: VerdictTable, gold: str) -> tuple[list[Verdict], int]:
    """Return the gold of each row, and how many golds have no row."""
    other = read_verdicts(config, (gold,), path=config.gold)
    known = other.by_id(_GOLD)
    if not known.keys() & set(table.ids):
        raise ValueError(
            f"{table.name} and {config.gold} share no id: the first ones are {table.ids[0]!r} and {other.ids[0]!r}; "
            "name the column with --id-column"
        )
    alone = 0 if config.limit else len(known.keys() - set(table.ids))
    return [known.get(name, NOTHING) for name in table.ids], alone


def _grade(gold: Verdict, name: str, config: CalibrationConfig) -> float | None:
    if gold.value is None:
        return None
    value = {"true": 1.0, "false": 0.0}.get(gold.value.lower()) if isinstance(gold.value, str) else gold.value
    if value is None:
        raise ValueError(f"the gold of {name!r} is the text {reprlib.repr(gold.value)}; it must be 1 or 0, or a grade")
    if config.gold_threshold is None and value not in (0, 1):
        raise ValueError(f"the gold of {name!r} is {value:g}, neither 1 nor 0; say with --gold-threshold from where on "
                         "a grade is right")  # fmt: skip
    return value


def _probabilities(
    config: CalibrationConfig, values: Floats, labels: Floats, groups: Sequence[str]
) -> tuple[Floats, tuple[str, ...]]:
    inside = bool(((values >= 0) & (values <= 1)).all())
    kind = config.map if config.map != "auto" else "none" if inside else "isotonic"
    if kind == "none":
        if not inside:
            outside = values[(values < 0) | (values > 1)][0]
            raise ValueError(f"a score is {outside:g}, which is not a probability; choose a map with --map")
        return values, ()
    taken = [log_odds(value) for value in values] if kind == "temperature" and inside else values.tolist()
    fitted = cross_fit(taken, labels.astype(int).tolist(), groups, kind=kind, folds=config.folds)
    why = "scores are probabilities already, and were mapped all the same" if inside else "scores lie outside of [0, 1]"
    note = (
        f"{why}: each became a probability by a map ({kind}) fitted on the rows of other groups, in {config.folds} "
        "folds; calibration is that of the map, and only the order (AUROC, average precision) is the scorer's own"
    )
    return np.array(fitted.probabilities), (note,)
