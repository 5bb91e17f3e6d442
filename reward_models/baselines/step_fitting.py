"""Fitting a process model without a network: logistic regression on labelled steps, each in its context.

A soft label p enters as both outcomes, weighted p and 1 - p; a step without a label teaches nothing, and still stands
before the steps behind it.  How strong the data are against the penalty is chosen on problems held out for that: the
strength with the lowest log loss there, and then all problems are fitted.

Not covered: losses that order steps, and labels of answers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adjudge.reward_models.baselines.linear_fit import (
    INTERCEPT,
    Floats,
    Scaling,
    logistic_weights,
    shrinkage,
    sparse_rows,
)
from adjudge.reward_models.baselines.step_features import StepFeatureOptions, StepFeatures, features_of_steps
from adjudge.reward_models.baselines.step_weights import StepWeights
from adjudge.training.data_files import digest_of, held_out
from adjudge.training.step_data import StepExample

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""The strengths among which one is chosen; scikit-learn's C."""

# Most statistics say yes or no, so a rare yes is many standard deviations off; on GSM8K, cutting it costs 0.006 of AUC.
_FARTHEST = float("inf")
_ASIDE = 0.2  # share of the solutions on which the strength is chosen
_EVERYTHING = StepFeatureOptions()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Steps:
    """The labelled steps of solutions.

    Attributes:
        features: what is seen of each.
        labels: (n,) in [0, 1].
        weights: (n,) above 0.
        owners: (n,) the number of each step's solution.
    """

    features: list[StepFeatures]
    labels: Floats
    weights: Floats
    owners: Any


def fit_steps(
    examples: Sequence[StepExample],
    *,
    features: StepFeatureOptions = _EVERYTHING,
    strength: float | None = None,
    by_solution: bool = True,
    good: float = 1.0,
    bad: float = 1.0,
    seed: int = 0,
) -> StepWeights:
    """Return the weights that explain the labels best.

    Args:
        examples: solutions with labels.
        features: what is looked at.
        strength: of the data against the penalty, above 0; None to choose among `STRENGTHS` on problems held out.
        by_solution: every solution weighs the same, and all together as much as they have labelled steps; else every
            labelled step weighs the same.
        good: weight of right steps, above 0.
        bad: weight of wrong steps, above 0.
        seed: of the choice of problems held out.

    Raises:
        ValueError: there is too little to learn from, a number is out of range, or the extra is missing.
    """
    for name, value in (("strength", strength), ("good", good), ("bad", bad)):
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} is {value!r}; it must be above 0")
    examples = [example for example in examples if any(label is not None for label in example.labels)]
    if not examples:
        raise ValueError("no solution has a labelled step; give solutions with labels")
    steps = _steps(examples, features, by_solution=by_solution)
    losses: dict[float, float] = {}
    if strength is None:
        mine, aside = held_out(examples, _ASIDE, seed=seed)
        mine_only, aside_only = _of(steps, mine), _of(steps, aside)
        losses = {tried: _log_loss(_fitted(mine_only, features, tried, good, bad), aside_only) for tried in STRENGTHS}
        strength = min(losses, key=lambda tried: losses[tried])
    return replace(
        _fitted(steps, features, strength, good, bad),
        trained={
            "solutions": len(examples),
            "steps": len(steps.labels),
            "data": digest_of(examples),
            "strength": strength,
            "log_loss_by_strength": {f"{tried:g}": loss for tried, loss in losses.items()},
            "by_solution": by_solution,
            "good": good,
            "bad": bad,
        },
    )


def _steps(examples: Sequence[StepExample], options: StepFeatureOptions, *, by_solution: bool) -> _Steps:
    seen: list[StepFeatures] = []
    labels: list[float] = []
    owners: list[int] = []
    for number, example in enumerate(examples):
        for found, label in zip(features_of_steps(example.prompt, example.steps, options), example.labels, strict=True):
            if label is not None:
                seen.append(found)
                labels.append(float(label))
                owners.append(number)
    owned = np.array(owners, dtype=np.int64)
    shares = 1.0 / np.bincount(owned, minlength=len(examples))[owned] if by_solution else np.ones(len(owned))
    return _Steps(features=seen, labels=np.array(labels), weights=shares / shares.mean(), owners=owned)


def _of(steps: _Steps, solutions: Sequence[int]) -> _Steps:
    places = np.flatnonzero(np.isin(steps.owners, solutions))
    return _Steps(
        features=[steps.features[place] for place in places],
        labels=steps.labels[places],
        weights=steps.weights[places],
        owners=steps.owners[places],
    )


def _fitted(steps: _Steps, options: StepFeatureOptions, strength: float, good: float, bad: float) -> StepWeights:
    table = np.array([features.statistics for features in steps.features]).reshape(len(steps.features), -1)
    scaling, shrink, size = Scaling.fitted(table, farthest=_FARTHEST), shrinkage(len(options.names)), 1 << options.bits
    blocks = [
        sparse_rows([features.words for features in steps.features], size),
        sparse_rows([features.operations for features in steps.features], size),
    ]
    from scipy import sparse

    ones = sparse.csr_matrix(np.full((len(table), 1), INTERCEPT))
    terms = sparse.hstack([*blocks, sparse.csr_matrix(scaling.applied(table) * shrink), ones], format="csr")
    kinds = steps.labels * good + (1 - steps.labels) * bad
    chances = steps.labels * good / kinds  # good and bad weigh the two outcomes of a soft label apart
    found = logistic_weights(terms, chances, steps.weights * kinds, strength=strength)
    return StepWeights(
        options=options,
        words=found[:size].astype(np.float32),
        operations=found[size : 2 * size].astype(np.float32),
        lows=scaling.lows,
        highs=scaling.highs,
        means=scaling.means,
        scales=scaling.scales,
        statistics=found[2 * size : -1] * shrink,
        intercept=float(found[-1]) * INTERCEPT,
    )


def _log_loss(model: StepWeights, steps: _Steps) -> float:
    said = np.clip([model.chance(features) for features in steps.features], 1e-12, 1 - 1e-12)
    losses = steps.labels * np.log(said) + (1 - steps.labels) * np.log(1 - said)
    return -float(steps.weights @ losses / steps.weights.sum())
