"""How well a process model tells right steps from wrong ones, in solutions of problems it never saw.

Steps of one problem resemble each other, so intervals draw whole problems again.  Beside the accuracy stand those of
calling every step right, and of the commoner label.

The score of first errors is ProcessBench's: a solution counts if the first step below a threshold is its first error,
or no step is below and it has none; F1 is the harmonic mean of the two shares.  The threshold for one half of the
problems is taken from the other half, so that no solution chooses the threshold it is judged by.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.reward_models.training.report import Measures
from adjudge.statistics.intervals import Interval, clustered_mean, middle, numbered, resampled
from adjudge.statistics.ranks import auroc
from adjudge.training.step_data import Label, first_error

Numbers = npt.NDArray[np.float64]
Solution = tuple[Sequence[float], int]
"""The probabilities of a solution's steps, and the place of its first error, -1 for none."""

_BINS = 10
_THRESHOLDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSteps:
    """What a model said about one solution, beside what is known.

    Attributes:
        probabilities: that each step is right, in [0, 1].
        labels: of the steps; None where unknown.
        cluster: the problem's family.
        outcome: the probability that the model gives to the answer; None if it gives none.
        correct: the label of the outcome; None where unknown.
    """

    probabilities: tuple[float, ...]
    labels: tuple[Label, ...]
    cluster: str
    outcome: float | None = None
    correct: Label = None


def step_measures(judged: Sequence[JudgedSteps], *, error: float = 0.0) -> Measures:
    """Return what a model reaches on held-out solutions, and what trivial rules reach; what nothing tells is left out.

    A step is an error if its label is at most `error`.
    """
    reached: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    labelled = [
        (value, label, item.cluster)
        for item in judged
        for value, label in zip(item.probabilities, item.labels, strict=True)
        if label is not None
    ]
    if labelled:
        said, labels = np.array([value for value, _, _ in labelled]), np.array([label for _, label, _ in labelled])
        clusters = [cluster for _, _, cluster in labelled]
        right = labels > error
        hits = ((said > 0.5) == right).astype(float)
        reached["step_accuracy"] = clustered_mean(hits, clusters)
        reached["over_calling_every_step_right"] = clustered_mean(hits - right.astype(float), clusters)
        reached["step_brier"] = clustered_mean((said - labels) ** 2, clusters)
        reached["step_ece"] = Interval(value=expected_calibration_error(said, labels), n=len(labelled))
        rules["step_accuracy of calling every step right"] = clustered_mean(right.astype(float), clusters)
        if 0 < right.sum() < len(right):
            reached["step_auc"] = Interval(value=auroc(said, right), n=len(labelled))
        if right.mean() < 0.5:
            rules["step_accuracy of the commoner label"] = clustered_mean(1 - right.astype(float), clusters)
    clear = [(item, place) for item in judged if (place := first_error(item.labels, threshold=error)) is not None]
    reached |= first_error_measures(
        [(item.probabilities, place) for item, place in clear], [item.cluster for item, _ in clear]
    )
    answers = [(item.outcome, item.correct) for item in judged if item.outcome is not None and item.correct is not None]
    correct = np.array([label > 0.5 for _, label in answers], dtype=bool)
    if 0 < correct.sum() < len(correct):
        reached["outcome_auc"] = Interval(
            value=auroc(np.array([value for value, _ in answers]), correct), n=len(answers)
        )
    return reached, rules


def expected_calibration_error(said: Numbers, labels: Numbers) -> float:
    """Return the mean distance of said and true shares in ten bins of equal width, weighted by their steps."""
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(bins, weights=said - labels, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(said))


def first_error_f1(wrong: float, right: float) -> float:
    """Return the harmonic mean of the shares found among wrong and among right solutions; 0 where both are 0."""
    return 2 * wrong * right / (wrong + right) if wrong + right else 0.0


def best_threshold(solutions: Sequence[Solution]) -> float:
    """Return the threshold with the highest F1, the one nearest to 0.5 among equals; 0.5 where one kind is missing."""
    values = sorted({value for probabilities, _ in solutions for value in probabilities})
    between = [(low + high) / 2 for low, high in itertools.pairwise(values)]
    few = between[:: max(1, len(between) // _THRESHOLDS)]
    wrong = np.array([place >= 0 for _, place in solutions], dtype=bool)
    if not wrong.any() or wrong.all():
        return 0.5
    ranges = _hit_ranges(solutions)

    def merit(threshold: float) -> tuple[float, float]:
        hits = _hits(ranges, threshold)
        return first_error_f1(hits[wrong].mean(), hits[~wrong].mean()), -abs(threshold - 0.5)

    return max((0.5, *few), key=merit)


def first_error_measures(solutions: Sequence[Solution], clusters: Sequence[str]) -> dict[str, Interval]:
    """Return ProcessBench's scores with thresholds taken from the other half of the problems.

    Solutions are only such as are known to have a first error, or none; both kinds must be there, else nothing is.
    """
    wrong = np.array([place >= 0 for _, place in solutions], dtype=bool)
    if not wrong.any() or wrong.all():
        return {}
    owners, ranges = numbered(clusters), _hit_ranges(solutions)
    half = owners % 2
    other = [
        best_threshold([item for item, mine in zip(solutions, half, strict=True) if mine != side]) for side in (0, 1)
    ]
    hits, at_half = _hits(ranges, np.array(other)[half]), _hits(ranges, 0.5)
    low, high = _f1_interval(hits, wrong, owners)
    value = first_error_f1(hits[wrong].mean(), hits[~wrong].mean())
    plain = first_error_f1(at_half[wrong].mean(), at_half[~wrong].mean())
    mine = [cluster for cluster, bad in zip(clusters, wrong, strict=True) if bad]
    theirs = [cluster for cluster, bad in zip(clusters, wrong, strict=True) if not bad]
    return {
        "first_error_f1": Interval(value=value, low=low, high=high, n=len(solutions)),
        "first_error_found": clustered_mean(hits[wrong], mine),
        "no_error_found": clustered_mean(hits[~wrong], theirs),
        "first_error_f1_at_half": Interval(value=plain, n=len(solutions)),
        "first_error_threshold": Interval(value=best_threshold(solutions), n=len(solutions)),
    }


def _hit_ranges(solutions: Sequence[Solution]) -> tuple[Numbers, Numbers]:
    """The thresholds t, low < t <= high, for which the first step below t is the first error, or there is neither."""
    low = [-np.inf if place < 0 else said[place] for said, place in solutions]
    high = [min(said if place < 0 else said[:place], default=np.inf) for said, place in solutions]
    return np.array(low), np.array(high)


def _hits(ranges: tuple[Numbers, Numbers], thresholds: Numbers | float) -> Numbers:
    low, high = ranges
    hits: Numbers = ((low < thresholds) & (thresholds <= high)).astype(float)
    return hits


def _f1_interval(
    hits: Numbers, wrong: npt.NDArray[np.bool_], owners: npt.NDArray[np.int64]
) -> tuple[float | None, float | None]:
    """The middle 95 % of F1 when problems are drawn with replacement; none where there is only one problem.

    Draws without one of the two kinds say nothing.
    """
    problems = int(owners.max()) + 1
    if problems < 2:
        return None, None
    kinds = [
        (np.bincount(owners[kind], hits[kind], problems), np.bincount(owners[kind], minlength=problems))
        for kind in (wrong, ~wrong)
    ]
    drawn = []
    for times in resampled(problems):
        (errors, wrong_ones), (clean, right_ones) = ((float(times @ one), float(times @ all_)) for one, all_ in kinds)
        if wrong_ones and right_ones:
            drawn.append(first_error_f1(errors / wrong_ones, clean / right_ones))
    return middle(drawn) if drawn else (None, None)
