"""What rewards are worth on held-out examples: accuracy, calibration, length, each with what a trivial rule reaches.

Ties of two rewards count as wrong, as on RewardBench: a model that gives one number to everything is right nowhere.

Not covered: benchmarks with metrics of their own (`adjudge.evals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.statistics.intervals import Interval, clustered_mean, wilson

Numbers = npt.NDArray[np.float64]

_BINS = 10


@dataclass(frozen=True, kw_only=True)
class JudgedPairs:
    """Rewards of held-out pairs; a list gives all its pairs of different rank.

    Attributes:
        better: (n,) rewards of the better responses.
        worse: (n,) of the worse ones.
        better_length: (n,) lengths of the better responses, in tokens or characters.
        worse_length: (n,) of the worse ones.
        clusters: the prompt's family of each pair.
        probability: (n,) chance that the first is preferred, 1 for plain labels, 0.5 for ties.
    """

    better: Numbers
    worse: Numbers
    better_length: Numbers
    worse_length: Numbers
    clusters: Sequence[str]
    probability: Numbers

    @property
    def gaps(self) -> Numbers:
        """Differences of the rewards."""
        return self.better - self.worse


def pair_measures(pairs: JudgedPairs) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return what the rewards reach, and what trivial rules reach on the same pairs.

    Pairs without a preferred side (ties, probability 0.5) count for calibration alone.
    """
    signs = np.sign(pairs.probability - 0.5)
    kept = np.flatnonzero(signs)
    gaps, lengths = pairs.gaps, pairs.better_length - pairs.worse_length
    found: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    if len(kept):
        clusters: list[str] = [pairs.clusters[int(at)] for at in kept]
        right = (gaps[kept] * signs[kept] > 0).astype(float)
        longer = lengths[kept] * signs[kept]
        by_length = np.where(longer > 0, 1.0, np.where(longer == 0, 0.5, 0.0))
        found["accuracy"] = clustered_mean(right, clusters)
        found["accuracy_wilson"] = wilson(float(right.sum()), len(right))
        found["over_longer_wins"] = clustered_mean(right - by_length, clusters)
        found["equal_rewards"] = Interval(value=float((gaps[kept] == 0).mean()), n=len(kept))
        rules["longer wins"] = clustered_mean(by_length, clusters)
    believed = sigmoid(gaps)
    found["brier"] = clustered_mean((pairs.probability - believed) ** 2, pairs.clusters)
    found["ece"] = Interval(value=calibration_error(believed, pairs.probability), n=len(gaps))
    found["length_correlation"] = Interval(value=pearson(gaps, lengths), n=len(gaps))
    found["length_rank_correlation"] = Interval(value=pearson(ranked(gaps), ranked(lengths)), n=len(gaps))
    return found, rules


def rating_measures(
    predicted: Numbers, targets: Numbers, means: Numbers, clusters: Sequence[str], attributes: Sequence[str]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return errors and correlations of each attribute, and the error of always saying the training mean.

    Args:
        predicted: (n, a).
        targets: (n, a); NaN where there is no label.
        means: (a,) of the training labels.
        clusters: the prompt's family of each row.
        attributes: their names.
    """
    found: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    for at, name in enumerate(attributes):
        known = np.flatnonzero(~np.isnan(targets[:, at]))
        if not len(known):
            continue
        said, told = predicted[known, at], targets[known, at]
        own: list[str] = [clusters[int(row)] for row in known]
        found[f"mse_{name}"] = clustered_mean((said - told) ** 2, own)
        found[f"correlation_{name}"] = Interval(value=pearson(said, told), n=len(known))
        found[f"rank_correlation_{name}"] = Interval(value=pearson(ranked(said), ranked(told)), n=len(known))
        rules[f"mse_{name} of the training mean"] = clustered_mean((means[at] - told) ** 2, own)
    return found, rules


def label_measures(
    rewards: Numbers, labels: Numbers, lengths: Numbers, clusters: Sequence[str]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return how well log-odds tell right from wrong answers, and what a guess and the length reach.

    Args:
        rewards: (n,) log-odds.
        labels: (n,) in [0, 1]; above 0.5 is right.
        lengths: (n,) of the responses.
        clusters: the prompt's family of each row.
    """
    right = labels > 0.5
    believed = sigmoid(rewards)
    found = {
        "accuracy": clustered_mean(((rewards > 0) == right).astype(float), clusters),
        "accuracy_wilson": wilson(float(((rewards > 0) == right).sum()), len(labels)),
        "brier": clustered_mean((believed - labels) ** 2, clusters),
        "ece": Interval(value=calibration_error(believed, labels), n=len(labels)),
        "length_correlation": Interval(value=pearson(rewards, lengths), n=len(labels)),
    }
    share = float(right.mean())
    rules = {"always the commoner label": wilson(max(share, 1 - share) * len(labels), len(labels))}
    if 0 < right.sum() < len(right):
        found["auc"] = Interval(value=auc(rewards, right), n=len(labels))
        rules["auc of longer is right"] = Interval(value=auc(lengths, right), n=len(labels))
    return found, rules


def calibration_error(believed: Numbers, outcomes: Numbers) -> float:
    """Return the expected calibration error over ten equal bins of confidence, which is at least a half.

    Args:
        believed: (n,) probabilities that the first side wins.
        outcomes: (n,) how often it does, in [0, 1].
    """
    turned = believed < 0.5
    confidence = np.where(turned, 1 - believed, believed)
    hits = np.where(turned, 1 - outcomes, outcomes)
    bins = np.minimum(((confidence - 0.5) * 2 * _BINS).astype(int), _BINS - 1)
    error = 0.0
    for at in range(_BINS):
        inside = bins == at
        if inside.any():
            error += float(inside.mean()) * abs(float(confidence[inside].mean()) - float(hits[inside].mean()))
    return error


def auc(scores: Numbers, right: npt.NDArray[np.bool_]) -> float:
    """Return the chance that a right one scores above a wrong one, ties as half; both must be there."""
    positive = int(right.sum())
    above = ranked(scores)[right].sum() - positive * (positive - 1) / 2
    return float(above / (positive * (len(right) - positive)))


def pearson(one: Numbers, other: Numbers) -> float:
    """Return the correlation; 0 where a side is constant."""
    first, second = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum() / scale) if scale > 0 else 0.0


def ranked(values: Numbers) -> Numbers:
    """Return ranks from 0, the mean of their places for equal values."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middles: Numbers = ends - (counts + 1) / 2
    return middles[inverse]


def require_finite(values: Numbers) -> Numbers:
    """Return what a model said, or raise `ValueError` where it said something that is no number."""
    if not np.isfinite(values).all():
        raise ValueError(
            "the model gives values that are no numbers; train it with a lower schedule.learning_rate, or with "
            "schedule.precision fp32"
        )
    return values


def sigmoid(values: Numbers) -> Numbers:
    """Return 1 / (1 + e^-x) without overflow."""
    found: Numbers = np.exp(-np.logaddexp(0, -values))
    return found
