"""What a model is worth on held-out examples: accuracy, calibration, length, each with what a trivial rule reaches.

Ties of two rewards count as wrong, as on RewardBench: a model that gives one number to everything is right nowhere.  A
label nobody gave is not a negative: such places are left out of a label's numbers.  Whether any label is there is known
of a row where one is, and where all are known not to be.

Every function returns what the model reaches, and what trivial rules reach, by name.

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
from adjudge.statistics.ranks import auroc, spearman
from adjudge.training.examples import Example, Pair, Ranking, Rating

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_BINS = 10


@dataclass(frozen=True, kw_only=True)
class Rewarded:
    """An example with the rewards of its responses.

    Attributes:
        example: what was rated.
        rewards: (responses, outputs).
        lengths: of the responses, in tokens or characters.
        cluster: the prompt's family.
    """

    example: Example
    rewards: Numbers
    lengths: Numbers
    cluster: str


@dataclass(frozen=True, kw_only=True)
class RewardedPairs:
    """Rewards and lengths of both sides of pairs, (n,), their prompts' families, and how likely the first is preferred.

    The probability is 1 for plain labels and 0.5 for ties.
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

    @classmethod
    def of(cls, rewarded: Sequence[Rewarded]) -> RewardedPairs:
        """Return pairs, and the pairs of different rank of lists; a reward is the mean over its columns."""
        rows: list[tuple[float, ...]] = []
        clusters: list[str] = []
        for one in rewarded:
            rewards, lengths = one.rewards.mean(axis=1), one.lengths
            sides: list[tuple[int, int, float]] = []
            if isinstance(one.example, Pair):
                given = one.example.probability
                sides = [(0, 1, 0.5 if one.example.tie else 1.0 if given is None else given)]
            elif isinstance(one.example, Ranking):
                ranks = one.example.ranks
                sides = [(i, j, 1.0) for i in range(len(ranks)) for j in range(len(ranks)) if ranks[i] < ranks[j]]
            for i, j, probability in sides:
                rows.append((rewards[i], rewards[j], lengths[i], lengths[j], probability))
                clusters.append(one.cluster)
        better, worse, better_length, worse_length, probabilities = np.array(rows, dtype=float).T
        return cls(
            better=better,
            worse=worse,
            better_length=better_length,
            worse_length=worse_length,
            clusters=clusters,
            probability=probabilities,
        )


def pair_measures(pairs: RewardedPairs) -> Measures:
    """Return what rewards of pairs are worth; those without a preferred side (ties) count for calibration alone."""
    signs = np.sign(pairs.probability - 0.5)
    kept = np.flatnonzero(signs)
    gaps, lengths = pairs.gaps, pairs.better_length - pairs.worse_length
    reached: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    if len(kept):
        clusters: list[str] = [pairs.clusters[int(at)] for at in kept]
        right = (gaps[kept] * signs[kept] > 0).astype(float)
        by_length = (np.sign(lengths[kept] * signs[kept]) + 1) / 2
        reached["accuracy"] = clustered_mean(right, clusters)
        reached["accuracy_wilson"] = wilson(float(right.sum()), len(right))
        reached["over_longer_wins"] = clustered_mean(right - by_length, clusters)
        reached["equal_rewards"] = Interval(value=float((gaps[kept] == 0).mean()), n=len(kept))
        rules["longer wins"] = clustered_mean(by_length, clusters)
    believed = sigmoid(gaps)
    reached["brier"] = clustered_mean((pairs.probability - believed) ** 2, pairs.clusters)
    reached["ece"] = Interval(value=calibration_error(believed, pairs.probability), n=len(gaps))
    reached["length_correlation"] = Interval(value=pearson(gaps, lengths), n=len(gaps))
    reached["length_rank_correlation"] = Interval(value=spearman(gaps, lengths) or 0.0, n=len(gaps))
    return reached, rules


def preference_measures(rewarded: Sequence[Rewarded]) -> Measures:
    """Return what rewards of pairs and lists are worth."""
    reached, rules = pair_measures(RewardedPairs.of(rewarded))
    first, clusters = [], []
    for one in rewarded:
        if isinstance(one.example, Ranking):  # is the best reward a best response's, and no worse one's too?
            rewards, ranks = one.rewards.mean(axis=1), np.array(one.example.ranks)
            best = ranks == ranks.min()
            first.append(float(rewards[best].max() > rewards[~best].max()))
            clusters.append(one.cluster)
    return ({**reached, "best_first": clustered_mean(first, clusters)} if first else reached), rules


def rating_measures(
    predicted: Numbers, targets: Numbers, means: Numbers, clusters: Sequence[str], attributes: Sequence[str]
) -> Measures:
    """Return errors and correlations of each attribute, and the error of always saying the training mean.

    `predicted` and `targets` are (n, a), NaN where there is no label; `means`, (a,), are those of the training labels.
    """
    reached: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    for at, name in enumerate(attributes):
        known = np.flatnonzero(~np.isnan(targets[:, at]))
        if not len(known):
            continue
        said, labels = predicted[known, at], targets[known, at]
        own: list[str] = [clusters[int(row)] for row in known]
        reached[f"mse_{name}"] = clustered_mean((said - labels) ** 2, own)
        reached[f"correlation_{name}"] = Interval(value=pearson(said, labels), n=len(known))
        reached[f"rank_correlation_{name}"] = Interval(value=spearman(said, labels) or 0.0, n=len(known))
        rules[f"mse_{name} of the training mean"] = clustered_mean((means[at] - labels) ** 2, own)
    return reached, rules


def label_measures(rewards: Numbers, labels: Numbers, lengths: Numbers, clusters: Sequence[str]) -> Measures:
    """Return how well log-odds tell right from wrong answers, and what a guess and the length reach, of (n,) each.

    A label in [0, 1] above 0.5 is right.
    """
    right, n = labels > 0.5, len(labels)
    believed, hits = sigmoid(rewards), ((rewards > 0) == right).astype(float)
    reached = {
        "accuracy": clustered_mean(hits, clusters),
        "accuracy_wilson": wilson(float(hits.sum()), n),
        "brier": clustered_mean((believed - labels) ** 2, clusters),
        "ece": Interval(value=calibration_error(believed, labels), n=n),
        "length_correlation": Interval(value=pearson(rewards, lengths), n=n),
    }
    share = float(right.mean())
    rules = {"always the commoner label": wilson(max(share, 1 - share) * n, n)}
    if 0 < right.sum() < n:
        reached["auc"] = Interval(value=auroc(rewards, right), n=n)
        rules["auc of longer is right"] = Interval(value=auroc(lengths, right), n=n)
    return reached, rules


def flag_measures(logits: Numbers, targets: Numbers, categories: Sequence[str]) -> Measures:
    """Return F1 and AUC of each category and of `any_label`, and the F1 of always saying yes.

    `logits` are (n, a) log-odds, and `targets` (n, a) of 1 and 0, NaN where there is no label.
    """
    reached: dict[str, Interval] = {}
    rules: dict[str, Interval] = {}
    there, known = targets == 1, ~np.isnan(targets)
    columns = [(name, logits[:, at], there[:, at], known[:, at]) for at, name in enumerate(categories)]
    columns.append(("any_label", logits.max(axis=1), there.any(axis=1), there.any(axis=1) | known.all(axis=1)))
    for name, values, labels, labelled in columns:
        n = int(labelled.sum())
        if not n:
            continue
        said, right = values[labelled], labels[labelled]
        reached[f"f1_{name}"] = Interval(value=f1(said > 0, right), n=n)
        rules[f"f1_{name} of always yes"] = Interval(value=f1(np.ones(n, dtype=bool), right), n=n)
        if 0 < right.sum() < n:
            reached[f"auc_{name}"] = Interval(value=auroc(said, right), n=n)
    return reached, rules


def rated_measures(rewarded: Sequence[Rewarded], loss: str, means: Numbers, attributes: Sequence[str]) -> Measures:
    """Return what predictions of ratings are worth.

    By the loss that they were trained with, they are log-odds of one label ("bce"), of several ("multi_label"), or else
    the ratings, of which `means` are those of the training examples.
    """
    clusters = [one.cluster for one in rewarded]
    targets = _ratings([one.example for one in rewarded])
    predicted = np.concatenate([one.rewards for one in rewarded])
    if loss == "multi_label":
        return flag_measures(predicted, targets, attributes)
    if loss == "bce":
        lengths = np.concatenate([one.lengths for one in rewarded])
        return label_measures(predicted.mean(axis=1), targets[:, 0], lengths, clusters)
    return rating_measures(predicted, targets, means, clusters, attributes)


def training_means(examples: Sequence[Example]) -> Numbers:
    """Return the mean of each attribute over rated examples; 0 where nothing is rated."""
    values = _ratings(examples)
    counts = (~np.isnan(values)).sum(axis=0)
    means: Numbers = np.nansum(values, axis=0) / np.maximum(counts, 1)
    return means


def _ratings(examples: Sequence[Example]) -> Numbers:
    """(n, a) ratings, NaN where there is none."""
    return np.array([example.values for example in examples if isinstance(example, Rating)], dtype=float)


def calibration_error(believed: Numbers, outcomes: Numbers) -> float:
    """Return the expected calibration error over ten equal bins of confidence, which is at least a half.

    `believed` are (n,) probabilities that the first side wins, and `outcomes` how often it does, in [0, 1].
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


def pearson(one: Numbers, other: Numbers) -> float:
    """Return the correlation; 0 where a side is constant."""
    first, second = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum() / scale) if scale > 0 else 0.0


def sigmoid(values: Numbers) -> Numbers:
    """Return 1 / (1 + e^-x) without overflow."""
    shares: Numbers = np.exp(-np.logaddexp(0, -values))
    return shares


def f1(said: Flags, right: Flags) -> float | None:
    """Return 2 TP / (2 TP + FP + FN); None where nothing is there and nothing was said."""
    hits = int((said & right).sum())
    total = int(said.sum()) + int(right.sum())
    return 2 * hits / total if total else None
