"""What a model is worth on held-out examples: accuracy, calibration, length, each with what a trivial rule reaches.

Ties of two rewards count as wrong, as on RewardBench: a model that gives one number to everything is right nowhere.  A
label nobody gave is no negative: such places are left out of a label's numbers.  Whether any label is there is known
of a row where one is, and where all are known not to be.

Not covered: benchmarks with metrics of their own (`adjudge.evals`), intervals of F1, which has no simple one, and
thresholds other than a probability of a half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.reward_models.training.report import Measures
from adjudge.statistics.intervals import Interval, clustered_mean, wilson
from adjudge.training.examples import Example, Pair, Rating

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


Flags = npt.NDArray[np.bool_]


def flag_measures(
    logits: Numbers, targets: Numbers, categories: Sequence[str]
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Return F1 and AUC of each category and of `any_label`, and the F1 of always saying yes.

    Args:
        logits: (n, a) log-odds.
        targets: (n, a) of 1 and 0; NaN where there is no label.
        categories: names of the columns.
    """
    found: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    there, known = targets == 1, ~np.isnan(targets)
    columns = [(name, logits[:, at], there[:, at], known[:, at]) for at, name in enumerate(categories)]
    columns.append(("any_label", logits.max(axis=1), there.any(axis=1), there.any(axis=1) | known.all(axis=1)))
    for name, said, right, told in columns:
        n = int(told.sum())
        if not n:
            continue
        said, right = said[told], right[told]
        found[f"f1_{name}"] = Interval(value=f1(said > 0, right), n=n)
        rules[f"f1_{name} of always yes"] = Interval(value=f1(np.ones(n, dtype=bool), right), n=n)
        if 0 < right.sum() < n:
            found[f"auc_{name}"] = Interval(value=auc(said, right), n=n)
    return found, rules


def f1(said: Flags, right: Flags) -> float | None:
    """Return 2 TP / (2 TP + FP + FN); None where nothing is there and nothing was said."""
    hits = int((said & right).sum())
    total = int(said.sum()) + int(right.sum())
    return 2 * hits / total if total else None


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An example with the rewards of its responses.

    Attributes:
        example: what was judged.
        rewards: (responses, outputs).
        lengths: of the responses, in tokens or characters.
        cluster: the prompt's family.
    """

    example: Example
    rewards: Numbers
    lengths: Numbers
    cluster: str


def judged_pairs(judged: Sequence[Judged]) -> JudgedPairs:
    """Return the pairs of judged pairs and lists; the reward is the mean over columns (members of an ensemble)."""
    two: list[tuple[float, ...]] = []
    clusters: list[str] = []
    for one in judged:
        rewards, lengths = one.rewards.mean(axis=1), one.lengths
        if isinstance(one.example, Pair):
            given = one.example.probability
            sides = [(0, 1, 0.5 if one.example.tie else 1.0 if given is None else given)]
        elif isinstance(one.example, Rating):
            sides = []
        else:
            ranks = one.example.ranks
            sides = [(i, j, 1.0) for i in range(len(ranks)) for j in range(len(ranks)) if ranks[i] < ranks[j]]
        for i, j, probability in sides:
            two.append((rewards[i], rewards[j], lengths[i], lengths[j], probability))
            clusters.append(one.cluster)
    better, worse, better_length, worse_length, told = np.array(two, dtype=float).T
    return JudgedPairs(
        better=better,
        worse=worse,
        better_length=better_length,
        worse_length=worse_length,
        clusters=clusters,
        probability=told,
    )


def preference_measures(judged: Sequence[Judged]) -> Measures:
    """Return what rewards of pairs and lists are worth."""
    found, rules = pair_measures(judged_pairs(judged))
    lists = [one for one in judged if not isinstance(one.example, Pair | Rating)]
    if lists:
        right = [_best_first(one) for one in lists]
        found["best_first"] = clustered_mean(right, [one.cluster for one in lists])
    return found, rules


def rated_measures(judged: Sequence[Judged], *, labels: bool, means: Numbers, attributes: Sequence[str]) -> Measures:
    """Return what predictions of ratings are worth.

    Args:
        judged: rated responses.
        labels: the ratings are labels in [0, 1], and the predictions log-odds.
        means: of each attribute over the training examples.
        attributes: their names.
    """
    clusters = [one.cluster for one in judged]
    targets = np.array([_values(one.example) for one in judged], dtype=float)
    predicted = np.concatenate([one.rewards for one in judged])
    if labels:
        lengths = np.concatenate([one.lengths for one in judged])
        return label_measures(predicted.mean(axis=1), targets[:, 0], lengths, clusters)
    return rating_measures(predicted, targets, means, clusters, attributes)


def category_measures(judged: Sequence[Judged], attributes: Sequence[str]) -> Measures:
    """Return what log-odds of labels that may hold together are worth, and what a rule that always says yes reaches."""
    targets = np.array([_values(one.example) for one in judged], dtype=float)
    return flag_measures(np.concatenate([one.rewards for one in judged]), targets, attributes)


def training_means(examples: Sequence[Example]) -> Numbers:
    """Return the mean of each attribute over rated examples; 0 where nothing is rated."""
    values = np.array([_values(example) for example in examples], dtype=float)
    counts = (~np.isnan(values)).sum(axis=0)
    means: Numbers = np.nansum(values, axis=0) / np.maximum(counts, 1)
    return means


def _values(example: Example) -> list[float]:
    assert isinstance(example, Rating)
    return [np.nan if value is None else value for value in example.values]


def _best_first(one: Judged) -> float:
    """1 if a best response has the highest reward and no worse one has it too."""
    assert not isinstance(one.example, Pair | Rating)
    rewards = one.rewards.mean(axis=1)
    best = [reward for reward, rank in zip(rewards, one.example.ranks, strict=True) if rank == min(one.example.ranks)]
    rest = [reward for reward, rank in zip(rewards, one.example.ranks, strict=True) if rank != min(one.example.ranks)]
    return float(max(best) > max(rest))
