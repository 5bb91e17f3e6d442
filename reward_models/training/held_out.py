"""What a model is worth on held-out examples: accuracy, calibration, length, each with what a trivial rule reaches.

Ties of two rewards count as wrong, as on RewardBench: a model that gives one number to everything is right nowhere.  A
label nobody gave is not a negative: such places are left out of a label's numbers.  Whether any label is there is known
of a row where one is, and where all are known not to be.

Steps of one problem resemble each other, so intervals draw whole problems again.  Beside the accuracy of steps stand
those of calling every step right, and of the commoner label.  The score of first errors is ProcessBench's: a solution
counts if the first step below a threshold is its first error, or no step is below and it has none; F1 is the harmonic
mean of the two shares.  The threshold for one half of the problems is taken from the other half, so that no solution
chooses the threshold it is judged by.

Every function returns what the model reaches, and what trivial rules reach, by name.

Not covered: benchmarks with metrics of their own (`adjudge.evals`), intervals of F1, which has no simple one, and
thresholds other than a probability of a half.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from adjudge.reward_models.training.report import Measures
from adjudge.statistics.intervals import Interval, clustered_mean, middle, numbered, resampled, wilson
from adjudge.statistics.ranks import auroc, spearman
from adjudge.training.examples import Example, Pair, Ranking, Rating
from adjudge.training.step_data import Label, first_error

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


Solution = tuple[Sequence[float], int]
"""The probabilities of a solution's steps, and the place of its first error, -1 for none."""

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
